#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Test of selftests/bench/bands: its figures, its ways, a run on the simulated GPU. Prints TAP."""

import csv
import json
import os
import subprocess
import sys
import tempfile
import traceback
import xml.etree.ElementTree as ET

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, HERE)

import output  # noqa: E402
import ways  # noqa: E402
import workloads  # noqa: E402
from procs import Session  # noqa: E402

BANDS = os.path.join(os.path.dirname(HERE), "bands")
MS = 1_000_000


def expect(got, wanted):
    if got != wanted:
        raise AssertionError(f"got {got!r}, wanted {wanted!r}")


def test_percentiles():
    """percentiles are nearest ranks"""
    values = list(range(1, 101))
    expect([output.percentile(values, p) for p in (1, 50, 99, 100)], [1, 50, 99, 100])
    expect([output.percentile([7], p) for p in (1, 50, 99)], [7, 7, 7])
    expect(output.percentile([1, 2, 3], 50), 2)
    expect(
        output.spread([3000, 1000, 2000]), {"n": 3, "p50": 2.0, "p90": 3.0, "p99": 3.0, "max": 3.0}
    )
    expect(output.spread([]), None)


def test_latency():
    """an open loop counts from the arrival, and what was never served by how long it waited"""
    # a request each ms; the first takes 5 ms, the second is served after it, the log ends there
    records = [(10 * MS, 5 * MS, 10 * MS), (15 * MS, MS, 11 * MS)]
    got = output.latencies(records, 10 * MS, 14 * MS, MS, False)
    expect((got["served"], got["unserved"]), (2, 2))
    expect(got["arrival"], {"n": 4, "p50": 2000.0, "p90": 5000.0, "p99": 5000.0, "max": 5000.0})
    expect(got["service"]["max"], 5000.0)
    got = output.latencies(records, 10 * MS, 14 * MS, MS, True)
    expect((got["served"], got["unserved"], got["arrival"]["n"]), (2, 0, 2))
    # nothing was served at all
    got = output.latencies([], 0, 4 * MS, MS, False)
    expect(
        (got["served"], got["unserved"], got["arrival"]["max"], got["service"]),
        (0, 4, 4000.0, None),
    )


def test_log():
    """logs with and without arrivals"""
    expect(output.parse_log("5 2 4\n9 1 8\n"), [(5, 2, 4), (9, 1, 8)])
    expect(output.parse_log("5 2\n"), [(5, 2, 5)])


def test_work():
    """steps at the window's borders count by their part inside"""
    records = [(0, 10 * MS, 0), (10 * MS, 10 * MS, 10 * MS), (20 * MS, 10 * MS, 20 * MS)]
    expect(output.work(records, 5 * MS, 25 * MS), 2.0)
    expect(output.rate(records, 0, 30 * MS), 100.0)
    # half of the time for 2 s: one second full, one nothing
    busy = [(i * 10 * MS, 10 * MS, 0) for i in range(100)]
    expect(output.windows(busy, 0, 2000 * MS, 100.0), [1.0, 0.0])


def test_bursts():
    """a pause ends a burst"""
    steps = [10, 10, 10, 50, 10, 10]
    records, at = [], 0
    for s in steps:
        records.append((at * MS, s * MS, 0))
        at += s
    expect(output.bursts(records, 0, 1000 * MS, 10 * MS), (30 * MS, 40 * MS))


def test_dominated():
    """a way is dominated by one that is no worse in both and better in one"""
    found = output.dominated({"a": (1.0, 0.9), "b": (2.0, 0.9), "c": (2.0, 0.95), "d": (0.5, 0.1)})
    expect(found, {"b": "a"})
    expect(output.dominated({"a": (1.0, 0.9), "b": (1.01, 0.9)}), {})


def test_table():
    """the table is markdown, also if a reason has a bar in it"""
    expect(
        output.table(["a", "b"], [["x|y", None], [1, 2]]),
        "| a | b |\n|---|---|\n| x/y |  |\n| 1 | 2 |\n",
    )


