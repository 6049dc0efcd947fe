# SPDX-License-Identifier: LGPL-2.1-or-later
"""What else programs do with PyTorch, beside the form "torch" of frameworks.py."""

import os
import subprocess
import sys
import tempfile

from framework import digest, form, near


def setup():
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = False
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.manual_seed(7)
    return torch


def python(code, **environment):
    """Output of a Python process of its own, with @environment."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    lines = done.stdout.strip().splitlines()
    return f"status {done.returncode} " + " ".join(lines[-3:])


@form("torch-models", "torch", "torchvision")
def models():
    torch = setup()
    import torch.nn.functional as F
    import torchvision
    from torch import nn

    def training_amp():
        """ResNet-18 in half precision with gradient scaling"""
        torch.manual_seed(1)
        net = torchvision.models.resnet18(num_classes=10).cuda()
        net = net.to(memory_format=torch.channels_last)
        optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
        scaler = torch.amp.GradScaler("cuda")
        x = torch.randn(32, 3, 64, 64, generator=torch.Generator().manual_seed(2)).cuda()
        y = torch.arange(32).cuda() % 10
        losses = []
        for _ in range(25):
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast("cuda", torch.float16):
                loss = F.cross_entropy(net(x), y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            losses.append(loss.item())
        return f"learned {losses[-1] < 0.5 * losses[0]}"

    def detection():
        """operators of torchvision: roi_align, nms"""
        torch.manual_seed(1)
        boxes = torch.rand(2000, 4, generator=torch.Generator().manual_seed(3)) * 200
        boxes[:, 2:] += boxes[:, :2]
        scores = torch.rand(2000, generator=torch.Generator().manual_seed(4))
        kept = torchvision.ops.nms(boxes.cuda(), scores.cuda(), 0.3)
        here = torchvision.ops.nms(boxes, scores, 0.3)
        features = torch.randn(1, 8, 50, 50, generator=torch.Generator().manual_seed(5))
        regions = [boxes[:100] / 8]
        there = torchvision.ops.roi_align(features.cuda(), [r.cuda() for r in regions], 7)
        wanted = torchvision.ops.roi_align(features, regions, 7)
        return f"{torch.equal(kept.cpu(), here)} {near(there.cpu(), wanted, 1e-4)}"

    def recurrent():
        """an LSTM of cuDNN, forward and backward"""
        torch.manual_seed(2)
        net = nn.LSTM(32, 64, 2, batch_first=True)
        x = torch.randn(16, 50, 32, generator=torch.Generator().manual_seed(6))
        wanted = net(x)[0]
        got = net.cuda()(x.cuda())[0]
        got.sum().backward()
        return near(got.detach().cpu(), wanted.detach(), 1e-3)

    def generation():
        """a small transformer that decodes token by token, with a cache of keys and values"""
        torch.manual_seed(3)
        width, heads, layers = 128, 4, 3
        blocks = [
            {k: nn.Linear(width, n).cuda() for k, n in (("qkv", 3 * width), ("out", width))}
            for _ in range(layers)
        ]
        embed = nn.Embedding(500, width).cuda()
        caches = [[] for _ in range(layers)]
        token, tokens = torch.tensor([1], device="cuda"), []
        with torch.no_grad():
            for _ in range(60):
                x = embed(token)
                for block, cache in zip(blocks, caches):
                    q, k, v = block["qkv"](x).view(3, heads, 1, width // heads).unbind(0)
                    cache.append((k, v))
                    keys = torch.cat([c[0] for c in cache], 1)
                    values = torch.cat([c[1] for c in cache], 1)
                    out = F.scaled_dot_product_attention(q[None], keys[None], values[None])
                    x = x + block["out"](out[0].transpose(0, 1).reshape(1, width))
                token = (x @ embed.weight.T).argmax(-1)
                tokens.append(int(token))
        return digest(torch.tensor(tokens))

    def attention_half():
        """fused attention in half precision, forward and backward"""
        g = torch.Generator().manual_seed(8)
        q, k, v = (torch.randn(2, 8, 512, 64, generator=g).half().cuda() for _ in range(3))
        q.requires_grad_(True)
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        out.float().sum().backward()
        wanted = F.scaled_dot_product_attention(q.float(), k.float(), v.float(), is_causal=True)
        return near(out.detach().float().cpu(), wanted.detach().cpu(), 2e-2)

    def whole_step_graph():
        """a training step in one CUDA graph, replayed"""
        torch.manual_seed(4)
        net = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 8)).cuda()
        optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, capturable=True)
        x, y = torch.randn(128, 64, device="cuda"), torch.arange(128, device="cuda") % 8

        def step():
            optimizer.zero_grad(set_to_none=True)
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            optimizer.step()
            return loss

        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            loss = step()
        first = None
        for _ in range(300):
            graph.replay()
            first = loss.item() if first is None else first
        return f"learned {loss.item() < 0.5 * first}"

    return [training_amp, detection, recurrent, generation, attention_half, whole_step_graph]


@form("torch-tools", "torch")
def tools():
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    torch = setup()

    def compiled():
        """torch.compile: kernels of Triton, made at run time"""

        def f(x, y):
            return (x * y + 3).relu().sum(1) + x.amax(1)

        x = torch.randint(-50, 50, (300, 700), generator=torch.Generator().manual_seed(1)).cuda()
        with tempfile.TemporaryDirectory() as cache:
            os.environ["TORCHINDUCTOR_CACHE_DIR"] = cache
            got = torch.compile(f)(x, x.flip(0))
        return str(torch.equal(got, f(x, x.flip(0))))

    def compiled_graphs():
        """the same in CUDA graphs"""

        def f(x):
            for i in range(10):
                x = (x * 5 + i) % 9973
            return x

        fast = torch.compile(f, mode="reduce-overhead")
        x = torch.arange(100000, device="cuda")
        return str(all(torch.equal(fast(x + i), f(x + i)) for i in range(8)))

    def profiled():
        """CUPTI sees the kernels"""
        from torch.profiler import ProfilerActivity, profile

        x = torch.arange(1 << 20, device="cuda")
        with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as p:
            for i in range(20):
                x = (x * 3 + i) % 65521
            torch.cuda.synchronize()
        names = {e.key for e in p.key_averages() if e.device_type.name == "CUDA"}
        return f"{any('elementwise' in n for n in names)} {digest(x.cpu())}"

    def jitted():
        """a kernel that is compiled by NVRTC"""
        f = torch.cuda.jiterator._create_jit_fn(
            "template <typename T> T twice(T x, T y) { return x * 2 + y % 7; }"
        )
        x = torch.arange(100000, device="cuda", dtype=torch.int32)
        return digest(f(x, x.flip(0)).cpu())

    def loaders():
        """worker processes, made by fork, beside a thread that copies to pinned memory"""
        from torch.utils.data import DataLoader, TensorDataset

        data = TensorDataset(torch.arange(4096), torch.arange(4096) * 3)
        total = torch.zeros((), dtype=torch.int64, device="cuda")
        for x, y in DataLoader(data, 64, num_workers=3, pin_memory=True):
            total += (x.cuda(non_blocking=True) * y.cuda(non_blocking=True)).sum()
        return str(int(total))

    def out_of_memory():
        """an allocation that is too large, and work after it"""
        try:
            torch.empty(1 << 45, dtype=torch.uint8, device="cuda")
            return "allocated"
        except torch.cuda.OutOfMemoryError:
            return f"refused {int(torch.arange(1000, device='cuda').sum())}"

    def priorities():
        """streams of both priorities, events with times"""
        low, high = torch.cuda.Stream(priority=0), torch.cuda.Stream(priority=-1)
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        x = torch.arange(1 << 20, device="cuda")
        torch.cuda.synchronize()
        with torch.cuda.stream(low):
            begin.record()
            for i in range(100):
                x = (x * 3 + i) % 65521
            end.record()
        with torch.cuda.stream(high):
            y = torch.arange(1000, device="cuda").cumsum(0)
        torch.cuda.synchronize()
        took = begin.elapsed_time(end) > 0
        return f"{low.priority} {high.priority} {took} {digest(x.cpu())} {int(y[-1])}"

    def green_context():
        """some of the SMs only"""
        if not hasattr(torch.cuda, "green_contexts"):
            return "none"
        context = torch.cuda.green_contexts.GreenContext.create(16, 0)
        context.set_context()
        x = torch.arange(1 << 20, device="cuda")
        for i in range(50):
            x = (x * 3 + i) % 65521
        found = digest(x.cpu())
        context.pop_context()
        return found

    def sparse_and_dense():
        """cuSPARSE, cuSOLVER, cuFFT"""
        g = torch.Generator().manual_seed(11)
        a = torch.randn(200, 200, generator=g, dtype=torch.float64)
        b = torch.randn(200, 5, generator=g, dtype=torch.float64)
        solved = torch.linalg.solve(a.cuda(), b.cuda()).cpu()
        s = (a * (a > 1)).to_sparse_csr()
        product = (s.cuda() @ b.cuda()).cpu()
        spectrum = torch.fft.rfft2(a.cuda()).cpu()
        return " ".join(
            (
                near(solved, torch.linalg.solve(a, b), 1e-6),
                near(product, s.to_dense() @ b, 1e-9),
                near(spectrum.abs(), torch.fft.rfft2(a).abs(), 1e-9),
            )
        )

    return [
        compiled,
        compiled_graphs,
        profiled,
        jitted,
        loaders,
        out_of_memory,
        priorities,
        green_context,
        sparse_and_dense,
    ]


WORK = """
import torch
xs, total = [], 0
for i in range(60):
    xs.append(torch.full(((1 + i % 7) << 18,), i, dtype=torch.int64, device="cuda"))
    if i % 3 == 2:
        total += int(sum(int(x.sum()) for x in xs))
        del xs[::2]
    if i % 20 == 19:
        torch.cuda.empty_cache()
