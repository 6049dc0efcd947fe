# SPDX-License-Identifier: LGPL-2.1-or-later
"""Programs that are measured: requests, each waited for, and batch work without pause."""

import importlib.util
import os
import re
import sys

from procs import RowFailed

HERE = os.path.dirname(os.path.abspath(__file__))
TORCH = os.path.join(os.path.dirname(HERE), "torch_load.py")
SEED = 1
BATCH_THREADS = 256
KERNEL_US = 40000  # a kernel of the vec programs, whatever the length of its blocks


class Pace:
    """When requests arrive: on schedule (open), at random (poisson), each after the last (closed)."""

    def __init__(self, text, period_us=None):
        m = re.fullmatch(r"(?:(open|poisson|closed)(?::|$))?(?:(\d+(?:\.\d+)?)(us|ms))?", text)
        if not m or not (m[1] or m[2]):
            raise ValueError(f"no pace {text}: 1ms, 2ms, poisson, poisson:4ms, closed:1ms")
        self.kind = m[1] or "open"
        self.period_us = int(float(m[2]) * (1000 if m[3] == "ms" else 1)) if m[2] else period_us
        if not self.period_us:
            raise ValueError(f"pace {text}: the period is missing or 0")

    def __str__(self):
        length = f"{self.period_us / 1000:g}ms" if self.period_us >= 1000 else f"{self.period_us}us"
        return length if self.kind == "open" else f"{self.kind}:{length}"

    def options(self):
        return ["--period-us", self.period_us] + {
            "open": ["--open"],
            "poisson": ["--poisson", SEED],
            "closed": [],
        }[self.kind]


class Workload:
    start_limit_s = 40
    cost_s = 1.5  # until it is ready
    settle_s = 1  # under gsched: until its kernels' twins are loaded
    turn_settle_s = 0.3  # as one of several requests, from its first one to the window
    stop_s = 0.3

    def __init__(self, name, about):
        self.name = name
        self.about = about

    def missing(self, session):
        return None

    def prepare(self, session, calibration):
        """Before the first row; @calibration: what earlier runs found out, kept with results."""

    def argv(self, session, role, log, start, pace, high_priority):
        raise NotImplementedError


class Own(Workload):
    """The tree's own programs: over the static runtime if nvcc built them, else the driver API."""

    def __init__(self, name, about, program, sass):
        super().__init__(name, about)
        self.program = program
        self.sass = sass

    def binary(self, session):
        if self.sass:
            return session.binary("bench", self.program + "-sass")
        built = session.binary("programs", self.program + "-rts")
        return (
            built
            if os.access(built, os.X_OK) and not session.vgpu
            else session.binary("programs", self.program + "-drv")
        )

    def missing(self, session):
        if self.sass and session.vgpu:
            return "the simulated GPU runs PTX, not machine code"
        if not os.access(self.binary(session), os.X_OK):
            return f"{self.binary(session)} is not built" + (
                ": it takes nvcc" if self.sass else ": make all"
            )
        return None

    def number(self, session, *argv):
        text = session.call([self.binary(session), *argv], limit_s=60).strip()
        if not text.isdigit():
            raise RowFailed(f"{self.program} {' '.join(map(str, argv))}: not a number: {text[:80]}")
        return int(text)

    def calibrated(self, session, calibration, *argv):
        """iters for the wanted time; each form of a program has its own, by its compiler."""
        key = " ".join(map(str, [os.path.basename(self.binary(session)), *argv]))
        if key not in calibration:
            calibration[key] = self.number(session, *argv)
        return calibration[key]


