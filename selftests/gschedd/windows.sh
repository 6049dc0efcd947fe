#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# windows.sh: a quota that is raised time and again while one kernel runs, more often than a process
# has streams for wings. Each time the kernel gets the SMs.
set -u
cd "$(dirname "$0")/../.." || exit
B=$PWD/${B:-build} OUT=$(mktemp -d /tmp/gsched-windows-XXXXXX)
# shellcheck disable=SC2034 # for lib.sh
BACKEND=daemon
. selftests/lib.sh
ctl=$B/bin/gschedctl
export VGPU_NAME=gsched-windows-$$ VGPU_SMS=32 LD_LIBRARY_PATH=$B/vgpu
unset GSCHED_INTERPOSER
cleanup() {
	jobs -p | xargs -r kill 2>/dev/null
	stop_gschedd
	wait
	rm -rf "$OUT" "$(dirname "$GSCHED_SOCKET")" "/dev/shm/$VGPU_NAME"
}
trap cleanup EXIT
command -v jq >/dev/null || { echo "1..0 # SKIP no jq"; exit; }

batch=("$B/programs/batch-drv" --blocks 150000 --threads 32 --iters 300 --kernels 1)
alone=$("${batch[@]}" | jq -r .checksum)
rm -f "/dev/shm/$VGPU_NAME"

start_gschedd --driver "$B/vgpu/libcuda.so.1" --embedded --nvml ''
group_create a
group_write a capsm.max 1
GSCHED_DEBUG=1 "$ctl" run --group a -- "${batch[@]}" >"$OUT/a" 2>"$OUT/log" &
pid=$!
# has SMS: workers of so many SMs run, of 16 each, but for one of 16; and those that landed on other
# SMs have left
has() {
	"$ctl" status --json | jq -e --argjson sms "$1" '.devices[0].clients[0].slots[0] |
		.launched - .left >= $sms * 15 and .launched - .left <= $sms * 16' >/dev/null
}
wait_for 20 has 1
ok $? "one SM"
for sms in $(seq 2 30); do
	group_write a capsm.max "$sms"
	wait_for 20 has "$sms" || break
done
[ "$sms" = 30 ] && has 30
ok $? "raised 29 times, and each time it has that many"
grep -q "its workers leave and come back" "$OUT/log"
ok $? "once there was no stream, and all its workers left"
group_write a capsm.max max
wait "$pid"
ok $? "the program ends"
[ "$alone" = "$(jq -r .checksum "$OUT/a")" ]
ok $? "and its result is the same as without gsched"
done_testing
