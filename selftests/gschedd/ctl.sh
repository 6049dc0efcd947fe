#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# gschedctl from end to end, on a gschedd of its own.
set -u
cd "$(dirname "$0")/../.." || exit
B=$PWD/${B:-build} OUT=$(mktemp -d /tmp/gschedctl-test-XXXXXX)
. selftests/lib.sh
ctl=$B/bin/gschedctl
export GSCHED_BACKEND=daemon
unset GSCHED_INTERPOSER LD_PRELOAD
trap 'stop_gschedd; kill ${sleeper:-} 2>/dev/null; rm -rf "$OUT" "$(dirname "$GSCHED_SOCKET")"' EXIT

expect 1 "no arbiter" "no gschedd: status says so" "$ctl" status
expect 1 "no arbiter: $GSCHED_SOCKET: No such file" "and where it was looked for" "$ctl" status
expect 1 "no arbiter: $OUT/none: " "with --socket, too" "$ctl" -s "$OUT/none" status
expect 1 "no arbiter: /dev/gsched: " "and for the module" "$ctl" -b module status
expect 1 "start gschedd, or --best-effort" "no gschedd: a program does not run" \
	"$ctl" run -- echo hello
! grep -q hello "$OUT/out"
ok $? "indeed"
expect 1 "start gschedd" "nor are there settings for a shell" "$ctl" run --env
expect 0 "hello" "unless --best-effort" "$ctl" run --best-effort -- echo hello
[ "$(wc -l <"$OUT/err")" = 1 ] && grep -q "no arbiter: .*; echo runs unmanaged" "$OUT/err"
ok $? "one line says that it is unmanaged"
# shellcheck disable=SC2016
expect 0 "" "and so does a shell" bash -c 'set -e; eval "$("$1" run -e --best-effort)"' bash "$ctl"
expect 2 "choose one" "--best-effort and --strict" "$ctl" run --best-effort --strict -- true
expect 2 "Usage" "no command: usage" "$ctl"
expect 2 "no such command" "unknown command: usage" "$ctl" frobnicate
expect 2 "unrecognized option" "unknown option" "$ctl" --frobnicate
expect 2 "name the program" "run without a program" "$ctl" run
expect 2 "leave the program out" "run --env with one" "$ctl" run -e -- true
expect 2 "needs --group" "run --create without --group" "$ctl" run -c -- true
expect 2 "none of rank worker" "run --limit-by with what there is not" \
	"$ctl" run --limit-by=ran -- true
expect 2 "none of L_C M_C H_C M_M H_M" "run --class with what there is not" \
	"$ctl" run --class=H_H -- true
expect 0 "GSCHED_CLASS=H_M" "run --class" "$ctl" run --best-effort --class=H_M -- env
expect 0 "GSCHED_LIMIT_BY=worker" "run --limit-by" "$ctl" run --best-effort --limit-by=worker -- env
expect 2 "none of queue static" "run --dispatch with what there is not" \
	"$ctl" run --dispatch= -- true
expect 0 "GSCHED_DISPATCH=static" "run --dispatch" "$ctl" run --best-effort --dispatch=static -- env
for w in 0 33 x -1 "" " 4" +4; do
	expect 2 "a number from 1 to 32" "run --workers=$w" "$ctl" run --workers="$w" -- true
done
expect 0 "GSCHED_WORKERS=4" "run --workers" "$ctl" run --best-effort --workers=4 -- env
expect 2 "group create" "group alone: what there is" "$ctl" group
expect 2 "group frobnicate: no such command" "no such command of group" "$ctl" group frobnicate
expect 2 "Usage: gschedctl group get" "too few arguments" "$ctl" group get a
expect 2 "Usage: gschedctl group get" "too many" "$ctl" group get a capsm.max capsm.min
expect 2 "from 0.01 to 3600" "watch -n with what is no time" "$ctl" watch -n x
for lines in 0 x -1 ""; do
	expect 2 "a number of lines, at least 1" "monitor -n $lines" "$ctl" monitor -n "$lines"
done
expect 2 "FILE=VALUE" "group set without =" "$ctl" group set a capsm.max
expect 2 "backend" "unknown backend" "$ctl" -b cloud status
for h in --help "-?" -h help; do
	expect 0 "group create" "gschedctl $h" "$ctl" "$h"
done
expect 0 "device delete" "help FAMILY" "$ctl" help device
expect 0 "device delete" "FAMILY --help" "$ctl" device --help
expect 2 "no such command" "help of what there is not" "$ctl" help frobnicate
"$ctl" help | sed -nE 's/^  ([a-z]+( [a-z]+)?)   *.*/\1/p' | grep -v -e -- >"$OUT/commands"
ok "$([ "$(wc -l <"$OUT/commands")" -ge 12 ]; echo $?)" "help lists the commands"
while read -r command; do
	for h in --help -h; do
		# shellcheck disable=SC2086
		expect 0 "Usage: gschedctl $command " "$command $h" "$ctl" $command "$h"
	done
	# shellcheck disable=SC2086
	expect 0 "Usage: gschedctl $command " "help $command" "$ctl" help $command
done <"$OUT/commands"
for v in --version -V version; do
	expect 0 "gschedctl 0.1" "$v" "$ctl" "$v"
