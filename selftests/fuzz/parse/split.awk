# SPDX-License-Identifier: LGPL-2.1-or-later
# awk -v dir=DIR -f split.awk FILE.ptx...: each function or variable of a module as a module of its
# own: small seeds
function flush() {
	if (item != "") {
		out = sprintf("%s/%s-%d", dir, name, ++n)
		printf "%s%s", head, item >out
		close(out)
	}
	item = ""
}
FNR == 1 {
	flush()
	name = FILENAME
	gsub(/.*\//, "", name)
	head = ""
	inside = 0
}
/^[.](version|target|address_size)/ { head = head $0 "\n"; next }
/^[ \t]*\/\// || /^[ \t]*[.]loc/ || /^$/ { next }
/^[.](visible|weak|extern|entry|func|global|const|shared|section|file|pragma|alias|common)/ &&
	!inside { flush() }
{ item = item $0 "\n" }
/^{/ { inside = 1 }
/^}/ { inside = 0 }
END { flush() }
