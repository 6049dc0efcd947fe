#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# gschedctl simulate: the committed scenarios, what the simulated device does, and files that are
# wrong.
# shellcheck disable=SC2016 # programs of jq
set -u
cd "$(dirname "$0")/../.." || exit
B=${B:-build} OUT=$(mktemp -d /tmp/gsched-simulate-XXXXXX)
trap 'rm -rf "$OUT"' EXIT
GSCHED_SOCKET=$OUT/none
. selftests/lib.sh
rmdir "$(dirname "$GSCHED_SOCKET")" 2>/dev/null
sim=("$B/bin/gschedctl" simulate)

command -v jq >/dev/null || { echo "1..0 # SKIP no jq"; exit; }

for f in docs/scenarios/*.json; do
	expect 0 "yes" "$f" "${sim[@]}" "$f"
	cp "$OUT/out" "$OUT/first"
	"${sim[@]}" "$f" | cmp -s - "$OUT/first"
	ok $? "the same output again"
	# each row of a table that has the paper's figure and does not agree says why
	jq -e '[.expect[] | select(.paper and (.at_least // 0) > .paper or .paper and
		(.at_most // 1e9) < .paper)] | all(.why)' "$f" >/dev/null
	ok $? "bounds that leave the paper's figure out say why"
done

jq '.about = "what it \u001b[31m shows"' docs/scenarios/gloop-fig09.json >"$OUT/s.json"
expect 0 's.json: what it \x1b[31m shows' "control characters do not reach the terminal" \
	"${sim[@]}" -q "$OUT/s.json"
jq '.clients[0].name = "x\u001b\\x41" | del(.expect)' docs/scenarios/gloop-fig09.json >"$OUT/s.json"
expect 0 'x\x1b\x41' "nor from a table, where a backslash is one" "${sim[@]}" "$OUT/s.json"
jq '.abuot = 1' docs/scenarios/gloop-fig09.json >"$OUT/s.json"
expect 1 "duration_us, cases, expect" "a key that is unknown: those that there are" \
	"${sim[@]}" -q "$OUT/s.json"

# the example in the manual
sed -n '/^\.SH SCENARIOS/,$ { /^{/,/^}/p }' docs/man/gschedctl.1 >"$OUT/s.json"
expect 0 "yes" "the example in gschedctl(1)" "${sim[@]}" -q "$OUT/s.json"

# results: the base with changes; kernels of 4 SMs: "wide" fills them with 10 rounds, "short" with a
# half
base='{
	"device": {"sms": 4, "evict_us": 10, "launch_us": 5},
	"kernels": {
		"wide": {"per_sm": 2, "blocks": 80, "block_us": 100},
		"short": {"per_sm": 2, "blocks": 4, "block_us": 50},
		"opaque": {"per_sm": 2, "blocks": 80, "block_us": 100, "tier": "launch"}
	},
	"groups": {"hi": {"gpu.priority": "10"}, "lo": {}},
	"clients": [
		{"name": "lo", "group": "lo", "kernels": ["wide"], "count": 1},
		{"name": "hi", "group": "hi", "kernels": ["short"], "count": 1, "start_us": 250}
	],
	"runs": [{"policy": "mps"}, {"policy": "hpf"}]
}'

# results NAME CHANGE CONDITION: CONDITION of {RUN: {antt, …, CLIENT: {…}}}
results() {
	local name=$1 change=$2 condition=$3
	jq "$change" <<<"$base" >"$OUT/s.json"
	"${sim[@]}" -o json "$OUT/s.json" >"$OUT/out" 2>"$OUT/err" &&
		jq -e 'def near($x): . > $x - 0.05 and . < $x + 0.05;
			[.[0].cases[0].runs[] | {key: .run, value: (. + ([.clients[] | {key: .name,
			value: .}] | from_entries))}] | from_entries |
			'"$condition" "$OUT/out" >/dev/null
	ok $? "$name"
}

results "alone: a launch and its rounds" '.clients |= .[:1]' \
	'.hpf.lo.mean_us == 1005 and .mps.lo.mean_us == 1005 and .hpf.lo.ntt == 1 and
		.hpf.antt == 1 and .hpf.stp == 1'
results "a fixed plan: half the SMs, twice the time, until it ends" \
	'.clients |= .[:1] | .runs[1] += {"plan": "60000 lo=2 hi=2"} | .runs[2] = {"name": "short",
		"policy": "hpf", "plan": "1 lo=2"}' \
	'.hpf.lo.mean_us == 2005 and .short.lo.mean_us > 1400 and .short.lo.mean_us < 1700'
planner='.kernels.short.blocks = 400 | .kernels.wide.blocks = 800 |
	.groups.hi = {"gpu.latency_target_us": "1000000"} | del(.clients[].count) |
	.duration_us = 3000000 | .runs[1] = {"policy": "qos"} |
	.runs[2] = {"name": "half", "policy": "hpf", "plan": "60000 lo=2 hi=2"}'
results "the planner: rare requests with a target come first, and the other one has the rest" \
	"$planner | .clients[1].period_us = 20000" \
	'.qos.lo.share > 1.3 * .half.lo.share and .qos.hi.p50_us < .half.hi.p50_us and
		.qos.hi.launches > 100'
results "one that is never idle, with a target of a second, leaves the other one all but an SM" \
	"$planner | .duration_us = 10000000" \
	'.qos.lo.share > 1.3 * .half.lo.share and .qos.hi.p50_us > 1.5 * .half.hi.p50_us and
		.qos.hi.launches > 100'
results "alone it plans nothing" \
	'.clients |= .[1:] | .groups.hi = {"gpu.latency_target_us": "1"} |
		.runs[1] = {"policy": "qos"} |
		.runs[2] = {"policy": "hpf"}' '.qos.hi.mean_us == .hpf.hi.mean_us'
results "capsm.max: half the SMs, twice the time" \
	'.clients |= .[:1] | .groups.lo = {"capsm.max": "2"}' \
	'.hpf.lo.mean_us == 2005 and .mps.lo.mean_us == 1005 and (.hpf.lo.share | near(0.5)) and
		.hpf.lo.ntt > 1.99'
results "capsm.max 1.5: three workers of two an SM" \
	'.clients |= .[:1] | .groups.lo = {"capsm.max": "1.5"}' '.hpf.lo.mean_us == 2705'
results "the preemptible form costs what overhead says" \
	'.clients |= .[:1] | .device.overhead = 0.1' \
	'.hpf.lo.mean_us == 1105 and .mps.lo.mean_us == 1005'
results "mps: nobody overtakes, what comes later gets what is left" '.' \
	'.mps.hi.mean_us == 805 and .mps.lo.mean_us == 1005 and .mps.hi.evictions == 0'
results "hpf: evicted at the next end of a block-task, grown when the other one ends" '.' \
	'.hpf.hi.mean_us == 105 and .hpf.lo.evictions == 1 and .hpf.lo.mean_us > 1050 and
		.hpf.lo.mean_us < 1110 and .hpf.decisions > 3'
results "workers see a smaller window after evict_us" '.device.evict_us = 100' \
	'.hpf.hi.mean_us == 205'
results "an eviction before the start starts nothing" \
	'.device.launch_us = 50 | .clients[1].start_us = 0 | .kernels.wide.blocks = 8 |
		.kernels.short.blocks = 2' \
	'.hpf.lo.mean_us == 250 and .hpf.hi.mean_us == 100'
results "mps: not even what would fit overtakes" \
	'.kernels.half = {"per_sm": 2, "blocks": 7, "block_us": 100} |
		.kernels.whole = {"per_sm": 1, "blocks": 1, "block_us": 50} |
		.kernels.one = {"per_sm": 2, "blocks": 1, "block_us": 10} |
	.clients = [{"name": "a", "kernels": ["half"], "count": 1}, {"name": "b",
	"kernels": ["whole"], "count": 1, "start_us": 1}, {"name": "c", "kernels": ["one"],
	"count": 1, "start_us": 2}]' \
	'.mps.b.mean_us == 154 and .mps.c.mean_us == 113'
results "opaque kernels are not evicted" '.clients[0].kernels = ["opaque"]' \
	'.hpf.lo.mean_us == 1005 and .hpf.hi.mean_us == 805'
results "srt: equals by what is predicted" \
	'.groups = {"hi": {}, "lo": {}} | .runs = [{"policy": "srt"}, {"policy": "ffs"}]' \
	'.srt.hi.mean_us == 105 and .ffs.lo.evictions == 1'
results "srt: a wrong prediction" \
	'.groups = {"hi": {}, "lo": {}} | .runs = [{"policy": "srt"}] |
		.clients[1].predicted = 100' '.srt.hi.mean_us == 810'
results "weights: 3:1 of the SMs" \
	'.groups = {"hi": {"gpu.weight": "300"}, "lo": {"gpu.weight": "100"}} |
		.duration_us = 100000 |
	.clients = [{"name": "a", "group": "hi", "kernels": ["wide"], "in_flight": 2}, {"name": "b",
	"group": "lo", "kernels": ["wide"], "in_flight": 2}] |
	.runs = [{"policy": "ffs"}, {"policy": "wfq"}]' \
	'(.ffs.a.share | near(0.75)) and (.ffs.b.share | near(0.25)) and (.wfq.a.share |
		near(0.75)) and .ffs.utilisation > 0.95'
results "own_group: each copy is a user" \
	'.clients = [{"name": "a", "kernels": ["wide"], "copies": 3, "own_group": true,
		"group": "lo"}] | .duration_us = 500000 |
	.runs = [{"policy": "wfq"}]' \
	'(.wfq["a.1"].share | near(0.333)) and (.wfq["a.3"].share | near(0.333))'
results "temporal: one at a time, with switches" \
	'.device |= (.mps = false | .switch_us = 200) | .runs = [{"policy": "hpf",
		"mode": "temporal"}]' \
	'.hpf.hi.mean_us == 305 and .hpf.lo.mean_us > 1400'
results "temporal: two that may start do not take it from each other for ever" \
	'.device.mps = false | .clients[0].kernels = ["opaque"] | .clients[1].kernels = ["opaque"] |
	.runs = [{"policy": "hpf", "mode": "temporal"}, {"policy": "wfq", "mode": "temporal"}] |
	.clients[].in_flight = 4 | .clients[].count = 20' \
	'.hpf.hi.launches == 20 and .wfq.lo.launches == 20'
results "ntt is of the launches that ended, not of those that did not" \
	'.clients = [{"name": "a", "kernels": ["short", "wide"]}, {"name": "b",
		"kernels": ["wide"]}] | .duration_us = 1500' \
	'.mps.a.launches == 1 and .mps.a.ntt == 1'
slices='.device |= (.mps = false | .switch_us = 200) | .runs = [{"policy": "time-slicing"},
	{"policy": "hpf"}, {"policy": "ffs"}, {"policy": "wfq"}]'
results "slices: the important one interrupts block-tasks, which go on later" \
	"$slices"' | .kernels.wide.block_us = 1000' \
	'.hpf.hi.mean_us == 255 and .hpf.lo.mean_us == 10455 and
		.["time-slicing"].hi.mean_us == 2053 and .hpf.lo.share > 0.95'
results "slices: by weight" \
	"$slices"' | .groups.hi["gpu.weight"] = "200" | .clients = [{"name": "hi", "group": "hi",
		"kernels": ["wide"], "in_flight": 2}, {"name": "lo", "group": "lo",
		"kernels": ["wide"], "in_flight": 2}] |
	.duration_us = 1000000' \
	'(.ffs.hi.share / .ffs.lo.share | near(2)) and
		(.["time-slicing"].hi.share / .["time-slicing"].lo.share | near(1)) and
		(.hpf.hi.share > 0.95)'
results "slices: lower ones take turns" \
	"$slices"' | .groups.lo2 = {} | .clients = [{"name": "hi", "group": "hi",
		"kernels": ["short"], "period_us": 5000},
	{"name": "lo", "group": "lo", "kernels": ["wide"], "in_flight": 2}, {"name": "lo2",
	"group": "lo2", "kernels": ["wide"], "in_flight": 2}] | .duration_us = 1000000' \
	'.hpf.hi.p99_us < 2100 and (.hpf.lo.share / .hpf.lo2.share | near(1)) and
		.hpf.lo.p99_us > 20000 and .hpf.utilisation > 0.85'
results "a period, a gap, a sequence" '.clients = [
	{"name": "p", "kernels": ["short"], "period_us": 1000, "count": 5}, {"name": "g",
	"kernels": ["short", "wide"], "gap_us": 200, "count": 4}]' \
	'.hpf.p.launches == 5 and .hpf.g.launches == 4 and .mps.makespan_us > 4000'
results "Poisson: the mean pace" \
	'.clients = [{"name": "p", "kernels": ["short"], "poisson_us": 500, "seed": 7}] |
		.duration_us = 1000000' \
	'.mps.p.launches > 1850 and .mps.p.launches < 2150 and .mps.p.p99_us >= .mps.p.p50_us and
		.mps.p.p50_us >= 55'
results "more launches than slots" \
	'.clients = [{"name": "p", "kernels": ["wide"], "period_us": 10, "count": 200}]' \
	'.hpf.p.launches == 200 and .mps.p.launches == 200'
results "nothing ends: no numbers" '.duration_us = 100' \
	'.hpf.antt == null and .hpf.lo.mean_us == null and .hpf.lo.launches == 0 and
		(.hpf.lo.share | near(0.95))'

jq '.expect = [{"run": "hpf", "client": "hi", "value": "ntt", "at_most": 1}, {"run": "hpf",
	"value": "antt", "at_most": 9},
	{"run": "hpf", "client": "hi", "value": "mean_us", "speedup_over": "mps", "at_least": 7,
	"at_most": 8},
	{"run": "hpf", "client": "hi", "value": "mean_us", "relative_to": "mps", "at_least": 5}]' \
		<<<"$base" >"$OUT/s.json"
expect 1 "expect[0]: ntt of hi, hpf is 1.90909, at most 1 was expected" "what is not met is named" \
	"${sim[@]}" "$OUT/s.json"
expect 1 "expect[3]: ratio of mean_us of hi, hpf over mps is 0.130435, at least 5 was expected" \
	"each of it" "${sim[@]}" -q "$OUT/s.json"
[ "$(wc -l <"$OUT/err")" = 2 ] && ! grep -q UTILISATION "$OUT/out" &&
	grep -qE 'speed-up.* 7.667 .* yes' "$OUT/out"
ok $? "and nothing else; --quiet leaves the tables out"

# Files that are wrong. Every line names the file and the path to the key, and no file stops those
# behind it.
full=$(jq \
	'.about = "all keys" | .device |= (.mps = true | .switch_us = 100 | .overhead = 0.1) |
		.kernels.two = {"per_sm": 1, "alone_us": 100, "block_us": 10} |
	.groups |= (.hi["capsm.min"] = "1" | .lo["capsm.max"] = "2.5" | .lo["gpu.weight"] = "50" |
	.lo["gpu.latency_target_us"] = "100" | .hi["gpu.band"] = "b" | .lo["gpu.band"] = "b" |
	.["lo/sub"] = {"gpu.band": ""}) |
	.cases = {"k": ["wide", "short"], "n": [1, 2]} |
	.clients = [{"name": "a", "group": "lo/sub", "kernels": ["$k"], "start_us": 1, "gap_us": 5,
	"in_flight": 2, "predicted": 0.5, "copies": "$n", "own_group": true},
		{"name": "b", "group": "hi", "kernels": ["short", "two"], "period_us": 100,
		"count": 3}, {"name": "c", "group": "lo", "kernels": ["opaque"], "poisson_us": 100,
		"seed": 3}] |
	.duration_us = 2000 | .runs = [{"policy": "mps"}, {"policy": "hpf", "name": "x",
	"mode": "auto", "switch_us": "100", "max_overhead": "50", "max_slowdown": "150"}] |
	.expect = [{"run": "x", "client": "a", "value": "share", "of": "min", "case": {"k": "wide"},
	"relative_to": "mps", "at_least": 0, "at_most": 9, "paper": 1, "why": "w"},
		{"run": "x", "client": "b", "value": "mean_us", "speedup_over": "mps",
		"at_least": 0}]' <<<"$base")
echo "$full" >"$OUT/full.json"
expect 0 "" "a file with all keys" "${sim[@]}" "$OUT/full.json"

# wrong JQ: JQ makes a list of {path, doc}; the path in the message leads to what was changed
wrong() {
	local dir=$OUT/wrong i=0 line path
	rm -rf "$dir" && mkdir "$dir"
	jq -r 'def text: reduce .[] as $p (""; if $p |
		type == "number" then "\(.)[\($p)]" elif . == "" then $p else "\(.).\($p)" end);
		. as $d | '"$1"' | (.path | text), (.doc | tojson)' "$OUT/full.json" |
		while IFS= read -r line; do
			echo "$line" >"$dir/$i.path"
			IFS= read -r line; printf '%s\n' "$line" >"$dir/$i.json"
			i=$((i + 1))
		done
	"${sim[@]}" "$dir"/*.json >"$OUT/out" 2>"$OUT/err"
	[ $? = 1 ] && [ "$(find "$dir" -name '*.json' | wc -l)" = "$(wc -l <"$OUT/err")" ] &&
		for f in "$dir"/*.json; do
			line=$(grep -F "gschedctl: $f: " "$OUT/err") ||
				{ echo "# $f: no message"; exit 1; }
			line=${line#*"$f: "}
			read -r path <"${f%.json}.path"
			[[ $path == "${line%%: *}"* ]] || { echo "# $path changed: $line"; exit 1; }
		done
}
# check_wrong NAME JQ
check_wrong() { (wrong "$2"); ok $? "$1 ($(find "$OUT/wrong" -name '*.json' | wc -l) files)"; }

check_wrong "null in place of every value" \
	'[paths] | .[] | . as $p | {path: $p, doc: ($d | setpath($p; null))}'
check_wrong "a list in place of every text" \
	'[paths(type == "string")] | .[] | select(.[0] != "cases") | . as $p | {path: $p, doc: ($d |
		setpath($p; []))}'
check_wrong "a number in place of every text" \
	'[paths(type == "string")] | .[] | select(.[0] != "cases" and .[-1] != "copies") | . as $p |
		{path: $p, doc: ($d | setpath($p; 5))}'
check_wrong "numbers out of range" \
	'[paths(type == "number")] | .[] | select(.[0] != "cases" and .[0] != "expect") | . as $p |
		{path: $p, doc: ($d | setpath($p; -1, 1e300))}'
check_wrong "parts where whole numbers are" \
	'(["device", "sms"], ["clients", 0, "in_flight"], ["clients", 1, "count"], ["kernels",
		"wide", "per_sm"], ["clients", 2, "seed"]) as $p |
	{path: $p, doc: ($d | setpath($p; 1.5))}'
check_wrong "unknown keys" \
	'[paths(type == "object")] | .[] | select(.[0] != "cases") | . as $p |
		{path: ($p + ["xyzzy"]), doc: ($d | setpath($p + ["xyzzy"]; 1))}'
check_wrong "names that lead nowhere" \
	'(["clients", 0, "group"], ["clients", 1, "kernels", 1], ["runs", 1, "policy"], ["runs", 1,
		"mode"], ["expect", 0, "run"], ["expect", 0, "client"],
	["expect", 0, "value"], ["expect", 0, "of"], ["expect", 0, "relative_to"], ["expect", 1,
	"speedup_over"], ["kernels", "opaque", "tier"], ["expect", 0, "case", "k"]) as $p |
	{path: $p, doc: ($d | setpath($p; "none"))}'
check_wrong "quotas and parameters that the core refuses" \
	'(["groups", "lo", "capsm.max"], ["groups", "hi", "capsm.min"], ["groups", "lo",
		"gpu.weight"], ["groups", "hi", "gpu.priority"],
	["groups", "lo", "gpu.latency_target_us"], ["runs", 1, "switch_us"], ["runs", 1,
	"max_overhead"], ["runs", 1, "max_slowdown"]) as $p |
	{path: $p, doc: ($d | setpath($p; "-1", "x", "5000000000", "4.", ""))}, (["groups", "hi",
	"gpu.band"] as $p | {path: $p, doc: ($d | setpath($p; "A", "a.b", "a\nb"))})'
check_wrong "missing keys" \
	'(["device"], ["kernels"], ["clients"], ["runs"], ["device", "sms"], ["kernels", "two",
		"per_sm"], ["kernels", "two", "block_us"], ["clients", 1, "name"], ["clients", 1,
		"kernels"],
	["runs", 0, "policy"], ["expect", 0, "value"], ["expect", 0, "run"]) as $p | {path: $p,
	doc: ($d | delpaths([$p]))}'
check_wrong "empty lists and names" \
	'((["clients"], ["runs"], ["clients", 0, "kernels"], ["cases", "k"]) as $p | {path: $p,
		doc: ($d | setpath($p; []))}),
	{path: ["clients", 0, "name"], doc: ($d | .clients[0].name = "")}'
check_wrong "keys that do not go together" \
	'({path: ["clients", 0], doc: ($d | .clients[0].period_us = 5)}, {path: ["clients", 2],
		doc: ($d | .clients[2].in_flight = 2)},
	{path: ["kernels", "two"], doc: ($d | .kernels.two.blocks = 5)}, {path: ["clients", 1,
	"name"], doc: ($d | .clients[1].name = "a")}, {path: ["runs", 1], doc: ($d |
	.runs[1].name = "mps")},
	{path: ["clients", 0, "count"], doc: ($d | del(.duration_us))}, {path: ["expect", 0],
	doc: ($d | del(.expect[0].at_least, .expect[0].at_most))},
	{path: ["expect", 0], doc: ($d | .expect[0].speedup_over = "mps")}, {path: ["clients", 0],
	doc: ($d | .clients |= .[1:2] | .clients[0].period_us = 0.001 | .duration_us = 1e9)},
	{path: ["expect", 1, "value"], doc: ($d | del(.expect[1].client))}, {path: ["groups",
	"x/y"], doc: ($d | .groups["x/y"] = {})}, {path: ["groups", "a//b"], doc: ($d |
	.groups["a//b"] = {})},
	{path: ["groups", "lo", "capsm.current"], doc: ($d | .groups.lo["capsm.current"] = "1")},
	{path: ["groups", "lo", "procs"], doc: ($d | .groups.lo.procs = "1")},
	{path: ["runs", 1, "policy"], doc: ($d | .runs[1].policy = "chaos",
	(.runs[1].policy = "plan"))}, {path: ["kernels", "two", "class"], doc: ($d |
	.kernels.two.class = "H_H")}, {path: ["cases"], doc: ($d | .cases = {})}, {path: ["cases"],
	doc: ($d | .cases = {"k": ["a"], "l": ["a"]})},
	{path: ["cases", "a b"], doc: ($d | .cases = {"a b": ["a"]})}, {path: ["cases"], doc: ($d |
	.cases = {"k": [range(1001)]})})'

for text in '' '{' '[]' '{"a": 1' '{} x' 'null' '{"device": {"sms": 1}, "device": {"sms": 1}}' \
	'"$x"'; do
	printf '%s' "$text" >"$OUT/s.json"
	expect 1 "gschedctl: $OUT/s.json:" "no scenario: $text" "${sim[@]}" "$OUT/s.json"
done
printf '{\n\n"a": }\n' >"$OUT/s.json"
expect 1 "s.json:3: this is no JSON" "the line of what is no JSON" "${sim[@]}" "$OUT/s.json"
printf '{}\0' >"$OUT/s.json"
expect 1 "this is no JSON" "a NUL byte" "${sim[@]}" "$OUT/s.json"
head -c 17000000 /dev/zero | tr '\0' ' ' >"$OUT/s.json"
expect 1 "this is no scenario" "a file that is too large" "${sim[@]}" "$OUT/s.json"
echo "${base/'"lo": {}'/'"lo": {}, "lo": {}'}" >"$OUT/s.json"
expect 1 "groups.lo: the group is there twice" "a key that is there twice" "${sim[@]}" "$OUT/s.json"
expect 1 "No such file" "a file that is not there" "${sim[@]}" "$OUT/none.json"
expect 2 "Usage" "no file" "${sim[@]}"
expect 2 "it is table or json" "another output" "${sim[@]}" -o xml "$OUT/full.json"

# refused NAME TEXT CHANGE: needs what is not simulated, or does not end
refused() {
	jq "$3" <<<"$base" >"$OUT/s.json"
	expect 1 "$2" "$1" "${sim[@]}" "$OUT/s.json"
}
for plan in "web=2" "100 lo=5" "100 none=1" "0 lo=1" "60001 lo=1" "100 lo=1 lo=1" "100 /=1" ""; do
	refused "a plan that is none: $plan" "the plan is refused" ".runs[1].plan = \"$plan\""
done
refused "capsm.max without MPS" "capsm.max is a share of time" \
	'.device.mps = false | .groups.lo["capsm.max"] = "2"'
refused "two bands" "several MPS servers are not simulated" '.groups.hi["gpu.band"] = "a"'
refused "without MPS, together" "without MPS programs cannot run at the same time" \
	'.device.mps = false | .runs[1].mode = "spatial"'
refused "groups below groups below groups" "nested too deeply" \
	'.groups = ([range(9)] | map({key: ([range(. + 1)] | map("a") | join("/")), value: {}}) |
		from_entries) | .clients[].group = "/"'
refused "less than a block" "launches wait for ever" '.groups.lo["capsm.max"] = "0.4"'
refused "a run of hours" "takes more than 10000 seconds" \
	'.kernels.wide.block_us = 1e9 | .clients[0].count = 100'
refused "too many events" "more than 50000000 events" \
	'.kernels.wide |= (.blocks = 1e9 | .block_us = 0.001)'
refused "too many launches" "more than 1000000 launches" \
	'.kernels.wide |= (.blocks = 1 | .block_us = 0.001) | .device |= (.launch_us = 0) |
		.clients |= .[:1] | del(.clients[0].count) | .duration_us = 1e8 | .runs |= .[:1]'
done_testing
