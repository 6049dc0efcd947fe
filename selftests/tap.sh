# SPDX-License-Identifier: LGPL-2.1-or-later
# Results of a test script as TAP. For a failure, what tap_details prints is shown as well, if the
# script has such a function.
# shellcheck shell=bash
n=0 failed=0

# ok STATUS NAME
ok() {
	n=$((n + 1))
	if [ "$1" = 0 ]; then
		echo "ok $n - $2"
	else
		echo "not ok $n - $2"
		failed=$((failed + 1))
		tap_details 2>/dev/null | sed 's/^/# /'
	fi
}

tap_details() { :; }

# skip NAME WHY
skip() {
	n=$((n + 1))
	echo "ok $n - $1 # SKIP $2"
}

# At the end: the plan. Its status is the script's.
done_testing() {
	echo "1..$n"
	[ "$failed" = 0 ]
}
