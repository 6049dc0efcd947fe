# SPDX-License-Identifier: LGPL-2.1-or-later
"""The programs of a step, each of which checks its own results, and what they say alone."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

from procs import end, stacks


class Failed(Exception):
    """What is wrong after a step."""


FORMS = (
    "plain stream-many stream-non-blocking event-wait host-function threads-own-streams "
    "threads-one-stream ctx-several ctx-destroy-busy module-reload copy-async kernels-200 "
    "exit-busy exit-synchronize exit-launching threads-short signals tiny-2000"
).split()

# Errors that clients of NVIDIA's MPS get when another client of their server was killed: "MPS
# client failed to connect", "RPC failure", "server not ready" (it refuses clients until all that it
# has have ended), the two limits, "client terminated", and the faults that all of them share (an
# illegal address in 36 of 210 trials without gsched on an H200)
MPS_CLIENT_KILLED = {700, 719, 805, 806, 807, 808, 809, 810}
# and when the server itself is gone: "unknown error", too
MPS_SERVER_KILLED = MPS_CLIENT_KILLED | {999}
# and from calls that are making a context then, seen once each on an H100. gsched returns what the
# driver does from the second, and does not see the first
MPS_SERVER_KILLED_MAKING = {"cuCtxCreate": 1, "cuDevicePrimaryCtxRetain": 400}
MPS_SERVER_KILLED_SIMULATED = {806}


def environment(args):
    """Without gsched and without MPS."""
    keep = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER") if args.gpu else ()
    drop = ("GSCHED_", "CUDA_", "FORMS_", "FAULTS_")
    if not args.gpu:
        drop += ("VGPU_",)  # else the simulated one in the place of a real one has them
    env = {k: v for k, v in os.environ.items() if k in keep or not k.startswith(drop)}
    if not args.gpu:
        return env | {"VGPU_SMS": "8", "LD_LIBRARY_PATH": os.path.join(args.build, "vgpu")}
    env["FORMS_SCALE"] = str(args.scale)
    number = env.get("CUDA_VISIBLE_DEVICES", "")
    if number.isdigit():
        # an MPS server numbers its devices anew, so a number would mean another one to its clients
        env["CUDA_VISIBLE_DEVICES"] = said_by(
            ["nvidia-smi", "-i", number, "--query-gpu=uuid", "--format=csv,noheader"], env
        )
    return env


def said_by(argv, env):
    """The first line of a short command's output."""
    name = os.path.basename(argv[0])
    try:
        done = subprocess.run(
            argv,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as e:
        raise Failed(f"{name}: {e}") from None
    if done.returncode or not done.stdout.strip():
        raise Failed(f"{name}: status {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout.split("\n")[0].strip()


def commands(args, env):
    """The argv of each program. Alone they take a tenth of a second, on a GPU about a second."""
    batch = ["--blocks", "512", "--threads", "64", "--iters", "60", "--kernels"]
    latency = ["--blocks", "8", "--threads", "64", "--iters", "60", "--period-us", "4000"]
    kernels, requests = (12, 4), (60, 20)
    if args.gpu:
        # kernels of 20 waves of blocks that take 100 us each; requests of 50 us
        binary = os.path.join(args.build, "programs", "batch-drv")
        wave = int(said_by([binary, "--print-wave"], env))
        iters = int(said_by([binary, "--calibrate-us", "100"], env))
        batch = ["--blocks", str(20 * wave), "--iters", str(iters), "--kernels"]
        latency = ["--blocks", str(max(1, wave // 8)), "--iters", str(max(1, iters // 2))]
        latency += ["--period-us", "1000"]
        kernels, requests = (16 * args.scale, 8 * args.scale), (32 * args.scale, 16 * args.scale)
    latency.append("--requests")
    found = {
        "batch": ["programs/batch-drv", *batch, str(kernels[0])],
        "batch-short": ["programs/batch-drv", *batch, str(kernels[1])],
        "latency": ["programs/latency-drv", *latency, str(requests[0])],
        "waits": ["programs/latency-drv", *latency, str(requests[1])],
        **{f"drv {form}": ["forms/drv", form] for form in FORMS},
    }
    return {name: [os.path.join(args.build, a[0]), *a[1:]] for name, a in found.items()}


NAMES = ["batch", "batch-short", "latency", "waits", *(f"drv {form}" for form in FORMS)]


def output(name, text):
    """What of a program's output is the same every time."""
    if name.startswith("drv"):
        return text
    try:
        said = json.loads(text)
    except ValueError:
        return text
    return [said.get(key) for key in ("kernels", "requests", "checksum")]


class Program:
    """A program that runs in @directory; @prefix: what starts it under gsched."""

    def __init__(self, args, directory, env, prefix, name, label):
        self.name = name
        self.out, self.err = (os.path.join(directory, f"{n}{label}") for n in ("out", "err"))
        with open(self.out, "wb") as out, open(self.err, "wb") as err:
            self.process = subprocess.Popen(
                prefix + args.commands[name],
                env=env,
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        self.signals = set()

    def send(self, fault_signal):
        self.signals.add(fault_signal)
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.Signals[fault_signal])

    def is_connected(self):
        """It has a context, and thus the arbiter's page; or it has ended."""
        with contextlib.suppress(OSError):
            with open(f"/proc/{self.process.pid}/maps", encoding="utf-8", errors="replace") as f:
                return self.process.poll() is not None or "/memfd:gsched-arbiter" in f.read()
        return True

    def finish(self, until):
        try:
            self.process.wait(max(0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            text = f"{self.name} hangs; stacks:\n{stacks(self.process.pid)}"
            raise Failed(f"{text}output:\n{self.said(self.out)}{self.said(self.err)}") from None

    def said(self, path):
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read()

    def result(self):
        return self.process.returncode, output(self.name, self.said(self.out))

    def was_killed(self):
        return -self.process.returncode in {signal.Signals[s] for s in self.signals}

    def was_refused(self):
        """gschedctl did not start it."""
        lines = self.said(self.err).splitlines()
        refused = self.process.returncode == 1 and lines
        return refused and all(line.startswith("gschedctl: ") for line in lines)

    def error(self, codes):
        """Which of these errors of the driver, from which call, it ended with, or ""."""
        # the driver writes to the socket of a server that is gone (seen on an H200, in cuInit)
        if codes == MPS_SERVER_KILLED and self.process.returncode == -signal.SIGPIPE:
            return "SIGPIPE"
        for line in self.said(self.err).splitlines() if self.process.returncode == 1 else ():
            found = re.match(r"(\w+)(?:\(.*\))?: (?:result (\d+),|.*\((\d+)\)$)", line)
            code = int(found[2] or found[3]) if found else None
            making = codes == MPS_SERVER_KILLED and found and MPS_SERVER_KILLED_MAKING.get(found[1])
            if code and code in codes | {making}:
                return f"{found[1]}: error {code}"
        return ""

    def judge(self, want, no_arbiter):
        """@no_arbiter: gschedd had a fault, so that gschedctl may have found none."""
        status = self.process.returncode
        if self.was_killed() or (no_arbiter and self.was_refused()):
            return
        if self.name in ("latency", "waits") and "SIGTERM" in self.signals and not status:
            return  # it ends early
        if self.result() != want:
            text = self.said(self.out) + self.said(self.err)
            raise Failed(f"{self.name}: status {status}, alone {want}; output:\n{text}")


def alone(args, names):
    """Each program's status and output without gsched."""
    directory = tempfile.mkdtemp(prefix="faults-alone-")
    env = dict(args.env)
    if args.gpu:
        # empty, so that no MPS daemon of this machine takes part
        env["CUDA_MPS_PIPE_DIRECTORY"] = directory
    else:
        env["VGPU_NAME"] = "gsched-" + os.path.basename(directory)
    results = {}
    program = None
    try:
        args.commands = commands(args, env)
        for name in names:
            begun = time.monotonic()
            program = Program(args, directory, env, [], name, "")
            program.finish(begun + args.limit)
            results[name] = program.result()
            if results[name][0]:
                text = program.said(program.out) + program.said(program.err)
                raise Failed(f"{name} alone: status {results[name][0]}\n{text}")
            if args.verbose:
                print(f"# alone {time.monotonic() - begun:.2f} s: {name}", flush=True)
    finally:
        if program:
            end(program.process)
        if not args.gpu:
            with contextlib.suppress(OSError):
                os.unlink("/dev/shm/" + env["VGPU_NAME"])
        shutil.rmtree(directory, ignore_errors=True)
    return results
