#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Test of selftests/bench/bands: its figures, its ways, a run on the simulated GPU. Prints TAP."""

import argparse
import csv
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import xml.etree.ElementTree as ET

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, HERE)

import experiments  # noqa: E402
import output  # noqa: E402
import report  # noqa: E402
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
    expect(got["slowest_ms"], [[0.0, 5.0], [1.0, 5.0]])
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
    """a way is dominated by one that is over 3 % better in both"""
    found = output.dominated({"a": (1.0, 0.9), "b": (2.0, 0.8), "c": (2.0, 0.95), "d": (0.5, 0.1)})
    expect(found, {"b": "a"})
    expect(output.dominated({"a": (1.0, 0.9), "b": (1.02, 0.8), "c": (2.0, 0.88)}), {})


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


def pair_rows(requests, batches, pace):
    """Rows as a run of all ways has them; the ways' figures get worse in their order."""
    found = {}
    spread = {"n": 9, "p50": 20.0, "p90": 30.0, "p99": 40.0, "max": 50.0}
    latency = {"arrival": spread, "service": spread, "served": 9, "unserved": 0}
    for request in requests:
        fields = {"role": "request", "program": request, "pace": pace, "way": "alone"}
        fields |= {"experiment": "alone", "status": "ok", "seconds": 1, "latency": latency}
        found[f"alone|request|{request}|{pace}|alone"] = fields
        for batch in batches:
            for i, way in enumerate(ways.PAIR):
                found["|".join(("pair", request, batch, pace, way))] = {
                    "experiment": "pair",
                    "request": request,
                    "batch": batch,
                    "pace": pace,
                    "way": way,
                    "status": "ok",
                    "seconds": 1,
                    "latency": latency,
                    "p99_alone": 1.0 + i / 10,
                    "keeps": 0.9 - i / 20,
                    "each": [0.9],
                }
    return found


def test_report():
    """a table for each batch program says which way is dominated; many panels, a small file"""
    requests, batches = [f"request-{i}" for i in range(8)], [f"batch-{i}" for i in range(8)]
    data = {"rows": pair_rows(requests, batches, "1ms")}
    data["meta"] = {"gpu": "", "host": "", "date": "", "version": ""}
    lines = report.markdown(data).splitlines()
    first = lines.index("## Beside batch-0")
    expect([w.split("|")[1].strip() for w in lines[first + 4 : first + 14]], ["alone", *ways.PAIR])
    expect(lines[first + 5].split("|")[2], " 20.0 / 40.0, 1.00x, 90.0 % ")
    expect(lines[first + 6].split("|")[2], " 20.0 / 40.0, 1.10x, 85.0 % (-) ")
    plot = report.plot(data)
    assert len(plot) < 300_000, len(plot)
    titles = list(ET.fromstring(plot).iter("{http://www.w3.org/2000/svg}title"))
    expect(len(titles), 64 * 10)
    # the order of measuring: settings of the same way last
    expect(
        ways.in_order(["mps-75", "mps", "gsched-ffs", "time-slicing", "gsched"]),
        ["gsched", "time-slicing", "mps", "gsched-ffs", "mps-75"],
    )


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
    table = {"k8": (None, "2ms")}
    for text, pace, wanted in (
        ("k8", None, "2ms"),
        ("k8", "poisson", "poisson:2ms"),
        ("k8@poisson", "closed", "poisson:2ms"),
        ("k8@poisson:5ms", None, "poisson:5ms"),
    ):
        name, asked = workloads.asked(text, pace, table)
        expect((name, str(asked)), ("k8", wanted))
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
        bands_of = {n: ways.find(n) for n in ("gsched-one", "gsched-bands")}
        for name, wanted in (("gsched-one", ["a", "a"]), ("gsched-bands", [None, "b"])):
            expect([bands_of[name].band(g) for g in ("request1", "batch")], wanted)
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


def json_rows(out):
    with open(os.path.join(out, "bands.json"), encoding="utf-8") as f:
        return json.load(f)["rows"]