done
for v in --version -V; do
	expect 0 "gschedd 0.1" "gschedd $v" "$B/bin/gschedd" "$v"
done
for p in plan x; do
	expect 2 "it is hpf, srt, ffs, wfq or corun" "gschedd --policy=$p" \
		timeout 10 "$B/bin/gschedd" --socket "$OUT/none" --policy=$p
done

start_gschedd --driver '' --embedded \
	--device gpu0:GPU-00010203-0405-0607-0809-0a0b0c0d0e0f:16 \
	--device gpu1:101112131415161718191a1b1c1d1e1f:8

expect 0 "gpu0: 16 SMs" "status" "$ctl" status
expect 0 '"backend":"daemon"' "status --json" "$ctl" status --json
"$ctl" status --json | jq -e '.devices | length == 2' >/dev/null
ok $? "is JSON with two devices"
expect 0 "" "group create" "$ctl" group create batch
expect 1 "File exists" "group create again" "$ctl" group create batch
expect 1 "no such group" "group create below nothing" "$ctl" group create none/below
expect 1 "a name is letters" "group create with a bad name" "$ctl" group create 'a b'
expect 1 "7 below the root" "group create with too many levels" "$ctl" group create a/b/c/d/e/f/g/h
for deep in 1 1/2 1/2/3 1/2/3/4 1/2/3/4/5 1/2/3/4/5/6; do "$ctl" group create $deep; done
expect 0 "" "seven may be" "$ctl" group create 1/2/3/4/5/6/7
for deep in 1/2/3/4/5/6/7 1/2/3/4/5/6 1/2/3/4/5 1/2/3/4 1/2/3 1/2 1; do
	"$ctl" group delete $deep
done
expect 1 "group a/: Invalid argument; a name is letters" "what is wrong is the name" \
	"$ctl" group set a/ gpu.weight=1
expect 1 "group a b: no such group; a name is letters" "not its absence" \
	"$ctl" group get "a b" gpu.weight
expect 1 "group none: no such group; see gschedctl group list" "group delete of none" \
	"$ctl" group delete none
expect 1 "the root group stays" "of the root" "$ctl" group delete /
expect 0 "" "group set, two files" "$ctl" group set batch capsm.max=4 gpu.priority=7
expect 0 "4" "group get" "$ctl" group get batch capsm.max
expect 0 "gpu.priority          7" "group show NAME" "$ctl" group show batch
expect 0 "batch" "group show" "$ctl" group show
expect 1 'group batch: capsm.max: "17": Invalid argument; write max or a number of SMs' \
	"a quota above the device" \
	"$ctl" group set batch capsm.max=17
expect 1 'group batch: gpu.priority: "100"' "a priority above 99" \
	"$ctl" group set batch gpu.priority=100
expect 0 "" "a limit of memory" "$ctl" group set batch memory.max=1536M
expect 0 "memory.max            1610612736" "is shown in bytes" "$ctl" group show batch
expect 1 'group batch: memory.max: "1.5G": Invalid argument; write max or a number of bytes' \
	"a bad one" "$ctl" group set batch memory.max=1.5G
expect 1 "it can only be read" "what is held is not set" "$ctl" group set batch memory.current=1
expect 0 "0" "but read" "$ctl" group get batch memory.peak
"$ctl" status | awk '$1 == "batch" { exit $7 != "0/1.5G" }'
ok $? "the status has both"
expect 1 "no such file" "an unknown file" "$ctl" group set batch gpu.colour=1
expect 1 "it can only be read" "a file that is only read" "$ctl" group set batch capsm.current=1
expect 1 "no such group" "an unknown group" "$ctl" group set none capsm.max=1
expect 1 "no such group" "shown" "$ctl" group show none
# a client of gpu0, by two connections
perl -MSocket -e \
	'for (0, 1) {
	socket $s[$_], AF_UNIX, SOCK_SEQPACKET, 0 and
		connect $s[$_], sockaddr_un($ENV{GSCHED_SOCKET}) or die;
	syswrite $s[$_],
		pack("L4 L2 H32 x64", 3, 1, 0, 0, 88, 1, "000102030405060708090a0b0c0d0e0f");
	sysread $s[$_], $r, 4096; }
	print((unpack "L4", $r)[2], "\n"); $| = 1; print ""; sleep 1000' \
		>"$OUT/attached" &
sleeper=$!
for _ in $(seq 1000); do [ -s "$OUT/attached" ] && break; sleep 0.01; done
expect 0 "" "client set, two files" "$ctl" client set $sleeper capsm.max=3.5 gpu.priority=2
expect 0 "3.5" "client get" "$ctl" client get $sleeper capsm.max
expect 0 "$sleeper: has capsm.max 3.5, gpu.weight 100, gpu.priority 2 in its group" \
	"the status shows it" "$ctl" status
expect 1 "client $sleeper: gpu.weight: \"0\": Invalid argument; write a number from 1 to 10000" \
	"a bad value" \
	"$ctl" client set $sleeper gpu.priority=1 gpu.weight=0
expect 0 "2" "takes back what was written before it" "$ctl" client get $sleeper gpu.priority
expect 1 "the files are capsm.max, gpu.weight and gpu.priority" "a file that it has not" \
	"$ctl" client set $sleeper gpu.band=x
