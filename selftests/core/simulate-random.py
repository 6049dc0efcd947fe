#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Random scenarios of gschedctl simulate under all policies: each run ends, the device is never used
more than it can be, and no launch is faster than alone. Built with sanitizers, the core's invariants
are checked at every commit. Usage: simulate-random.py GSCHEDCTL [FIRST_SEED [COUNT]]"""
import json
import os
import random
import subprocess
import sys
import tempfile

POLICIES = ("hpf", "srt", "ffs", "wfq", "qos")


def files(r, sms, share):
    """capsm.max where it can be simulated, and not less than an SM: else a kernel of one block per SM cannot run"""
    f = {}
    if r.random() < 0.3 and share != "slices":
        f["capsm.max"] = str(round(r.uniform(1, sms), 2))
    if r.random() < 0.3:
        f["capsm.min"] = str(round(r.uniform(0, sms), 2))
    if r.random() < 0.4:
        f["gpu.weight"] = str(r.randint(1, 10000))
    if r.random() < 0.5:
        f["gpu.priority"] = str(r.choice([0, 1, 5, 99]))
    if r.random() < 0.2:
        f["gpu.latency_target_us"] = str(r.choice([0, 10, 1000, 100000]))
    return f


def client(r, name, groups, kernels):
    c = {"name": name, "group": r.choice(["/"] + groups), "kernels": r.choices(kernels, k=r.randint(1, 3)),
         "start_us": r.choice([0, r.uniform(0, 5000)]), "predicted": r.choice([0, 1, 1, 0.1, 10]), "count": r.randint(1, 80)}
    pace = r.choice(["gap_us", "period_us", "poisson_us", "in_flight"])
    c[pace] = r.randint(1, 8) if pace == "in_flight" else r.choice([10, 100, 1000, r.uniform(50, 30000)])
    if r.random() < 0.2:
        c.update(copies=r.randint(1, 4), own_group=r.random() < 0.5)
    return c


def scenario(seed):
    r = random.Random(seed)
    sms = r.choice([1, 2, 3, 4, 8, 15, 132])
    share = r.choice(["space", "space", "temporal", "slices"])
    kernels = {f"k{i}": {"per_sm": r.choice([1, 2, 3, 5, 8, 16, 32]), "blocks": int(2 ** r.uniform(0, 10)),
                         "block_us": round(2 ** r.uniform(0, 12), 3), "tier": r.choice(["block", "block", "block", "launch"])}
               for i in range(r.randint(1, 5))}
    groups = {}
    for i in range(r.randint(0, 4)):
        groups[f"g{i}"] = files(r, sms, share)
        if r.random() < 0.3:
            groups[f"g{i}/s"] = files(r, sms, share)
    runs = [{"policy": p, "mode": "temporal" if share == "temporal" else "auto"} for p in POLICIES]
    runs += [{"policy": "mps"}, {"policy": "time-slicing"}]
    s = {"device": {"sms": sms, "mps": share == "space" or (share == "temporal" and r.random() < 0.5), "evict_us": r.choice([0, 10, 100]),
                    "launch_us": r.choice([0, 5, 50]), "overhead": r.choice([0, 0.05])},
         "kernels": kernels, "groups": groups, "runs": runs,
         "clients": [client(r, f"c{i}", list(groups), list(kernels)) for i in range(r.randint(1, 6))]}
    if r.random() < 0.5:
        s["duration_us"] = r.choice([1000, 50000, 500000])
    return s


def wrong(s, out):
    count = {c["name"]: c["count"] for c in s["clients"]}
    for run in json.loads(out)[0]["cases"][0]["runs"]:
        if run["utilisation"] > 1 + 1e-9:
            return f"{run['run']}: utilisation {run['utilisation']}"
        for c in run["clients"]:
            if c["ntt"] and c["ntt"] < 1 - 1e-6:
                return f"{run['run']}: {c['name']} is faster than alone: {c['ntt']}"
            if "duration_us" not in s and c["launches"] != count[c["name"].split(".")[0]]:
                return f"{run['run']}: {c['name']} has {c['launches']} launches"
    return None


def main():
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 100
    failed = 0
    with tempfile.TemporaryDirectory(prefix="gsched-simulate-") as d:
        path = os.path.join(d, "s.json")
        for seed in range(first, first + count):
            s = scenario(seed)
            with open(path, "w", encoding="ascii") as f:
                json.dump(s, f)
            p = subprocess.run([sys.argv[1], "simulate", "-o", "json", path], capture_output=True, text=True, timeout=120)
            why = p.stderr if p.returncode or p.stderr else wrong(s, p.stdout)
            if why:
                failed += 1
                print(f"# seed {seed}: {why}\n# {json.dumps(s)}")
    print(f"{'not ' if failed else ''}ok 1 - {count} random scenarios, {failed} wrong\n1..1")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
