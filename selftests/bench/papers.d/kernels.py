# SPDX-License-Identifier: LGPL-2.1-or-later
"""The kernels of FLEP's table 1 and SMGuard's table 3, and the times that they take there."""

import math
import os

# us alone, of FLEP's table 1: large and small input
FLEP = {
    "cfd": (11106, 521),
    "nn": (15775, 728),
    "pf": (7364, 811),
    "pl": (5419, 952),
    "md": (15905, 938),
    "spmv": (5840, 484),
    "mm": (2579, 1499),
    "va": (30634, 720),
}
# us alone, of SMGuard's table 3. The latency-sensitive ones
SMGUARD_LS = {"nn": 650, "pf": 3700, "va": 3150, "bfs": 2010}
# Batch kernels have two inputs, and the paper does not say which was used. An ANTT of 30.3 as the
# worst excludes the larger ones of pl, md and mm. mc takes 2123 ms there: its blocks do not fill
# the device, so only that it is long matters
SMGUARD_BATCH = {"pl": 2810, "mc": None, "md": 6740, "mm": 4120, "bs": 13330, "md5": 39130}
SMGUARD_LARGE = {"pl": 312510, "md": 143610, "mm": 236910}
MC_SHARE = 6 / 13  # of the device that its blocks fill

# Inputs that need a third of the SMs of an H100 or H200, as FLEP's trivial ones do of its GPU. With
# a block for each SM, of which those without data return at once, the work is the same
TINY = 44

CORPUS = os.path.join("selftests", "rewriter", "corpus")


class Kernel:
    """A kernel with its data, which @data blocks cover once; rows of the grid repeat them.

    @params: of the number of data blocks.
    """

    def __init__(self, name, source, entry, block, data, params):
        self.name = name
        self.source = source
        self.entry = entry
        self.block = block
        self.data = data
        self.params = params

    def threads(self):
        return math.prod(self.block)

    def argv(self, session, tree):
        return [
            session.binary("programs", "papers-drv"),
            os.path.join(tree, CORPUS, f"{self.source}.sm_90.ptx"),
            self.entry,
            ",".join(map(str, self.block)),
            *self.params(self.data),
        ]

    def grid(self, blocks):
        """A grid of about so many blocks."""
        rows = max(1, math.ceil(blocks / self.data))
        return (max(1, round(blocks / rows)), rows, 1)


class Tiles(Kernel):
    """The product of matrices: @width blocks a row of the grid, and planes repeat the data."""

    def __init__(self, name, source, entry, block, data, params, width):
        super().__init__(name, source, entry, block, data, params)
        self.width = width

    def grid(self, blocks):
        if blocks < self.width:
            return (max(1, round(blocks)), 1, 1)
        planes = max(1, math.ceil(blocks / self.data))
        return (self.width, max(1, round(blocks / planes / self.width)), planes)


def cfd(blocks):
    n = blocks * 128
    index, out = f"index={4 * n}%{n}", f"zero={5 * n}"
    return [index, f"float={12 * n}", f"float={5 * n}", out, f"u32={n}"]


def nn(blocks):
    n = blocks * 256
    return [f"float={2 * n}", f"zero={n}", f"u32={n}", "f32=12.5", "f32=7.25"]


def pf(blocks, rows=20):
    cols = blocks * (256 - 2 * rows)
    wall, first = f"index={rows * cols}%65536", f"index={cols}%65536"
    return [wall, first, f"zero={cols}", f"u32={cols}", f"u32={rows}"]


def pl(table):
    def params(blocks):
        n = blocks * 64
        data = [f"row={table}/50", f"float={table}", f"float={table}"]
        return [*data, f"zero={n}", f"zero={n}", f"u32={table}", f"u32={n}", f"u32={50 * table}"]

    return params


def md(neighbours):
    def params(blocks):
        n = blocks * 64
        data = [f"float={4 * n}", f"index={neighbours * n}%{n}", f"zero={4 * n}"]
        return [*data, f"u32={n}", f"u32={neighbours}", "f32=300"]

    return params