expect 1 "no client has that pid" "a process that is no client" "$ctl" client set $$ capsm.max=1
expect 2 "give the number of a process" "what is no process" "$ctl" client get x capsm.max
for c in "group create x" "group show" "group get / capsm.max" "device set policy=hpf" \
	"run -- true" status watch; do
	# shellcheck disable=SC2086
	expect 1 "device gpu9: there is none of this name; there are: gpu0, gpu1" \
		"-d of no device: $c" "$ctl" -d gpu9 $c
	# shellcheck disable=SC2046,SC2086
	expect 1 "device gpu9: there is none of this name" "and behind the command: ${c%% *}" \
		"$ctl" ${c%% -- *} -d gpu9 $([[ $c != *--* ]] || echo -- true)
done
expect 0 'gsched_device_info{device="gpu0",uuid="' "metrics of the devices" "$ctl" metrics
expect 0 'gsched_group_capsm_max{device="gpu0",group="batch"} 4' "of groups" "$ctl" metrics
expect 0 'gsched_group_preemption_seconds_bucket{device="gpu0",group="batch",le="1.048576"} 0' \
	"of their evictions" "$ctl" metrics
grep -qF 'gsched_group_memory_limit_bytes{device="gpu0",group="batch"} 1610612736' "$OUT/out" &&
	grep -qF 'gsched_group_memory_bytes{device="gpu0",group="batch"} 0' "$OUT/out" &&
	grep -qF 'gsched_group_memory_peak_bytes{device="gpu0",group="batch"} 0' "$OUT/out" &&
	grep -qF 'gsched_group_events_total{device="gpu0",group="batch",event="memory_max"} 0' \
		"$OUT/out"
