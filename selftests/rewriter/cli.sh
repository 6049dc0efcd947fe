#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The command's manners.
set -u
rewrite=$1
corpus=selftests/rewriter/corpus
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
. selftests/tap.sh
[ "$("$rewrite" --version)" = "gsrewrite 0.1" ] && [ "$("$rewrite" -V)" = "gsrewrite 0.1" ]
ok $? "--version, -V"
"$rewrite" "$corpus/grids.sm_90.ptx" --explain >"$tmp/out"
ok $? "--explain: status 0"
grep -q '^vecadd: tier block, rewritten' "$tmp/out"
ok $? "--explain names the kernel, tier and reason"
grep -q '^  inserted [0-9]* instructions: 1 for block ids, [0-9]* around the body; [0-9]* bytes of'\
' shared memory' "$tmp/out"
ok $? "--explain says what was inserted"
"$rewrite" "$corpus/returns.sm_90.ptx" --explain | grep -A4 '^divergent:' |
	grep -q 'threads may finish early: 8 places'
ok $? "--explain tells of early returns"
# a PATH without the assembler: the driver is asked, and if there is none that is said
mkdir "$tmp/bin"
plain() { LD_LIBRARY_PATH=$1 PATH=$tmp/bin VGPU_NAME=gsrewrite-$$ "$rewrite" \
	"$corpus/grids.sm_90.ptx" --explain; }
plain "$(dirname "$rewrite")/../vgpu" | grep -q '^  registers [0-9]* -> [0-9]* (by the driver)'
ok $? "registers by the driver"
rm -f "/dev/shm/gsrewrite-$$"
if ldconfig -p | grep -q 'libcuda\.so\.1'; then
	skip "no way to know registers: said so" "there is a driver"
else
	plain "" | grep -q '^registers of twins: neither ptxas in PATH nor a driver'
	ok $? "no way to know registers: said so"
fi
if command -v ptxas >/dev/null; then
	grep -q '^  registers [0-9]* -> [0-9]* (by ptxas)' "$tmp/out"
	ok $? "registers by the assembler"
	"$rewrite" --explain "$corpus/hand-refused.ptx" |
		grep -q '^registers of originals: ptxas refuses the PTX: .*frobnicate'
	ok $? "an original that the assembler refuses: said so"
fi
# an assembler that takes minutes is not waited for
printf '#!/bin/sh\nexec sleep 300\n' >"$tmp/bin/ptxas"
chmod +x "$tmp/bin/ptxas"
PATH=$tmp/bin:$PATH timeout 60 "$rewrite" "$corpus/grids.sm_90.ptx" --explain |
	grep -q '^registers of twins: ptxas takes longer than 10 s'
ok $? "an assembler that takes long: said so"
rm "$tmp/bin/ptxas"
# what waits for the whole grid can never give up some blocks
printf '.version 7.0\n.target sm_75\n.address_size 64\n.visible .entry k()
{\n\t.reg .u32 r;\n\tmov.u32 r, %%envreg2;\n\tret;\n}\n' >"$tmp/grid.ptx"
"$rewrite" "$tmp/grid.ptx" -o "$tmp/none" 2>"$tmp/err"
[ $? = 1 ] && [ ! -e "$tmp/none" ] && grep -q 'no kernel could be rewritten; --explain says why' \
	"$tmp/err"
ok $? "nothing rewritten: status 1, message, no file"
# what lanes gather with is younger than some PTX
printf '.version 6.0\n.target sm_70\n.address_size 64\n.visible .entry k()
{\n\t.reg .b32 r;\n\t.reg .pred p;\n\tmov.u32 r, %%laneid;
\tsetp.gt.u32 p, r, 15;\n\t@p ret;\n\tbar.warp.sync 0xffff;\n\tret;\n}\n' >"$tmp/old.ptx"
"$rewrite" "$tmp/old.ptx" -o "$tmp/old" && grep -q '^\.version 6\.3' "$tmp/old" &&
	grep -q 'activemask' "$tmp/old"
