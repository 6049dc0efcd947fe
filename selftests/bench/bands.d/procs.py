# SPDX-License-Identifier: LGPL-2.1-or-later
"""Processes of the benchmark: every one has a time limit, and none outlives the run."""

import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
import uuid

# In the environment of everything that this run starts, so that it can be found again
MARK = "GSCHED_BENCH_RUN"


class RowFailed(Exception):
    """This row of the table cannot be measured; the text says why."""


class Stopped(Exception):
    """The run was told to end."""


def now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def tail(path, lines=4):
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            return " / ".join(
                line.strip() for line in f.read().splitlines()[-lines:] if line.strip()
            )
    except OSError:
        return ""


def first_line(argv, cwd=None):
    """Of the output, empty if the command fails."""
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, timeout=30, cwd=cwd, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    text = done.stdout.strip()
    return text.splitlines()[0] if not done.returncode and text else ""


class Program:
    """A program under timeout(1), with its output in files."""

    def __init__(self, name, argv, env, directory, limit_s):
        self.name = name
        self.out = os.path.join(directory, name + ".out")
        self.err = os.path.join(directory, name + ".err")
        # --foreground: otherwise timeout(1) signals the program twice, alone and with its group
        argv = ["timeout", "--foreground", "-k", "10", str(int(limit_s) + 1), *map(str, argv)]
        self.terminated = False
        with open(self.out, "wb") as out, open(self.err, "wb") as err:
            self.process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=env,
                start_new_session=True,
            )

    def check(self):
        rc = self.process.poll()
        if rc is not None:
            raise RowFailed(f"{self.name} ended with status {rc}: {tail(self.err)}")

    def ready(self):
        self.check()
        with open(self.out, "rb") as f:
            return b'"ready"' in f.read(65536)

    def terminate(self):
        """SIGTERM, once: a second one could end the program before it has written its log."""
        if not self.terminated and self.process.poll() is None:
            self.process.terminate()
        self.terminated = True

    def stop(self, limit_s=20):
        """Ends it in order, so that it writes its log."""
        self.terminate()
        try:
            rc = self.process.wait(limit_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise RowFailed(f"{self.name} did not end within {limit_s} s of SIGTERM") from None
        if rc:
            raise RowFailed(f"{self.name} ended with status {rc}: {tail(self.err)}")

    def kill(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            pass


class Resident:
    """A program that stays and answers commands, a line each on its standard input and output."""

    def __init__(self, session, name, argv, env):
        self.name = name
        self.err = os.path.join(session.directory("resident"), "err")
        self.rest = b""
        with open(self.err, "wb") as err:
            self.process = subprocess.Popen(
                [str(a) for a in argv],
                env=env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=err,
            )

    def tell(self, text):
        try:
            self.process.stdin.write(text.encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            raise RowFailed(f"{self.name} ended: {tail(self.err)}") from None

    def hear(self, limit_s):
        """The next line of its output."""
        until = time.monotonic() + limit_s
        while b"\n" not in self.rest:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                raise RowFailed(f"{self.name}: no answer in {limit_s} s: {tail(self.err)}")
            more = os.read(self.process.stdout.fileno(), 65536)
            if not more:
                raise RowFailed(f"{self.name} ended: {tail(self.err)}")
            self.rest += more
        line, self.rest = self.rest.split(b"\n", 1)
        return line

    def end(self):
        """Not for ever: one in a call of the GPU's driver may not end."""
        self.process.kill()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            pass
        for pipe in (self.process.stdin, self.process.stdout):
            try:
                pipe.close()
            except OSError:
                pass


class Session:
    """What the whole run shares: directories, environment, time."""

    def __init__(self, build, vgpu, budget_s):
        self.build = os.path.abspath(build)
        self.vgpu = vgpu
        self.begun = time.monotonic()
        self.budget_s = budget_s
        # not below --out: that may be a shared file system, where sockets cannot be
        self.tmp = tempfile.mkdtemp(prefix="gsched-bench-")
        self.mark = uuid.uuid4().hex
        self.env = {
            k: v
            for k, v in os.environ.items()
            if not k.startswith(("GSCHED_", "CUDA_MPS_", "VGPU_")) and k != "LD_PRELOAD"
        }
        self.env[MARK] = self.mark
        # empty, so that no MPS daemon of this machine takes part
        self.env["CUDA_MPS_PIPE_DIRECTORY"] = self.directory("no-mps")
        if vgpu:
            self.env["VGPU_NAME"] = f"gsched-bench-{os.getpid()}-{self.mark[:8]}"
            self.env["VGPU_SMS"] = "8"
            self.env["LD_LIBRARY_PATH"] = os.path.join(self.build, "vgpu")

    def left_s(self):
        return self.budget_s - (time.monotonic() - self.begun) if self.budget_s else float("inf")

    def directory(self, prefix):
        return tempfile.mkdtemp(prefix=prefix + "-", dir=self.tmp)

    def binary(self, *parts):
        return os.path.join(self.build, *parts)

    def call(self, argv, env=None, limit_s=60, stdin=""):
        """Runs a short command; its output, or RowFailed with what it said."""
        argv = [str(a) for a in argv]
        name = os.path.basename(argv[0])
        try:
            done = subprocess.run(
                argv,
                env=env or self.env,
                input=stdin,
                capture_output=True,
                text=True,
                timeout=limit_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise RowFailed(f"{name} took longer than {limit_s} s") from None
        except OSError as e:
            raise RowFailed(f"{name}: {e.strerror}") from None
        if done.returncode:
            raise RowFailed(
                f"{' '.join([name] + argv[1:4])}: status {done.returncode}: {done.stderr.strip()[-300:]}"
            )
        return done.stdout

    def leftovers(self):
        """Processes that this run started and that are still there, by its mark in their environment."""
        mark = f"{MARK}={self.mark}".encode()
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as f:
                    if mark in f.read().split(b"\0"):
                        found.append(int(pid))
            except OSError:
                pass
        return found

    def sweep(self):
        """Ends whatever a row left behind."""
        for sig, limit_s in ((signal.SIGTERM, 5), (signal.SIGKILL, 5)):
            until = time.monotonic() + limit_s
            for pid in self.leftovers():
                try:
                    os.kill(pid, sig)
                except OSError:
                    pass
            while time.monotonic() < until:
                if not self.leftovers():
                    return
                time.sleep(0.05)

    def close(self):
        self.sweep()
        if self.vgpu:
            try:
                os.unlink("/dev/shm/" + self.env["VGPU_NAME"])
            except OSError:
                pass
        shutil.rmtree(self.tmp, ignore_errors=True)
