#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# qos.sh [daemon|module]: gschedctl qos on the simulated GPU, requests with a latency target beside
# two batch programs. Its speed is that of the host's processors and of what else runs there, so
# targets are multiples of what is measured first. With "module" gsched.ko is loaded already, as in
# selftests/qemu/run -- selftests/gschedd/qos.sh module
# shellcheck disable=SC2016 # programs of jq
set -u
cd "$(dirname "$0")/../.." || exit
B=$PWD/${B:-build} OUT=$(mktemp -d /tmp/gsched-qos-XXXXXX)
BACKEND=${1:-daemon}
. selftests/lib.sh
ctl=$B/bin/gschedctl
export GSCHED_BACKEND=$BACKEND VGPU_NAME=gsched-qos-$$ VGPU_SMS=8 LD_LIBRARY_PATH=$B/vgpu
unset GSCHED_INTERPOSER
cleanup() {
	[ "$failed" = 0 ] || tail -n 40 "$OUT"/qos.log "$OUT"/qos.err 2>/dev/null | sed 's/^/# /'
	jobs -p | xargs -r kill 2>/dev/null
	stop_gschedd
	wait
	[ "$BACKEND" = daemon ] || rmdir "$gsched_configfs"/{web,a,b} 2>/dev/null
	rm -rf "$OUT" "$(dirname "$GSCHED_SOCKET")" "/dev/shm/$VGPU_NAME"
}
trap cleanup EXIT
command -v jq >/dev/null || { echo "1..0 # SKIP no jq"; exit; }

expect 2 "a number from 0 to 90" "qos: a margin above all" "$ctl" qos --margin 91
expect 2 "a number from 0 to 90" "qos: no number" "$ctl" qos --margin=x
expect 2 "a number from 300 to 60000" "qos: a time to live too short to renew" "$ctl" qos --ttl 299
expect 2 "Usage" "qos: an argument" "$ctl" qos now
[ "$BACKEND" = module ] || expect 1 "no arbiter" "qos without an arbiter" "$ctl" qos

arbiter=--embedded
[ "$BACKEND" = daemon ] || arbiter=--module
start_gschedd --driver "$B/vgpu/libcuda.so.1" $arbiter --nvml ''
for g in web a b; do group_create $g; done
report=$GSCHED_SOCKET.qos.gpu0

# qos JQ-CONDITION: of what the planner says of group web in the status
qos() { "$ctl" status --json | jq -e '.devices[0].qos.groups[0] | '"$1" >/dev/null; }
# plan_min GROUP: of its part of the plan, MIN, MIN-MAX or MIN!
plan_min() {
	local part
	part=$(group_read "$1" capsm.plan)
	echo "${part%%[-!]*}"
}
# planned CONDITION: of the plan's least SMs for web, a and b
planned() {
	local web a b
	web=$(plan_min web) a=$(plan_min a) b=$(plan_min b)
	[ "$web" != none ] && (($1))
}
policy() { "$ctl" status --json | jq -e --arg p "$1" '.devices[0].policy == $p' >/dev/null; }

"$ctl" qos --verbose --ttl 800 >"$OUT/qos.log" 2>"$OUT/qos.err" &
planner=$!
wait_for 10 test -s "$report"
expect 0 "qos: no plan: no group with a latency target has a program" "nothing to plan" \
	"$ctl" status
expect 1 "process $planner plans it already" "a second planner" "$ctl" qos
policy hpf
ok $? "and the policy is as it was"

# In QEMU a thirtieth of the work takes as long. Requests follow each other, which makes a quota
# useful.
iters=600
[ "$BACKEND" = daemon ] || iters=20
requests=("$B/programs/latency-drv" --blocks 128 --threads 32 --iters "$iters" --period-us 1000
	--requests 1000000)
"$ctl" run --group web -- "${requests[@]}" >"$OUT/web" 2>&1 &
web=$!
batch=("$B/programs/batch-drv" --blocks 2048 --threads 64 --iters "$iters" --kernels 1000000)
"$ctl" run --group a -- "${batch[@]}" >"$OUT/a" 2>&1 &
a=$!
"$ctl" run --group b --class H_M -- "${batch[@]}" >"$OUT/b" 2>&1 &
b=$!

