# SPDX-License-Identifier: LGPL-2.1-or-later
"""Figures from logs, and the table, the CSV file and the plot that show them. Pure functions."""

import csv
import io
import math
from xml.sax.saxutils import escape


def percentile(values, p):
    """Nearest rank of a sorted list."""
    return values[max(1, math.ceil(len(values) * p / 100)) - 1]


def spread(ns):
    """Percentiles in us of a list of times in ns; None if it is empty."""
    if not ns:
        return None
    ns = sorted(ns)
    return (
        {"n": len(ns)}
        | {f"p{p}": round(percentile(ns, p) / 1e3, 1) for p in (50, 90, 99)}
        | {"max": round(ns[-1] / 1e3, 1)}
    )


def parse_log(text):
    """Records (start, took, arrival) in ns; a line without an arrival: it arrived when it started."""
    records = []
    for line in text.splitlines():
        fields = [int(f) for f in line.split()]
        records.append((fields[0], fields[1], fields[2] if len(fields) > 2 else fields[0]))
    return records


def latencies(records, begin, end, period_ns, closed):
    """Of the requests that arrived in the window: from the arrival and from the launch, to the end.

    In an open loop requests go on arriving while others are waited for. Those that arrived in the
    window and are not in the log count with the time they had waited when the window ended, which
    is a lower bound.
    """
    inside = [r for r in records if begin <= r[2] < end]
    waited = [start + took - arrival for start, took, arrival in inside]
    unserved = 0
    if not closed:
        due = max([r[2] for r in records], default=begin - period_ns) + period_ns
        due = max(due, begin)
        while due < end:
            waited.append(end - due)
            unserved += 1
            due += period_ns
    return {
        "arrival": spread(waited),
        "service": spread([r[1] for r in inside]),
        "served": len(inside),
        "unserved": unserved,
    }


def work(records, begin, end):
    """Steps done in the window; those at its borders by their part of time inside."""
    done = 0.0
    for start, took, _ in records:
        inside = min(end, start + took) - max(begin, start)
        if inside > 0 and took > 0:
            done += inside / took
    return done


def rate(records, begin, end):
    """Steps a second."""
    return work(records, begin, end) * 1e9 / (end - begin)


def windows(records, begin, end, alone_rate, window_ns=1_000_000_000):
    """What a program got in each whole window of a second, in parts of its throughput alone."""
    shares = []
    while begin + window_ns <= end:
        shares.append(rate(records, begin, begin + window_ns) / alone_rate)
        begin += window_ns
    return shares


def bursts(records, begin, end, step_ns):
    """(longest stretch of steps without a pause, longest pause) in ns.

    A step that took over 1.5 times what it takes alone, @step_ns, had a pause.
    """
    longest = pause = current = 0
    for start, took, _ in records:
        if start < begin or start + took > end:
            continue
        if took > 1.5 * step_ns:
            pause = max(pause, took - step_ns)
            current = step_ns
        else:
            current += took
        longest = max(longest, current)
    return int(longest), int(pause)


def dominated(points):
    """name: the first other that is over 2 % better in latency or throughput and no worse in both.

    @points: name -> (latency, throughput).
    """
    found = {}
    for name, (latency, kept) in points.items():
        for other, (l, k) in points.items():
            if other == name:
                continue
            if (l < latency * 0.98 and k >= kept) or (k > kept * 1.02 and l <= latency):
                found[name] = other
                break
    return found


def table(headers, rows):
    lines = ["| " + " | ".join(headers) + " |", "|" + "---|" * len(headers)]
    lines += [
        "| " + " | ".join("" if c is None else str(c).replace("|", "/") for c in row) + " |"
        for row in rows
    ]
    return "\n".join(lines) + "\n"


def csv_text(headers, rows):
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(headers)
    writer.writerows(rows)
    return out.getvalue()


# The plot: latency against throughput, a panel for each pair

PANEL_W, PANEL_H, LEFT, TOP, RIGHT, BOTTOM = 380, 300, 62, 34, 18, 44
SHAPES = ("circle", "square", "diamond", "triangle", "cross")
COLOURS = {"alone": "#000000", "time-slicing": "#888888"}
MPS = ("#9ecae1", "#4292c6", "#2171b5", "#08519c", "#6a51a3", "#3f007d", "#41ab5d", "#006d2c")
OURS = ("#d94801", "#e31a1c", "#fd8d3c", "#a50f15", "#ffb000")


def styles(names):
    """A colour and a shape for each way, the same in every panel."""
    chosen = {}
    mps = ours = 0
    for i, name in enumerate(names):
        if name in COLOURS:
            colour = COLOURS[name]
        elif name.startswith("gsched"):
            colour, ours = OURS[ours % len(OURS)], ours + 1
        else:
            colour, mps = MPS[mps % len(MPS)], mps + 1
        chosen[name] = (colour, SHAPES[i % len(SHAPES)])
    return chosen


