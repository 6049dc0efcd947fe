#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The modes of corpus-gpu, on the simulated device: that they work and what they print, not how long
# anything takes.
set -u
export VGPU_NAME=corpus-modes-$$ LD_LIBRARY_PATH=$1/vgpu
run=$1/bench/corpus-gpu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp" "/dev/shm/$VGPU_NAME"' EXIT
. selftests/tap.sh
tap_details() { cat "$tmp/out"; }
timing=(--overhead --small --rounds 0 --pairs 2 --target-ms 1)
"$run" "${timing[@]}" --kernel nn --table "$tmp/table" --json "$tmp/json" >"$tmp/out" 2>&1
ok $? "--overhead: status 0"
grep -q '^| flep | nn | [0-9]* x 64 | ' "$tmp/table" &&
	grep -q '^Kernels of real size (1): geometric mean ' "$tmp/table" &&
	grep -q '^Rewriting: .* ms for 1000.$' "$tmp/table"
ok $? "--table: a line a kernel, the mean, the time of rewriting"
if command -v python3 >/dev/null; then
	python3 -c 'import json, sys; k = json.load(open(sys.argv[1]))["kernels"][0]
assert k["kernel"] == "nn" and k["good"] and k["pairs"] == 2 and min(k["median_ms"]) > 0' \
	"$tmp/json" >"$tmp/out" 2>&1
	ok $? "--json is JSON"
else
	skip "--json is JSON" "no python3"
fi
"$run" "${timing[@]}" --kernel sort_buckets >"$tmp/out" 2>&1
ok $? "--overhead prints the table on the standard output"
grep -q '^| gloop | sort_buckets | ' "$tmp/out"
ok $? "... with the kernel in it"
"$run" "${timing[@]}" --kernel tiny >"$tmp/out" 2>&1
ok $? "--overhead of a kernel that changes its input"
"$run" "${timing[@]}" --kernel nn --limit-by rank --static >"$tmp/out" 2>&1
ok $? "--limit-by, --static"
"$run" --limit-by socket >"$tmp/out" 2>&1
[ $? = 2 ]
ok $? "--limit-by what there is not: status 2"
"$run" --resumable --rounds 3 --kernel lavamd >"$tmp/out" 2>&1 &&
	grep -q 'resume points$' "$tmp/out"
ok $? "--resumable"
"$run" --restart --rounds 3 --kernel lavamd >"$tmp/out" 2>&1 &&
	grep -q '^# 2 resume points$' "$tmp/out"
ok $? "--restart"
"$run" --sanitizer --kernel tr >"$tmp/out" 2>&1 && grep -q '^# 5 runs' "$tmp/out"
ok $? "--sanitizer: few rounds"
mkdir "$tmp/corpus"
cp "${run%/*}"/corpus/{globals,hand-variables}.* "$tmp/corpus"
"$run" --sanitizer --corpus "$tmp/corpus" >"$tmp/out" 2>&1 &&
	[ "$(grep -c '^ok' "$tmp/out")" -gt 6 ]
ok $? "--sanitizer: kernels one after the other in one process"
echo 'vecadd block grid=4,1,1 block=32,1,1 shared=0 params=out:512,in:512,in:512,u32:0' \
	>"$tmp/corpus/grids.launch"
cp "${run%/*}"/corpus/grids.sm_75.ptx "$tmp/corpus"
"$run" --sanitizer --corpus "$tmp/corpus" >"$tmp/out" 2>&1
[ $? = 1 ] && grep -q 'changes nothing$' "$tmp/out" && tail -n 1 "$tmp/out" |
	grep -q '^Bail out! the rest is not run'
ok $? "--sanitizer: the first that fails ends it"
rm "$tmp/corpus"/*
cp "${run%/*}"/corpus/{barriers,mbarriers,phases,returns}.* "$tmp/corpus"
"$run" --sanitizer --tool racecheck --corpus "$tmp/corpus" >"$tmp/out" 2>&1 &&
	[ "$(grep -c '# SKIP the tool .*: race-patterns' "$tmp/out")" = 10 ] &&
	grep -q ' ok, 0 FAIL, 10 left out$' "$tmp/out"
ok $? "--tool racecheck: every kernel of the table is there and left out"
"$run" --sanitizer --tool synccheck --kernel divergent >"$tmp/out" 2>&1 &&
	grep -q ' ok, 0 FAIL, 1 left out$' "$tmp/out"
ok $? "--tool synccheck: the same"
"$run" --tool racecheck >"$tmp/out" 2>&1
[ $? = 2 ] && grep -q '^corpus-gpu: --tool is of --sanitizer' "$tmp/out"
ok $? "--tool without --sanitizer: status 2"
"$run" --sanitizer --tool memcheck >"$tmp/out" 2>&1
[ $? = 2 ]
ok $? "a tool of which nothing is known: status 2"
"$run" --full --rounds 0 --kernel gs_factors >"$tmp/out" 2>&1
ok $? "--full"
"$run" "${timing[@]}" --kernel nn --table "$tmp/none/table" >"$tmp/out" 2>&1
[ $? = 1 ] && grep -q 'table: No such file' "$tmp/out"
ok $? "a table that cannot be written: status 1, message"
"$run" --pairs 0 >"$tmp/out" 2>&1
[ $? = 2 ] && grep -q -- '--pairs: a number from 1' "$tmp/out"
ok $? "no pairs: status 2"
"$run" --order sideways >"$tmp/out" 2>&1
[ $? = 2 ] && grep -q '^usage: ' "$tmp/out"
ok $? "an order that does not exist: status 2"
"$run" "${timing[@]}" --kernel nn --order strict --fetch-ns 5000 >"$tmp/out" 2>&1
ok $? "another order and fetch are timed"
"$run" --sanitizer --overhead >"$tmp/out" 2>&1
[ $? = 2 ] && grep -q '^corpus-gpu: --overhead under a sanitizer would time the sanitizer' \
	"$tmp/out"
ok $? "--sanitizer --overhead: status 2"
done_testing
