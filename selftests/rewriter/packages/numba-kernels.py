# SPDX-License-Identifier: LGPL-2.1-or-later
"""Numba kernels, compiled to PTX without a GPU: numba-kernels.py DIR

DIR/numba-NAME.ptx and DIR/numba-NAME.launch, as triton-kernels.py makes them. An array is seven
parameters: two object pointers that kernels do not use, the number of items, their size, the data,
and for each dimension its length and stride.
"""
import os
import re
import sys

from numba import cuda, float32, float64, int32, void
from numba.cuda.random import xoroshiro128p_dtype, xoroshiro128p_uniform_float32  # noqa: F401


def add(x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i] + y[i]


def strided(x, out):
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        out[i] = x[i] * 3 - 1


def tile_sum(x, out):
    s = cuda.shared.array(64, int32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    s[t] = x[i] if i < x.size else 0
    cuda.syncthreads()
    step = 32
    while step:
        if t < step:
            s[t] += s[t + step]
        cuda.syncthreads()
        step //= 2
    if t == 0:
        out[cuda.blockIdx.x] = s[0]


def early(x, out):
    """returns in front of barriers"""
    s = cuda.shared.array(64, int32)
    i = cuda.grid(1)
    if i >= out.size:
        return
    s[cuda.threadIdx.x] = x[i]
    cuda.syncthreads()
    out[i] = s[cuda.threadIdx.x ^ 1] + x[i]


def warp_sum(x, out):
    i = cuda.grid(1)
    v = x[i]
    step = 16
    while step:
        v += cuda.shfl_down_sync(0xffffffff, v, step)
        step //= 2
    if cuda.laneid == 0:
        cuda.atomic.add(out, 0, v)
        cuda.atomic.max(out, 1, v)
        cuda.atomic.xor(out, 2, v)


def compare_and_swap(x, out):
    """floating point, by a loop around a compare-and-swap in double precision on old targets"""
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.max(out, 0, float64(x[i]))


def local_array(x, out):
    a = cuda.local.array(16, float32)
    i = cuda.grid(1)
    for k in range(16):
        a[k] = x[(i + k) % x.size] * k
    s = 0.
    for k in range(16):
        s += a[(k * 7 + i) % 16]
    out[i] = s


@cuda.jit(device=True)
def gcd(a, b):
    while b:
        a, b = b, a % b
    return a


def calls(x, out):
    i = cuda.grid(1)
    out[i] = gcd(x[i] + 1, i + 1)


def checked(x, out):
    """division and indices are checked where a kernel is compiled with debug"""
    i = cuda.grid(1)
    out[i] = out[i] // (x[i] + 1)


def matmul(a, b, out):
    sa = cuda.shared.array((8, 8), float32)
    sb = cuda.shared.array((8, 8), float32)
    x, y = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    s = float32(0.)
    for k in range(a.shape[1] // 8):
        sa[tx, ty] = a[x, ty + k * 8]
        sb[tx, ty] = b[tx + k * 8, y]
        cuda.syncthreads()
        for j in range(8):
            s += sa[tx, j] * sb[j, ty]
        cuda.syncthreads()
    out[x, y] = s


def grid_sync(out):
    g = cuda.cg.this_grid()
    i = cuda.grid(1)
    out[i] = i
    g.sync()
    out[i] += out[(i + 1) % out.size]


def printing(x):
    print("x", x[cuda.grid(1)])


def line(kind, n, size):
    """an array of one dimension"""
    return "u64:0,u64:0,u64:%d,u64:%d,%s,u64:%d,u64:%d" % (n, size, kind, n, size)


def square(kind, n, size):
    return "u64:0,u64:0,u64:%d,u64:%d,%s,u64:%d,u64:%d,u64:%d,u64:%d" % (
        n * n, size, kind, n, n, n * size, size)


I1, F1, D1, F2 = int32[::1], float32[::1], float64[::1], float32[:, ::1]
KERNELS = [
    (add, void(F1, F1, F1), {}, "9,1,1", "64,1,1",
     [line("inf:2200", 550, 4), line("inf:2200", 550, 4), line("out:2200", 550, 4)]),
    (strided, void(I1, I1), {}, "3,1,1", "64,1,1",
     [line("in:4000", 1000, 4), line("out:4000", 1000, 4)]),
    (tile_sum, void(I1, I1), {}, "9,1,1", "64,1,1",
     [line("in:2200", 550, 4), line("out:36", 9, 4)]),
    (early, void(I1, I1), {}, "9,1,1", "64,1,1",
     [line("in:2304", 576, 4), line("out:2216", 554, 4)]),
    (warp_sum, void(I1, I1), {}, "9,1,1", "64,1,1",
     [line("in:2304", 576, 4), line("out:12", 3, 4)]),
    (compare_and_swap, void(F1, D1), {}, "9,1,1", "64,1,1",
     [line("inf:2200", 550, 4), line("out:8", 1, 8)]),
    (local_array, void(F1, F1), {}, "9,1,1", "64,1,1",
     [line("inf:2304", 576, 4), line("out:2304", 576, 4)]),
    (calls, void(I1, I1), {}, "9,1,1", "64,1,1",
     [line("in:2304", 576, 4), line("out:2304", 576, 4)]),
    (checked, void(I1, I1), {"debug": True, "opt": False}, "5,1,1", "32,1,1",
     [line("in:640", 160, 4), line("io:640", 160, 4)]),
    (matmul, void(F2, F2, F2), {}, "4,4,1", "8,8,1",
     [square("inf:4096", 32, 4), square("inf:4096", 32, 4), square("out:4096", 32, 4)]),
    (grid_sync, void(I1), {}, None, None, []),
    (printing, void(I1), {}, None, None, []),
]


def make(out, fn, signature, options, grid, block, arrays):
    name = fn.__name__
    ptx, _ = cuda.compile_ptx(fn, signature.args, cc=(9, 0), **options)
    # its names are longer than those of launches may be
    entry = re.search(r"\.entry ([\w$]+)", ptx).group(1)
    with open(os.path.join(out, "numba-%s.ptx" % name), "w") as f:
        f.write(ptx.replace(entry, name))
    if grid is None:
        return
    with open(os.path.join(out, "numba-%s.launch" % name), "w") as f:
        f.write("%s block grid=%s block=%s shared=0 params=%s\n" % (
            name, grid, block, ",".join(arrays)))


def main():
    bad = 0
    for k in KERNELS:
        try:
            make(sys.argv[1], *k)
        except Exception as e:
            print("numba-%s: %s" % (k[0].__name__, str(e).splitlines()[:1]), file=sys.stderr)
            bad = 1
    return bad


if __name__ == "__main__":
    sys.exit(main())