def marker(x, y, style, title=""):
    colour, shape = style
    d = 5
    paint = f'fill="{colour}" stroke="white" stroke-width="0.8"'
    shapes = {
        "circle": f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{d}" {paint}',
        "square": f'<rect x="{x - d:.1f}" y="{y - d:.1f}" width="{2 * d}" height="{2 * d}" {paint}',
        "diamond": f'<path d="M{x:.1f} {y - d - 1:.1f}l{d + 1} {d + 1}l{-d - 1} {d + 1}l{-d - 1} {-d - 1}z" {paint}',
        "triangle": f'<path d="M{x:.1f} {y - d - 1:.1f}l{d + 1} {2 * d}h{-2 * d - 2}z" {paint}',
        "cross": f'<path d="M{x - d:.1f} {y - d:.1f}l{2 * d} {2 * d}m0 {-2 * d}l{-2 * d} {2 * d}" stroke="{colour}" '
        'stroke-width="2.5" fill="none"',
    }
    return shapes[shape] + (
        f"><title>{escape(title)}</title></{shapes[shape][1:].split()[0]}>" if title else "/>"
    )


def ticks(high):
    """1, 2, 5 and their tenfolds up to the first at or above @high."""
    found, scale = [], 1
    while True:
        for step in (1, 2, 5):
            found.append(step * scale)
            if step * scale >= high:
                return found
        scale *= 10


def panel(left, top, title, points, style):
    xs = [x for _, x, _ in points]
    marks = ticks(max(xs + [2]) * 1.02)
    low, high = math.log(min([0.9] + xs) * 0.98), math.log(marks[-1] * 1.02)
    height = max([1.0] + [y for _, _, y in points]) * 1.05
    w, h = PANEL_W - LEFT - RIGHT, PANEL_H - TOP - BOTTOM

    def at(x, y):
        return left + LEFT + w * (math.log(x) - low) / (high - low), top + TOP + h * (
            1 - y / height
        )

    out = [
        f'<text x="{left + LEFT}" y="{top + TOP - 12}" font-weight="bold">{escape(title)}</text>',
        f'<rect x="{left + LEFT}" y="{top + TOP}" width="{w}" height="{h}" fill="none" stroke="#444"/>',
    ]
    for mark in marks:
        x, _ = at(mark, 0)
        out.append(f'<path d="M{x:.1f} {top + TOP}v{h}" stroke="#ddd"/>')
        if len(marks) < 9 or str(mark)[0] == "1":
            out.append(
                f'<text x="{x:.1f}" y="{top + TOP + h + 15}" text-anchor="middle">{mark}</text>'
            )
    for part in range(0, int(height / 0.2) + 1):
        _, y = at(1, part * 0.2)
        out.append(f'<path d="M{left + LEFT} {y:.1f}h{w}" stroke="#ddd"/>')
        out.append(
            f'<text x="{left + LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{part * 20} %</text>'
        )
    out.append(
        f'<text x="{left + LEFT + w / 2:.1f}" y="{top + TOP + h + 32}" text-anchor="middle">'
        "p99 latency / alone</text>"
    )
    x, y = left + 12, top + TOP + h / 2
    out.append(
        f'<text x="{x}" y="{y:.1f}" text-anchor="middle" transform="rotate(-90 {x} {y:.1f})">batch keeps</text>'
    )
    for name, x, y in points:
        px, py = at(x, max(0.0, y))
        out.append(marker(px, py, style[name], f"{name}: {x:.2f}x, {100 * y:.1f} %"))
    return out


def svg(panels, columns=3):
    """@panels: (title, [(way, p99 relative to alone, part that batch keeps)]). Best: upper left."""
    names = list(dict.fromkeys(name for _, points in panels for name, _, _ in points))
    style = styles(names)
    columns = max(1, min(columns, len(panels)))
    rows = max(1, math.ceil(len(panels) / columns))
    per_line = max(1, columns * PANEL_W // 140)
    width = columns * PANEL_W
    height = rows * PANEL_H + 24 + 20 * math.ceil(len(names) / per_line)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="11">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for i, (title, points) in enumerate(panels):
        out += panel(i % columns * PANEL_W, i // columns * PANEL_H, title, points, style)
    for i, name in enumerate(names):
        x, y = 20 + i % per_line * 140, rows * PANEL_H + 16 + i // per_line * 20
        out.append(marker(x, y, style[name]))
        out.append(f'<text x="{x + 10}" y="{y + 4}">{escape(name)}</text>')
    return "\n".join(out + ["</svg>"]) + "\n"
