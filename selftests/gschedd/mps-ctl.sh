#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# gschedctl run with bands: which MPS server a program gets, on a gschedd --mps of its own with a
# control daemon that is none.
set -u
cd "$(dirname "$0")/../.." || exit
B=$PWD/${B:-build} OUT=$(mktemp -d /tmp/gschedctl-mps-XXXXXX)
. selftests/lib.sh
ctl=$B/bin/gschedctl
export GSCHED_BACKEND=daemon GSCHED_INTERPOSER=$OUT/interposer.so
unset LD_PRELOAD CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY GSCHED_BAND
trap 'stop_gschedd; rm -rf "$OUT" "$(dirname "$GSCHED_SOCKET")"' EXIT

# silent NAME: gschedctl had nothing to say (the dynamic linker has, of the interposer that is none)
silent() {
	! grep -q '^gschedctl:' "$OUT/err"
	ok $? "$1"
}

# start OPTION...
start() {
	start_gschedd --driver '' --nvml '' \
		--embedded --device gpu0:GPU-00010203-0405-0607-0809-0a0b0c0d0e0f:16 "$@"
}

stop() {
	stop_gschedd
	ok "$gschedd_status" "gschedd ends cleanly"
}

cp /bin/true "$OUT/interposer.so"
mine=$OUT/mps/$(id -u)
# shellcheck disable=SC2016
show='pipe=${CUDA_MPS_PIPE_DIRECTORY-none} log=${CUDA_MPS_LOG_DIRECTORY-none}
	echo "pipe=$pipe log=$log band=${GSCHED_BAND-none}"'

start --mps --mps-program="$B/selftests/gschedd/fakemps" --mps-dir="$OUT/mps" --mps-wait=1
expect 0 "pipe=none log=none band=none" "a program of no group has no band" \
	"$ctl" run -- sh -c "$show"
silent "and nothing is said of it"
expect 0 "MPS servers ($B/selftests/gschedd/fakemps)" "status: they are served" "$ctl" status
"$ctl" group create a && "$ctl" group create a/below && "$ctl" group create b &&
	"$ctl" group create plain
if ! "$ctl" group set a gpu.band=blue 2>/dev/null && "$ctl" group get a gpu.band 2>&1 |
	grep -q 'no such'; then
	n=$((n + 1))
	echo "ok $n - bands of groups # SKIP this core has no gpu.band"
	stop
	done_testing
	exit
fi
expect 0 "" "a band" "$ctl" group set b gpu.band=red
expect 1 'gpu.band: "Blue": Invalid argument; write a name of up to 31' "a bad name is refused" \
	"$ctl" group set b gpu.band=Blue
expect 0 "pipe=$mine/blue/pipe log=$mine/blue/log band=blue" \
	"a program of the group gets the band's server" \
	"$ctl" run -g a -- sh -c "$show"
silent "and nothing is said of it"
expect 0 "pipe=$mine/blue/pipe" "so does one of a group below" \
	"$ctl" run -g a/below -- sh -c "$show"
expect 0 "pipe=$mine/red/pipe" "another band, another server" "$ctl" run -g b -- sh -c "$show"
expect 0 "pipe=none" "a group without a band has none" "$ctl" run -g plain -- sh -c "$show"
expect 0 "band blue, uid $(id -u): ready" "status: the servers" "$ctl" status
"$ctl" status --json | jq -e '.mps.servers | length == 2 and all(.starts == 1)' >/dev/null
ok $? "two of them, each started once"
expect 0 "export CUDA_MPS_PIPE_DIRECTORY='$mine/blue/pipe'" "run -e prints the settings" \
	"$ctl" run -g a -e
grep -qF "export CUDA_MPS_LOG_DIRECTORY='$mine/blue/log'" "$OUT/out"
ok $? "of the log, too"
# shellcheck disable=SC2016
expect 0 "pipe=$mine/red/pipe" "and a shell that takes them passes them on" \
	bash -c 'eval "$("$1" run -g b -e)"; '"$show" bash "$ctl"
# shellcheck disable=SC2016
expect 0 "pipe=$mine/blue/pipe" "until it runs something in another group" \
	bash -c 'eval "$("$1" run -g b -e)"; "$1" run -g a -- sh -c "$2"' bash "$ctl" "$show"
