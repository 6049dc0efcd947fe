# SPDX-License-Identifier: LGPL-2.1-or-later
"""Triton kernels, compiled to PTX without a GPU: triton-kernels.py DIR

Each becomes DIR/triton-NAME.ptx and, if it says how it may be launched, DIR/triton-NAME.launch,
with which corpus-gpu compares twin and original (the format is that of
selftests/rewriter/corpus/README).
"""
import os
import re
import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait


@triton.jit
def add(x, y, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    tl.store(out + i, tl.load(x + i, mask=m) + tl.load(y + i, mask=m), mask=m)


@triton.jit
def softmax(x, out, cols, B: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, B)
    v = tl.load(x + row * cols + i, mask=i < cols, other=-float("inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(out + row * cols + i, e / tl.sum(e, axis=0), mask=i < cols)


@triton.jit
def softmax_rows(x, out, rows, cols, B: tl.constexpr):
    """a loop over the grid, as kernels have it that Triton calls persistent"""
    i = tl.arange(0, B)
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=2):
        v = tl.load(x + row * cols + i, mask=i < cols, other=-float("inf"))
        e = tl.exp(v - tl.max(v, axis=0))
        tl.store(out + row * cols + i, e / tl.sum(e, axis=0), mask=i < cols)


@triton.jit
def layer_norm(x, w, b, out, mean, cols, eps, B: tl.constexpr):
    row = tl.program_id(0)
    x += row * cols
    out += row * cols
    total = tl.zeros([B], dtype=tl.float32)
    for at in range(0, cols, B):
        i = at + tl.arange(0, B)
        total += tl.load(x + i, mask=i < cols, other=0.)
    m = tl.sum(total, axis=0) / cols
    var = tl.zeros([B], dtype=tl.float32)
    for at in range(0, cols, B):
        i = at + tl.arange(0, B)
        d = tl.where(i < cols, tl.load(x + i, mask=i < cols, other=0.) - m, 0.)
        var += d * d
    r = 1 / tl.sqrt(tl.sum(var, axis=0) / cols + eps)
    tl.store(mean + row, m)
    for at in range(0, cols, B):
        i = at + tl.arange(0, B)
        k = i < cols
        v = (tl.load(x + i, mask=k, other=0.) - m) * r
        tl.store(out + i, v * tl.load(w + i, mask=k) + tl.load(b + i, mask=k), mask=k)


@triton.jit
def locked_sum(x, out, lock, cols, B: tl.constexpr):
    """under a spin lock, as the weights of a layer norm's backward pass are often summed"""
    row = tl.program_id(0)
    i = tl.arange(0, B)
    m = i < cols
    v = tl.load(x + row * cols + i, mask=m, other=0)
    slot = row % 4
    while tl.atomic_cas(lock + slot, 0, 1) == 1:
        pass
    p = out + slot * cols + i
    tl.store(p, tl.load(p, mask=m) + v, mask=m)
    tl.debug_barrier()
    tl.atomic_xchg(lock + slot, 0)


@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, G: tl.constexpr):
    pid = tl.program_id(0)
    pm = tl.cdiv(M, BM)
    pn = tl.cdiv(N, BN)
    group = pid // (G * pn)
    size = min(pm - group * G, G)
    m = group * G + (pid % (G * pn)) % size
    n = (pid % (G * pn)) // size
    rm = (m * BM + tl.arange(0, BM)) % M
    rn = (n * BN + tl.arange(0, BN)) % N
    rk = tl.arange(0, BK)
    pa = a + rm[:, None] * K + rk[None, :]
    pb = b + rk[:, None] * N + rn[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        va = tl.load(pa, mask=rk[None, :] < K - k * BK, other=0.)
        vb = tl.load(pb, mask=rk[:, None] < K - k * BK, other=0.)
        acc = tl.dot(va, vb, acc)
        pa += BK
        pb += BK * N
    om = m * BM + tl.arange(0, BM)
    on = n * BN + tl.arange(0, BN)
    tl.store(c + om[:, None] * N + on[None, :], acc.to(c.dtype.element_ty),
             mask=(om[:, None] < M) & (on[None, :] < N))


@triton.jit
def matmul_tma(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
               WS: tl.constexpr):
    """descriptors from the host"""
    m = tl.program_id(0) * BM
    n = tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in tl.range(0, tl.cdiv(K, BK), warp_specialize=WS):
        acc = tl.dot(a.load([m, k * BK]), b.load([k * BK, n]), acc)
    c.store([m, n], acc.to(tl.float16))


@triton.jit
def matmul_descriptors(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """persistent, with descriptors made on the device, in memory that the launcher gives"""
    da = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    db = tl.make_tensor_descriptor(b, [K, N], [N, 1], [BK, BN])
    dc = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    pn = tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BM) * pn, tl.num_programs(0), flatten=True):
        m = tile // pn * BM
        n = tile % pn * BN
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(0, tl.cdiv(K, BK)):
            acc = tl.dot(da.load([m, k * BK]), db.load([k * BK, n]), acc)
        dc.store([m, n], acc.to(tl.float16))


@triton.jit
def split_k(a, b, c, N, K, BK: tl.constexpr, B: tl.constexpr, PARTS: tl.constexpr):
    """integers, so that the order of the atomics does not matter"""
    r = tl.arange(0, B)
    m = tl.program_id(0) * B + r
    n = tl.program_id(1) * B + r
    acc = tl.zeros((B, B), dtype=tl.int32)
    for k in range(tl.program_id(2) * BK, K, BK * PARTS):
        rk = k + tl.arange(0, BK)
        acc = tl.dot(tl.load(a + m[:, None] * K + rk[None, :]),
                     tl.load(b + rk[:, None] * N + n[None, :]), acc)
    tl.atomic_add(c + m[:, None] * N + n[None, :], acc)


@triton.jit
def attention(q, k, v, out, scale, L, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
              CAUSAL: tl.constexpr):
    """the online softmax of flash attention, a head in a row of the grid"""
    start = tl.program_id(0) * BM
    base = tl.program_id(1) * L * D
    rm = start + tl.arange(0, BM)
    rd = tl.arange(0, D)
    vq = tl.load(q + base + rm[:, None] * D + rd[None, :])
    top = tl.full([BM], -1e30, dtype=tl.float32)
    total = tl.zeros([BM], dtype=tl.float32)
    acc = tl.zeros([BM, D], dtype=tl.float32)
    end = start + BM if CAUSAL else L
    for n in range(0, end, BN):
        rn = n + tl.arange(0, BN)
        vk = tl.load(k + base + rn[:, None] * D + rd[None, :])
        s = tl.dot(vq, tl.trans(vk)) * scale
        if CAUSAL:
            s = tl.where(rm[:, None] >= rn[None, :], s, -1e30)
        now = tl.maximum(top, tl.max(s, axis=1))
        p = tl.exp2(s - now[:, None])
        alpha = tl.exp2(top - now)
        total = total * alpha + tl.sum(p, axis=1)
        vv = tl.load(v + base + rn[:, None] * D + rd[None, :])
        acc = tl.dot(p.to(tl.float16), vv, acc * alpha[:, None])
        top = now
    tl.store(out + base + rm[:, None] * D + rd[None, :], (acc / total[:, None]).to(tl.float16))


@triton.jit
def attention_tma(q, k, v, out, scale, L, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
                  WS: tl.constexpr):
    start = tl.program_id(0) * BM
    base = tl.program_id(1) * L
    vq = q.load([base + start, 0])
    top = tl.full([BM], -1e30, dtype=tl.float32)
    total = tl.zeros([BM], dtype=tl.float32)
    acc = tl.zeros([BM, D], dtype=tl.float32)
    for n in tl.range(0, L, BN, warp_specialize=WS):
        s = tl.dot(vq, k.load([base + n, 0]).T) * scale
        now = tl.maximum(top, tl.max(s, axis=1))
        p = tl.exp2(s - now[:, None])
        alpha = tl.exp2(top - now)
        total = total * alpha + tl.sum(p, axis=1)
        acc = tl.dot(p.to(tl.float16), v.load([base + n, 0]), acc * alpha[:, None])
        top = now
    out.store([base + start, 0], (acc / total[:, None]).to(tl.float16))


@triton.jit
def reduce_atomic(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n, other=0)
    tl.atomic_add(out, tl.sum(v, axis=0))
    tl.atomic_max(out + 1, tl.max(v, axis=0))


@triton.jit
def argmax_rows(x, out, where, cols, B: tl.constexpr, R: tl.constexpr):
    r = tl.program_id(0) * R + tl.arange(0, R)
    i = tl.arange(0, B)
    v = tl.load(x + r[:, None] * cols + i[None, :], mask=i[None, :] < cols, other=-1.)
    top, at = tl.max(v, axis=1, return_indices=True)
    tl.store(out + r, top)
    tl.store(where + r, at)


@triton.jit
def histogram(x, out, n, B: tl.constexpr, BINS: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    h = tl.histogram(tl.load(x + i, mask=i < n, other=0), BINS)
    tl.atomic_add(out + tl.arange(0, BINS), h)


@triton.jit
def plus(a, b):
    return a + b


@triton.jit
def scan_rows(x, out, cols, B: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, B)
    v = tl.load(x + row * cols + i, mask=i < cols, other=0)
    tl.store(out + row * cols + i, tl.associative_scan(v, 0, plus), mask=i < cols)


@triton.jit
def sort_rows(x, out, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.sort(tl.load(x + i)))


@triton.jit
def lookback(x, out, state, n, B: tl.constexpr):
    """a block takes the sum of those before it from the one before: waits for other blocks"""
    pid = tl.program_id(0)
    i = pid * B + tl.arange(0, B)
    v = tl.cumsum(tl.load(x + i, mask=i < n, other=0), axis=0)
    total = tl.max(v, axis=0).to(tl.int64)
    before = tl.zeros([], dtype=tl.int64)
    if pid > 0:
        while before == 0:
            before = tl.atomic_add(state + pid - 1, 0, sem="acquire")
        before -= 1
    tl.atomic_xchg(state + pid, before + total + 1, sem="release")
    tl.store(out + i, v + before, mask=i < n)


@triton.jit
def dropout(x, out, n, p, seed, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n)
    tl.store(out + i, tl.where(tl.rand(seed, i) > p, v / (1 - p), 0.), mask=i < n)


@triton.jit
def embedding(ids, table, out, dim, B: tl.constexpr):
    """a device assertion calls a function outside"""
    row = tl.program_id(0)
    at = tl.load(ids + row)
    tl.device_assert(at < 64, "row")
    i = tl.arange(0, B)
    tl.store(out + row * dim + i, tl.load(table + at * dim + i, mask=i < dim), mask=i < dim)


@triton.jit
def printing(x, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.device_print("x", tl.load(x + i, mask=i < n))


@triton.jit
def early(x, out, n, B: tl.constexpr):
    """whole programs that return at once"""
    pid = tl.program_id(0)
    if pid * B >= n:
        return
    i = pid * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n, other=0.)
    tl.store(out + i, v - tl.sum(v, axis=0), mask=i < n)


@triton.jit
def swap_halves(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + tl.program_id(0) * B + i)
    tl.store(out + tl.program_id(0) * B + i, tl.gather(v, (i * 7 + B // 2) % B, axis=0))


@triton.jit
def assembly(x, out, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i)
    y = tl.inline_asm_elementwise("{ .reg .b32 t; shr.u32 t, $1, 3; xor.b32 $0, t, $1; }",
                                  "=r,r", [v], dtype=tl.int32,
                                  is_pure=True, pack=1)
    tl.store(out + i, y)


@triton.jit
def dependent(x, out, n, B: tl.constexpr):
    """a programmatic dependent launch; here of nobody's"""
    i = tl.program_id(0) * B + tl.arange(0, B)
    gdc_wait()
    v = tl.load(x + i, mask=i < n)
    gdc_launch_dependents()
    tl.store(out + i, v * 2, mask=i < n)


F16, F32, I32, I64 = "*fp16", "*fp32", "*i32", "*i64"


def sig(fn, *types):
    return dict(zip(fn.arg_names, types))


DESC = "tensordesc<fp16[%d,%d]>"
# file, function, types, constants, options, (grid, params); Triton's own two pointers are added to
# the params
KERNELS = [
    ("add", add, (F32, F32, F32, "i32"), {"B": 256}, {},
     ("13,1,1", "inf:13312,inf:13312,out:13312,u32:3301")),
    ("softmax", softmax, (F32, F32, "i32"), {"B": 512}, {},
     ("12,1,1", "inf:19200,out:19200,u32:400")),
    ("softmax8", softmax, (F32, F32, "i32"), {"B": 2048}, {"num_warps": 8},
     ("5,1,1", "inf:40000,out:40000,u32:2000")),
    ("softmax_rows", softmax_rows, (F32, F32, "i32", "i32"), {"B": 512}, {},
     ("4,1,1", "inf:16000,out:16000,u32:10,u32:400")),
    ("layer_norm", layer_norm, (F32, F32, F32, F32, F32, "i32", "fp32"), {"B": 128}, {},
     ("9,1,1", "inf:10800,inf:1200,inf:1200,out:10800,out:36,u32:300,f32:0.00001")),
    ("locked_sum", locked_sum, (I32, I32, I32, "i32"), {"B": 128}, {},
     ("12,1,1", "in:4800,out:1600,out:16,u32:100")),
    ("matmul", matmul, (F16, F16, F16, "i32", "i32", "i32"),
     {"BM": 64, "BN": 32, "BK": 32, "G": 4}, {},
     ("6,1,1", "inf:12288,inf:9216,out:24576,u32:128,u32:96,u32:48")),
    ("matmul_wgmma", matmul, (F16, F16, F16, "i32", "i32", "i32"),
     {"BM": 64, "BN": 64, "BK": 32, "G": 4}, {"num_stages": 3},
     ("4,1,1", "inf:16384,inf:16384,out:32768,u32:128,u32:128,u32:64")),
    ("matmul_f32", matmul, (F32, F32, F32, "i32", "i32", "i32"),
     {"BM": 32, "BN": 32, "BK": 16, "G": 2}, {"num_warps": 2},
     ("4,1,1", "inf:8192,inf:8192,out:16384,u32:64,u32:64,u32:32")),
    ("matmul_tma", matmul_tma,
     (DESC % (128, 64), DESC % (64, 128), DESC % (128, 128), "i32", "i32", "i32"),
     {"BM": 128, "BN": 128, "BK": 64, "WS": False}, {}, None),
    ("matmul_ws", matmul_tma,
     (DESC % (64, 64), DESC % (64, 128), DESC % (64, 128), "i32", "i32", "i32"),
     {"BM": 64, "BN": 128, "BK": 64, "WS": True}, {}, None),
    ("matmul_descriptors", matmul_descriptors, (F16, F16, F16, "i32", "i32", "i32"),
     {"BM": 128, "BN": 128, "BK": 64}, {}, None),
    ("matmul_cluster", matmul, (F16, F16, F16, "i32", "i32", "i32"),
     {"BM": 128, "BN": 128, "BK": 64, "G": 4}, {"num_ctas": 2}, None),
    ("split_k", split_k, ("*i8", "*i8", I32, "i32", "i32"), {"BK": 32, "B": 32, "PARTS": 2}, {},
     ("2,2,2", "in:8192,in:8192,out:16384,u32:64,u32:128")),
    ("attention", attention, (F16, F16, F16, F16, "fp32", "i32"),
     {"D": 32, "BM": 32, "BN": 32, "CAUSAL": False}, {},
     ("4,2,1", "inf:16384,inf:16384,inf:16384,out:16384,f32:0.01,u32:128")),
    ("attention_causal", attention, (F16, F16, F16, F16, "fp32", "i32"),
     {"D": 64, "BM": 64, "BN": 64, "CAUSAL": True}, {},
     ("2,2,1", "inf:32768,inf:32768,inf:32768,out:32768,f32:0.01,u32:128")),
    ("attention_tma", attention_tma,
     (DESC % (128, 64), DESC % (64, 64), DESC % (64, 64), DESC % (128, 64), "fp32", "i32"),
     {"D": 64, "BM": 128, "BN": 64, "WS": False}, {}, None),
    ("attention_ws", attention_tma,
     (DESC % (64, 64), DESC % (64, 64), DESC % (64, 64), DESC % (64, 64), "fp32", "i32"),
     {"D": 64, "BM": 64, "BN": 64, "WS": True}, {}, None),
    ("reduce_atomic", reduce_atomic, (I32, I32, "i32"), {"B": 256}, {},
     ("9,1,1", "in:9216,out:8,u32:2200")),
    ("argmax_rows", argmax_rows, (F32, F32, I32, "i32"), {"B": 64, "R": 8}, {},
     ("6,1,1", "inf:9600,out:192,out:192,u32:50")),
    ("histogram", histogram, (I32, I32, "i32"), {"B": 256, "BINS": 64}, {},
     ("6,1,1", "idx:6144%64,out:256,u32:1500")),
    ("scan_rows", scan_rows, (I32, I32, "i32"), {"B": 512}, {},
     ("8,1,1", "in:12800,out:12800,u32:400")),
    ("sort_rows", sort_rows, (I32, I32), {"B": 256}, {}, ("5,1,1", "in:5120,out:5120")),
    ("lookback", lookback, (I32, I64, I64, "i32"), {"B": 256}, {},
     ("9,1,1", "idx:9216%100,out:18432,out:72,u32:2300")),
    ("dropout", dropout, (F32, F32, "i32", "fp32", "i32"), {"B": 256}, {},
     ("7,1,1", "inf:7168,out:7168,u32:1700,f32:0.5,u32:7")),
    ("embedding", embedding, (I32, F32, F32, "i32"), {"B": 128}, {"debug": True},
     ("11,1,1", "idx:44%64,inf:25600,out:4400,u32:100")),
    ("printing", printing, (I32, "i32"), {"B": 128}, {}, None),
    ("early", early, (F32, F32, "i32"), {"B": 256}, {}, ("12,1,1", "inf:12288,out:12288,u32:1300")),
    ("swap_halves", swap_halves, (I32, I32), {"B": 256}, {}, ("7,1,1", "in:7168,out:7168")),
    ("assembly", assembly, (I32, I32), {"B": 256}, {}, ("7,1,1", "in:7168,out:7168")),
    ("dependent", dependent, (F32, F32, "i32"), {"B": 256}, {"launch_pdl": True},
     ("7,1,1", "inf:7168,out:7168,u32:1700")),
]
EXTRA = {"lookback": "ordered "}


def make(out, name, fn, types, constants, options, launch):
    signature = sig(fn, *types) | {c: "constexpr" for c in constants}
    # what the caller of a kernel promises of its arguments: pointers and sizes are multiples of 16,
    # where that is so
    aligned = {(i,): [["tt.divisibility", 16]] for i, t in enumerate(types)
               if t[0] == "*" or (launch is None and t == "i32")}
    options = {"ptx_version": 90} | options  # for the assembler of nvcc 13.0
    made = triton.compile(triton.compiler.ASTSource(fn, signature, constants, aligned),
                          target=GPUTarget("cuda", 90, 32),
                          options=options)
    ptx = made.asm["ptx"]
    with open(os.path.join(out, "triton-%s.ptx" % name), "w") as f:
        f.write(ptx)
    if launch is None:
        return
    threads = int(re.search(r"\.(?:req|max)ntid (\d+)", ptx).group(1))
    entry = re.search(r"\.entry (\w+)\(([^)]*)\)", ptx)
    own = entry.group(2).count(".param") - launch[1].count(":")
    with open(os.path.join(out, "triton-%s.launch" % name), "w") as f:
        f.write("%s block grid=%s block=%d,1,1 shared=%d %sparams=%s%s\n" %
                (entry.group(1), launch[0], threads, made.metadata.shared, EXTRA.get(name, ""),
                 launch[1], ",u64:0" * own))


def main():
    out = sys.argv[1]
    bad = 0
    for k in KERNELS:
        try:
            make(out, *k)
        # another version of Triton may lack a feature; the list misses the kernel then
        except Exception as e:
            print("triton-%s: %s" % (k[0], str(e).splitlines()[:1]), file=sys.stderr)
            bad = 1
    return bad


if __name__ == "__main__":
    sys.exit(main())