ok $? "of their memory"
! grep -q 'gsched_group_\(capsm_max\|memory_limit_bytes\){device="gpu0",group="/"}' "$OUT/out"
ok $? "what has no limit has none"
# samples of one name stand together, behind their type, and no sample comes twice
awk '/^# TYPE / { bad += seen[$3]++; type = $3; kind = $4; n++; next } /^#/ { next }
	{ name = $1; sub(/{.*/, "", name) }
	kind == "histogram" { sub(/_(bucket|sum|count)$/, "", name) }
	name != type || twice[$1]++ || $2 + 0 != $2 { bad = 1 }
	END { exit bad || n <= 15 }' "$OUT/out"
ok $? "in Prometheus' format"
[ "$(grep -c "^gsched_client_wings_total.*pid=\"$sleeper\"" "$OUT/out")" = 1 ]
ok $? "with the process that has two connections"
kill $sleeper; wait $sleeper 2>/dev/null; sleeper=
"$ctl" monitor >"$OUT/events" 2>"$OUT/monitor.err" &
monitor=$!
"$ctl" -d gpu1 monitor -o json -n 3 >"$OUT/events.json" &
three=$!
wait_for 10 grep -q "^gpu1 group group=/ " "$OUT/events"
wait_for 10 grep -q '"object":"group"' "$OUT/events.json"
"$ctl" group create watched && "$ctl" group delete watched
"$ctl" device set policy=ffs && "$ctl" device set policy=hpf
expect 0 "" "a group of the other device" "$ctl" -d gpu1 group create watched
wait $three
ok $? "monitor of a device ends after three lines"
ok "$(jq -se 'length == 3 and all(.device == "gpu1") and .[1].memory == 0 and
	.[2].event == "group-add" and .[2].time_ns > 0' "$OUT/events.json" >/dev/null; echo $?)" "which are of that device"
"$ctl" -d gpu1 group delete watched
wait_for 10 grep -Eq '^\[ *[0-9]+\.[0-9]{6}\] gpu1 group-delete group=watched$' "$OUT/events"
ok $? "monitor prints what there is and what happens, of all devices"
grep -q "^gpu0 device uuid=.* sms=16 policy=hpf" "$OUT/events" &&
	grep -q "gpu0 group-add group=watched" "$OUT/events" &&
	grep -q "gpu0 policy policy=ffs" "$OUT/events"
ok $? "and of this one"
kill $monitor
wait $monitor 2>/dev/null
expect 0 "" "the second device has groups of its own" "$ctl" -d gpu1 group create other
expect 1 "no such group" "which the first has not" "$ctl" group get other capsm.max
expect 0 "" "device set" "$ctl" device set mode=spatial policy=hpf
expect 0 "" "device set NAME" "$ctl" device set gpu1 mode=temporal
expect 0 "" "device set NAME, and -d of the same" "$ctl" -d gpu1 device set gpu1 mode=temporal
for c in "device set gpu1 mode=spatial" "device delete gpu1"; do
	# shellcheck disable=SC2086
	expect 2 "device gpu1: --device names another one, gpu0" "${c%% gpu1*}, and -d of another" \
		"$ctl" -d gpu0 $c
done
expect 0 "gpu0: 16 SMs, spatial" "it shows" "$ctl" status
expect 1 "mode is auto, spatial or temporal" "device set, a bad mode" \
	"$ctl" device set mode=sideways
# a client takes about 49 KiB
"$ctl" status --json | jq -e --argjson mem "$(awk '/^MemTotal:/ { print $2 }' /proc/meminfo)" '
	def places($kib): $mem / 1024 / $kib | [[., 64] | max, 512] | min | floor;
	.devices[0].clients_max | . >= places(56) and . <= places(40)' >/dev/null
ok $? "places for clients by the machine's memory"
expect 0 "" "device set, numbers" "$ctl" device set switch_us=150 max_overhead=20 max_slowdown=300
expect 1 "switch_us is 10 to 10000" "device set, a number out of range" \
	"$ctl" device set switch_us=1
expect 1 "policy is hpf, srt, ffs, wfq or corun" "device set, an unknown policy" \
	"$ctl" device set policy=fifo
expect 0 "" "a band and a latency target" "$ctl" group set batch gpu.band=serving \
	gpu.latency_target_us=2000
expect 0 "gpu.latency_target_us 2000" "they show" "$ctl" group show batch
expect 1 "write a name of up to 31" "a bad name of a band" "$ctl" group set batch gpu.band=Serving
expect 1 "the files are mode, policy, plan, switch_us, max_overhead, max_slowdown and clients_max" \
	"device set, an unknown file" "$ctl" device set colour=red

# a plan
"$ctl" device set "plan=60000 batch=1.5" && "$ctl" group get batch capsm.plan | grep -qx 1.5
ok $? "device set, a plan"
expect 0 "plan: 1 groups for" "status tells of it" "$ctl" status
expect 0 "" "showconf while there is one" "$ctl" showconf
! grep -q '^plan\|=plan' "$OUT/out" && grep -qx policy=hpf "$OUT/out"
ok $? "leaves it out, and names the policy from before"
expect 1 "nothing was changed" "device set, all or none while there is one" \
	"$ctl" device set policy=srt "plan=60000 batch=999"
"$ctl" status --json | jq -e '.devices[0].policy == "hpf"' >/dev/null
ok $? "the policy is put back"
"$ctl" device set "plan=60000 batch=1.5"
expect 1 "max_slowdown is 100" "device set, a plan and what is refused" \
	"$ctl" device set plan=none max_slowdown=1
"$ctl" group get batch capsm.plan | grep -qx 1.5
ok $? "the plan stays"
expect 1 "together not above the device" "device set, a plan of too much" \
	"$ctl" device set "plan=60000 batch=999"
expect 1 '"60000 nobody=1": it names a group that there is not; see gschedctl group list' \
	"device set, a plan for nobody" \
	"$ctl" device set "plan=60000 nobody=1"
expect 0 "" "device set, no plan" "$ctl" device set plan=none
"$ctl" group get batch capsm.plan | grep -qx none
ok $? "capsm.plan is none again"

# lists
expect 0 "" "group list" "$ctl" group list
awk 'NR == 1 && $1 != "GROUP" || NR == 2 && $1 != "/" { bad = 1 }
	NR == 3 && ($1 != "batch" || $2 != 4 || $6 != 7 || $7 != "serving" || $9 != "1.5G" ||
		$11 != 0) { bad = 1 }
	END { exit bad || NR != 3 }' "$OUT/out"
ok $? "has a line for each group"
"$ctl" group set batch "cgroup=/a\\x2db"
expect 0 '/a\x2db' "a backslash of a systemd slice is one" "$ctl" group list
"$ctl" group set batch cgroup=
expect 0 "" "of another device" "$ctl" group list -d gpu1
grep -q '^other' "$OUT/out" && ! grep -q batch "$OUT/out"
ok $? "it has other ones"
expect 0 "" "group list -o json" "$ctl" group list -o json
jq -e '.groups[1] | .path == "batch" and ."capsm.max" == "4" and ."gpu.band" == "serving" and
	.clients == 0 and ."memory.max" == "1610612736" and ."memory.current" == "0" and
	."memory.peak" == "0"' "$OUT/out" >/dev/null
ok $? "says the same"
expect 0 "" "device list" "$ctl" device list
awk '{ print $1, $2 }' "$OUT/out" | cmp -s - <(printf 'DEVICE SMS\ngpu0 16\ngpu1 8\n')
ok $? "has a line for each device"
expect 0 "" "device list --output=json" "$ctl" device list --output=json
jq -e '.devices | length == 2 and .[1].name == "gpu1" and .[1].groups == 2 and
	.[0].policy == "hpf"' "$OUT/out" >/dev/null
ok $? "says the same"
expect 0 "" "device list -d" "$ctl" device list -d gpu1 -o json
jq -e '.devices | length == 1 and .[0].name == "gpu1"' "$OUT/out" >/dev/null
ok $? "of one"
expect 0 "" "status -d -o json" "$ctl" -d gpu1 status -o json
jq -e '.devices | length == 1 and .[0].name == "gpu1"' "$OUT/out" >/dev/null
ok $? "of one"
expect 2 "it is table or json" "-o of what there is not" "$ctl" status -o xml
for c in "group list" "device list" status; do
	# shellcheck disable=SC2086
	expect 1 "output: No space left on device" "$c to a full disk" \
		bash -c '"$@" >/dev/full' bash "$ctl" $c
done

# completion
# shellcheck source=gschedd/gschedctl.bash
. gschedd/gschedctl.bash
# completes NAME WANTED WORD...: what the last word, with those before it, can become
completes() {
	local name=$1 wanted=$2
	shift 2
	COMP_WORDS=("$ctl" "$@") COMP_CWORD=$#
	_gschedctl
	[ "${COMPREPLY[*]}" = "$wanted" ]
	ok $? "completion of $name: ${COMPREPLY[*]}"
}
completes "a group" "batch" group set b
completes "groups of another device" "/ other" -d gpu1 group delete ""
completes "with its long option" "/ other" --device = gpu1 group show ""
completes "a group of run" "batch" run -g b
completes "with a long option" "batch" run --group = b
completes "a device" "gpu0 gpu1" -d g
completes "a device with =" "gpu0 gpu1" --device =
completes "a device to set" "gpu0 gpu1" device set g
completes "a file" "capsm.max= capsm.min= capsm.reserve=" group set batch gpu.weight = 3 caps
completes "a limit of memory" "memory.max=" group set batch mem
completes "a file to read" "gpu.stat" group get batch gpu.st
completes "one of memory" "memory.current" group get batch memory.c
completes "a value" "auto" device set mode = a
completes "a value of a group's file" "max" group set batch capsm.max =
completes "one that is begun" "max" group set batch capsm.max = m
completes "one that nothing is known of" "" group set batch gpu.weight =
completes "a file of a client to write" "capsm.max=" client set 7 caps
completes "to read" "capsm.max" client get 7 caps
completes "but one" "" client get 7 capsm.max ""
completes "what limits count" "rank worker" run --limit-by =
for c in status "group list" "device list" monitor simulate; do
	# shellcheck disable=SC2086
	completes "$c --json" "--json" $c --j
done
completes "options" "--strict --socket=" run --s
completes "a program's argument" "selftests/gschedd/ctl-unit.c" run -g batch \
	-- cat selftests/gschedd/ctl-u
completes "a scenario" "docs/scenarios/smguard-fig12.json" simulate -q docs/scenarios/smg
completes "its options" "--quiet" simulate docs/scenarios/gloop-fig09.json --q
for family in "" group device; do
	sed -n "s/^${family:+$family }//p" "$OUT/commands" | cut -d' ' -f1 | sort -u >"$OUT/wanted"
	COMP_WORDS=("$ctl" ${family:+"$family"} "") COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
	_gschedctl
	printf '%s\n' "${COMPREPLY[@]}" | sort | cmp -s - "$OUT/wanted"
	ok $? "completion knows each command ${family:+of $family}"
done

# all or nothing
"$ctl" group show batch | grep -v -e gpu.stat -e _usec >"$OUT/before"
unchanged() {
	"$ctl" group show batch | grep -v -e gpu.stat -e _usec | cmp -s - "$OUT/before"
	ok $? "$1"
}
expect 1 'group batch: capsm.max: "17": Invalid argument; write max or a number' \
	"the third of three is refused" \
	"$ctl" group set batch gpu.priority=9 gpu.band=other capsm.max=17 gpu.weight=5
unchanged "the first two are as before"
expect 1 "nothing was changed" \
	"also of a file written twice, an empty one, and one that is not there" \
	"$ctl" group set batch gpu.weight=5 gpu.weight=6 cgroup=/x gpu.band= owner=12 gpu.colour=1
unchanged "all are as before"
sleep 1000 &
sleeper=$!
"$ctl" group create elsewhere
expect 1 "nothing was changed" "a process goes back to no group" \
	"$ctl" group set batch procs=$sleeper capsm.max=0
unchanged "as before"
"$ctl" group set elsewhere procs=$sleeper
expect 1 "nothing was changed" "and to the group that it was in" \
	"$ctl" group set batch procs=$sleeper capsm.max=0
unchanged "as before"
expect 0 "$sleeper" "it is there" "$ctl" group get elsewhere procs
kill "$sleeper"
wait "$sleeper" 2>/dev/null
sleeper=
"$ctl" group delete elsewhere
"$ctl" device set switch_us=170 max_overhead=30 policy=hpf mode=spatial clients_max=77
expect 1 'device (first): switch_us: "1": Invalid argument; switch_us is 10' \
	"of a device: the last is refused" \
	"$ctl" device set mode=temporal clients_max=3 policy=ffs max_overhead=40 switch_us=1
expect 1 "mode is auto" "of those that cannot be read" \
	"$ctl" device set switch_us=180 mode=temporal mode=sideways
expect 1 "clients_max is a number" "and that are numbers" \
	"$ctl" device set switch_us=180 mode=temporal clients_max=-1
"$ctl" status --json |
	jq -e '.devices[0] | .mode == "spatial" and .policy == "hpf" and .switch_us == 170 and
	.max_overhead == 30 and .clients_max == 77' >/dev/null
ok $? "all are as before"

# showconf, setconf
"$ctl" group create batch/night
"$ctl" group set batch/night capsm.max=1.5 capsm.min=0.25 capsm.reserve=0.5 cgroup=/some/where \
	owner=1000 gpu.priority=0 memory.max=2G
expect 0 "[group gpu0 batch/night]" "showconf" "$ctl" showconf
cp "$OUT/out" "$OUT/conf"
grep -q '^cgroup=/some/where$' "$OUT/conf" && grep -q '^memory.max=2147483648$' "$OUT/conf" && grep -q '^\[device gpu1\]$' "$OUT/conf" &&
	! grep -q procs "$OUT/conf"
ok $? "has the settings of all devices"
# same NAME: all is as when the settings were printed
same() {
	"$ctl" showconf | cmp - "$OUT/conf"
	ok $? "$1"
}
expect 0 "" "setconf of what is so" "$ctl" setconf "$OUT/conf"
same "changes nothing"
"$ctl" group set batch/night capsm.max=2 gpu.priority=99 cgroup= owner=5 memory.max=1
"$ctl" group delete batch/night
"$ctl" group set batch gpu.band= gpu.weight=1 gpu.latency_target_us=0 memory.max=max
"$ctl" device set policy=ffs switch_us=999
"$ctl" -d gpu1 group set other gpu.weight=7
expect 0 "" "setconf makes it again" "$ctl" setconf "$OUT/conf"
same "as it was"
"$ctl" device set switch_us=999
# shellcheck disable=SC2016
expect 0 "" "setconf -, one device" bash -c '"$1" -d gpu1 setconf - <"$2"' bash "$ctl" "$OUT/conf"
expect 0 "switch_us=999" "leaves the other as it is" "$ctl" showconf -d gpu0
# shellcheck disable=SC2016
expect 0 "" "setconf -" bash -c '"$1" setconf - <"$2"' bash "$ctl" "$OUT/conf"
same "as it was"
# refused LINE TEXT-IN-MESSAGE FILE-TEXT: nothing of it is done
refused() {
	printf '%b' "$3" >"$OUT/bad"
	expect 1 "bad:$1: $2" "setconf: line $1: $2" "$ctl" setconf "$OUT/bad"
	same "as it was"
}
new='[group gpu0 new]\ngpu.weight=7\n[group gpu0 new/below]\n'
refused 8 'group batch: capsm.max: "17": Invalid argument; write max' \
	"${new}[device gpu0]\npolicy=ffs\nmode=temporal\n[group gpu0 batch]\ncapsm.max=17\n"
refused 5 'device gpu0: mode: "sideways"' "${new}[device gpu0]\nmode=sideways\n"
refused 4 'group a\x1b: ' "${new}[group gpu0 a\033]\n"
refused 4 'group none/below: no such group' "${new}[group gpu0 none/below]\n"
refused 4 'gpu.colour: no such file of a group' "${new}gpu.colour=1\n"
refused 4 'device gpu9: there is none of this name; there are: gpu0, gpu1' "${new}[group gpu9 a]\n"
refused 4 'a NUL byte' "${new}gpu.weight=\\0"
refused 4 'a section is' "${new}[group]"
refused 4 'group new/below: cgroup: ' "${new}cgroup=/$(printf '%04000d' 1)"
expect 1 "$OUT/none: No such file" "setconf of a file that is not there" "$ctl" setconf "$OUT/none"
expect 1 "$OUT: Is a directory" "of a directory" "$ctl" setconf "$OUT"
expect 1 "this is no text" "of what never ends" "$ctl" setconf /dev/zero
expect 0 "" "of nothing" "$ctl" setconf /dev/null
same "as it was"
"$ctl" group delete batch/night

for c in "group create" "group delete" "group show" "group get" "group set" "run -g"; do
	argument=()
	case $c in
	*get) argument=(capsm.max) ;;
	*set) argument=(gpu.weight=100) ;;
	run*) argument=(-- true) ;;
	esac
	# shellcheck disable=SC2086
	expect 2 "the name of the group is empty; the root group is /" "$c with an empty name" \
		"$ctl" $c "" "${argument[@]}"