# shellcheck disable=SC2016
expect 0 "pipe=none" "or in one without a band" \
	bash -c 'eval "$("$1" run -g b -e)"; "$1" run -g plain -- sh -c "$2"' bash "$ctl" "$show"
# shellcheck disable=SC2016
expect 0 "pipe=none" "which run -e takes out again" \
	bash -c 'eval "$("$1" run -g b -e)"; eval "$("$1" run -g plain -e)"; '"$show" bash "$ctl"
expect 0 "pipe=/my/own log=none" "the user's own server stays" env CUDA_MPS_PIPE_DIRECTORY=/my/own \
	"$ctl" run -g a -- sh -c "$show"
grep -qF "the one of band blue" "$OUT/err"
ok $? "and it says so"
expect 0 "pipe=/my/own" "also without a band" env CUDA_MPS_PIPE_DIRECTORY=/my/own \
	"$ctl" run -g plain -- sh -c "$show"
silent "where there is nothing to say"
expect 0 "pipe=/my/own" "--strict, no band" env CUDA_MPS_PIPE_DIRECTORY=/my/own \
	"$ctl" run --strict -g plain -- sh -c "$show"
expect 1 "band blue: \$CUDA_MPS_PIPE_DIRECTORY is set" "--strict, a band: not in another server" \
	env CUDA_MPS_PIPE_DIRECTORY=/my/own "$ctl" run --strict -g a -- sh -c "$show"

echo deaf >"$OUT/mps/FAULT"
"$ctl" group set plain gpu.band=deaf
expect 0 "pipe=none" "a server that is never ready: the program runs without" \
	"$ctl" run -g plain -- sh -c "$show"
grep -qF "does not accept connections" "$OUT/err" &&
	grep -qF "shares the GPU in time only" "$OUT/err"
ok $? "and it says why"
expect 1 "band deaf" "unless --strict" "$ctl" run --strict -g plain -- sh -c "$show"
grep -q pipe= "$OUT/out"
[ $? = 1 ]
ok $? "which does not run it"
rm "$OUT/mps/FAULT"
stop
[ -z "$(find "$OUT/mps" -name nvidia-cuda-mps-control.pid)" ]
ok $? "and the servers with it"

echo "$$ 17 busy 40" >"$OUT/pids"
export FAKENVML_PIDS=$OUT/pids
start --nvml "$B/selftests/gschedd/fakenvml.so"
expect 0 "not managed (no gsched in them; they run with the driver's time slice)" \
	"status: a program without gsched" "$ctl" status
grep -qE "^ +$$ +$(cat /proc/$$/comm) +17 MiB +40 %$" "$OUT/out"
ok $? "with its number, name, memory and part of the time"
stop

start
expect 0 "no clients" "without NVIDIA's library" "$ctl" status
! grep -q "not managed" "$OUT/out"
ok $? "nothing is said of such programs"
"$ctl" group create a && "$ctl" group set a gpu.band=blue
expect 0 "pipe=none" "without --mps a band has no server" "$ctl" run -g a -- sh -c "$show"
silent "and nothing is said of it"
expect 1 "band blue: there is no MPS server: start gschedd with --mps" "--strict: it does not run" \
	"$ctl" run --strict -g a -- sh -c "$show"
expect 0 "pipe=none" "--strict, no band" "$ctl" run --strict -- sh -c "$show"
stop

# several devices: one server for all of them
start --device gpu1:101112131415161718191a1b1c1d1e1f:8 \
	--mps --mps-program="$B/selftests/gschedd/fakemps" --mps-dir="$OUT/mps" --mps-wait=1
for d in gpu0 gpu1; do
	"$ctl" -d $d group create a
done
"$ctl" -d gpu1 group set a gpu.band=green
expect 0 "pipe=$mine/green/pipe" "the band is named on the second device only" \
	"$ctl" run -g a -- sh -c "$show"
said="its band is green on gpu1 and none on gpu0; the program is in green on both"
grep -qxF "gschedctl: group a: $said" "$OUT/err"
ok $? "and it says so"
"$ctl" -d gpu0 group set a gpu.band=green
expect 0 "pipe=$mine/green/pipe" "the same on both" "$ctl" run -g a -- sh -c "$show"
silent "nothing is said of it"
expect 0 "pipe=$mine/green/pipe" "on one of them" "$ctl" run -d gpu1 -g a -- sh -c "$show"
stop
done_testing