def test_plot():
    """the plot is an XML document with a marker for each point"""
    expect(output.ticks(30), [1, 2, 5, 10, 20, 50])
    points = [("time-slicing", 40.0, 0.8), ("gsched <a&b>", 1.1, 0.97)]
    root = ET.fromstring(output.svg([("k8 beside vec20", points), ("second", points[:1])]))
    titles = [t.text for t in root.iter("{http://www.w3.org/2000/svg}title")]
    expect(
        titles,
        [
            "time-slicing: 40.00x, 80.0 %",
            "gsched <a&b>: 1.10x, 97.0 %",
            "time-slicing: 40.00x, 80.0 %",
        ],
    )
    # the better latency is further left, the better throughput further up
    left, top = output.panel(
        0, 0, "", [("a", 1.0, 0.9), ("b", 10.0, 0.5)], output.styles(["a", "b"])
    )[-2:]
    centre = [float(v) for v in left.split('"')[1::2][:2]]
    other = [float(v) for v in top.split('"')[1::2][:2]]
    assert centre[0] < other[0] and centre[1] < other[1], (left, top)


def test_paces():
    """paces"""
    for text, wanted in (
        ("1ms", ("open", 1000)),
        ("poisson", ("poisson", 2000)),
        ("poisson:500us", ("poisson", 500)),
        ("closed:2.5ms", ("closed", 2500)),
    ):
        pace = workloads.Pace(text, 2000)
        expect((pace.kind, pace.period_us), wanted)
        expect(str(workloads.Pace(str(pace))), str(pace))
    for text in ("", "often", "1", "0ms", "poisson:", "poisson:x"):
        try:
            workloads.Pace(text)
        except ValueError:
            continue
        raise AssertionError(f"pace {text!r} was taken")


def test_ways():
    """ways of sharing by name"""
    session = Session("build", True, None)
    try:
        way = ways.find("mps-priority-75")
        place = {"CUDA_MPS_PIPE_DIRECTORY": "x"}
        expect(way.high_priority, True)
        expect(way.start(session, place, "batch", [])[1]["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"], "75")
        expect(
            "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE" in way.start(session, place, "request", [])[1],
            False,
        )
        expect(ways.find("gsched-one").bands, {"request": "a", "batch": "a"})
        expect(ways.find("gsched-ffs").options, ["--policy", "ffs"])
        expect(ways.find("gsched-bands", ["--poll-us", "0"]).options, ["--poll-us", "0", "--mps"])
        for name in ("mps-0x", "gsched-", "magic"):
            try:
                ways.find(name)
            except ValueError:
                continue
            raise AssertionError(f"way {name} was taken")
    finally:
        session.close()


