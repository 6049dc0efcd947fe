# SPDX-License-Identifier: LGPL-2.1-or-later
"""The results as tables, as CSV and as a plot."""

import json
import statistics

import output
import ways

PAIRS_TEXT = """\
Latency of a request in us from its arrival to its end. Requests arrive in an open loop, whether
earlier ones are done or not (with a pace closed:... they wait for each other); "from launch" counts
from the moment at which the program got to the request. Requests that were not served when the
window ended count with the time they had waited. "Batch keeps": work per second, relative to alone
(of three programs: the sum). "Dominated by": that way is over 3 % better in p99 and over 3 % better
in what the batch keeps.
"""
OVERVIEW_TEXT = """\
p50 / p99 latency of requests in us, p99 relative to alone, and what the batch program keeps of its
throughput alone. (-): dominated, as another way is over 3 % better in p99 and over 3 % better in
what the batch keeps.
"""
QUOTA_TEXT = """\
Throughput relative to alone over windows of one second. Burst: longest stretch of steps of which
each took at most 1.5 times what it takes alone.
"""


def us(value):
    return None if value is None else f"{value:.0f}" if value >= 10000 else f"{value:.1f}"


def percent(value):
    return f"{100 * value:.1f} %"


def summary(r):
    """One line for who watches the run."""
    if r["status"] != "ok":
        return f"{r['status']}: {r['reason']}"
    parts = []
    if r.get("latency"):
        latency = r["latency"]["arrival"]
        parts.append(f"p50 {us(latency['p50'])} p99 {us(latency['p99'])} us")
    if "p99_alone" in r:
        parts.append(f"{r['p99_alone']:.2f} of alone")
    for key in ("keeps", "mean"):
        if key in r:
            parts.append(f"{key} {percent(r[key])}")
    if "each" in r and len(r["each"]) > 1:
        parts.append("each " + " ".join(map(percent, r["each"])))
    if "rate" in r:
        parts.append(f"{r['rate']:.5g} steps/s")
    return ", ".join(parts)


def sections(rows, experiments):
    """(experiment, request, batch, pace): its rows."""
    found = {}
    for r in rows.values():
        if r["experiment"] in experiments:
            found.setdefault((r["experiment"], r["request"], r["batch"], r["pace"]), []).append(r)
    return found


def latency_cells(latency):
    a, s = latency["arrival"], latency["service"]
    offered = latency["served"] + latency["unserved"]
    return [us(a["p50"]), us(a["p90"]), us(a["p99"]), us(a["max"])], [
        us(s["p50"]) if s else None,
        us(s["p99"]) if s else None,
        f"{latency['served']} of {offered}",
    ]


def note(r):
    if r["status"] != "ok":
        return f"{r['status']}: {r['reason']}"
    device = r.get("report") or {}
    parts = [str(device[k]) for k in ("mode", "error") if k in device]
    for band in device.get("bands") or []:
        error = f" (error {band['slice_error']})" if band.get("slice_error") else ""
        parts.append(
            f"{band.get('name') or 'band'} {band.get('applied_us', band.get('slice_us'))} us{error}"
        )
    if device.get("unmanaged"):
        parts.append(f"{len(device['unmanaged'])} processes unmanaged")
    return ", ".join(parts)


def overview(rows):
    """A table for each batch program: all requests beside it in all ways."""
    tables = {}
    for (experiment, request, batch, pace), found in sections(rows, ("pair", "three")).items():
        tables.setdefault((experiment, batch), {})[request, pace] = found
    out = []
    for (experiment, batch), columns in tables.items():
        names = dict.fromkeys(r["way"] for found in columns.values() for r in found)
        names = ways.in_order(names)
        cells = {name: [] for name in ["alone", *names]}
        for (request, pace), found in columns.items():
            alone = rows.get(f"alone|request|{request}|{pace}|alone", {})
            latency = alone.get("latency", {}).get("arrival")
            cells["alone"].append(latency and p50_p99(latency))
            by_way = {r["way"]: r for r in found}
            ok = {n: (r["p99_alone"], r["keeps"]) for n, r in by_way.items() if r["status"] == "ok"}
            beaten = output.dominated(ok)
            for name in names:
                cells[name].append(overview_cell(by_way.get(name), name in beaten))
        many = "three programs of " if experiment == "three" else ""
        out.append(f"## Beside {many}{batch}\n")
        headers = ["how"] + [f"{request} {pace}" for request, pace in columns]
        out.append(output.table(headers, [[name, *texts] for name, texts in cells.items()]))
    return [OVERVIEW_TEXT, *out] if out else []


def p50_p99(latency):
    return f"{us(latency['p50'])} / {us(latency['p99'])}"


def overview_cell(r, beaten):
    if not r or r["status"] != "ok":
        return r and r["status"]
    latency = r["latency"]["arrival"]
    text = f"{p50_p99(latency)}, {r['p99_alone']:.2f}x, {percent(r['keeps'])}"
    return text + (" (-)" if beaten else "")


