#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# What rewriter/runtime/fragments.awk makes of a fragment, and that it names the line of what is
# wrong in one.
set -u
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
. selftests/tap.sh
tap_details() { cat "$tmp/out"; }
printf '\t.ascii "->%s"\n' "launch.control 0" "launch.flags 60" "FLAG -2" >"$tmp/offsets.s"
made() { # PTX
	printf '%b' "$1" >"$tmp/x.ptx"
	awk -f rewriter/runtime/fragments.awk "$tmp/offsets.s" "$tmp/x.ptx" >"$tmp/out" 2>"$tmp/err"
}
is() { # PTX, C without its #line, what
	made "$1" && grep -v '^#line' "$tmp/out" >"$tmp/c"
	printf '%s\n' "$2" | tr -d '\n\t' >"$tmp/want"
	[ "$(tr -d '\n\t' <"$tmp/c")" = "$(cat "$tmp/want")" ]
	ok $? "$3"
}
fails() { # PTX, message behind the file's name, what
	! made "$1" && grep -qF "$tmp/x.ptx:$2" "$tmp/err"
	rc=$?
	cat "$tmp/err" >>"$tmp/out"
	ok $rc "$3"
}
is '.fragment f\n\t// why\n\t@%#p0 ld.param.u32 %#r0, [#launch+launch.flags]; // more\n$#out:\n' \
	'static const char f[] ="@%#p0 ld.param.u32 %#r0,[#launch+60];\n""$#out:\n";' \
	"names are values, comments are left out"
is '.fragment gsr_f\n\tld.param.u64 %#d0, [#launch+launch.control];
\tadd.s32 %#r0, %#r0, FLAG;\n' \
	'const char gsr_f[] ="ld.param.u64 %#d0,[#launch];\n""add.s32 %#r0,%#r0,-2;\n";' \
	"an offset of 0 is none; gsr_ is for others"
# shellcheck disable=SC2016
is '.fragment f(%u n, %s to)\n$#<to>_<n>:\n\tadd.u32 %#n, %#n, <n>;\n' \
	'static const char f[] ="$#%2$s_%1$u:\n""add.u32 %%#n,%%#n,%1$u;\n";' \
	"a format and its arguments"
is '.fragment f\n\t.reg .b32 %#a;\\\n\t.reg .b32 %#b;\n' \
	'static const char f[] =".reg .b32 %#a;.reg .b32 %#b;\n";' "a joined line"
fails '.fragment f\n\n\tmov.u32 %#r0, launch.flag;\n' '3: launch.flag: unknown name' \
	"an unknown name"
fails '.fragment f(%u n)\n\tmov.u32 %#r0, <m>;\n' '2: <m>: f has no such argument' \
	"an unknown argument"
fails '.fragment f\n\tmov.u32 %#r0, 1\n' '2: not an instruction' "no semicolon"
fails '.fragment f\n\tret; ret;\n' '2: not an instruction' "two instructions"
fails '.fragment f(n)\n\tret;\n' "1: not a fragment's name" "an argument without a type"
fails '\tret;\n' '1: outside of a fragment' "an instruction outside"
done_testing
