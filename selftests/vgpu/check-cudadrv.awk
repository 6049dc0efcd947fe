# SPDX-License-Identifier: LGPL-2.1-or-later
# From cudadrv.h, make assertions that hold it against the toolkit's cuda.h. The C file includes cuda.h, then our header
# with every type, constant and tag renamed ("ours_"), then these. Layout relied on: one member or enumerator list a
# line, "} name;" closes.
function assert(cond, what) { printf "_Static_assert(%s, \"%s\");\n", cond, what; n++ }
/^#define CU_[A-Z_0-9]+ / { assert("(unsigned long)(" $2 ") == (unsigned long)(ours_" $2 ")", $2); next }
/X\(CUDA_/ {
	s = $0
	while (match(s, /X\([A-Z_0-9]+/)) {
		name = substr(s, RSTART + 2, RLENGTH - 2)
		assert("(long)" name " == (long)ours_" name, name)
		s = substr(s, RSTART + RLENGTH)
	}
	next
}
/^typedef enum [A-Za-z_0-9]+ \{/ { in_enum = 1; next }
in_enum && /^\}/ { in_enum = 0; name = $2; sub(/;/, "", name); assert("sizeof(" name ") == sizeof(ours_" name ")", name); next }
in_enum {
	k = split($0, part, ",")
	for (i = 1; i <= k; i++)
		if (match(part[i], /[A-Z][A-Z_0-9a-z]+ =/)) {
			name = substr(part[i], RSTART, RLENGTH - 2)
			assert("(long)" name " == (long)ours_" name, name)
		}
	next
}
/^typedef (struct|union) [A-Za-z_0-9]+ \{/ { depth = 1; nf = 0; next }
depth && /\{$/ { depth++; next }
depth && /\}/ {
	name = $2; sub(/;.*/, "", name)
	if (depth == 1) {
		assert("sizeof(" name ") == sizeof(ours_" name ")", "size of " name)
		for (i = 1; i <= nf; i++) {
			f = path[i]
			assert("__builtin_offsetof(" name ", " f ") == __builtin_offsetof(ours_" name ", " f ") && " \
			       "sizeof(((" name " *)0)->" f ") == sizeof(((ours_" name " *)0)->" f ")", name "." f)
		}
	} else {
		for (i = 1; i <= nf; i++)
			if (level[i] == depth) {
				level[i]--
				if (name != "" && name != "}")
					path[i] = name "." path[i]
			}
		if ($1 == "}" && NF > 1) { path[++nf] = name; level[nf] = depth - 1 }
	}
	depth--
	next
}
depth && /;/ {
	s = $0; sub(/;.*/, "", s)
	k = split(s, part, ",")
	for (i = 1; i <= k; i++) {
		f = part[i]; sub(/\[.*/, "", f)
		match(f, /[A-Za-z_0-9]+ *$/)
		path[++nf] = substr(f, RSTART, RLENGTH); gsub(/ /, "", path[nf]); level[nf] = depth
	}
}
END { printf "int main(void) { return 0; }\n/* %d assertions */\n", n }
