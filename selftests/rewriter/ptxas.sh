#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Assemble the corpus, originals and twins of both kinds, for its targets, and compare registers.
set -u
rewrite=$1
corpus=selftests/rewriter/corpus
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
. selftests/tap.sh
assemble() { # PTX, architecture, file for "kernel registers" a line
	ptxas -v -arch="$2" "$1" -o "$tmp/cubin" >"$tmp/log" 2>&1
	local rc=$?
	[ $rc = 0 ] || sed 's/^/# /' "$tmp/log"
	sed -n "s/.*Compiling entry function '\([^']*\)'.*/\1/p
		s/.*Used \([0-9]*\) registers.*/\1/p" "$tmp/log" |
		paste -d ' ' - - | sed 's/__gsched / /' | sort >"$3"
	return $rc
}
# Kernels whose threads meet: as many barriers in the machine code as in the PTX. One that the
# assembler has made two of, at which lanes of a warp wait apart, hangs. The lowest nine bits of the
# 16 bytes of a BAR are 0x11d (sm_75, sm_90, sm_120). For a barrier without .aligned there may be a
# second one, where a warp that is apart comes together first: WARPSYNC, BAR, RET out of line
# (sm_80), or WARPSYNC, BAR, ENDCOLLECTIVE (sm_90, sm_120).
cat >"$tmp/once.py" <<'EOF'
import re, struct, sys
ptx, elf = open(sys.argv[1]).read(), open(sys.argv[2], "rb").read()
at, = struct.unpack_from("<Q", elf, 40)
size, n, names = struct.unpack_from("<HHH", elf, 58)
sections = [struct.unpack_from("<IIQQQQ", elf, at + i * size) for i in range(n)]
def name(section):
    start = sections[names][4] + section[0]
    return elf[start:elf.index(b"\0", start)].decode()
made = {}
for s in sections:
    if name(s).startswith(".text."):
        code = elf[s[4]:s[4] + s[5]]
        ops = [word & 0xfff for word, _ in struct.iter_unpack("<QQ", code)]
        bars = [i for i, op in enumerate(ops) if op & 0x1ff == 0x11d]
        made[name(s)[6:]] = sum(not (0x948 in ops[i - 3:i] and
                                     {0x950, 0x91b} & set(ops[i + 1:i + 4])) for i in bars)
bad = False
for entry in re.split(r"\.entry\s+", ptx)[1:]:
    kernel, body = re.match(r"[\w$]+", entry).group(), entry.split("\n}", 1)[0]
    if not re.search(r"\n\$(_|_\d+_)?meet:", body):
        continue
    written = len(re.findall(r"\bbar(?:rier)?(?:\.cta)?\.(?:sync|red|arrive)\b", body))
    print("# %s: %d barriers, %d in the machine code" % (kernel, written, made[kernel]))
    bad |= made[kernel] != written
sys.exit(bad)
EOF
# Threads that part come together again where the original's do: a twin that lacks one of these
# points runs up to 20 times slower. The lowest twelve bits of a BSSY, which sets one up, are 0x945
# (sm_75, sm_90, sm_120). The loop around a body has points of its own: as many as the twins of
# grids.cu have, whose originals have none. Not for sm_75, where some branches of bodies become
# predicates.
cat >"$tmp/points.py" <<'EOF'
import struct, sys
def points(path):
    elf = open(path, "rb").read()
    at, = struct.unpack_from("<Q", elf, 40)
    size, n, names = struct.unpack_from("<HHH", elf, 58)
    sections = [struct.unpack_from("<IIQQQQ", elf, at + i * size) for i in range(n)]
    found = {}
    for s in sections:
        start = sections[names][4] + s[0]
        name = elf[start:elf.index(b"\0", start)].decode()
        if name.startswith(".text."):
            words = struct.iter_unpack("<QQ", elf[s[4]:s[4] + s[5]])
            found[name[6:].removesuffix("__gsched")] = sum(w & 0xfff == 0x945 for w, _ in words)
    return found
originals, twins, loop = (points(path) for path in sys.argv[1:])
own = min(loop.values())
bad = [k for k, n in twins.items() if n < originals.get(k, 0) + own
       and k != "in_memory"]  # its point is around a call, for which there is a switch
for k in bad:
    print(f"# {k}: {originals[k]} points, its twin {twins[k]} and the loop {own}")