done
for name in / // a/ a//b .a "a b" "$(printf 'a\377b')" "$(printf 'a\nb')" "$(printf '%0300d' 1)" \
	"$(printf 'a/%.0s' {1..90})b"; do
	expect 1 "gschedctl: group" "a group's name that is none: $(printf %.20q "$name")" \
		"$ctl" group create "$name"
	expect 1 "gschedctl: group" "set" "$ctl" group set "$name" gpu.weight=1000000
	expect 1 "gschedctl: group" "deleted" "$ctl" group delete "$name"
	! LC_ALL=C grep -q '[^ -~]' "$OUT/err"
	ok $? "and the message is fit for a terminal"
done
for file in / ../x "$(printf 'a\377b')" "$(printf '%0300d' 1)"; do
	expect 1 "gschedctl: group batch" "a file's name that is none: $(printf %.20q "$file")" \
		"$ctl" group set batch "$file=1"
	expect 1 "gschedctl: device" "of a device" "$ctl" device set "$file=1"
done
expect 1 "File name too long" "a value that is too long" \
	"$ctl" group set batch "cgroup=/$(printf '%04000d' 1)"

cp /bin/true "$OUT/interposer.so"
# shellcheck disable=SC2016
expect 0 "$OUT/interposer.so" "run preloads the interposer" \
	env GSCHED_INTERPOSER="$OUT/interposer.so" \
	"$ctl" run -g batch -- bash -c 'echo $LD_PRELOAD'
