#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Programs of Python frameworks as forms: frameworks.py NAME runs one, --list names those that are
installed.

Each prints a line for each of its checks, with a digest of what the GPU computed; natively and
under gsched the lines have to be the same. Results are integers, or floats of one fixed order of
additions; those whose order is a library's choice are compared with the processor's and not
printed.
"""

import importlib.util
import os
import sys
import threading
import traceback

sys.dont_write_bytecode = True
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
os.environ.setdefault("NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS", "0")

import torch_forms  # noqa: E402, F401
from framework import FORMS, digest, form, near  # noqa: E402


@form("torch", "torch")
def torch_form():
    import torch
    import torch.nn.functional as F
    from torch import nn

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False

    def integers(*shape, high=1000):
        generator = torch.Generator().manual_seed(sum(shape))
        return torch.randint(0, high, shape, generator=generator)

    def numbers(*shape):
        return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))

    def short_kernels():
        """thousands of kernels of a few us, none of them waited for"""
        x = integers(4096).cuda()
        for i in range(3000):
            x = (x * 5 + i) % 65521
        return digest(x.cpu())

    def sorts():
        x = integers(300000, high=1 << 40).cuda()
        values, places = torch.sort(x, stable=True)
        top = torch.topk(x, 100).values
        return " ".join(
            digest(t.cpu()) for t in (values, places, top, x.cumsum(0), torch.unique(x % 777))
        )

    def scatters():
        """atomic additions of integers"""
        out = torch.zeros(1000, dtype=torch.int64, device="cuda")
        out.index_add_(0, integers(200000).cuda(), integers(200000, high=7).cuda())
        counts = torch.bincount(integers(100000).cuda())
        return digest(out.cpu()) + " " + digest(counts.cpu())

    def network():
        """cuDNN and cuBLAS, forward and backward"""
        torch.manual_seed(1)
        net = nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.MaxPool2d(4),
            nn.Flatten(),
            nn.Linear(16 * 64, 10),
        )
        state = {k: v.clone() for k, v in net.state_dict().items()}
        x, y = numbers(8, 3, 32, 32), integers(8, high=10)

        def train(device):
            net.load_state_dict(state)
            there = net.to(device)
            optimizer = torch.optim.SGD(there.parameters(), lr=0.05, momentum=0.9)
            losses = []
            for _ in range(10):
                optimizer.zero_grad()
                loss = F.cross_entropy(there(x.to(device)), y.to(device))
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
            return losses

        return near(train("cuda"), train("cpu"), 0.02)

    def graph():
        """a captured graph, replayed with other inputs"""
        x = integers(100000).cuda()
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for _ in range(3):
                y = (x * 3 + 1) % 9973
        torch.cuda.current_stream().wait_stream(side)
        captured = torch.cuda.CUDAGraph()
        with torch.cuda.graph(captured):
            y = x
            for i in range(20):
                y = (y * 3 + i) % 9973
            total = y.sum()
        found = []
        for i in range(50):
            x.copy_(integers(100000, high=1000 + i))
            captured.replay()
            found.append(total.item())
        return digest(torch.tensor(found))

    def streams():
        """streams ordered by events, copies between pinned and device memory among them"""
        pool = [torch.cuda.Stream(priority=-i) for i in range(3)]
        host = [integers(50000 + i).pin_memory() for i in range(3)]
        event, found = None, []
        for turn in range(60):
            with torch.cuda.stream(pool[turn % 3]):
                if event:
                    event.wait()
                x = host[turn % 3].to("cuda", non_blocking=True)
                host[turn % 3].copy_((x * 7 + turn) % 99991, non_blocking=True)
                event = torch.cuda.Event()
                event.record()
        torch.cuda.synchronize()
        for h in host:
            found.append(digest(h))
        return " ".join(found)

    def threads():
        """two threads, a stream each"""
        found = [None, None]

        def work(me):
            with torch.cuda.stream(torch.cuda.Stream()):
                x = integers(70000 + me).cuda()
                for i in range(300):
                    x = (x * 11 + i) % 88883
                found[me] = digest(x.cpu())

        both = [threading.Thread(target=work, args=(i,)) for i in range(2)]
        for t in both:
            t.start()
        for t in both:
            t.join()
        return " ".join(map(str, found))

    def transforms():
        x = numbers(64, 4096)
        got = torch.fft.irfft(torch.fft.rfft(x.cuda())).cpu()
        return near(got, x, 1e-4)

    def attention():
        q = numbers(2, 4, 256, 64).cuda().half()
        got = F.scaled_dot_product_attention(q, q, q).float().cpu()
        c = q.float().cpu()
        return near(got, F.scaled_dot_product_attention(c, c, c), 0.02)

    def memory():
        """allocations that come and go"""
        total = 0
        for i in range(200):
            x = torch.full((1 << (10 + i % 12),), i, dtype=torch.int64, device="cuda")
            total += int(x.sum())
            if i % 20 == 0:
                torch.cuda.empty_cache()
        return str(total)

    return [
        short_kernels,
        sorts,
        scatters,
        network,
        graph,
        streams,
        threads,
        transforms,
        attention,
        memory,
    ]


@form("triton", "torch", "triton")
def triton_form():
    import torch
    import triton
    import triton.language as tl

    globals()["tl"] = tl

    @triton.jit
    def add(x, y, out, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        inside = at < n
        sums = tl.load(x + at, mask=inside) * 3 + tl.load(y + at, mask=inside)
        tl.store(out + at, sums, mask=inside)

    @triton.jit
    def histogram(x, out, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        values = tl.load(x + at, mask=at < n, other=0)
        tl.atomic_add(out + values % BINS, 1, mask=at < n)

    @triton.jit
    def row_max(x, out, columns, BLOCK: tl.constexpr):
        row = tl.program_id(0)
        best = tl.full((), -1, tl.int64)
        for start in range(0, columns, BLOCK):
            at = start + tl.arange(0, BLOCK)
            part = tl.load(x + row * columns + at, mask=at < columns, other=-1)
            best = tl.maximum(best, tl.max(part, axis=0))
        tl.store(out + row, best)

    @triton.jit
    def product(a, b, out, n, BLOCK: tl.constexpr):
        rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        total = tl.zeros((BLOCK, BLOCK), tl.float32)
        for k in range(0, n, BLOCK):
            inner = k + tl.arange(0, BLOCK)
            left = tl.load(a + rows[:, None] * n + inner[None, :])
            right = tl.load(b + inner[:, None] * n + columns[None, :])
            total += tl.dot(left, right)
        tl.store(out + rows[:, None] * n + columns[None, :], total)

    def integers(*shape, high=1000):
        generator = torch.Generator().manual_seed(sum(shape))
        return torch.randint(0, high, shape, generator=generator).cuda()

    def elementwise():
        n = 1000003
        x, y = integers(n), integers(n, high=77)
        out = torch.empty_like(x)
        for _ in range(100):
            add[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)
            x, out = out, x
        return digest(x.cpu())

    def atomics():
        n = 3000000
        out = torch.zeros(257, dtype=torch.int32, device="cuda")
        for _ in range(10):
            histogram[(triton.cdiv(n, 512),)](integers(n), out, n, BINS=257, BLOCK=512)
        return digest(out.cpu())

    def reductions():
        x = integers(4000, 3001, high=1 << 40)
        out = torch.empty(4000, dtype=torch.int64, device="cuda")
        for _ in range(20):
            row_max[(4000,)](x, out, 3001, BLOCK=1024)
        return digest(out.cpu())

    def products():
        n = 2048
        # small integers: every sum is exact
        a, b = integers(n, n, high=8).half(), integers(n, n, high=5).half()
        out = torch.empty(n, n, device="cuda")
        for _ in range(10):
            product[(n // 64, n // 64)](a, b, out, n, BLOCK=64)
        return digest(out.cpu())

    return [elementwise, atomics, reductions, products]


@form("cupy", "cupy")
def cupy_form():
    import cupy
    import numpy

    source = r"""
    __constant__ int factor[4];
    extern "C" __global__ void mix(int *data, int n, int round)
    {
        __shared__ int part[256];
        int at = blockIdx.x * blockDim.x + threadIdx.x;

        part[threadIdx.x] = at < n ? data[at] : 0;
        __syncthreads();
        int other = part[(threadIdx.x + 37) % 256];
        if (at < n)
            data[at] = (part[threadIdx.x] * factor[round % 4] + other) % 65521;
    }
    extern "C" __global__ void count(const int *data, int n, unsigned *bins)
    {
        for (int at = blockIdx.x * blockDim.x + threadIdx.x; at < n; at += gridDim.x * blockDim.x)
            atomicAdd(&bins[data[at] & 1023], 1);
    }
    """
    random = numpy.random.RandomState(3)
    start = random.randint(0, 65521, 2000000).astype(numpy.int32)

    def raw():
        """NVRTC, constant and shared memory"""
        module = cupy.RawModule(code=source)
        kernel = module.get_function("mix")
        constant = cupy.ndarray(4, cupy.int32, module.get_global("factor"))
        constant[...] = cupy.array([3, 5, 7, 11], cupy.int32)
        data = cupy.array(start)
        for i in range(200):
            blocks = (data.size + 255) // 256
            kernel((blocks,), (256,), (data, numpy.int32(data.size), numpy.int32(i)))
        return digest(data.get())

    def counts():
        kernel = cupy.RawKernel(source, "count")
        bins = cupy.zeros(1024, cupy.uint32)
        data = cupy.array(start)
        for _ in range(50):
            kernel((64,), (256,), (data, numpy.int32(data.size), bins))
        return digest(bins.get())

    def elementwise():
        f = cupy.ElementwiseKernel("int32 x, int32 y", "int32 z", "z = (x * 31 + y) % 65521", "f")
        x = y = cupy.array(start)
        for _ in range(100):
            x, y = f(x, y), x
        return digest(x.get())

    def reductions():
        x = cupy.array(start)
        f = cupy.ReductionKernel("int32 x", "int64 y", "(long long)x * x", "a + b", "y = a", "0",
                                 "f")
        return " ".join(digest(v.get()) for v in (f(x), cupy.sort(x), x.cumsum()))

    def streams():
        kernel = cupy.RawKernel(source, "count")
        found = []
        for i in range(4):
            with cupy.cuda.Stream(non_blocking=True) as stream:
                bins = cupy.zeros(1024, cupy.uint32)
                data = cupy.array(start + i)
                kernel((32,), (256,), (data, numpy.int32(data.size), bins))
                found.append(bins.get(stream=stream))
        return digest(numpy.array(found))

    def products():
        a = cupy.array(start[: 512 * 512].reshape(512, 512) % 17, cupy.float64)
        return digest((a @ a).get())

    return [raw, counts, elementwise, reductions, streams, products]


@form("numba", "numba", "numba.cuda")
def numba_form():
    import numpy

    # NumPy 2.5 no longer has it, and numba-cuda 0.2x still asks for it
    if not hasattr(numpy, "row_stack"):
        numpy.row_stack = numpy.vstack
    from numba import cuda, int64

    @cuda.jit
    def reverse(data, out):
        part = cuda.shared.array(256, int64)
        at = cuda.grid(1)
        t = cuda.threadIdx.x
        part[t] = data[at] if at < data.size else 0
        cuda.syncthreads()
        if at < data.size:
            out[at] = part[255 - t] * 3 + at

    @cuda.jit
    def count(data, bins):
        for at in range(cuda.grid(1), data.size, cuda.gridsize(1)):
            cuda.atomic.add(bins, data[at] % bins.size, 1)

    @cuda.jit
    def collatz(out):
        at = cuda.grid(1)
        if at < out.size:
            n = at + 1
            steps = 0
            while n != 1:
                n = n // 2 if n % 2 == 0 else 3 * n + 1
                steps += 1
            out[at] = steps

    random = numpy.random.RandomState(4)
    start = random.randint(0, 1 << 30, 1 << 20)

    def shared():
        a, b = cuda.to_device(start), cuda.device_array(start.shape, start.dtype)
        for _ in range(100):
            reverse[(start.size + 255) // 256, 256](a, b)
            a, b = b, a
        return digest(a.copy_to_host())

    def atomics():
        bins = cuda.to_device(numpy.zeros(1000, numpy.int64))
        for _ in range(20):
            count[64, 256](cuda.to_device(start), bins)
        return digest(bins.copy_to_host())

    def divergent():
        out = cuda.device_array(1 << 20, numpy.int64)
        for _ in range(20):
            collatz[(1 << 20) // 128, 128](out)
        return digest(out.copy_to_host())

    def streams():
        found = []
        for i in range(4):
            stream = cuda.stream()
            a = cuda.to_device(start + i, stream=stream)
            b = cuda.device_array(start.shape, start.dtype, stream=stream)
            reverse[(start.size + 255) // 256, 256, stream](a, b)
            found.append(b.copy_to_host(stream=stream))
            stream.synchronize()
        return digest(numpy.array(found))

    return [shared, atomics, divergent, streams]


@form("jax", "jax")
def jax_form():
    import jax
    import jax.numpy as jnp
    import numpy

    random = numpy.random.RandomState(5)
    start = random.randint(0, 65521, 1 << 20).astype(numpy.int32)

    def scan():
        """a loop inside a compiled function"""

        def step(x, i):
            return (x * 5 + i) % 65521, x[0]

        f = jax.jit(lambda x: jax.lax.scan(step, x, jnp.arange(200, dtype=jnp.int32)))
        x, firsts = f(start)
        return digest(x) + " " + digest(firsts)

    def sorts():
        f = jax.jit(lambda x: (jnp.sort(x), jnp.cumsum(x), jnp.bincount(x % 100, length=100)))
        return " ".join(digest(y) for y in f(start))

    def gradients():
        x = random.randn(256, 64).astype(numpy.float32)
        w = random.randn(64, 32).astype(numpy.float32) / 8
        f = jax.grad(lambda w: jnp.tanh(x @ w).sum())
        tanh = numpy.tanh(x.astype(float) @ w)
        wanted = x.T.astype(float) @ (1 - tanh * tanh)
        with jax.default_matmul_precision("highest"):
            return near(jax.jit(f)(w), wanted, 1e-2)

    def many():
        """dispatched one behind another, and waited for at the end"""
        f = jax.jit(lambda x, i: (x * 7 + i) % 99991)
        x = jnp.asarray(start)
        for i in range(1000):
            x = f(x, i)
        return digest(x)

    return [scan, sorts, gradients, many]


def installed(modules):
    try:
        return all(importlib.util.find_spec(m) for m in modules)
    except ImportError:
        return False


def main():
    if sys.argv[1:] == ["--list"]:
        print("\n".join(name for name, (_, modules) in FORMS.items() if installed(modules)))
        return 0
    if len(sys.argv) != 2 or sys.argv[1] not in FORMS:
        sys.exit(f"usage: frameworks.py --list | {' | '.join(FORMS)}")
    failed = 0
    for check in FORMS[sys.argv[1]][0]():
        try:
            print(f"{check.__name__}: {check()}", flush=True)
        except Exception:  # the other checks go on
            traceback.print_exc()
            print(f"{check.__name__}: failed", flush=True)
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