sys.exit(bool(bad))
EOF
# Kernels whose twins need more registers than they may. Where threads of a block meet, some hold
# what others need, too.
over() {
	join "$tmp/original.regs" "$tmp/twins.regs" | join -a 1 - "$tmp/fits" |
		awk -v free="$free" -v early="$tmp/early" '
			BEGIN { while ((getline name <early) > 0) meets[name] = 1 }
		{
			max = int(($2 + 6 + 7) / 8) * 8
			if (max < free) max = free
			if ($1 in meets) max += 8
			if ($3 > max && !($2 <= free && $4))
				print "# " $1 ": " $2 " -> " $3 " registers" }'
}
# What nvcc makes is for one target each; the rest is written for all, of which sm_120 is left to
# nvcc's.
targets() { # PTX
	local own
	own=$(sed -n 's/^\.target \([a-z0-9_]*\).*/\1/p' "$1")
	case $1 in
	*.sm_*) echo "$own" ;;
	*) printf '%s\n' "$own" sm_90 | sort -u ;;
	esac
}
for f in "$corpus"/*.ptx; do
	name=${f##*/}
	"$rewrite" "$f" -o "$tmp/twins" 2>/dev/null
	rc=$?
	made="twins resumable modes"
	if [ $rc = 1 ]; then
		made=
	else
		ok $rc "$name: rewritten"
		"$rewrite" --resumable "$f" -o "$tmp/resumable" 2>/dev/null
		ok $? "$name: rewritten, resumable"
		"$rewrite" --modes "$f" -o "$tmp/modes" 2>/dev/null
		ok $? "$name: rewritten, all modes"
	fi
	if ! command -v ptxas >/dev/null; then
		skip "$name: assembled" "no ptxas"
		continue
	fi
	# without ptxas in PATH, which it would ask for registers
	PATH=$tmp "$rewrite" "$f" --explain | awk '/^[^ ].*: tier/ { sub(":", "", $1); name = $1 }
		/threads may finish early: [0-9]* places/ { print name }' >"$tmp/early"
	for arch in $(targets "$f"); do
		: >"$tmp/original.regs"
		# what no assembler takes is gathered in one file
		if [ "$name" != hand-refused.ptx ]; then
			assemble "$f" "$arch" "$tmp/original.regs"
			ok $? "$name: ptxas takes the originals for $arch"
			mv "$tmp/cubin" "$tmp/original.cubin"
		fi
		for kind in $made; do
			# forms that are made on request: for one target
			[ "$kind" != modes ] || [ "$arch" = sm_90 ] || continue
			assemble "$tmp/$kind" "$arch" "$tmp/$kind.regs" && [ -s "$tmp/$kind.regs" ]
			ok $? "$name: ptxas takes the $kind for $arch"
			case $kind-$name in twins-*.sm_75.ptx) ;; twins-*.sm_*)
				[ -e "$tmp/loop.$arch" ] ||
					{ "$rewrite" "$corpus/grids.$arch.ptx" -o "$tmp/loop" \
					2>/dev/null &&
					ptxas -arch="$arch" "$tmp/loop" -o "$tmp/loop.$arch"; }
				python3 "$tmp/points.py" "$tmp/original.cubin" "$tmp/cubin" \
					"$tmp/loop.$arch" >"$tmp/points"
				ok $? "$name: threads come together again where they did, for $arch"
				cat "$tmp/points"
			esac
			grep -qE '^[$](_|_[0-9]+_)?meet:' "$tmp/$kind" || continue
			python3 "$tmp/once.py" "$tmp/$kind" "$tmp/cubin" >"$tmp/once"
			ok $? "$name: barriers where threads meet stand once, $kind for $arch"
			cat "$tmp/once"
		done
		if [ -z "$made" ] || [ ! -s "$tmp/original.regs" ]; then continue; fi
		# the loop needs up to 30 where the body needs fewer; what costs no occupancy is
		# free (32, 40 where an SM holds 1536 threads, 64 where 1024); above that the ids
		# and their number are held: at most six more, and they are given out by eights
		case $arch in sm_120) free=40 ;; sm_75) free=64 ;; *) free=32 ;; esac
		# for what the assembler spends beyond that, the launcher sets a limit: it must do
		# without memory for it
		: >"$tmp/fits"
		bad=$(over)
		if [ -n "$bad" ]; then
			ptxas -v -arch="$arch" -maxrregcount $free "$tmp/twins" -o /dev/null 2>&1 |
				awk '/Compiling entry/ { split($0, part, "\047")
						sub("__gsched", "", part[2]) }
					/ 0 bytes spill stores/ { print part[2], 1 }' |
				sort >"$tmp/fits"
			bad=$(over)
		fi
		echo "${bad:-# $(join "$tmp/original.regs" "$tmp/twins.regs" |
			awk '{ printf "%s %s->%s, ", $1, $2, $3 }')}"
		[ -z "$bad" ]
		ok $? "$name: registers for $arch"
	done
done
done_testing
