#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""PyTorch programs for selftests/bench: one request at a time, or batch work without pause.

Loads and warms up, prints {"ready": true}, waits until the file --start exists, and works until
SIGTERM. The log has a line "start_ns took_ns" (CLOCK_MONOTONIC) for each request or step; in an open
loop the request's arrival follows. Role "turns": for each line with a number, so many steps; it
prints how many ns they took, and after how many the last one was with the driver. Role "bypass":
steps in pairs, one with gsched and one that bypasses it (bypass.c), for --seconds; it prints how
many launches a step has, and of each step what "turns" prints.
"""

import argparse
import collections
import ctypes
import gc
import json
import mmap
import os
import random
import signal
import struct
import sys
import time

SPIN_NS = 200_000
START_LIMIT_S = 180

stopped = False


def on_term(_signal, _frame):
    global stopped
    stopped = True


def now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


# Models. torch is imported only where it is needed, so that the plumbing can be tried without it.


def encoder(layers, width, heads):
    import torch.nn.functional as F
    from torch import nn

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1 = nn.LayerNorm(width)
            self.qkv = nn.Linear(width, 3 * width)
            self.out = nn.Linear(width, width)
            self.norm2 = nn.LayerNorm(width)
            self.up = nn.Linear(width, 4 * width)
            self.down = nn.Linear(4 * width, width)

        def forward(self, x):
            batch, length, _ = x.shape
            q, k, v = (
                self.qkv(self.norm1(x))
                .view(batch, length, 3, heads, width // heads)
                .permute(2, 0, 3, 1, 4)
            )
            attended = (
                F.scaled_dot_product_attention(q, k, v)
                .transpose(1, 2)
                .reshape(batch, length, width)
            )
            x = x + self.out(attended)
            return x + self.down(F.gelu(self.up(self.norm2(x))))

    return nn.Sequential(*[Layer() for _ in range(layers)])


def inference_resnet():
    import torch
    import torchvision

    model = (
        torchvision.models.resnet50(weights=None)
        .eval()
        .cuda()
        .half()
        .to(memory_format=torch.channels_last)
    )
    x = torch.randn(1, 3, 224, 224, device="cuda").half().to(memory_format=torch.channels_last)
    return lambda: model(x)


def inference_trans():
    import torch

    model = encoder(12, 768, 12).eval().cuda().half()
    x = torch.randn(1, 128, 768, device="cuda").half()
    return lambda: model(x)


def chain_of_products():
    """Twenty matrix products of about 50 us on an H200, one after another."""
    import torch

    a = torch.randn(2560, 2560, device="cuda").bfloat16()
    b = torch.randn(2560, 2560, device="cuda").bfloat16()
    out = torch.empty_like(a)

    def call():
        for _ in range(20):
            torch.mm(a, b, out=out)

    return call


def training_resnet():
    import torch
    import torch.nn.functional as F
    import torchvision

    model = torchvision.models.resnet152(weights=None).cuda().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    x = torch.randn(64, 3, 224, 224, device="cuda").to(memory_format=torch.channels_last)
    y = torch.randint(0, 1000, (64,), device="cuda")

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()

    return step


def training_trans():
    import torch

    model = encoder(12, 768, 12).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)
    x = torch.randn(32, 512, 768, device="cuda")

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(x).float().pow(2).mean()
        loss.backward()
        optimizer.step()

    return step


def products():
    import torch

    a = torch.randn(8192, 8192, device="cuda").bfloat16()
    b = torch.randn(8192, 8192, device="cuda").bfloat16()
    out = torch.empty_like(a)
    return lambda: torch.mm(a, b, out=out)


def pause():
    """No GPU at all: a step of 2 ms, for tests of the plumbing."""
    return lambda: time.sleep(0.002)


def empty_kernels():
    """A hundred launches by the driver's API, without PyTorch; as the CUDA runtime finds it."""
    cuda = ctypes.CDLL("libcuda.so.1")
    launch, context, module, kernel = (ctypes.c_void_p() for _ in range(4))
    ptx = b".version 6.0\n.target sm_50\n.address_size 64\n.entry nothing() { ret; }\n"

    def ok(rc):
        assert rc == 0, rc

    ok(cuda.cuInit(0))
    ok(cuda.cuGetProcAddress_v2(b"cuLaunchKernel", ctypes.byref(launch), 12000, 0, None))
    ok(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    ok(cuda.cuCtxSetCurrent(context))
    ok(cuda.cuModuleLoadData(ctypes.byref(module), ptx))
    ok(cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"nothing"))
    words = [ctypes.c_void_p, *[ctypes.c_uint] * 7, *[ctypes.c_void_p] * 3]
    launch = ctypes.CFUNCTYPE(ctypes.c_int, *words)(launch.value)

    def call():
        for _ in range(100):
            ok(launch(kernel, 1, 1, 1, 1, 1, 1, 0, None, None, None))
        ok(cuda.cuCtxSynchronize())

    return call


# name: (what makes one step, as a CUDA graph, steps in flight as batch work)
LOADS = {
    "resnet": (inference_resnet, True, 1),
    "resnet-eager": (inference_resnet, False, 1),
    "trans": (inference_trans, True, 1),
    "trans-eager": (inference_trans, False, 1),
    "graph-torch": (chain_of_products, True, 1),
    "gemm": (products, False, 2),
    "train": (training_resnet, False, 2),
    "trans-train": (training_trans, False, 2),
    "sleep": (pause, False, 1),
    "empty": (empty_kernels, False, 1),
}
WITHOUT_TORCH = ("sleep", "empty")
TRAINING = ("train", "trans-train")