print(total)
"""
SHARED = """
import torch, torch.multiprocessing as mp
def child(q, r):
    x = q.get()
    x += 1
    torch.cuda.synchronize()
    r.put(int(x.sum()))
    del x
if __name__ == "__main__":
    import os, sys
    mp.set_start_method("spawn")
    q, r = mp.Queue(), mp.Queue()
    p = mp.Process(target=child, args=(q, r))
    p.start()
    x = torch.arange(1000, device="cuda")
    q.put(x)
    there = r.get(timeout=60)
    p.join()
    print(there, int(x.sum()))
"""
ASSERTED = """
import torch
x = torch.arange(10, device="cuda")
try:
    print(x[torch.tensor([99], device="cuda")])
    torch.cuda.synchronize()
except Exception as e:
    print(type(e).__name__, "device-side assert" in str(e))
try:
    torch.zeros(1, device="cuda").sum().item()
except Exception as e:
    print(type(e).__name__, "device-side assert" in str(e))
"""
FORKED = """
import os, torch
x = torch.ones(10, device="cuda")
pid = os.fork()
if not pid:
    try:
        torch.ones(1, device="cuda")
        os._exit(0)
    except RuntimeError as e:
        os._exit(3 if "forked subprocess" in str(e) else 4)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), int(x.sum()))
