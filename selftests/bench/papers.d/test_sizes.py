# SPDX-License-Identifier: LGPL-2.1-or-later
"""Sizing with kernels of known speed; called by bands.d/test.py."""

import argparse
import math
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "bands.d")]

import figures  # noqa: E402
import kernels  # noqa: E402


class Session:
    vgpu = False


class Place:
    """A GPU on which a launch takes 20 us and blocks half of the time that is expected."""

    def several(self, label, grid, n):
        name = label.partition("-")[2]
        return 20 + math.prod(grid) * 2500 / kernels.FIRST.get(name, 1000)


def main():
    table = kernels.table(False)
    data = {"sizes": {}}
    measure = figures.Measure(Session(), argparse.Namespace(reps=3), data, table)
    for kernel in table.values():
        kernel.sms, kernel.per_sm = 132, 16
        measure.size(Place(), kernel.name)
        for size, target in kernels.targets(kernel.name).items():
            us = data["sizes"][f"{kernel.name}.{size}"]["alone_us"]
            assert 0.95 < us / target < 1.05, (kernel.name, size, us, target)
    # all that the cases need was sized, and no grid is larger than its data or a grid may be
    needed = ("fig8", "smguard", "huge", "antt2", "antt3", "ffs", "spatial", "resize")
    for figure in needed:
        for case in figures.cases(figure):
            for name, size in figures.sizes_of(figure, case):
                grid = data["sizes"][f"{name}.{size}"]["grid"]
                assert max(grid[1:]) < 65536 and min(grid) > 0, (name, size, grid)
                if size != "whole" and name != "mm":
                    assert grid[0] <= table[name].data, (name, size, grid)
    assert [len(figures.cases(f)) for f in needed[:4]] == [28, 24, 12, 28]


if __name__ == "__main__":
    main()
