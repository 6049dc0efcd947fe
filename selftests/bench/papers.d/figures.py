# SPDX-License-Identifier: LGPL-2.1-or-later
"""What is measured for each figure: cases, and one record a case and way."""

import itertools
import statistics
import time

import kernels
from procs import RowFailed, now

LOW = ["cfd", "nn", "pf", "pl"]  # FLEP's figures 8 and 13: these are long and less important
SHORT = ["md", "mm", "spmv", "va"]  # figure 10: these are short
TRIPLETS = [
    *("va-spmv-mm", "nn-spmv-va", "md-cfd-nn", "cfd-spmv-md", "pl-va-pf", "spmv-cfd-va"),
    *("pf-nn-spmv", "mm-cfd-spmv", "nn-mm-pl", "md-va-pf"),
]
SPATIAL = (["cfd", "nn", "pf", "pl", "md", "spmv"], ["tinymd", "tinypl"])
RESIZED = ["nn", "md5", "bs", "mm", "md", "pl"]
HUGE = [f"{b}-{a}" for b in kernels.SMGUARD_LARGE for a in kernels.SMGUARD_LS]

AFTER_US = 200  # from one launch to the next; a twin's first blocks run by then
LS_AFTER_US = 1000  # SMGuard's
LONG_US = 150_000  # of a kernel whose quota changes in it
CHANGE_S = 0.02  # from its launch to the change
SETTLE_S = 0.4  # of the small requests, before the window
PERIOD_US = 2000  # of the small requests of the spatial figure


def cases(figure):
    """Names of the cases, "first-second": the first is launched first."""
    if figure in ("fig8", "ffs"):
        return [f"{a}-{b}" for b in kernels.FLEP for a in LOW if a != b]
    if figure == "antt2":
        return [f"{a}-{b}" for b in SHORT for a in kernels.FLEP if a != b]
    if figure == "antt3":
        return TRIPLETS
    if figure == "smguard":
        pairs = itertools.product(kernels.SMGUARD_LS, kernels.SMGUARD_BATCH)
        return [f"{b}-{a}" for a, b in pairs]
    if figure == "huge":
        return HUGE
    if figure == "spatial":
        return [f"{a}-{b}" for a in SPATIAL[0] for b in SPATIAL[1]]
    return RESIZED


def sizes_of(figure, case):
    """[(kernel, size)] of a case."""
    names = case.split("-")
    if figure == "spatial":
        return [(names[0], "large"), (names[1], "trivial"), (names[1], "whole")]
    first, others = {
        "smguard": ("batch", "ls"),
        "huge": ("huge", "ls"),
        "resize": ("long", ""),
    }.get(figure, ("large", "small"))
    return [(names[0], first)] + [(n, others) for n in names[1:]]


def rate(ends, begin, end):
    """Kernels a second of a loop, by the first and last one that ended in the window (ns)."""
    inside = [e for e in ends if begin <= e <= end]
    if len(inside) < 3:
        return len(inside) * 1e9 / (end - begin)
    return (len(inside) - 1) * 1e9 / (inside[-1] - inside[0])


