# SPDX-License-Identifier: LGPL-2.1-or-later
"""Processes of a test: their ends, and where they are when they do not end."""

import contextlib
import os
import shutil
import signal
import subprocess


def stacks(group):
    """The stack of every thread of every process of the group."""
    text = ""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.getpgid(int(pid)) != group:
                continue
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                argv = f.read().replace(bytes(1), b" ").decode(errors="replace")
            text += f"process {pid}: {argv}\n"
        except OSError:
            continue
        if not shutil.which("gdb"):
            text += waits(pid)
            continue
        argv = ["gdb", "-p", pid, "-batch", "-ex", "thread apply all bt"]
        with contextlib.suppress(subprocess.TimeoutExpired):
            said = subprocess.run(
                argv,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=60,
                check=False,
            ).stdout
            for line in said.splitlines():
                if line.startswith(("Thread ", "#")):
                    text += line[:200] + "\n"
    return text


def waits(pid):
    """Where in the kernel each thread is: less than a stack, and needs no debugger."""
    text = ""
    for thread in sorted(os.listdir(f"/proc/{pid}/task"), key=int):
        with contextlib.suppress(OSError):
            where = {}
            for name in ("comm", "wchan", "syscall"):
                with open(f"/proc/{pid}/task/{thread}/{name}", encoding="utf-8") as f:
                    where[name] = f.read().strip()
            text += f"thread {thread} {where['comm']}: {where['wchan']}; call {where['syscall']}\n"
    return text


def end(process):
    """Kills a process that leads a group, and the group, and waits for it.

    Not for ever: one in a call of the GPU's driver may not end.
    """
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(60)
