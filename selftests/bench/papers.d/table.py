# SPDX-License-Identifier: LGPL-2.1-or-later
"""The table: a line a figure with the paper's number, the aim and what was measured."""

import statistics

import output


def records(data, figure, way):
    """{case: record} of what was measured."""
    found = data["cases"].get(figure, {}).get(way, {})
    return {case: r for case, r in found.items() if r["status"] == "ok"}


def both(data, figure, way, base):
    one, other = records(data, figure, way), records(data, figure, base)
    return [(case, one[case], other[case]) for case in one if case in other]


def speedups(data, figure, way, base="mps", which=1):
    """{case: how many times shorter the turnaround of its @which kernel is}"""
    pairs = both(data, figure, way, base)
    return {case: b["took_us"][which] / w["took_us"][which] for case, w, b in pairs}


def improved(data, figure, way, base="mps"):
    return {case: b["antt"] / w["antt"] for case, w, b in both(data, figure, way, base)}


def ideal(data, figure):
    """The speed-up if the second kernel ran at once and as fast as alone."""
    found = {}
    for case, r in records(data, figure, "mps").items():
        found[case] = r["took_us"][1] / r["alone_us"][1]
    return found


def of(values, what):
    """A number of {case: value}, with its case if it is one case's."""
    if not values:
        return "-"
    if what == "mean":
        return f"{statistics.mean(values.values()):.3g}"
    case = max(values, key=values.get) if what == "max" else min(values, key=values.get)
    return f"{values[case]:.3g} ({case})"


def field(data, figure, way, key):
    return {case: r[key] for case, r in records(data, figure, way).items() if key in r}


def percent(values, what):
    return of({c: 100 * v for c, v in values.items()}, what)


def number(data, figure, way):
    every = data["cases"].get(figure, {}).get(way, {})
    good = len(records(data, figure, way))
    return f"{good} of {len(every)}" if good < len(every) else str(good)


class Table:
    HEAD = ["figure", "what", "paper", "aim", "measured", "MPS, priority stream", "cases", "why"]

    def __init__(self):
        self.rows = []

    def add(self, figure, what, paper, aim, measured, other="", cases=""):
        self.rows.append([figure, what, paper, aim, measured, other, cases, ""])

    def text(self):
        return output.table(self.HEAD, self.rows)


def flep8(t, data):
    fast, beside = speedups(data, "fig8", "gsched"), speedups(data, "fig8", "mps-priority")
    n, best = number(data, "fig8", "gsched"), ideal(data, "fig8")
    what = "speed-up of the important kernel over MPS"
    t.add("FLEP 8", what + ", mean", 10.1, ">= 10.1", of(fast, "mean"), of(beside, "mean"), n)
    t.add("", "its maximum", 24.2, ">= 24.2", of(fast, "max"), of(beside, "max"))
    t.add("", "its minimum", 4.1, "", of(fast, "min"), of(beside, "min"))
    t.add("", "if it ran at once and as fast as alone", "", "", of(best, "mean"))
    spans = {}
    for way in ("gsched", "mps-priority"):
        pairs = both(data, "fig8", way, "mps")
        spans[way] = {c: w["span_us"] / b["span_us"] - 1 for c, w, b in pairs}
    lost = [percent(spans[w], "mean") for w in ("gsched", "mps-priority")]
    t.add("FLEP 11", "time until both are done, against MPS, %", 5.4, "", *lost, n)


def smguard(t, data):
    for figure, which in (("smguard", "inputs that fit the paper"), ("huge", "pl, md, mm large")):
        if figure not in data["cases"]:
            continue
        fast = speedups(data, figure, "gsched")
        beside = speedups(data, figure, "mps-priority")
        n = number(data, figure, "gsched")
        paper, aim = ((9.8, ">= 9.8"), (55.2, ">= 55")) if figure == "smguard" else (("", ""),) * 2
        what = f"speed-up of the latency-sensitive kernel over MPS, {which}"
        t.add("SMGuard 12", what + ": mean", *paper, of(fast, "mean"), of(beside, "mean"), n)
        t.add("", "its maximum", *aim, of(fast, "max"), of(beside, "max"))
        best = ideal(data, figure)
        t.add("", "if it ran at once: mean", "", "", of(best, "mean"))
        t.add("", "if it ran at once: maximum", "", "", of(best, "max"))
        for key, number_of, goal, base in (
            ("antt", 1.56, "<= 1.5", 6.5),
            ("stp", 1.57, ">= 1.57", 1.22),
        ):
            ours, theirs = field(data, figure, "gsched", key), field(data, figure, "mps", key)
            prio = of(field(data, figure, "mps-priority", key), "mean")
            name = f"SMGuard {13 if key == 'antt' else 14}"
            paper = (number_of, goal) if figure == "smguard" else ("", "")
            t.add(name, f"{key.upper()}, mean", *paper, of(ours, "mean"), prio, n)
            t.add("", "the same under MPS", base if paper[0] else "", "", of(theirs, "mean"))


def resized(t, data):
    final = field(data, "resize", "gsched", "against_final")
    both_ways = field(data, "resize", "gsched", "against_predicted")
    shrunk = {c: v[0] for c, v in both_ways.items()}
    grown = {c: v[1] for c, v in both_ways.items()}
    n = number(data, "resize", "gsched")
    what = "quota halved inside a kernel: its time over that in the final quota"
    t.add("SMGuard 16", what + ", mean", 1.2, "<= 1.1", of(final, "mean"), "", n)
    t.add("", "its maximum", 1.7, "<= 1.1", of(final, "max"))
    what = "its time over what the speeds in both quotas predict"
    t.add("", what + ", halved: maximum", "", "<= 1.1", of(shrunk, "max"))
    t.add("", what + ", doubled: maximum", "", "<= 1.1", of(grown, "max"))