ok $? "PTX that is older than what is inserted"
printf '.version 8.0\n.target sm_90\nrubbish\n' >"$tmp/bad.ptx"
"$rewrite" "$tmp/bad.ptx" -o "$tmp/none" 2>"$tmp/err"
[ $? = 2 ] && grep -q 'bad.ptx:3:1: directive expected' "$tmp/err"
ok $? "bad PTX: status 2, file and line"
"$rewrite" "$tmp/absent" -o "$tmp/none" 2>"$tmp/err"
[ $? = 2 ] && grep -q 'absent: No such file' "$tmp/err"
ok $? "no such file: status 2"
"$rewrite" 2>/dev/null
[ $? = 64 ]
ok $? "no arguments: usage"
# every pass' dump can be read again; where a kernel has nothing for a pass its text is that of the
# pass before
"$rewrite" "$corpus/returns.sm_90.ptx" --dump=nonsense >"$tmp/out" 2>"$tmp/err"
[ $? = 64 ] && [ ! -s "$tmp/out" ] && grep -q 'no such pass; the passes are callees .* declarations$' \
	"$tmp/err"
ok $? "--dump of no pass: usage, and the list of passes"
bad=0 passes=$(sed -n 's/.*the passes are //p' "$tmp/err")
for pass in $passes; do
	"$rewrite" --resumable "$corpus/returns.sm_90.ptx" --dump="$pass" >"$tmp/dump-$pass.ptx" ||
		bad=1
	"$rewrite" "$tmp/dump-$pass.ptx" -o "$tmp/none" 2>"$tmp/err"
	[ $? -le 1 ] && grep -q 'entry early' "$tmp/dump-$pass.ptx" && continue
	bad=1
	sed "s/^/# $pass: /" "$tmp/err"
done
[ $bad = 0 ] && [ -n "$passes" ]
ok $? "--dump of each pass: PTX that can be read again"
grep -q 'bar\.sync' "$tmp/dump-callees.ptx" && ! grep -q '%ctaid' "$tmp/dump-block-ids.ptx" &&
	! cmp -s "$tmp/dump-callees.ptx" "$tmp/dump-barriers.ptx" &&
	! cmp -s "$tmp/dump-barriers.ptx" "$tmp/dump-loop.ptx" &&
	cmp -s "$tmp/dump-graphs.ptx" "$tmp/dump-legalise.ptx"
ok $? "--dump shows what the pass before it did not do"
# mc's loop advances by %ntid.x
"$rewrite" --resumable "$corpus/smguard.sm_90.ptx" --dump=loop >"$tmp/out" 2>"$tmp/err"
sed -n '/entry mc(/,/^}/p' "$tmp/out" >"$tmp/mc"
grep -q 'mul\.lo\.s32.*far_' "$tmp/mc" && grep -q 'bra.*inner_' "$tmp/mc"
ok $? "--resumable: a loop with a step in a register is cut into two"
"$rewrite" "$corpus/returns.sm_90.ptx" --dump=loop --json >/dev/null 2>&1
[ $? = 64 ]
ok $? "--dump and --json: usage"
"$rewrite" "$corpus/grids.sm_90.ptx" -o /dev/full 2>"$tmp/err"
[ $? = 2 ] && grep -q 'No space left' "$tmp/err"
ok $? "full disk: status 2"
bad=0
for how in --explain --json --dump=loop "-o -"; do
	# shellcheck disable=SC2086 # two words
	"$rewrite" "$corpus/grids.sm_90.ptx" $how >/dev/full 2>"$tmp/err"
	[ $? = 2 ] && grep -q 'standard output: No space left' "$tmp/err" && continue
	bad=1
	echo "# $how: $(cat "$tmp/err")"
done
[ $bad = 0 ]
ok $? "a standard output that takes nothing: status 2, whatever is printed"
"$rewrite" --json "$corpus/grids.sm_90.ptx" |
	python3 -c 'import json, sys; d = json.load(sys.stdin); k = d["kernels"][0]
assert k["tier"] == "block" and set(k["registers"]) == {"original", "twin"}
assert 100 < k["inserted"]["loop"] < 400'
ok $? "--json is JSON, with registers and what was inserted"
done_testing