class Host:
    """Stands in for a stream where there is no PyTorch."""

    def synchronize(self):
        pass


def captured(call, stream):
    import torch

    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        call()
    return graph.replay


def wait_for_start(path):
    print(json.dumps({"ready": True}), flush=True)
    until = time.monotonic() + START_LIMIT_S
    while path and not os.path.exists(path) and not stopped:
        if time.monotonic() > until:
            sys.exit(f"--start: {path} did not appear in {START_LIMIT_S} s")
        time.sleep(0.001)


def wait_until(due):
    left = due - now() - SPIN_NS
    if left > 0:
        time.sleep(left / 1e9)
    while now() < due and not stopped:
        pass


def serve(args, call, stream):
    """Requests at their times: (start, took, arrival) of each, the arrival None in a closed loop."""
    period = args.period_us * 1000
    rng = random.Random(args.poisson)
    records = []
    due = now() + SPIN_NS
    while not stopped:
        if args.poisson is not None:
            due += int(rng.expovariate(1.0 / period))
        elif args.open:
            due += period
        else:
            # behind schedule: start afresh instead of a burst, as a closed-loop client would
            due = max(due + period, now())
        wait_until(due)
        if stopped:
            break
        start = now()
        call()
        stream.synchronize()
        records.append(
            (start, now() - start, due if args.open or args.poisson is not None else None)
        )
    return records


def work(step, stream, depth, new_event):
    """Steps without pause, @depth of them on the GPU; a step counts from the end of the one before."""
    records = []
    pending = collections.deque()
    last = now()
    while not stopped:
        step()
        if new_event:
            event = new_event()
            event.record()
            pending.append(event)
            if len(pending) < depth:
                continue
            pending.popleft().synchronize()
        end = now()
        records.append((last, end - last, None))
        last = end
    stream.synchronize()
    return records


def take_turns(step, stream):
    for line in sys.stdin:
        start = now()
        for _ in range(int(line)):
            step()
        issued = now()
        stream.synchronize()
        print(now() - start, issued - start, flush=True)


def compare(step, stream, seconds):
    """Steps that bypass gsched beside steps that do not, in this process."""
    # struct bench_switch
    with open(os.environ["BENCH_SWITCH"], "r+b") as f:
        switch = mmap.mmap(f.fileno(), 24)
    if not struct.unpack_from("Q", switch, 16)[0]:
        sys.exit("BENCH_SWITCH: the interposer in this process is not bench/bypass's")

    def take(bypass):
        struct.pack_into("Q", switch, 0, bypass)
        start = now()
        step()
        issued = now()
        stream.synchronize()
        return now() - start, issued - start

    struct.pack_into("Q", switch, 8, 0)
    take(1)
    launches = struct.unpack_from("Q", switch, 8)[0]
    took = ([], [])
    until = time.monotonic() + seconds
    while time.monotonic() < until and not stopped:
        for bypass in random.choice(((0, 1), (1, 0))):
            took[bypass].append(take(bypass))
    print(json.dumps({"launches": launches, "gsched": took[0], "bypassed": took[1]}), flush=True)


def write_log(path, records):
    with open(path, "w", encoding="ascii") as f:
        for start, took, arrival in records:
            f.write(f"{start} {took}\n" if arrival is None else f"{start} {took} {arrival}\n")


def run(args, stream, new_event):
    make, graph, depth = LOADS[args.load]
    step = make()
    for _ in range(5):
        step()
    stream.synchronize()
    if graph:
        step = captured(step, stream)
        for _ in range(5):
            step()
        stream.synchronize()
    gc.collect()
    gc.freeze()
    gc.disable()
    wait_for_start(args.start)
    if args.role == "turns":
        take_turns(step, stream)
        return
    if args.role == "bypass":
        compare(step, stream, args.seconds)
        return
    if args.role == "request":
        records = serve(args, step, stream)
    else:
        records = work(step, stream, depth, new_event)
    write_log(args.log, records)
    print(json.dumps({"role": args.role, "load": args.load, "records": len(records)}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("role", choices=("request", "batch", "turns", "bypass"))
    parser.add_argument("load", choices=LOADS)
    parser.add_argument("--log")
    parser.add_argument("--start", help="work begins when this file exists")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--period-us", type=int, default=5000)
    parser.add_argument(
        "--open",
        action="store_true",
        help="requests arrive on schedule whatever became of the others",
    )
    parser.add_argument(
        "--poisson",
        type=int,
        metavar="SEED",
        help="requests arrive at random, with the period as mean",
    )
    parser.add_argument("--high-priority", action="store_true")
    args = parser.parse_args()
    if args.role in ("request", "batch") and not args.log:
        parser.error("--log: where to?")
    signal.signal(signal.SIGTERM, on_term)
    if args.load in WITHOUT_TORCH:
        run(args, Host(), None)
        return
    import torch

    torch.manual_seed(1)
    # PyTorch clamps the priority to the highest that it has streams for
    stream = torch.cuda.Stream(priority=-5 if args.high_priority else 0)
    with torch.cuda.stream(stream), torch.set_grad_enabled(args.load in TRAINING):
        run(args, stream, torch.cuda.Event)


if __name__ == "__main__":
    main()