# shellcheck disable=SC2016
expect 0 "$OUT/interposer.so:libmore.so" "before what was preloaded already" \
	env GSCHED_INTERPOSER="$OUT/interposer.so" LD_PRELOAD=libmore.so "$ctl" run \
	-- bash -c 'echo $LD_PRELOAD'
# shellcheck disable=SC2016
expect 0 "bound" "run binds the process to the group" env GSCHED_INTERPOSER="$OUT/interposer.so" \
	"$ctl" run -g batch \
	-- bash -c '[ "$('"$ctl"' group get batch procs 2>/dev/null)" = $$ ] && echo bound'
if unshare --pid --fork true 2>/dev/null; then
	# the number that it has here
	# shellcheck disable=SC2016
	expect 0 "bound" "as it does in a pid namespace of its own, and not who has its number here" \
		env GSCHED_INTERPOSER="$OUT/interposer.so" unshare --pid --fork "$ctl" run -g batch \
		-- bash -c 'read -r pid _ </proc/self/stat
		[ "$('"$ctl"' group get batch procs 2>/dev/null)" = $pid ] && echo bound'
fi
# shellcheck disable=SC2016
expect 0 "at $GSCHED_SOCKET" "a relative \$GSCHED_SOCKET holds in any directory" \
	env GSCHED_INTERPOSER="$OUT/interposer.so" bash -c 'cd "${GSCHED_SOCKET%/*}" &&
	GSCHED_SOCKET=./gschedd.sock "$1" run -- sh -c "echo at \$GSCHED_SOCKET"' bash \
	"$(realpath "$ctl")"
