# SPDX-License-Identifier: LGPL-2.1-or-later
# awk -f fragments.awk OFFSETS.s FILE.ptx: the fragments of FILE.ptx as C strings.
#
#	.fragment NAME			begins NAME; static but for gsr_NAME
#	.fragment NAME(%u A, %s B)	a format with the arguments <A> and <B>, in this order
#
# One instruction, label or declaration a line; "//" begins a comment, and a backslash at the end
# joins the next line. '#' stands for the prefix of inserted names (gsr_insert_text()). A bare name
# in an operand is a value of offsets.c; any other stops the build. Spaces that PTX can do without
# are left out.
function fail(what)
{
	print FILENAME ":" FNR ": " what >"/dev/stderr"
	failed = 1
	exit 1
}

function begin(line,	args, i, n, arg, word)
{
	if (line !~ /^[a-z_0-9]+(\(%[a-z]+ [a-z]+(, %[a-z]+ [a-z]+)*\))?$/)
		fail("not a fragment's name: " line)
	if (name)
		print "\t;"
	name = args = line
	sub(/\(.*/, "", name)
	delete conversion
	format = sub(/.*\(/, "", args)
	sub(/\)/, "", args)
	n = format ? split(args, arg, ", ") : 0
	for (i = 1; i <= n; i++) {
		split(arg[i], word, " ")
		conversion[word[2]] = "%" i "$" substr(word[1], 2)
	}
	printf "#line %d \"%s\"\n", FNR, FILENAME
	print (name ~ /^gsr_/ ? "" : "static ") "const char " name "[] ="
}

# Replaces the names in an instruction's operands; "+NAME" of value 0 is left out
function values(line,	out, token, before)
{
	match(line, /^(@!?[^ ]+ )?[^ ]+/)
	out = substr(line, 1, RLENGTH)
	line = substr(line, RLENGTH + 1)
	while (match(line, /[A-Za-z0-9_.<>%$#]+/)) {
		before = substr(line, 1, RSTART - 1)
		token = substr(line, RSTART, RLENGTH)
		line = substr(line, RSTART + RLENGTH)
		if (token ~ /^[A-Za-z_]/) {
			if (!(token in value))
				fail(token ": unknown name (rewriter/runtime/offsets.c has them)")
			token = value[token]
			if (token == 0 && sub(/\+$/, "", before))
				token = ""
		}
		out = out before token
	}
	return out line
}

# The arguments of a format
function arguments(line,	out, arg)
{
	gsub(/%/, "%%", line)
	while (match(line, /<[a-z]+>/)) {
		arg = substr(line, RSTART + 1, RLENGTH - 2)
		if (!(arg in conversion))
			fail("<" arg ">: " name " has no such argument")
		out = out substr(line, 1, RSTART - 1) conversion[arg]
		line = substr(line, RSTART + RLENGTH)
	}
	return out line
}

FILENAME == ARGV[1] {
	if (/^[ \t]*\.ascii[ \t]*"->/) {
		gsub(/.*->|".*/, "")
		value[$1] = $2
	}
	next
}

{
	sub(/[ \t]*\/\/.*/, "")
	sub(/^[ \t]+/, "")
	$0 = joined $0
	joined = ""
}

sub(/\\$/, "") { joined = $0; next }
/^$/ { next }
sub(/^\.fragment /, "") { begin($0); next }
!name { fail("outside of a fragment: " $0) }
/^\$#[a-z_<>]+:$/ || /^\.[a-z]/ || /^<[a-z]+>$/ { line = $0 }
!/^[.$<]/ {
	if ($0 !~ /^[^;]*;$/)
		fail("not an instruction, a label or a declaration: " $0)
	line = values($0)
}
{
	gsub(/, +/, ",", line)
	gsub(/; +/, ";", line)
	printf "\t\"%s\\n\"\n", format ? arguments(line) : line
}

END {
	if (!failed)
		print "\t;"
}