def spmv(blocks):
    rows = blocks * 4
    n = 32 * (rows + 2)
    matrix = [f"float={n}", f"index={n}%{rows}", f"row={rows + 1}/32"]
    return [*matrix, f"float={rows}", f"zero={rows}", f"u32={rows}"]


def mm(width):
    def params(blocks):
        n = 16 * width
        rows = blocks // width * 16
        return [f"float={rows * n}", f"float={n * n}", f"zero={rows * n}", f"u32={n}"]

    return params


def va(blocks):
    n = blocks * 128
    return [f"float={n}", f"float={n}", f"zero={n}", f"u32={n}"]


def mc(paths):
    def params(blocks):
        data = [f"float={blocks}", f"zero={blocks}"]
        return [*data, f"u32={paths}", "f32=24", "f32=0.02", "f32=0.2"]

    return params


def bs(blocks):
    n = blocks * 128
    return [*[f"float={n}"] * 3, *[f"zero={n}"] * 2, f"u32={n}", "f32=0.02", "f32=0.3"]


def bfs(blocks):
    n = blocks * 64
    graph = [f"row={n + 1}/6", f"index={6 * n + 16}%{n}", f"index={n}%4"]
    return [*graph, f"zero={n}", f"u32={n}", "u32=1"]


def md5(blocks):
    n = blocks * 256
    return ["zero=16", f"zero={n}", f"u32={n}", "u32=1000050", "u32=1326509697"]


def table(vgpu):
    """Data do not fit the L2 cache where memory limits the kernel; a few blocks if simulated."""

    def kernel(name, source, entry, threads, data, params, small_data=16):
        return Kernel(name, source, entry, (threads, 1, 1), small_data if vgpu else data, params)

    width = 4 if vgpu else 128
    tiles = Tiles("mm", "shared", "matmul", (16, 16, 1), 2 * width * width, mm(width), width)
    found = [
        kernel("cfd", "flep", "cfd", 128, 16384, cfd),
        kernel("nn", "flep", "nn", 256, 49152, nn),
        kernel("pf", "flep", "pf", 256, 16384, pf),
        kernel("pl", "flep", "pl", 64, 65536, pl(32 if vgpu else 512)),
        kernel("md", "flep", "md", 64, 6144, md(8 if vgpu else 128)),
        kernel("spmv", "flep", "spmv", 128, 163840, spmv),
        tiles,
        kernel("va", "grids", "vecadd", 128, 250000, va),
        kernel("mc", "smguard", "mc", 128, 2048, mc(512 if vgpu else 70_000_000)),
        kernel("bs", "smguard", "bs", 128, 98304, bs),
        kernel("bfs", "smguard", "bfs", 64, 40960, bfs),
        kernel("md5", "smguard", "md5", 256, 65536, md5),
        kernel("tinymd", "flep", "md", 64, TINY, md(8 if vgpu else 256), 2),
        kernel("tinypl", "flep", "pl", 64, TINY, pl(32 if vgpu else 2048), 2),
    ]
    return {k.name: k for k in found}


# Blocks with which a kernel takes some ms on an H200, where sizing begins
FIRST = {
    "cfd": 180000,
    "nn": 5000000,
    "pf": 430000,
    "pl": 500000,
    "md": 90000,
    "spmv": 5000000,
    "mm": 40000,
    "va": 8000000,
    "bs": 6000000,
    "bfs": 3000000,
    "md5": 1700000,
}


def targets(name):
    """{size: us alone} of the kernel."""
    found = {}
    if name in FLEP:
        found["large"], found["small"] = FLEP[name]
    if name in SMGUARD_LS:
        found["ls"] = SMGUARD_LS[name]
    if SMGUARD_BATCH.get(name):
        found["batch"] = SMGUARD_BATCH[name]
    if name in SMGUARD_LARGE:
        found["huge"] = SMGUARD_LARGE[name]
    return found
