#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The corpus under compute-sanitizer's tools, and what racecheck and synccheck say of correct
# programs, which is why corpus-gpu leaves some kernels out of it. For a machine with a GPU;
# race-patterns, corpus-gpu and corpus stand beside this, and nothing else is needed.
#     sanitizer [all|patterns|corpus [LOGS [CORPUS-GPU'S OPTIONS...]]]
set -u
here=$(dirname "$(readlink -f "$0")")
what=${1:-all}
logs=${2:-$(mktemp -d)}
shift $(($# < 2 ? $# : 2))
tool=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
n=0 bad=0

ok() { # STATUS NAME: 0 is good
	n=$((n + 1))
	[ "$1" = 0 ] && echo "ok $n - $2" && return
	bad=$((bad + 1))
	echo "not ok $n - $2"
}

# under LOG TOOL...: its exit status, 99 if the tool has something to say
under() {
	local log=$logs/$1
	shift
	timeout -k 10 300 "$tool" --report-api-errors no --show-backtrace no --padding 512 \
		--error-exitcode 99 --tool "$@" >"$log" 2>&1
}

corpus() { # TOOL [ITS OPTIONS...] -- [CORPUS-GPU'S...]
	local name=$1 of_tool=("$1")
	while shift && [ "$1" != -- ]; do of_tool+=("$1"); done
	shift
	under "$name" "${of_tool[@]}" "$here/corpus-gpu" --sanitizer "$@"
	ok $? "$name of the corpus: $(grep '^# [0-9]* ok' "$logs/$name"); $(tail -1 "$logs/$name")"
	sed -n 's/^ok [0-9]* - \(.*# SKIP\)/# \1/p' "$logs/$name"
}

case $what in
all | patterns | corpus) ;;
*) sed -n 's/^#     /usage: /p' "$0" >&2; exit 2 ;;
esac
mkdir -p "$logs"
[ -x "$tool" ] || { echo "1..0 # SKIP no compute-sanitizer"; exit 0; }
"$here/race-patterns" >"$logs/alone"
grep -q '^Bail out! no device' "$logs/alone" && echo "1..0 # SKIP no device" && exit 0
! grep -q '^not ok' "$logs/alone"
ok $? "each pattern computes what it should: $(head -1 "$logs/alone")"
if [ "$what" != corpus ]; then
	while read -r name tool_of says _ text; do
		grep -q "^ok .* - $name: .*# SKIP" "$logs/alone" && continue
		[ "$tool_of" = racecheck ] && with=(--racecheck-report all) ||
			with=(--num-cuda-barriers 1024)
		under "pattern-$name" "$tool_of" "${with[@]}" "$here/race-patterns" "$name"
		[ $? = 99 ] && heard=errors || heard=none
		grep -q '^ok 1 ' "$logs/pattern-$name" && [ "$heard" = "$says" ]
		ok $? "$tool_of of $name ($text): $says"
	done < <("$here/race-patterns" --list)
fi
if [ "$what" != patterns ]; then
	corpus memcheck --check-device-heap no -- "$@"
	corpus initcheck -- "$@"
	corpus racecheck --racecheck-report all -- --tool racecheck "$@"
	corpus synccheck --num-cuda-barriers 1024 -- --tool synccheck "$@"
fi
echo "1..$n"
exit $((bad != 0))