class Batch(Own):
    def __init__(self, name, us, sass):
        super().__init__(
            name,
            f"kernels of {KERNEL_US // 1000} ms in blocks of {us} us"
            + (", machine code only" if sass else ""),
            "batch",
            sass,
        )
        self.us = us
        self.shape = None

    def prepare(self, session, calibration):
        if session.vgpu:
            self.shape = [512 // max(1, self.us // 1000), 64, 600 * max(1, self.us // 1000)]
            return
        iters = self.calibrated(
            session, calibration, "--threads", BATCH_THREADS, "--calibrate-us", self.us
        )
        wave = self.calibrated(session, calibration, "--threads", BATCH_THREADS, "--print-wave")
        self.shape = [wave * max(1, KERNEL_US // self.us), BATCH_THREADS, iters]

    def argv(self, session, role, log, start, pace, high_priority):
        blocks, threads, iters = self.shape
        return [
            self.binary(session),
            "--blocks",
            blocks,
            "--threads",
            threads,
            "--iters",
            iters,
            "--kernels",
            1000000,
            "--log",
            log,
            "--start",
            start,
        ]


class Kernel(Own):
    def __init__(self, name, us, blocks, threads, sass):
        super().__init__(
            name,
            f"a kernel of {us} us, {blocks} blocks of {threads} threads"
            + (", machine code only" if sass else ""),
            "latency",
            sass,
        )
        self.us = us
        self.shape = [blocks, threads]
        self.iters = None

    def prepare(self, session, calibration):
        if session.vgpu:
            self.shape, self.iters = [2, 32], 600
            return
        self.iters = self.calibrated(
            session,
            calibration,
            "--blocks",
            self.shape[0],
            "--threads",
            self.shape[1],
            "--calibrate-us",
            self.us,
        )

    def argv(self, session, role, log, start, pace, high_priority):
        return [
            self.binary(session),
            "--blocks",
            self.shape[0],
            "--threads",
            self.shape[1],
            "--iters",
            self.iters,
            "--requests",
            2000000,
            *pace.options(),
            "--log",
            log,
            "--start",
            start,
        ] + ["--high-priority"] * high_priority


class Torch(Workload):
    start_limit_s = 120
    cost_s = 13
    settle_s = 1.5
    turn_settle_s = 0.5
    stop_s = 1.5

    def __init__(self, name, about, load=None):
        super().__init__(name, about)
        self.load = load or name
        if self.load == "sleep":
            self.cost_s, self.settle_s, self.turn_settle_s, self.stop_s = 0.5, 0.2, 0.1, 0.2

    def missing(self, session):
        if self.load == "sleep":
            return None
        if session.vgpu:
            return "PyTorch does not run on the simulated GPU"
        for module in ("torch", "torchvision"):
            if not importlib.util.find_spec(module):
                return f"python3 has no {module}"
        return None

    def argv(self, session, role, log, start, pace, high_priority):
        argv = [sys.executable, TORCH, role, self.load, "--log", log, "--start", start]
        if role == "request":
            argv += pace.options() + ["--high-priority"] * high_priority
        return argv


class Graph(Kernel):
    """A CUDA graph of the tree's own kernels."""

    KERNELS = 20

    def __init__(self, name, sass):
        super().__init__(name, 50, 264, 256, sass)
        self.about = self.about.replace("a kernel", f"a CUDA graph of {self.KERNELS} kernels")

    def missing(self, session):
        if session.vgpu:
            return "the simulated GPU captures no graphs"
        if not self.sass and not os.access(session.binary("programs", "latency-rts"), os.X_OK):
            return "latency-rts is not built: it takes nvcc"
        return super().missing(session)

    def argv(self, session, role, log, start, pace, high_priority):
        argv = super().argv(session, role, log, start, pace, high_priority)
        return [*argv, "--kernels", self.KERNELS, "--graph"]


def requests(vgpu=False):
    """name: (workload, its pace unless another is asked for)."""
    table = {
        "k8": (Kernel("k8", 50, 8, 256, False), "1ms"),
        "k132": (Kernel("k132", 13, 132, 128, False), "1ms"),
        "k8-sass": (Kernel("k8-sass", 50, 8, 256, True), "1ms"),
        "k132-sass": (Kernel("k132-sass", 13, 132, 128, True), "1ms"),
        "graph": (Graph("graph", False), "5ms"),
        "graph-sass": (Graph("graph-sass", True), "5ms"),
        "graph-torch": (Torch("graph-torch", "a CUDA graph of 20 matrix products, 1 ms"), "5ms"),
        "resnet": (Torch("resnet", "ResNet-50, batch 1, fp16, as a CUDA graph"), "5ms"),
        "resnet-eager": (Torch("resnet-eager", "ResNet-50, batch 1, fp16, eager"), "20ms"),
        "trans": (Torch("trans", "12-layer transformer, 128 tokens, fp16, as a CUDA graph"), "5ms"),
        "trans-eager": (
            Torch("trans-eager", "12-layer transformer, 128 tokens, fp16, eager"),
            "20ms",
        ),
        "sleep": (Torch("sleep", "no GPU, a pause of 2 ms"), "5ms"),
    }
    return {k: (w, "20ms" if vgpu else p) for k, (w, p) in table.items()}


def asked(text, pace, table):
    """(name, Pace) of NAME@PACE; without one it is @pace, or the usual one of @table."""
    name, at, own = text.partition("@")
    if name not in table:
        raise ValueError(f"no program {name}: {' '.join(table)}")
    usual = table[name][1]
    return name, Pace(own if at else pace or usual, Pace(usual).period_us)


def batches():
    table = {}
    for us in (20, 1000, 5000):
        for sass in (False, True):
            name = f"vec{us}" + ("-sass" if sass else "")
            table[name] = Batch(name, us, sass)
    table["gemm"] = Torch("gemm", "bf16 products of 8192 x 8192 matrices, 1.4 ms each")
    table["train"] = Torch("train", "training of ResNet-152, batch 64, bf16 autocast")
    table["trans-train"] = Torch(
        "trans-train", "training of a 12-layer transformer, 32 x 512 tokens, bf16 autocast"
    )
    table["sleep"] = Torch("sleep", "no GPU, pauses of 2 ms")
    # inference without pause, for quotas and fair shares
    for name in ("resnet", "resnet-eager", "trans", "trans-eager"):
        table[name + "-loop"] = Torch(name + "-loop", f"{name} without pause", name)
    return table