def pairs_markdown(rows):
    out = []
    for (experiment, request, batch, pace), found in sections(rows, ("pair", "three")).items():
        ok = {r["way"]: (r["p99_alone"], r["keeps"]) for r in found if r["status"] == "ok"}
        better = output.dominated(ok)
        alone = rows.get(f"alone|request|{request}|{pace}|alone", {})
        cells = []
        if alone.get("status") == "ok":
            first, rest = latency_cells(alone["latency"])
            cells.append(["alone", *first, "1.00x", *rest, "100 %", "", ""])
        for r in found:
            if r["status"] == "ok":
                first, rest = latency_cells(r["latency"])
                cells.append(
                    [
                        r["way"],
                        *first,
                        f"{r['p99_alone']:.2f}x",
                        *rest,
                        percent(r["keeps"]),
                        better.get(r["way"]),
                        note(r),
                    ]
                )
            else:
                cells.append([r["way"]] + [None] * 10 + [note(r)])
        many = "three programs of " if experiment == "three" else ""
        out.append(f"## {request} beside {many}{batch}, requests {pace}\n")
        out.append(
            output.table(
                [
                    "how",
                    "p50 us",
                    "p90",
                    "p99",
                    "max",
                    "p99/alone",
                    "from launch p50",
                    "p99",
                    "served",
                    "batch keeps",
                    "dominated by",
                    "note",
                ],
                cells,
            )
        )
    if out:
        out.insert(0, PAIRS_TEXT)
    return out


def ffs_markdown(rows):
    cells = []
    for r in rows.values():
        if r["experiment"] != "ffs":
            continue
        wanted = [int(w) for w in r["weights"].split(":")]
        if r["status"] == "ok":
            cells.append(
                [
                    r["batch"],
                    r["weights"],
                    r["way"],
                    " ".join(map(percent, r["each"])),
                    " ".join(map(percent, r["shares"])),
                    " ".join(percent(w / sum(wanted)) for w in wanted),
                    percent(1 - r["keeps"]),
                    note(r),
                ]
            )
        else:
            cells.append([r["batch"], r["weights"], r["way"], None, None, None, None, note(r)])
    headers = [
        "program",
        "weights",
        "how",
        "work relative to alone",
        "share",
        "share by weight",
        "lost in all",
        "note",
    ]
    return ["## Fair shares of busy programs\n", output.table(headers, cells)] if cells else []


def quota_markdown(rows):
    cells = []
    for r in rows.values():
        if r["experiment"] != "quota":
            continue
        if r["status"] == "ok":
            cells.append(
                [
                    r["batch"],
                    f"{r['quota']} %",
                    r["way"],
                    percent(r["mean"]),
                    percent(r["min"]),
                    percent(r["max"]),
                    f"{r['burst_ms']:.1f}",
                    f"{r['pause_ms']:.1f}",
                    note(r),
                ]
            )
        else:
            cells.append([r["batch"], f"{r['quota']} %", r["way"]] + [None] * 5 + [note(r)])
    headers = [
        "program",
        "quota",
        "how",
        "mean",
        "min",
        "max",
        "longest burst ms",
        "longest pause ms",
        "note",
    ]
    return ["## Quotas of one program\n", QUOTA_TEXT, output.table(headers, cells)] if cells else []


def markdown(data):
    rows = data["rows"]
    meta = data["meta"]
    out = [
        f"{meta['gpu']}; {meta['host']}; {meta['date']}. Windows of "
        + ", ".join(sorted({f"{r['seconds']:g} s" for r in rows.values()}))
        + f". gsched {meta['version']}.\n"
    ]
    out += overview(rows) + pairs_markdown(rows)
    out += ffs_markdown(rows) + quota_markdown(rows)
    return "\n".join(out)


def plot(data):
    """A line of panels for each request, a column for each batch program, unless they are few."""
    found = {}
    for (experiment, request, batch, pace), taken in sections(
        data["rows"], ("pair", "three")
    ).items():
        points = [(r["way"], r["p99_alone"], r["keeps"]) for r in taken if r["status"] == "ok"]
        column = ("3 x " if experiment == "three" else "") + batch
        if points:
            found[f"{request} ({pace})", column] = [("alone", 1.0, 1.0)] + points
    if not found:
        return None
    lines = list(dict.fromkeys(line for line, _ in found))
    columns = list(dict.fromkeys(column for _, column in found))
    panels = [
        (f"{line} beside {column}", found.get((line, column), []))
        for line in lines
        for column in columns
    ]
    if len(found) > output.MANY:
        return output.svg(panels, len(columns))
    return output.svg([p for p in panels if p[1]])


def csv_rows(data):
    fields = [
        "experiment",
        "request",
        "batch",
        "program",
        "pace",
        "weights",
        "quota",
        "repetition",
        "way",
        "status",
        "seconds",
    ]
    headers = (
        fields
        + [f"{k}_{p}_us" for k in ("arrival", "service") for p in ("p50", "p90", "p99", "max")]
        + ["served", "unserved", "p99_relative", "batch_keeps", "each", "rate", "reason"]
    )
    rows = []
    for r in data["rows"].values():
        latency = r.get("latency") or {}
        figures = [
            (latency.get(k) or {}).get(p)
            for k in ("arrival", "service")
            for p in ("p50", "p90", "p99", "max")
        ]
        keeps = r.get("keeps", r.get("mean"))
        rows.append(
            [r.get(k) for k in fields]
            + figures
            + [
                latency.get("served"),
                latency.get("unserved"),
                r.get("p99_alone"),
                keeps,
                json.dumps(r["each"]) if "each" in r else None,
                r.get("rate"),
                r.get("reason"),
            ]
        )
    return output.csv_text(headers, rows)
