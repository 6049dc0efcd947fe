# SPDX-License-Identifier: LGPL-2.1-or-later
"""Several GPUs: each has a run of the script of its own, with a share of the sets."""

import json
import os
import subprocess
import sys
import time

from procs import RowFailed, first_line

END_S = 90  # a run that is told to end keeps what it measured until then


def visible(gpu, vgpu):
    """What CUDA_VISIBLE_DEVICES is for this GPU.

    An MPS server numbers its devices anew, so a number would mean another one to its clients.
    """
    if vgpu:
        return gpu
    uuid = first_line(["nvidia-smi", "-i", gpu, "--query-gpu=uuid", "--format=csv,noheader"])
    if not uuid.startswith("GPU-"):
        raise RowFailed(f"nvidia-smi knows no GPU {gpu}")
    return uuid


def distribute(bench, copies, gpus):
    """The sets of each GPU, in order. A set goes where it would end first."""
    shares, busy_s, known = [[] for _ in gpus], [0] * len(gpus), [set() for _ in gpus]
    for name, batch in bench.sets():
        cost_s, alone_s = bench.set_cost_s(name, batch, copies)
        ends = [busy + cost_s + (0 if batch in k else alone_s) for busy, k in zip(busy_s, known)]
        i = ends.index(min(ends))
        busy_s[i] = ends[i]
        known[i].add(batch)
        shares[i].append(f"{name}:{batch}")
    return shares


def directory(out, gpu):
    return os.path.join(out, f"gpu{gpu}")


def merge(data, out, gpus):
    """Rows of all GPUs into @data; each says where it was measured.

    A row is relative to what was alone on the same GPU, of which the first GPU's is shown.
    """
    for gpu in gpus:
        try:
            with open(os.path.join(directory(out, gpu), "bands.json"), encoding="utf-8") as f:
                theirs = json.load(f)
        except (FileNotFoundError, ValueError):
            continue
        for key, value in theirs["calibration"].items():
            data["calibration"].setdefault(key, value)
        for key, row in theirs["rows"].items():
            old = data["rows"].get(key)
            better = row["status"] == "ok" and row["experiment"] != "alone"
            if not old or old["status"] != "ok" or better:
                data["rows"][key] = row | {"gpu": gpu}


def run(argv, shares, gpus, out, known, vgpu):
    """A run for each GPU; whether all ended well. They are told to end if this is."""
    children = []
    try:
        for gpu, share in zip(gpus, shares):
            if not share:
                continue
            mine = ["--out", directory(out, gpu), "--sets", ",".join(share)]
            mine += ["--prefix", f"gpu{gpu}: ", "--known", known]
            env = dict(
                os.environ,
                CUDA_VISIBLE_DEVICES=visible(gpu, vgpu),
                CUDA_DEVICE_ORDER="PCI_BUS_ID",
            )
            children.append(
                subprocess.Popen(
                    [sys.executable, *argv, *mine],
                    env=env,
                    stdin=subprocess.DEVNULL,
                    start_new_session=True,
                )
            )
        return not any([c.wait() for c in children])
    except BaseException:
        for c in children:
            c.terminate()
        raise
    finally:
        until = time.monotonic() + END_S
        for c in children:
            try:
                c.wait(max(0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                c.kill()
                c.wait()