expect 1 "no such group" "run in a group that is not there" "$ctl" run -g none -- echo no

# several devices. where PID: the groups that it is in, of gpu0 and gpu1
where() { "$ctl" status --json |
	jq -r --argjson pid "$1" \
	'[.devices[] | [.groups[] | select(.procs | index($pid)) | .path] | join("+")] | join(" ")'; }
export -f where
export ctl
export GSCHED_INTERPOSER=$OUT/interposer.so
"$ctl" -d gpu1 group create batch
"$ctl" -d gpu1 group create batch/deep
# shellcheck disable=SC2016
expect 0 "in batch batch" "run binds the process on every device" \
	"$ctl" run -g batch -- bash -c 'echo "in $(where $$)"'
! grep -q gschedctl: "$OUT/err"
ok $? "and has nothing to say"
# shellcheck disable=SC2016
expect 0 "in  batch" "on the one of -d" \
	"$ctl" -d gpu1 run -g batch -- bash -c 'echo "in $(where $$)"'
# shellcheck disable=SC2016
expect 0 "in batch batch" "on those of -d" "$ctl" run -d gpu1,gpu0 -g batch \
	-- bash -c 'echo "in $(where $$)"'
# shellcheck disable=SC2016
expect 0 "in  batch/deep" "where the group is" \
	"$ctl" run -g batch/deep -- bash -c 'echo "in $(where $$)"'
grep -qxF "gschedctl: group batch/deep is on gpu1 only: on gpu0 the program is not in it" "$OUT/err"
ok $? "and it says where it is not"
expect 1 "group none: no such group on gpu0, gpu1" "on none" "$ctl" run -g none -- echo no
expect 1 "no such group" "on none of -d" "$ctl" run -d gpu0 -g other -- echo no
for d in gpu9 gpu0,gpu9 gpu9,gpu0; do
	expect 1 "device gpu9: there is none of this name; there are: gpu0, gpu1" "run -d $d" \
		"$ctl" run -d $d -g batch -- echo no
	expect 1 "device gpu9: there is none of this name" "without a group" \
		"$ctl" run -d $d -- echo no
done
expect 1 "the name is empty" "run -d ," "$ctl" run -d , -g batch -- echo no
# shellcheck disable=SC2016
expect 0 "in fresh fresh" "run --create makes the group on every device" \
	"$ctl" run -c -g fresh -- bash -c 'echo "in $(where $$)"'
# shellcheck disable=SC2016
expect 0 "in  fresh/one" "on that of -d" "$ctl" run -c -d gpu1 -g fresh/one \
	-- bash -c 'echo "in $(where $$)"'
# shellcheck disable=SC2016
expect 0 "in batch batch" "run -e binds the shell on every device" \
	bash -c 'eval "$("$ctl" run -g batch -e)"; echo "in $(where $$)"'
if [ "$(id -u)" = 0 ] && setpriv --reuid=65534 --regid=65534 --clear-groups test \
	-x "$ctl" 2>/dev/null; then
	chmod 755 "$(dirname "$GSCHED_SOCKET")" "$OUT"
	"$ctl" group set fresh owner=65534
	"$ctl" run -c -g fresh/sub -- true
	"$ctl" group set batch owner=65534
	# shellcheck disable=SC2016
	expect 1 "only who owns the nearest group above both" \
		"an owner's process does not leave a group for one beside it" \
		setpriv --reuid=65534 --regid=65534 --clear-groups bash -c \
		'"$ctl" run -g fresh -d gpu0 -e >/dev/null; "$ctl" run -g batch -d gpu0 -e; rc=$?; exit $rc'
	# shellcheck disable=SC2016
	expect 1 'device gpu1: group fresh/sub: procs: ' \
		"refused on the second device: not started, and taken back on the first" \
		setpriv --reuid=65534 --regid=65534 --clear-groups bash -c \
		'"$ctl" run -g fresh -d gpu0 -e >/dev/null; "$ctl" run -g fresh/sub -e; rc=$?
		echo "in $(where $$)"; exit $rc'
	grep -qx "in fresh " "$OUT/out"
	ok $? "to the group that it was in"
	"$ctl" group set batch owner=0
	"$ctl" group delete fresh/sub
	"$ctl" -d gpu1 group delete fresh/sub
	chmod 700 "$(dirname "$GSCHED_SOCKET")"
