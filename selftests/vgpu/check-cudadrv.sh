#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Hold libgsched/cuda/base/cudadrv.h against the toolkit's cuda.h: values, sizes, offsets, function
# types. All by the compiler. And the structures of cudart.h against cuda_runtime_api.h.
set -u
cd "$(dirname "$(readlink -f "$0")")/../.." || exit 1
inc=${CUDA_INCLUDE:-/usr/local/cuda/include}
echo 1..4
if ! [ -f "$inc/cuda.h" ]; then
	for t in "constants and layouts" "function types" "a wrong value is noticed" \
		"runtime layouts"; do
		i=$((${i:-0} + 1)); echo "ok $i - $t # SKIP no $inc/cuda.h"
	done
	exit 0
fi
out=$(mktemp -d) || exit 1
trap 'rm -rf "$out"' EXIT
dir=libgsched/cuda/base

constants() {	# $1: our header
	sed -E -e '/cudafuncs.h/d' -e 's/\<(CU|cu|cl_)[A-Za-z_0-9]*/ours_&/g' \
		-e 's/ours_([A-Za-z_0-9]*_st \*)/\1/g' "$1" >"$out/ours.h"
	{
		echo '#include <cuda.h>'
		echo '#include "ours.h"'
		awk -f selftests/vgpu/check-cudadrv.awk "$1"
	} >"$out/constants.c"
	gcc -std=gnu11 -DCUDADRV_NO_ALIASES -D__CUDA_API_VERSION_INTERNAL -isystem "$inc" -I"$out" \
		-c "$out/constants.c" \
		-o "$out/constants.o" 2>"$out/log"
}

if constants $dir/cudadrv.h; then
	echo "ok 1 - $(grep -c _Static_assert "$out/constants.c") constants and layouts are cuda.h's"
else
	sed 's/^/# /' "$out/log" | head -40
	echo "not ok 1 - constants and layouts are cuda.h's"
fi

cat >"$out/functions.c" <<'C'
#include <cuda.h>
#include <cudaProfiler.h>
#define SAME(symbol, params) \
	_Static_assert(__builtin_types_compatible_p(__typeof__(symbol), CUresult params), #symbol);
#define CUFN_PLAIN(symbol, params)
#define CUFN_PTSZ(symbol, params) SAME(symbol##_ptsz, params)
#define CUFN_PTDS(symbol, params) SAME(symbol##_ptds, params)
#define CUFN(name, suffix, since, stream, params) SAME(name##suffix, params) CUFN_##stream(name##suffix, params)
#include "cudafuncs.h"
C
if gcc -std=gnu11 -D__CUDA_API_VERSION_INTERNAL -isystem "$inc" -I$dir -c "$out/functions.c" \
	-o "$out/functions.o" 2>"$out/log"; then
	echo "ok 2 - $(grep -c '^CUFN' $dir/cudafuncs.h) function types are cuda.h's"
else
	sed 's/^/# /' "$out/log" | head -40
	echo "not ok 2 - function types are cuda.h's"
fi

sed 's/CU_DEVICE_ATTRIBUTE_WARP_SIZE = 10/CU_DEVICE_ATTRIBUTE_WARP_SIZE = 11/' $dir/cudadrv.h \
	>"$out/wrong.h"
if ! constants "$out/wrong.h" && grep -q WARP_SIZE "$out/log"; then
	echo "ok 3 - a wrong value is noticed"
else
	echo "not ok 3 - a wrong value is noticed"
fi

# The same program with either header prints the same numbers
{
	echo '#include <stddef.h>'
	echo '#include <stdio.h>'
	echo 'int main(void) {'
	awk '
		/^(typedef )?struct cuda[A-Za-z0-9_]+ \{/ { name = $1 == "struct" ? "struct " $2 : ""; n = 0; in_it = 1; next }
		in_it && /^\}/ {
			if ($2 != "") { name = $2; sub(/;/, "", name) }
			printf "printf(\"%s %%zu\\n\", sizeof(%s));\n", name, name
			for (i = 1; i <= n; i++)
				printf "printf(\"%s.%s %%zu\\n\", offsetof(%s, %s));\n", name, f[i], name, f[i]
			in_it = 0; next
		}
		in_it {
			s = $0; sub(/;.*/, "", s); k = split(s, part, ",")
			for (i = 1; i <= k; i++) {
				x = part[i]; sub(/\[.*/, "", x)
				if (match(x, /[A-Za-z_0-9]+$/)) # not so behind the last comma of a line
					f[++n] = substr(x, RSTART, RLENGTH)
			}
		}' selftests/vgpu/cudart.h
	awk '/^#define RT_ERRORS/ { p = 1; next } p && !/X\(/ { exit } p' selftests/vgpu/cudart.h |
		tr -d '\134' |
		sed -E 's/X\((\w+), [0-9]+\)/printf("\1 %d\\n", (int)\1);/g'
	echo 'return 0; }'
} >"$out/runtime.c"
if gcc -std=gnu11 -isystem "$inc" -include cuda_runtime_api.h -o "$out/theirs" \
	"$out/runtime.c" 2>"$out/log" &&
	gcc -std=gnu11 -I. -include selftests/vgpu/cudart.h -o "$out/ours" "$out/runtime.c" \
	2>>"$out/log" &&
	"$out/theirs" >"$out/theirs.txt" && "$out/ours" >"$out/ours.txt" &&
	diff "$out/theirs.txt" "$out/ours.txt" >>"$out/log"; then
	echo "ok 4 - $(grep -c . "$out/ours.txt") values and offsets of the runtime are cuda_runtime_api.h's"
else
	sed 's/^/# /' "$out/log" | head -40
	echo "not ok 4 - values and offsets of the runtime are cuda_runtime_api.h's"
fi