def antt(t, data):
    for figure, name, paper, aim in (
        ("antt2", "FLEP 10", 8, ">= 8"),
        ("antt3", "FLEP 12", 6.6, ">= 6.6"),
    ):
        better, n = improved(data, figure, "srt"), number(data, figure, "srt")
        kernels = "two" if figure == "antt2" else "three"
        what = f"ANTT of {kernels} kernels, equals, over MPS"
        t.add(name, what + ": mean", paper, aim, of(better, "mean"), "", n)
        t.add("", "its maximum", 20.2 if figure == "antt3" else "", "", of(better, "max"))
        t.add("", "its minimum", "", "", of(better, "min"))
        ours = [of(field(data, figure, way, "antt"), "mean") for way in ("srt", "mps")]
        t.add("", "ANTT itself, mean, and under MPS", "", "", " and ".join(ours))


def fair(t, data):
    for way in ("ffs", "wfq"):
        n = number(data, "ffs", way)
        share = field(data, "ffs", way, "by_capacity")
        off = {c: abs(v / (2 / 3) - 1) for c, v in share.items()}
        what = f"{way}: share of weight 2 beside weight 1, of capacity, mean"
        t.add("FLEP 13", what, 0.667, "0.667", of(share, "mean"), "", n)
        t.add("", "farthest from two thirds, %", "", "<= 1", percent(off, "max"))
        progress = field(data, "ffs", way, "by_progress")
        t.add("", "the same by progress, mean", "", "", of(progress, "mean"))
        loss = field(data, "ffs", way, "loss")
        t.add("FLEP 14", f"{way}: lost together, %, mean", 10, "<= 5", percent(loss, "mean"), "", n)
        t.add("", "its maximum", "", "", percent(loss, "max"))
    share, loss = field(data, "ffs", "mps", "by_progress"), field(data, "ffs", "mps", "loss")
    both_of = f"{of(share, 'mean')}, {percent(loss, 'mean')} %"
    t.add("", "MPS: share by progress, lost together", "", "", both_of)


def spatial(t, data):
    pairs = both(data, "spatial", "spatial", "temporal")
    less = {c: 1 - s["loss"] / f["loss"] for c, s, f in pairs if f["loss"] > 0.005}
    n = number(data, "spatial", "spatial")
    what = "overhead of spatial preemption, % less than that of full eviction"
    t.add("FLEP 15", what + ", mean", 31, ">= 31", percent(less, "mean"), "", n)
    t.add("", "its maximum", 41, "", percent(less, "max"))
    lost = [percent(field(data, "spatial", w, "loss"), "mean") for w in ("spatial", "temporal")]
    t.add("", "lost by the busy program, %: spatial and full", "", "", " and ".join(lost))
    ways = ("spatial", "temporal", "mps")
    took = [of(field(data, "spatial", w, "request_us"), "mean") for w in ways]
    t.add("", "request, us: spatial, full, MPS", "", "", ", ".join(took))


def sizes(data):
    rows = []
    for key, s in sorted(data["sizes"].items()):
        name, _, size = key.partition(".")
        grid = "x".join(map(str, s["grid"]))
        cells = []
        for label in (f"low-{name}", f"high-{name}"):
            twin = data["twins"].get(label)
            if twin and size in twin["us"]:
                first = "no twin" if twin["first"] is None else f"twin after {twin['first']}"
                cells.append(f"{label} {twin['us'][size]:.4g}, {first}")
        rows.append([key, grid, f"{s['alone_us']:.4g}", "; ".join(cells)])
    head = ["kernel and size", "grid", "alone, us", "under gsched, us; launches before a twin"]
    return output.table(head, rows)


def pairs(data):
    """Each case: turnarounds of its kernels in each way."""
    rows = []
    for figure, ways in data["cases"].items():
        names = {case: None for found in ways.values() for case in found}
        for case in names:
            cells = []
            for way, found in ways.items():
                r = found.get(case)
                if r is None:
                    continue
                if r["status"] != "ok":
                    cells.append(f"{way}: {r['status']}, {r['reason']}")
                elif "took_us" in r:
                    cells.append(f"{way}: " + " ".join(f"{u:.4g}" for u in r["took_us"]))
                else:
                    keys = ("by_capacity", "by_progress", "loss", "request_us", "against_final")
                    cells.append(f"{way}: " + " ".join(f"{k} {r[k]:.4g}" for k in keys if k in r))
            rows.append([figure, case, "; ".join(cells)])
    return output.table(["figure", "case", "turnarounds in us, or figures"], rows)


def markdown(data):
    t = Table()
    for part in (flep8, smguard, resized, antt, fair, spatial):
        part(t, data)
    meta = data["meta"]
    head = f"{meta['gpu']}; {meta['host']}; {meta['date']}; version {meta['version']}."
    said = "".join(f"\n{line}\n" for line in data["said"])
    return (
        f"# Figures of the papers\n\n{head}\n{said}\n{t.text()}\n## Cases\n\n{pairs(data)}\n"
        f"## Sizes\n\n{sizes(data)}"
    )