else
	n=$((n + 1))
	echo "ok $n - another user # SKIP needs root, setpriv and a tree that others may read"
fi
"$ctl" -d gpu1 group delete fresh/one
for g in fresh batch/deep batch; do
	"$ctl" -d gpu1 group delete $g
done
"$ctl" group delete fresh
unset GSCHED_INTERPOSER

expect 0 "made" "run --create makes it, and those above" \
	env GSCHED_INTERPOSER="$OUT/interposer.so" \
	"$ctl" run -g new/below -c -- echo made
expect 0 "new/below" "it is there" "$ctl" group show new/below
expect 1 "GSCHED_INTERPOSER" "run without an interposer" env GSCHED_INTERPOSER="$OUT/none.so" \
	"$ctl" run -- echo no
expect 0 "unmanaged" "run --best-effort without one" env GSCHED_INTERPOSER="$OUT/none.so" \
	"$ctl" run --best-effort -- echo yes
cp /bin/true "$OUT/inter poser.so"
expect 1 "no path with a space" "an interposer that cannot be preloaded" \
	env GSCHED_INTERPOSER="$OUT/inter poser.so" \
	"$ctl" run -- echo no
expect 127 "No such file" "run a program that is not there" "$ctl" run -- "$OUT/none"
expect 126 "Permission denied" "run what is no program" "$ctl" run -- "$OUT"
expect 7 "" "the program's status" env GSCHED_INTERPOSER="$OUT/interposer.so" \
	"$ctl" run -- sh -c 'exit 7'
expect 0 "export LD_PRELOAD='$OUT/interposer.so'" "run -e prints the settings" \
	env GSCHED_INTERPOSER="$OUT/interposer.so" "$ctl" run -g batch -e

expect 1 "Device or resource busy" "delete a group with groups below it" "$ctl" group delete new
expect 0 "" "delete" "$ctl" group delete new/below
expect 1 "no such group" "it is gone" "$ctl" group delete new/below
expect 0 "" "on one device only" "$ctl" -d gpu1 group delete new/below
"$ctl" -d gpu1 group delete new
nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)
# the tree may lie where others may not look
if [ "$(id -u)" = 0 ] && "${nobody[@]}" test -x "$ctl" 2>/dev/null; then
	chmod 755 "$(dirname "$GSCHED_SOCKET")"
	expect 1 "as root" "another user may not" "${nobody[@]}" "$ctl" group create mine
	expect 0 "gpu0" "but may look" "${nobody[@]}" "$ctl" status
	"$ctl" group set batch owner=65534
	expect 0 "capsm.max " "group show shows what they may read" "${nobody[@]}" "$ctl" group show
	sed '/^batch$/,$d' "$OUT/out" >"$OUT/root"
	grep -qx batch "$OUT/out" && grep -q gpu.stat "$OUT/out" && ! grep -q gpu.stat "$OUT/root"
	ok $? "of every group, without what they may not"
	"$ctl" group set batch owner=0
	expect 0 "capsm.max " "and of one" "${nobody[@]}" "$ctl" group show batch
else
	n=$((n + 1))
	echo "ok $n - another user # SKIP needs root, setpriv and a tree that others may read"
fi
expect 2 "Usage" "device delete needs a name" "$ctl" device delete
expect 2 "unrecognized option" "and knows one option" "$ctl" device delete gpu1 --gently
expect 1 "there is none" "a device that is not there" "$ctl" device delete gpu9
expect 1 "delete its groups first, and end its programs or use --force" "a device with a group" \
	"$ctl" device delete gpu1
expect 1 "busy; delete its groups first" "by force, too" "$ctl" device delete gpu1 --force
expect 0 "" "its group goes" "$ctl" -d gpu1 group delete other
expect 0 "" "device delete --force" "$ctl" device delete gpu1 --force
expect 1 "there is none" "it is gone" "$ctl" device delete gpu1
stop_gschedd
ok "$gschedd_status" "gschedd ends cleanly"

start_gschedd --embedded --log-level error --driver /nowhere/libcuda.so.1 \
	--nvml /nowhere/libnvidia-ml.so.1
grep -q "no driver: /nowhere/libcuda.so.1: " "$OUT/gschedd.log"
ok $? "a driver that is named and not there: gschedd says so, and serves"
wait_for 10 grep -q "no NVML: /nowhere/libnvidia-ml.so.1: " "$OUT/gschedd.log"
ok $? "and NVML"
expect 0 "no devices" "status" "$ctl" status
[ "$(grep -c NVML "$OUT/gschedd.log")" = 1 ]
ok $? "once"
stop_gschedd

start_gschedd --driver '' --embedded
expect 0 "no devices" "a gschedd without devices: status" "$ctl" status
expect 0 '{"devices":[]}' "device list" "$ctl" device list -o json
expect 0 "" "showconf" "$ctl" showconf
for c in "-d gpu0 status" "group list" "group show" "device set gpu0 policy=hpf"; do
	# shellcheck disable=SC2086
	expect 1 "there are none; start gschedd with --device or --driver" "$c" "$ctl" $c
done
expect 1 "no such device" "group create" "$ctl" group create a
stop_gschedd
done_testing