first() { [ "$(group_read web capsm.plan)" = 0-8 ]; }
# no target that it could miss: the smallest quota is enough
group_write web gpu.latency_target_us 10000000
wait_for 30 policy plan
ok $? "a target, and others beside it: a plan is in force"
first
ok $? "it comes first, without a quota"
# what is planned does not depend on the arbiter, and takes minutes in QEMU
if [ "$BACKEND" = daemon ]; then
	# some dozens of requests, then eight for each step down
	wait_for 400 planned 'web == 1 && a + b == 7'
	ok $? "a target of ten seconds: one SM is enough, the others share the rest"
	wait_for 30 qos '.state == "met" and .latency_us > 0'
	ok $? "status: it is met"
	expect 0 "qos: web: target 10000 ms, " "in words" "$ctl" status
	us=$("$ctl" status --json | jq '.devices[0].qos.groups[0].latency_us')

	# less than it takes with one SM; on a busy host that was guessed too long by a factor of two
	group_write web gpu.latency_target_us "$((us / 4))"
	wait_for 60 planned 'web > 1 && a >= 1 && b >= 1'
	ok $? "a quarter of what it takes with one SM, $us us: it has more"
	# less than it takes with all
	group_write web gpu.latency_target_us 100
	wait_for 60 planned 'web == 6 && a == 1 && b == 1'
	ok $? "a target that cannot be met: all but one SM for each of the others"
	wait_for 60 qos '.state == "missed"'
	ok $? "status: it is missed"
	expect 0 "the target cannot be met on this device" "in words" "$ctl" status
	wait_for 180 first
	ok $? "and as a quota does not help it comes first again"
fi

# renewed: longer than the time to live
sleep 1
policy plan
ok $? "a plan is renewed"
kill -STOP $planner
wait_for 10 policy hpf
ok $? "a planner that hangs: the plan expires, and the policy from before decides"
expect 0 "plan: expired without another one: hpf decides again" "status says so" "$ctl" status
kill -CONT $planner
wait_for 10 policy plan
ok $? "it goes on: a plan again"
kill -KILL $planner
wait $planner 2>/dev/null
wait_for 10 policy hpf
ok $? "killed: the same"
sleep 3
! "$ctl" status | grep -q qos:
ok $? "and what it said last is not told for long"

"$ctl" qos --ttl 60000 2>"$OUT/qos.err" &
planner=$!
wait_for 30 policy plan
ok $? "another one may start"
kill $planner
wait $planner
ok $? "ended by a signal"
policy hpf
ok $? "its plan ends at once, not in a minute"
[ ! -e "$report" ]
ok $? "and nothing is left of it"
"$ctl" qos 2>"$OUT/qos.err" &
planner=$!
wait_for 30 policy plan
kill $a $b
wait_for 30 policy hpf
ok $? "the others end: no plan"
kill $web
wait $web $a $b
if [ "$BACKEND" = module ]; then
	kill $planner
	wait $planner
	done_testing
	exit
fi
stop_gschedd
wait $planner
[ $? = 1 ] && grep -q -e "gschedd has ended" -e "is the arbiter still there" "$OUT/qos.err"
ok $? "gschedd ends: so does the planner, and says why"

# gschedd --qos
start_gschedd --driver "" --embedded --device gpu0:00112233445566778899aabbccddeeff:8 --qos
report=$GSCHED_SOCKET.qos.gpu0
wait_for 10 test -s "$report"
ok $? "gschedd --qos runs it"
planner=$(jq .pid "$report")
kill -KILL "$planner"
replaced() { ! jq -e --argjson was "$planner" '.pid == $was' "$report"; }
wait_for 15 replaced
ok $? "and again when it dies"
planner=$(jq .pid "$report")
grep -q -e "--qos: the planner was ended by signal 9" "$OUT/gschedd.log"
ok $? "the log says so"
stop_gschedd
[ "$gschedd_status" = 0 ] && ! kill -0 "$planner" 2>/dev/null && [ ! -e "$report" ]
ok $? "gschedd ends, and with it the planner"
cp "$B/bin/gschedd" "$OUT/gschedd"
expect 1 "--qos: $OUT/gschedctl: No such file" "gschedctl is not there" \
	env LD_LIBRARY_PATH="$B/lib:$B/lib/bundle" "$OUT/gschedd" --socket "$OUT/socket" \
	--cache "" --driver "" --embedded --qos
done_testing