class Measure:
    """Measures cases. @data: what is known so far, and where sizes and alone times are kept."""

    def __init__(self, session, args, data, table):
        self.session = session
        self.args = args
        self.data = data
        self.table = table

    def grid(self, name, size):
        found = self.data["sizes"].get(f"{name}.{size}")
        if not found:
            raise RowFailed(f"{name}.{size} was not sized")
        return found["grid"]

    def alone_us(self, name, size):
        return self.data["sizes"][f"{name}.{size}"]["alone_us"]

    # Sizes and times alone

    def size(self, place, name):
        """Grids of the kernel that take the papers' times, and what they take."""
        kernel, label = self.table[name], f"low-{name}"
        keep = self.data["sizes"]

        def measured(size, blocks, n):
            grid = kernel.grid(blocks)
            us = place.several(label, grid, n)
            keep[f"{name}.{size}"] = {"grid": grid, "alone_us": us}
            return us

        self.data["sms"] = kernel.sms
        if name.startswith("tiny"):
            for size, width in (("trivial", kernel.data), ("whole", kernel.sms)):
                grid = (width, 1, 1)
                us = place.several(label, grid, 3)
                keep[f"{name}.{size}"] = {"grid": grid, "alone_us": us}
            return
        if self.session.vgpu:
            factor = {"large": 4, "batch": 4, "huge": 6, "long": 12}
            wanted = {k: kernel.data * factor.get(k, 1) for k in [*kernels.targets(name), "long"]}
            if name == "mc":
                wanted = {"batch": kernel.data}
            for size, blocks in wanted.items():
                measured(size, blocks, 1)
            return
        if name == "mc":
            measured("batch", round(kernels.MC_SHARE * kernel.sms * kernel.per_sm), 1)
            return
        blocks = kernels.FIRST[name]
        us_a_block = place.several(label, kernel.grid(blocks), 3) / blocks
        for size, target in (kernels.targets(name) | {"long": LONG_US}).items():
            blocks = target / us_a_block
            for n in (1,) if target > 100_000 else (2, 2, self.args.reps):
                us = measured(size, blocks, n)
                blocks *= target / us

    def loop_alone(self, place, label, size, seconds=0.3):
        """Kernels a second with two in flight; once in a place."""
        key = f"{label}.{size}"
        if key not in place.rates:
            name = label.partition("-")[2]
            (found,), _ = place.loops([(label, self.grid(name, size), 0)], seconds)
            place.rates[key] = rate(found["ends"], 0.05e9, seconds * 1e9)
        return place.rates[key]

    # One launch each

    def meet(self, place, launches, priority):
        """Medians over repetitions: {"took_us": of each, "span_us"}."""
        grids = [
            (label, self.grid(label.partition("-")[2], size), after, high)
            for label, size, after, high in launches
        ]
        place.prefer(priority)
        good, late = [], []
        while len(good) < self.args.reps and len(late) < self.args.reps:
            time.sleep(self.args.rest)
            times, in_time = place.together(grids)
            (good if in_time else late).append(times)
        used = good or late
        took = [[end - begin for begin, end in times] for times in used]
        spans = [max(e for _, e in times) - min(b for b, _ in times) for times in used]
        return {
            "took_us": [statistics.median(t) for t in zip(*took)],
            "span_us": statistics.median(spans),
            "all_us": took,
            "late": len(late),
        }

    def pair(self, place, figure, case, way):
        """The first program's kernel, and others that are launched while it runs."""
        parts = sizes_of(figure, case)
        equal = figure.startswith("antt")
        after = LS_AFTER_US if figure in ("smguard", "huge") else AFTER_US
        launches = []
        for i, (name, size) in enumerate(parts):
            label = ("low-" if equal or not i else "high-") + name
            launches.append((label, size, i * after, bool(i) and way == "mps-priority"))
        found = self.meet(place, launches, None if equal else launches[1][0])
        alone = [self.alone_us(name, size) for name, size in parts]
        ntt = [t / a for t, a in zip(found["took_us"], alone)]
        found |= {"antt": statistics.mean(ntt), "stp": sum(1 / n for n in ntt)}
        return found | {"alone_us": alone, "after_us": after}

    # Busy programs

    def shares(self, place, figure, case, way):
        """Two that launch for ever, weights 1:2: shares of capacity and of progress."""
        (a, large), (b, small) = sizes_of(figure, case)
        labels = [f"low-{a}", f"low-{b}"]
        # turns are some milliseconds long, and a window does not end with one
        seconds = self.args.seconds * (2.5 if way == "wfq" else 1)
        if place.high:
            place.device(policy=way)
            place.set(labels[0], gpu_weight=100)
            place.set(labels[1], gpu_weight=200)
        native = [self.loop_alone(place, *each) for each in zip(labels, (large, small))]
        begin_ns, end_ns = seconds * 0.25e9, seconds * 1e9

        def used(begin, end):
            if not place.high:
                return None
            found = []
            for at in (begin + begin_ns, end - 0.03e9):
                time.sleep(max(0, (at - now()) / 1e9))
                found.append([place.stat(l, "capsm_usec") for l in labels])
            return [last - first for first, last in zip(*found)]

        programs = [(l, self.grid(n, s), 0) for l, n, s in zip(labels, (a, b), (large, small))]
        found, usage = place.loops(programs, seconds, used)
        progress = [rate(f["ends"], begin_ns, end_ns) / n for f, n in zip(found, native)]
        record = {"progress": progress, "by_progress": progress[1] / sum(progress)}
        record["loss"] = 1 - sum(progress)
        if usage:
            record |= {"usage": usage, "by_capacity": usage[1] / max(1, sum(usage))}
        return record

    def spatial(self, place, figure, case, way):
        """A busy program and small requests each 2 ms: what the busy one loses.

        Way temporal: the request's grid has a block for each SM, so all are evicted. Its size is
        not to be learnt as smaller than that.
        """
        (a, large), trivial, whole = sizes_of(figure, case)
        b, size = whole if way == "temporal" else trivial
        low, high = f"low-{a}", f"high-{b}"
        place.prefer(high)
        place.device(max_slowdown=100 if way == "temporal" else 200)
        native = self.loop_alone(place, low, large, SETTLE_S)
        seconds = SETTLE_S + self.args.seconds
        period = PERIOD_US * (10 if self.session.vgpu else 1)
        programs = [(low, self.grid(a, large), 0), (high, self.grid(b, size), period)]
        (busy, requests), _ = place.loops(programs, seconds)
        begin = SETTLE_S * 1e9
        counted = [t for e, t in zip(requests["ends"], requests["took"]) if e >= begin]
        if not counted:
            raise RowFailed("no request was served in the window")
        return {
            "loss": 1 - rate(busy["ends"], begin, seconds * 1e9) / native,
            "request_us": statistics.median(counted) / 1000,
            "requests_per_s": len(counted) / self.args.seconds,
        }

    def resize(self, place, _figure, case, _way):
        """The quota of a running kernel changes, to half of the SMs and to all."""
        label, grid = f"low-{case}", self.grid(case, "long")
        half = max(1, self.data["sms"] // 2)
        place.prefer(None)

        def changed(value):
            """(us, us until the change was in force)"""
            place.tell(label, f"at 0 0 {grid[0]} {grid[1]} {grid[2]}")
            time.sleep(CHANGE_S)
            place.set(label, capsm_max=value)
            at = now()
            answer = place.heard(label)
            return (answer["end"] - answer["begin"]) / 1000, (at - answer["begin"]) / 1000

        try:
            runs = []
            for _ in range(2):
                whole = place.once(label, grid)
                shrunk, shrunk_at = changed(half)
                part = place.once(label, grid)
                grown, grown_at = changed("max")
                runs.append([whole, part, shrunk, shrunk_at, grown, grown_at])
        finally:
            place.set(label, capsm_max="max")
        whole, part, shrunk, shrunk_at, grown, grown_at = map(statistics.median, zip(*runs))
        # what is done by the change at one speed, and the rest at the other
        predicted = [
            shrunk_at + part * max(0, 1 - shrunk_at / whole),
            grown_at + whole * max(0, 1 - grown_at / part),
        ]
        return {
            "whole_us": whole,
            "half_us": part,
            "shrunk_us": shrunk,
            "grown_us": grown,
            "against_final": shrunk / part,
            "against_predicted": [shrunk / predicted[0], grown / predicted[1]],
        }

