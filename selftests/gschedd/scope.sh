#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# gschedctl run and systemd's scopes, on a bus of its own with a systemd that is none.
set -u
cd "$(dirname "$0")/../.." || exit
B=$PWD/${B:-build} OUT=$(mktemp -d /tmp/gschedctl-scope-XXXXXX)
. selftests/lib.sh
ctl=$B/bin/gschedctl
export GSCHED_BACKEND=daemon VGPU_NAME=gsched-${OUT##*/} VGPU_SMS=8 LD_LIBRARY_PATH=$B/vgpu
export DBUS_SYSTEM_BUS_ADDRESS=unix:path=$OUT/bus DBUS_SESSION_BUS_ADDRESS=unix:path=$OUT/bus
unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY GSCHED_BAND
top=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)/${VGPU_NAME}
pids=()

cleanup() {
	[ ${#pids[@]} = 0 ] || kill "${pids[@]}" 2>/dev/null
	stop_gschedd
	wait
	[ ! -d "$top" ] || find "$top" -depth -type d -exec rmdir {} +
	rm -rf "$OUT" "$(dirname "$GSCHED_SOCKET")" "/dev/shm/$VGPU_NAME"
}
trap cleanup EXIT

skip() { echo "1..0 # SKIP $1"; exit 0; }
command -v dbus-daemon >/dev/null || skip "no dbus-daemon"
ldconfig -p | grep -q 'libsystemd\.so\.0' || skip "no libsystemd"

# bus: a new one, where nobody is systemd
bus() {
	[ ${#pids[@]} = 0 ] || { kill "${pids[@]}"; wait "${pids[@]}"; } 2>/dev/null
	rm -f "$OUT/bus"
	dbus-daemon --session --nofork --nopidfile --address="unix:path=$OUT/bus" 2>"$OUT/bus.log" &
	pids=($!)
	wait_for 20 test -S "$OUT/bus" || die "no bus: $(cat "$OUT/bus.log")"
}

# systemd MODE: one of selftests/gschedd/fakesystemd
systemd() {
	bus
	"$B/selftests/gschedd/fakesystemd" "$1" "$top" >"$OUT/systemd" 2>&1 &
	pids+=($!)
	wait_for 20 grep -q ready "$OUT/systemd" || die "no systemd: $(cat "$OUT/systemd")"
}

# unscoped TEXT NAME: the program runs within seven seconds, where it is, and why is said only if it
# is asked for
unscoped() {
	local began=$SECONDS
	expect 0 "gschedctl: group web: no scope of its own: $1" "$2" \
		"$ctl" run -v -g web -- cat /proc/self/cgroup
	grep -qxF "0::$mine" "$OUT/out" && [ $((SECONDS - began)) -le 7 ]
	ok $? "$2: and the program runs where it was"
}

# in_group PID: the group of a program that is a client by now
in_group() {
	"$ctl" status --json |
		jq -e --argjson p "$1" --arg g "$2" \
		'.devices[0].clients | any(.pid == $p and .group == $g)'
}

# orphan GROUP OPTION...: a program that runs on after the one that gschedctl started has ended, and
# is nobody's child
orphan() {
	local group=$1 pid; shift
	rm -f "$OUT/pid"
	# shellcheck disable=SC2016
	"$ctl" run "$@" -g web \
		-- sh -c 'setsid sh -c "echo \$\$ >$0/pid; until [ -e $0/go ]; do sleep 0.02; done
		exec $1/programs/batch-drv --blocks 64 --kernels 1000000" >/dev/null 2>&1 &' \
			"$OUT" "$B"
	wait_for 10 test -s "$OUT/pid" && pid=$(<"$OUT/pid") || return 1
	wait_for 10 sh -c "! $ctl group get web procs | grep -q ."
	touch "$OUT/go"
	wait_for 20 in_group "$pid" "$group"
	ok $? "run $*: a program after a double fork is in group \"$group\""
	rm -f "$OUT/go"
	kill "$pid"
	wait_for 10 sh -c "! kill -0 $pid"
}

start_gschedd --embedded --nvml '' --driver "$B/vgpu/libcuda.so.1"
"$ctl" group create web && "$ctl" group create a-x && "$ctl" group create a-x/b || die "no groups"
mine=$(sed -n 's/^0:://p' /proc/self/cgroup)
case $mine in
/ | *.scope) ;;
*)	mkdir -p "$top/tests.scope" 2>/dev/null && echo $$ >"$top/tests.scope/cgroup.procs" ||
	skip "cgroups cannot be written"
	mine=$(sed -n 's/^0:://p' /proc/self/cgroup) ;;
esac

# without a systemd, as in a container: a cgroup below the program's own, if that can be made
# shellcheck disable=SC2016
in_container='mkdir -p "$0/container" && echo $$ >"$0/container/cgroup.procs" && exec "$@"'
if mkdir -p "$top" 2>/dev/null; then
	at=$(sh -c "$in_container" "$top" sed -n 's/^0:://p' /proc/self/cgroup)
	expect 0 "0::$at/gsched-web" "no bus: the program is in a cgroup of the group's" \
		sh -c "$in_container" "$top" "$ctl" run -v -g web -- cat /proc/self/cgroup
	grep -qF "gschedctl: group web: in $at/gsched-web" "$OUT/err"
	ok $? "run -v says which"
	expect 0 "$at/gsched-web" "which is the group's cgroup" "$ctl" group get web cgroup
	expect 0 "0::$at/gsched-web" "run within run" sh -c "$in_container" "$top" \
		"$ctl" run -g web -- "$ctl" run -v -g web -- cat /proc/self/cgroup
	! "$ctl" showconf | grep -q 'cgroup='
	ok $? "it is no setting"
	"$ctl" showconf | "$ctl" setconf - &&
		[ "$("$ctl" group get web cgroup)" = "$at/gsched-web" ]
	ok $? "and setconf leaves it"
	expect 0 "group web: no cgroup of its own: the group is bound to cgroup $at/gsched-web" \
		"a program elsewhere stays" "$ctl" run -v -g web -- true
	"$ctl" group set web cgroup=/elsewhere
	expect 0 "no cgroup of its own: the group is bound to cgroup /elsewhere" \
		"nor is another cgroup of the group's replaced" sh -c "$in_container" "$top" \
		"$ctl" run -v -g web -- true
	"$ctl" group set web cgroup=
	expect 0 "0::$at" "--no-scope: the program stays" \
		sh -c "$in_container" "$top" "$ctl" run --no-scope -g web -- cat /proc/self/cgroup
	expect 0 "" "the group has no cgroup" "$ctl" group get web cgroup
	find "$top" -mindepth 1 -depth -type d -exec rmdir {} +
else
	unscoped "$top: " "no bus"
fi
python3 -c 'import socket, sys, time
s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(); time.sleep(60)' "$OUT/bus" &
pids=($!)
wait_for 10 test -S "$OUT/bus"
unscoped "systemd does not answer" "a bus that says nothing"
bus
unscoped "systemd: " "a bus without systemd"
systemd refuse
unscoped "systemd: Unit gsched-web-" "a systemd that refuses"
expect 0 "" "a systemd that refuses, without -v" "$ctl" run -g web -- true
[ ! -s "$OUT/err" ]
ok $? "and nothing is said of it"
systemd silent
unscoped "systemd does not answer" "a systemd that does not answer"
systemd promise
unscoped "systemd did not move it" "a systemd that does not do what it says"
"$ctl" group set web cgroup=/elsewhere
unscoped "the group is bound to cgroup /elsewhere" "a group with another cgroup"
"$ctl" group set web cgroup=
[ "$(grep -c StartTransientUnit "$OUT/systemd")" = 1 ]
ok $? "for which systemd is not asked"

systemd move
orphan "" --no-scope
if ! mkdir -p "$top" 2>/dev/null; then
	echo "ok $((n += 1)) - scopes # SKIP cgroups cannot be written"
	done_testing
	exit
fi
# where it is seen from here, which may be a namespace
at=$(sh -c "echo \$\$ >$top/cgroup.procs && sed -n 's/^0:://p' /proc/self/cgroup")
slice="$at/gsched.slice/gsched-a\\x2dx.slice/gsched-a\\x2dx-b.slice"
expect 0 "0::$slice/gsched-a\\x2dx-b-" "a scope in slices as the groups are" \
	"$ctl" run -v -g a-x/b -- cat /proc/self/cgroup
grep -qF "gschedctl: group a-x/b: in $slice/gsched-a\\x2dx-b-" "$OUT/err"
ok $? "run -v says which"
expect 0 "$slice" "the slice is the group's cgroup" "$ctl" group get a-x/b cgroup
! "$ctl" showconf | grep -q 'cgroup='
ok $? "which systemd makes anew each time: it is no setting"
for line in 'Slice gsched-a\x2dx-b.slice' 'CollectMode inactive-or-failed' \
	"Description CUDA program of gsched's group a-x/b"; do
	grep -qxF "$line" "$OUT/systemd"
	ok $? "systemd is told: $line"
done
expect 0 "" "another program of the group" "$ctl" run -g a-x/b -- true
[ ! -s "$OUT/err" ]
ok $? "and nothing is said of it"
orphan web
mkdir -p "$top/some.service"
# shellcheck disable=SC2016
expect 0 "some.service is no scope" "a service stays in its cgroup" \
	sh -c 'echo $$ >"$0/some.service/cgroup.procs"; exec "$1" run -v -g web -- true' "$top" \
	"$ctl"
stop_gschedd
ok "$gschedd_status" "gschedd ends cleanly"
done_testing