def rows(out):
    return {
        r["experiment"] + "|" + r["way"] + "|" + r.get("program", ""): r
        for r in json_rows(out).values()
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


class Script(workloads.Workload):
    """A program without a GPU; $1 is its log, $2 its go file, $3 a directory of the test."""

    start_limit_s = 10
    cost_s = settle_s = turn_settle_s = stop_s = 0.1

    def __init__(self, name, text, out):
        super().__init__(name, "")
        self.text = text
        self.out = out

    def argv(self, session, role, log, start, pace, high_priority):
        return ["sh", "-c", self.text, "sh", log, start, self.out]


GO = """echo '"ready"'; until test -e $2; do sleep 0.02; done; """
# works until somebody makes the file "killer"
WORKS = f"""{sys.executable} {workloads.TORCH} batch sleep --log $1 --start $2 & p=$!
trap 'kill $p' TERM
while kill -0 $p 2>/dev/null; do
    if test -e $3/killer; then rm $3/killer; kill -9 $p; exit 9; fi
    sleep 0.02
done
wait $p"""


def in_process(session, args, data, change=lambda bench: None):
    """pair in this process: its rows."""
    usual = {"seconds": 0.3, "settle": None, "again": False, "plan": False, "known": set()}
    usual |= {"prefix": "", "sets": None, "gschedd": [], "pace": None, "at_once": None}
    try:
        bench = experiments.Bench(session, argparse.Namespace(**usual | args), data, lambda: None)
        change(bench)
        bench.pair()
        until = time.monotonic() + 10  # what was killed takes a moment to be gone
        while session.leftovers() and time.monotonic() < until:
            time.sleep(0.05)
        expect(session.leftovers(), [])
    finally:
        session.close()
    return [r for r in data["rows"].values() if r["experiment"] == "pair"]


def without_gpu(scripts, **more):
    """Requests by name: shell scripts, or None for one that is well. Their rows alone are there."""
    step = {"experiment": "alone", "status": "ok", "seconds": 1, "rate": 400.0, "step_ns": 2 * MS}
    rows = pair_rows(scripts, [], "10ms") | {"alone|batch|batch||alone": step}
    args = {"only": ["time-slicing"], "request": list(scripts), "batch": ["batch"]}
    with tempfile.TemporaryDirectory() as out:

        def change(bench):
            for name, text in scripts.items():
                good = workloads.Torch(name, "", "sleep")
                bench.requests[name] = (Script(name, text, out) if text else good, "10ms")
            bench.batches = {"batch": Script("batch", WORKS, out)}

        session = Session(out, False, None)
        data = {"rows": rows, "calibration": {}}
        return {r["request"]: r for r in in_process(session, args | more, data, change)}


def test_turns():
    """requests take turns beside one run of the batch program; who fails fails alone"""
    got = without_gpu(
        {
            "first": None,
            "unready": "echo broken >&2; exit 4",
            "dies": GO + "exit 5",
            "last": None,
        }
    )
    status = {name: r["status"] for name, r in got.items()}
    expect(status, {"first": "ok", "unready": "failed", "dies": "failed", "last": "ok"})
    assert "status 4: broken" in got["unready"]["reason"], got["unready"]
    assert "status 5" in got["dies"]["reason"], got["dies"]
    for name in ("first", "last"):
        assert 20 < got[name]["latency"]["served"] < 40, got[name]
        assert 0.2 < got[name]["keeps"] < 1.3, got[name]


def test_batch_dies():
    """a request that takes the batch program along fails; the others have a second run"""
    scripts = {"first": None, "kills": GO + "touch $3/killer; sleep 9", "last": None}
    got = without_gpu(scripts, seconds=1)  # the batch program may be slow to notice
    status = {name: r["status"] for name, r in got.items()}
    expect(status, {"first": "ok", "kills": "failed", "last": "ok"})
    assert "batch ended with status 9" in got["kills"]["reason"], got["kills"]


def test_at_once():
    """no more request programs at once than wanted"""
    only = 'test "$(ls "${1%/*}" | grep -c "^request.*out")" -le 2 || exit 6; ' + GO + "exit 7"
    got = without_gpu(dict.fromkeys(("a", "b", "c"), only), at_once=2)
    assert all("status 7" in r["reason"] for r in got.values()), got
    more = "for i in $(seq 100); do " + only.replace(GO + "exit 7", "sleep 0.1; done; exit 7")
    got = without_gpu(dict.fromkeys(("a", "b", "c"), more))
    assert all("status 6" in r["reason"] for r in got.values()), got


def test_waiting():
    """bands: a request's slice and lease are as if those that wait for their turn were not there"""
    session = Session(os.environ.get("B", "build"), True, None)
    session.env["VGPU_MPS"] = "0"
    session.env["LD_PRELOAD"] = session.binary("vgpu", "libvgpu-rm.so")
    args = {"only": ["gsched"], "request": ["k8", "k132@closed", "k132"], "batch": ["vec20"]}
    found = in_process(session, args, {"rows": {}, "calibration": {}})
    expect([r["status"] for r in found], ["ok"] * 3)
    for r in found:
        state = r["report"]
        slices = {b["priority"]: b["applied_us"] for b in state["bands"]}
        expect((state["mode"], len(state["bands"]), slices), ("sliced", 2, {10: 1000000, 0: 1}))
        leases = {c["group"].rstrip("012"): c["lease"] for c in state["clients"]}
        expect(leases, {"request": "free", "batch": "free"})


def test_gpus():
    """several GPUs: each has a run of its own, and the rows of all come together"""
    with tempfile.TemporaryDirectory() as out:
        options = ["--request", "sleep,sleep@poisson", "--batch", "sleep", "--seconds", "0.3"]
        options += ["--only", "time-slicing,alone", "--gpus", "0,1"]
        status, _, messages = bands(out, "pair", *options)
        expect((status, messages), (0, ""))
        found = [json_rows(os.path.join(out, gpu)) for gpu in (".", "gpu0", "gpu1")]
        pairs = [[k for k in rows if k.startswith("pair|")] for rows in found]
        expect((len(pairs[0]), sorted(pairs[0])), (4, sorted(pairs[1] + pairs[2])))
        # each compares with what it measured itself
        for rows in found[1:]:
            expect(sum(k.startswith("alone|") for k in rows), 3)
        expect({r["gpu"] for r in found[0].values()}, {"0", "1"})
        status, text, _ = bands(out, "pair", *options, "--plan")
        assert "    0 s  in all" in text, text


def processes(text):
    """Those with @text in their environment."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                if text.encode() in f.read():
                    found.append(int(pid))
        except OSError:
            pass
    return found


def in_second_turn(out):
    """Has a request beside a batch program been let go that is not the first?"""
    for _, _, files in os.walk(out):
        if "batch.go" in files and "request1.go" in files:
            return True
    return False


def test_stopped():
    """a run that is told to end leaves nothing behind and keeps what it measured"""
    for gpus in ([], ["--gpus", "0,1"]):
        with tempfile.TemporaryDirectory() as out:
            options = ["--request", "sleep,sleep@poisson,sleep@closed", "--batch", "sleep"]
            options += ["--only", "time-slicing,alone", "--seconds", "1", *gpus]
            run = subprocess.Popen(
                [BANDS, "--vgpu", "--settle", "0.1", "--out", out, "pair", *options],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env=dict(os.environ, TMPDIR=out),
            )
            # the first request's turn is over and the second one's is not
            until = time.monotonic() + 60
            while time.monotonic() < until and not in_second_turn(out):
                time.sleep(0.05)
            run.send_signal(signal.SIGINT)
            _, messages = run.communicate(timeout=60)
            expect(run.returncode, 1)
            assert "SIGINT" in messages, messages
            expect(processes(f"TMPDIR={out}"), [])
            rows = json_rows(out)
            pairs = [k for k in rows if k.startswith("pair|")]
            assert 1 <= len(pairs) <= 2 and all(rows[k]["status"] == "ok" for k in pairs), rows
            kept = {"bands.csv", "bands.json", "bands.md", "bands.svg"}
            expect({n for n in os.listdir(out) if not n.startswith("gpu")}, kept)


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


def test_steps():
    """cost: programs that make steps in turns, natively and under gsched"""
    cost = os.path.join(os.path.dirname(BANDS), "cost")
    with tempfile.TemporaryDirectory() as out:
        argv = [cost, "--vgpu", "--steps", "sleep,nobody", "--rounds", "3", "--out", out]
        run = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
        expect((run.returncode, run.stderr), (0, ""))
        with open(os.path.join(out, "cost.json"), encoding="utf-8") as f:
            found = json.load(f)["found"]
        expect(list(found), ["sleep"])
        for kind in ("native", "gsched"):
            expect([len(p) for p in found["sleep"][kind]], [3, 3])
            times = [pair for p in found["sleep"][kind] for pair in p]
            assert all(2e6 < issued <= took < 2e8 for took, issued in times), found
        assert "# nobody: nobody-0 ended: " in run.stdout and "| sleep | " in run.stdout, run.stdout


def test_bypass():
    """cost: a program's launches with gsched's part and without, in turns"""
    cost = os.path.join(os.path.dirname(BANDS), "cost")
    with tempfile.TemporaryDirectory() as out:
        argv = [cost, "--vgpu", "--bypass", "empty,nobody,launch,graph", "--seconds", "1"]
        argv += ["--calls", "800", "--out", out]
        run = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
        expect((run.returncode, run.stderr), (0, ""))
        with open(os.path.join(out, "cost.json"), encoding="utf-8") as f:
            found = json.load(f)["found"]
        expect(list(found), ["empty", "launch", "graph"])
        for form in ("launch", "graph"):
            for setting in found[form].values():
                for kind in (setting["gsched"], setting["bypassed"]):
                    expect((kind["calls"], len(kind["bursts_ns"])), (400, 4))
        expect(list(found["empty"]), ["alone", "below", "share"])
        for setting in found["empty"].values():
            expect(setting["launches"], 100)
            expect(len(setting["gsched"]), len(setting["bypassed"]))
        assert "# nobody alone: " in run.stdout, run.stdout
        assert "| empty, share | 100 | " in run.stdout, run.stdout


def test_sizes():
    """papers: sizes of kernels are found that take the papers' times"""
    argv = ["python3", os.path.join(os.path.dirname(HERE), "papers.d", "test_sizes.py")]
    run = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    expect((run.returncode, run.stderr), (0, ""))


def test_papers():
    """papers: every part on the simulated GPU, in a table"""
    papers = os.path.join(os.path.dirname(HERE), "papers")
    with tempfile.TemporaryDirectory() as out:
        argv = [papers, "--vgpu", "--out", out, "--reps", "1", "--rest", "0.01"]
        argv += ["--seconds", "0.3", "--cases", "nn-spmv,va-spmv-mm,bs-nn,md-va,nn-tinymd,nn"]
        run = subprocess.run(argv, capture_output=True, text=True, timeout=200, check=False)
        with open(os.path.join(out, "papers.json"), encoding="utf-8") as f:
            found = json.load(f)
        expect((run.returncode, run.stderr), (0, ""))
        cases = {f: {w: list(c) for w, c in ways.items()} for f, ways in found["cases"].items()}
        expect(
            {f: sorted(ways) for f, ways in cases.items()},
            {
                "fig8": ["gsched", "mps", "mps-priority"],
                "smguard": ["gsched", "mps", "mps-priority"],
                "huge": ["gsched", "mps", "mps-priority"],
                "resize": ["gsched"],
                "antt2": ["mps", "srt"],
                "antt3": ["mps", "srt"],
                "ffs": ["ffs", "mps", "wfq"],
                "spatial": ["mps", "spatial", "temporal"],
            },
        )
        expect(cases["antt3"]["srt"], ["va-spmv-mm"])
        assert found["twins"]["low-nn"]["first"] is not None, found["twins"]
        assert "| FLEP 8 | speed-up" in run.stdout and "| SMGuard 12 |" in run.stdout, run.stdout
        # what was not measured for want of time is said, and the run ends well before the limit
        run = subprocess.run(
            [*argv, "--budget", "1"], capture_output=True, text=True, timeout=60, check=False
        )
        expect((run.returncode, run.stderr), (1, ""))
        assert "no time was left" in run.stdout, run.stdout


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