def bands(out, *options):
    """Runs it to its end: (exit status, output, messages)."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("GSCHED_")}
    run = subprocess.Popen(
        [BANDS, "--vgpu", "--settle", "0.3", "--out", out, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(env, TMPDIR=out),
    )
    try:
        stdout, stderr = run.communicate(timeout=200)
    except subprocess.TimeoutExpired:
        run.terminate()
        run.communicate(timeout=60)
        raise
    expect([n for n in os.listdir("/dev/shm") if n.startswith(f"gsched-bench-{run.pid}-")], [])
    return run.returncode, stdout, stderr


def rows(out):
    with open(os.path.join(out, "bands.json"), encoding="utf-8") as f:
        return {
            r["experiment"] + "|" + r["way"] + "|" + r.get("program", ""): r
            for r in json.load(f)["rows"].values()
        }


def test_run():
    """a run on the simulated GPU: rows, reasons, files, and nothing left behind"""
    with tempfile.TemporaryDirectory() as out:
        options = ["--seconds", "1", "--request", "k8", "--batch", "vec20", "--only"]
        status, _, messages = bands(out, "pair", *options, "time-slicing,mps,gsched")
        expect((status, messages), (0, ""))
        got = rows(out)
        expect(
            {k: r["status"] for k, r in got.items()},
            {
                "alone|alone|k8": "ok",
                "alone|alone|vec20": "ok",
                "pair|gsched|": "ok",
                "pair|time-slicing|": "ok",
                "pair|mps|": "skipped",
            },
        )
        expect(got["pair|mps|"]["reason"], "the simulated GPU has no MPS daemon")
        for name in ("pair|gsched|", "pair|time-slicing|"):
            r = got[name]
            assert r["latency"]["arrival"]["n"] > 0 and r["keeps"] > 0 and r["p99_alone"] > 0, r
            # the simulated GPU, slowed by sanitizers, may serve nobody in a second of plain time-slicing
            if name == "pair|gsched|" or r["latency"]["served"]:
                assert r["latency"]["arrival"]["p50"] >= r["latency"]["service"]["p50"], r
        assert len(got["pair|gsched|"]["report"]["clients"]) == 2, got["pair|gsched|"]["report"]
        ET.parse(os.path.join(out, "bands.svg"))
        with open(os.path.join(out, "bands.csv"), encoding="utf-8") as f:
            expect(len(list(csv.DictReader(f))), 5)
        # no row is measured twice; a way that does not start fails with its reason
        status, text, _ = bands(
            out, "pair", *options, "time-slicing,gsched-hpf", "--gschedd=--no-such-option"
        )
        assert "# pair|k8|vec20|20ms|time-slicing" not in text and status == 0, text
        expect(rows(out)["pair|gsched-hpf|"]["status"], "failed")
        assert "--no-such-option" in rows(out)["pair|gsched-hpf|"]["reason"], rows(out)
        expect(sorted(os.listdir(out)), ["bands.csv", "bands.json", "bands.md", "bands.svg"])


def test_python_load():
    """a Python program of torch_load.py in both roles, driven as the others are"""
    with tempfile.TemporaryDirectory() as out:
        status, _, messages = bands(
            out,
            "pair",
            "--seconds",
            "1",
            "--request",
            "sleep",
            "--batch",
            "sleep",
            "--only",
            "time-slicing",
            "--pace",
            "poisson:10ms",
        )
        expect((status, messages), (0, ""))
        latency = rows(out)["pair|time-slicing|"]["latency"]
        assert 40 < latency["served"] < 200 and latency["service"]["p50"] >= 2000, latency


def test_cost():
    """what calls cost: each form natively and under gsched, in a table"""
    with tempfile.TemporaryDirectory() as out:
        cost = os.path.join(os.path.dirname(HERE), "cost")
        run = subprocess.run(
            [cost, "--vgpu", "--rounds", "1", "--calls", "200", "--settings", "native,alone"]
            + ["--out", out],
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
            env=dict(os.environ, TMPDIR=out),
        )
        expect((run.returncode, run.stderr), (0, ""))
        with open(os.path.join(out, "cost.json"), encoding="utf-8") as f:
            found = json.load(f)["found"]
        for setting in ("native", "alone"):
            expect(sorted(found[setting]), sorted(set(found[setting]) | {"launch", "rest", "start"}))
            assert all(len(runs) == 1 for runs in found[setting].values()), found[setting]
            assert found[setting]["launch"][0]["p50_ns"] > 0, found[setting]
        assert "| launch | p50_ns | " in run.stdout, run.stdout


def main():
    tests = [f for name, f in globals().items() if name.startswith("test_")]
    failed = 0
    for n, test in enumerate(tests, 1):
        try:
            test()
            print(f"ok {n} - {test.__doc__}", flush=True)
        except Exception:  # any failure is this test's, and the others go on
            failed += 1
            print(
                "".join("# " + line + "\n" for line in traceback.format_exc().splitlines()), end=""
            )
            print(f"not ok {n} - {test.__doc__}", flush=True)
    print(f"1..{len(tests)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
