#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# gschedctl run with bands: which MPS server a program gets, on a gschedd --mps of its own with a control daemon that is none.
set -u
here=$(cd "$(dirname "$0")/../.." && pwd)
ctl=$here/bin/gschedctl
dir=$(mktemp -d /tmp/gschedctl-mps-XXXXXX)
export GSCHED_SOCKET=$dir/sock GSCHED_BACKEND=daemon GSCHED_INTERPOSER=$dir/interposer.so
unset LD_PRELOAD CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY GSCHED_BAND
n=0 failed=0 daemon=

finish() {
	if [ -n "$daemon" ]; then
		kill "$daemon" 2>/dev/null
		wait "$daemon" 2>/dev/null
	fi
	rm -rf "$dir"
}
trap finish EXIT

# ok STATUS NAME
ok() {
	n=$((n + 1))
	if [ "$1" = 0 ]; then
		echo "ok $n - $2"
	else
		echo "not ok $n - $2"
		failed=$((failed + 1))
		sed 's/^/# /' "$dir/out" "$dir/err" 2>/dev/null
	fi
}

# expect STATUS TEXT-IN-OUTPUT NAME COMMAND...
expect() {
	local want=$1 text=$2 name=$3 rc
	shift 3
	"$@" >"$dir/out" 2>"$dir/err" </dev/null
	rc=$?
	[ "$rc" = "$want" ] && { [ -z "$text" ] || cat "$dir/out" "$dir/err" | grep -qF -- "$text"; }
	ok $? "$name (status $rc)"
}

# silent NAME: gschedctl had nothing to say (the dynamic linker has, of the interposer that is none)
silent() {
	! grep -q '^gschedctl:' "$dir/err"
	ok $? "$1"
}

# start OPTION...
start() {
	[ -p "$dir/log" ] || mkfifo "$dir/log"
	"$here/bin/gschedd" --driver '' --nvml '' --cache "$dir/cache" --embedded \
		--device gpu0:GPU-00010203-0405-0607-0809-0a0b0c0d0e0f:16 "$@" 2>"$dir/log" &
	daemon=$!
	exec 3<"$dir/log"
	while read -r line <&3; do
		case $line in *serving*) break ;; esac
	done
	cat <&3 >"$dir/said" &
	exec 3<&-
}

stop() {
	kill "$daemon"
	wait "$daemon"
	ok $? "gschedd ends cleanly"
	daemon=
}

cp /bin/true "$dir/interposer.so"
mine=$dir/mps/$(id -u)
# shellcheck disable=SC2016
show='echo "pipe=${CUDA_MPS_PIPE_DIRECTORY-none} log=${CUDA_MPS_LOG_DIRECTORY-none} band=${GSCHED_BAND-none}"'

start --mps --mps-program="$here/selftests/gschedd/fakemps" --mps-dir="$dir/mps" --mps-wait=1
expect 0 "pipe=none log=none band=none" "a program of no group has no band" "$ctl" run -- sh -c "$show"
silent "and nothing is said of it"
expect 0 "MPS servers ($here/selftests/gschedd/fakemps)" "status: they are served" "$ctl" status
"$ctl" group create a && "$ctl" group create a/below && "$ctl" group create b && "$ctl" group create plain
if ! "$ctl" group set a gpu.band=blue 2>/dev/null && "$ctl" group get a gpu.band 2>&1 | grep -q 'no such'; then
	n=$((n + 1))
	echo "ok $n - bands of groups # SKIP this core has no gpu.band"
	stop
	echo "1..$n"
	[ "$failed" = 0 ]
	exit
fi
expect 0 "" "a band" "$ctl" group set b gpu.band=red
expect 1 'gpu.band: "Blue": Invalid argument; write a name of up to 31' "a bad name is refused" "$ctl" group set b gpu.band=Blue
expect 0 "pipe=$mine/blue/pipe log=$mine/blue/log band=blue" "a program of the group gets the band's server" \
	"$ctl" run -g a -- sh -c "$show"
silent "and nothing is said of it"
expect 0 "pipe=$mine/blue/pipe" "so does one of a group below" "$ctl" run -g a/below -- sh -c "$show"
expect 0 "pipe=$mine/red/pipe" "another band, another server" "$ctl" run -g b -- sh -c "$show"
expect 0 "pipe=none" "a group without a band has none" "$ctl" run -g plain -- sh -c "$show"
expect 0 "band blue, uid $(id -u): ready" "status: the servers" "$ctl" status
"$ctl" status --json | jq -e '.mps.servers | length == 2 and all(.starts == 1)' >/dev/null
ok $? "two of them, each started once"
expect 0 "export CUDA_MPS_PIPE_DIRECTORY='$mine/blue/pipe'" "run -e prints the settings" "$ctl" run -g a -e
grep -qF "export CUDA_MPS_LOG_DIRECTORY='$mine/blue/log'" "$dir/out"
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
expect 0 "pipe=/my/own log=none" "the user's own server stays" env CUDA_MPS_PIPE_DIRECTORY=/my/own "$ctl" run -g a -- sh -c "$show"
grep -qF "the one of band blue" "$dir/err"
ok $? "and it says so"
expect 0 "pipe=/my/own" "also without a band" env CUDA_MPS_PIPE_DIRECTORY=/my/own "$ctl" run -g plain -- sh -c "$show"
silent "where there is nothing to say"

echo deaf >"$dir/mps/FAULT"
"$ctl" group set plain gpu.band=deaf
expect 0 "pipe=none" "a server that is never ready: the program runs without" "$ctl" run -g plain -- sh -c "$show"
grep -qF "does not accept connections" "$dir/err" && grep -qF "shares the GPU in time only" "$dir/err"
ok $? "and it says why"
expect 1 "band deaf" "unless --strict" "$ctl" run --strict -g plain -- sh -c "$show"
grep -q pipe= "$dir/out"
[ $? = 1 ]
ok $? "which does not run it"
rm "$dir/mps/FAULT"
stop
[ -z "$(find "$dir/mps" -name nvidia-cuda-mps-control.pid)" ]
ok $? "and the servers with it"

echo "$$ 17" >"$dir/pids"
export FAKENVML_PIDS=$dir/pids
start --nvml "$here/selftests/gschedd/fakenvml.so"
expect 0 "not managed (no gsched in them; they run with the driver's time slice)" "status: a program without gsched" "$ctl" status
grep -qE "^ +$$ +(bash|mps-ctl) +17 MiB\$" "$dir/out"
ok $? "with its number, name and memory"
stop

start
expect 0 "no clients" "without NVIDIA's library" "$ctl" status
! grep -q "not managed" "$dir/out"
ok $? "nothing is said of such programs"
"$ctl" group create a && "$ctl" group set a gpu.band=blue
expect 0 "pipe=none" "without --mps a band has no server" "$ctl" run -g a -- sh -c "$show"
silent "and nothing is said of it"
stop
echo "1..$n"
[ "$failed" = 0 ]
