# SPDX-License-Identifier: LGPL-2.1-or-later
"""Figures from logs, and the table, the CSV file and the plot that show them. Pure functions."""

import csv
import dataclasses
import io
import math
from xml.sax.saxutils import escape


SLOWEST = 20  # requests of a row that are kept singly


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
    slowest = sorted(zip(waited, inside), key=lambda both: -both[0])[:SLOWEST]
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
        # when in the window, and how long: one stall, or something that comes again and again
        "slowest_ms": [[round((r[2] - begin) / 1e6, 1), round(w / 1e6, 3)] for w, r in slowest],
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
    """name: the first other that is over 3 % better in latency and over 3 % better in throughput.

    @points: name -> (latency, throughput).
    """
    found = {}
    for name, (latency, kept) in points.items():
        for other, (l, k) in points.items():
            if l < latency * 0.97 and k > kept * 1.03:
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


@dataclasses.dataclass
class Layout:
    """Sizes of a panel; @left to @bottom are around its frame."""

    width: int = 380
    height: int = 300
    left: int = 62
    top: int = 34
    right: int = 18
    bottom: int = 44
    font: int = 11
    mark: int = 5


LARGE = Layout()
SMALL = Layout(width=250, height=186, left=46, top=24, right=10, bottom=30, font=9, mark=4)
MANY = 9  # panels; more are small
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


def marker(x, y, style, title="", d=5):
    colour, shape = style
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


def text(x, y, what, anchor="", more=""):
    anchor = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{anchor}{more}>{escape(what)}</text>'


def panel(left, top, title, points, style, layout=LARGE):
    marks = ticks(max([x for _, x, _ in points] + [2]) * 1.02)
    low = math.log(min([0.9] + [x for _, x, _ in points]) * 0.98)
    high = math.log(marks[-1] * 1.02)
    height = max([1.0] + [y for _, _, y in points]) * 1.05
    x0, y0 = left + layout.left, top + layout.top
    w = layout.width - layout.left - layout.right
    h = layout.height - layout.top - layout.bottom
    line = layout.font + 4

    def at(x, y):
        return x0 + w * (math.log(x) - low) / (high - low), y0 + h * (1 - y / height)

    step = 0.2 if layout is LARGE else 0.5
    levels = [part * step for part in range(0, int(height / step) + 1)]
    grid = "".join(f"M{at(mark, 0)[0]:.1f} {y0}v{h}" for mark in marks)
    grid += "".join(f"M{x0} {at(1, level)[1]:.1f}h{w}" for level in levels)
    out = [
        text(x0 if layout is LARGE else left + 8, y0 - line + 3, title, more=' font-weight="bold"'),
        f'<path d="{grid}" stroke="#ddd"/>',
        f'<rect x="{x0}" y="{y0}" width="{w}" height="{h}" fill="none" stroke="#444"/>',
    ]
    for mark in marks:
        if len(marks) < (9 if layout is LARGE else 5) or str(mark)[0] == "1":
            out.append(text(at(mark, 0)[0], y0 + h + line, str(mark), "middle"))
    for level in levels:
        out.append(text(x0 - 6, at(1, level)[1] + 4, f"{100 * level:.0f} %", "end"))
    if layout is LARGE:
        out += axes(x0 + w / 2, y0 + h + 2 * line + 2, left + 12, y0 + h / 2)
    for name, x, y in points:
        px, py = at(x, max(0.0, y))
        out.append(marker(px, py, style[name], f"{name}: {x:.2f}x, {100 * y:.1f} %", layout.mark))
    return out


def axes(x, y, left, middle):
    """What is shown to the right and upwards."""
    turned = f' transform="rotate(-90 {left:.1f} {middle:.1f})"'
    return [
        text(x, y, "p99 latency / alone", "middle"),
        text(left, middle, "batch keeps", "middle", turned),
    ]


def svg(panels, columns=3):
    """@panels: (title, [(way, p99 relative to alone, part that batch keeps)]). Best: upper left."""
    names = list(dict.fromkeys(name for _, points in panels for name, _, _ in points))
    style = styles(names)
    layout = LARGE if sum(bool(points) for _, points in panels) <= MANY else SMALL
    columns = max(1, min(columns, len(panels)))
    rows = max(1, math.ceil(len(panels) / columns))
    margin = 0 if layout is LARGE else 24
    width = max(columns * layout.width, 300) + margin
    per_line = max(1, (width - 20) // 140)
    bottom = rows * layout.height + margin
    height = bottom + 24 + 20 * math.ceil(len(names) / per_line)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'font-family="sans-serif" font-size="{layout.font}">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for i, (title, points) in enumerate(panels):
        left, top = margin + i % columns * layout.width, i // columns * layout.height
        if points:
            out += panel(left, top, title, points, style, layout)
    if layout is SMALL:
        out += axes(width / 2, bottom - 8, 14, (bottom - margin) / 2)
    for i, name in enumerate(names):
        x, y = 20 + i % per_line * 140, bottom + 16 + i // per_line * 20
        out.append(marker(x, y, style[name]))
        out.append(text(x + 10, y + 4, name))
    return "\n".join(out + ["</svg>"]) + "\n"