"""
GROUP = """
import os, torch, torch.distributed as dist
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0", RANK="0", WORLD_SIZE="1")
dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1)
x = torch.arange(1000, device="cuda")
for _ in range(20):
    dist.all_reduce(x)
dist.barrier()
print(int(x.sum()))
dist.destroy_process_group()
"""


@form("torch-processes", "torch")
def processes():
    def expandable():
        """virtual memory: cuMemMap, cuMemUnmap"""
        return python(WORK, PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True")

    def pool():
        """stream-ordered allocation"""
        return python(WORK, PYTORCH_CUDA_ALLOC_CONF="backend:cudaMallocAsync")

    def shared():
        """a tensor that another process changes, by IPC"""
        with tempfile.NamedTemporaryFile("w", suffix=".py") as f:
            f.write(SHARED)
            f.flush()
            return python(f"import runpy; runpy.run_path({f.name!r}, run_name='__main__')")

    def asserted():
        """an assertion in a kernel, and what fails after it"""
        return python(ASSERTED)

    def forked():
        """a child that must not use the parent's context"""
        return python(FORKED)

    def one_connection():
        return python(WORK, CUDA_DEVICE_MAX_CONNECTIONS="1")

    def blocking():
        return python(WORK, CUDA_LAUNCH_BLOCKING="1")

    def eager_loading():
        return python(WORK, CUDA_MODULE_LOADING="EAGER")

    def group():
        """NCCL with one process"""
        return python(GROUP)

    return [
        expandable,
        pool,
        shared,
        asserted,
        forked,
        one_connection,
        blocking,
        eager_loading,
        group,
    ]
