# SPDX-License-Identifier: LGPL-2.1-or-later
# Shared by the demo, the GPU benchmark and the tests of gschedctl: start an arbiter, set quotas on
# either backend, run the pair of programs, check what a command says.
# The caller sets OUT (a directory), BACKEND (daemon or module), B (the build directory).
# shellcheck shell=bash

gsched_device=${gsched_device:-gpu0}
gsched_configfs=/sys/kernel/config/gsched/$gsched_device
# not in OUT: that may be a shared file system, where sockets cannot be
GSCHED_SOCKET=$(mktemp -d)/gschedd.sock
export GSCHED_SOCKET

die() { echo "$0: $*" >&2; exit 1; }

# now: CLOCK_MONOTONIC in ns, as the programs print it
now() { awk '{ printf "%.0f\n", $1 * 1e9 }' /proc/uptime; }

# wait_for SECONDS COMMAND…: until it succeeds
wait_for() {
	local end=$((SECONDS + $1)); shift
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.02
	done
}

# start_gschedd OPTION…
start_gschedd() {
	mkdir -p "$(dirname "$GSCHED_SOCKET")"
	"$B/bin/gschedd" --socket "$GSCHED_SOCKET" --cache "$OUT/cache" "$@" >"$OUT/gschedd.log" \
		2>&1 &
	gschedd_pid=$!
	wait_for 20 "$B/bin/gschedctl" --backend daemon status ||
		{ cat "$OUT/gschedd.log" >&2; die "gschedd did not start"; }
}

# Its exit status is left in gschedd_status
stop_gschedd() {
	[ -n "${gschedd_pid:-}" ] || return 0
	kill "$gschedd_pid" 2>/dev/null || true
	gschedd_status=0
	# shellcheck disable=SC2034
	wait "$gschedd_pid" 2>/dev/null || gschedd_status=$?
	rmdir "$(dirname "$GSCHED_SOCKET")" 2>/dev/null || true
	gschedd_pid=
}

# The files of a group: configfs with the module, gschedctl with the embedded arbiter, where there
# is no file system
group_create() {
	if [ "$BACKEND" = module ]; then
		mkdir "$gsched_configfs/$1"
	else
		"$B/bin/gschedctl" group create "$1"
	fi
}

group_write() { # GROUP FILE VALUE
	if [ "$BACKEND" = module ]; then
		echo "$3" >"$gsched_configfs/$1/$2"
	else
		"$B/bin/gschedctl" group set "$1" "$2=$3"
	fi
}

group_read() { # GROUP FILE
	if [ "$BACKEND" = module ]; then
		cat "$gsched_configfs/$1/$2"
	else
		"$B/bin/gschedctl" group get "$1" "$2"
	fi
}

# json FILE KEY: a number or string of the one-line JSON that the programs print
json() { sed -nE 's/.*"'"$2"'":"?([^,"}]*).*/\1/p' "$1"; }

# run_pair NAME LATENCY_COMMAND :: BATCH_COMMAND: the latency program runs for as long as the batch
# program does.
# Results: $OUT/NAME.batch.json, $OUT/NAME.log, $OUT/NAME.stat.json
run_pair() {
	local name=$1 latency=() lead=${PAIR_LEAD:-1} rc=0; shift
	while [ "$1" != :: ]; do latency+=("$1"); shift; done
	shift
	"${latency[@]}" --log "$OUT/$name.log" \
		>"$OUT/$name.latency.json" 2>"$OUT/$name.latency.err" &
	local pid=$!
	sleep "$lead"
	"$@" >"$OUT/$name.batch.json" 2>"$OUT/$name.batch.err" || rc=$?
	[ -z "${LATENCY_RUNS_OUT:-}" ] && kill -TERM $pid 2>/dev/null
	wait $pid ||
		{ cat "$OUT/$name.latency.err" >&2; die \
		"$name: the latency-sensitive program failed"; }
	[ $rc = 0 ] || { cat "$OUT/$name.batch.err" >&2; die "$name: the batch program failed"; }
	"$B/bench/latstat" "$OUT/$name.log" "$(json "$OUT/$name.batch.json" begin_ns)" \
		"$(json "$OUT/$name.batch.json" end_ns)" >"$OUT/$name.stat.json"
}

# loss ALONE SHARED: how much longer the batch program took, in percent
loss() {
	awk -v a="$(json "$1" end_ns)" -v b="$(json "$1" begin_ns)" -v c="$(json "$2" end_ns)" \
		-v d="$(json "$2" begin_ns)" \
		'BEGIN { printf "%.1f", ((c - d) / (a - b) - 1) * 100 }'
}

. selftests/tap.sh
# what the last command of expect said
tap_details() { cat "$OUT/out" "$OUT/err"; }

# expect STATUS TEXT-IN-OUTPUT NAME COMMAND…
expect() {
	local want=$1 text=$2 name=$3 rc
	shift 3
	"$@" >"$OUT/out" 2>"$OUT/err" </dev/null
	rc=$?
	[ "$rc" = "$want" ] && { [ -z "$text" ] || cat "$OUT/out" "$OUT/err" |
		grep -qF -- "$text"; }
	ok $? "$name (status $rc)"
}
