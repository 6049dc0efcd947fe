# SPDX-License-Identifier: LGPL-2.1-or-later
"""One resident program a kernel in one way of sharing, and launches of several together."""

import contextlib
import json
import statistics
import subprocess
import time

from procs import Resident, RowFailed, now

READY_S = 90
ANSWER_S = 30
END_S = 10
AHEAD_NS = 3_000_000  # from a command to the first launch
REST_S = 0.03  # between launches that are measured; SMs held for a recurring kernel are free again
LATE_NS = 100_000  # launches that much behind their time count only if there are no others
WARM_UP = 16  # launches at most until the twin is used


class Place:
    """Programs that wait for commands.

    A label is "low-nn" or "high-nn": under gsched, a group and a program in it. In the other ways
    both are one program.
    """

    def __init__(self, session, way, programs, setup, high):
        self.session = session
        self.way = way
        self.programs = programs
        self.setup = setup  # what the way gave
        self.high = high  # is there a program for each label, that is, is this gsched?
        self.owed = {}  # answers that were not read yet, by program
        self.raised = None
        self.rates = {}  # kernels a second of a program by itself, by label and size
        self.twins = {}  # label: {"first": launch with a twin or None, "us": by size}

    def program(self, label):
        name = label if self.high else label.partition("-")[2]
        if name not in self.programs:
            raise RowFailed(f"{name} did not start")
        return self.programs[name]

    def tell(self, label, text):
        program = self.program(label)
        program.tell(text)
        self.owed[program] = self.owed.get(program, 0) + 1

    def heard(self, label, limit_s=ANSWER_S):
        program = self.program(label)
        line = program.hear(limit_s)
        self.owed[program] -= 1
        try:
            return json.loads(line)
        except ValueError:
            raise RowFailed(f"{label}: no JSON: {line[:80]!r}") from None

    def settle(self):
        """After a failure: takes the answers that nobody took. RowFailed if one does not come."""
        for name, program in self.programs.items():
            while self.owed.get(program, 0):
                program.hear(ANSWER_S)
                self.owed[program] -= 1
            if program.process.poll() is not None:
                raise RowFailed(f"{name} ended")
        self.raised = None

    def once(self, label, grid):
        """us of one launch by itself."""
        self.tell(label, f"at 0 0 {grid[0]} {grid[1]} {grid[2]}")
        answer = self.heard(label)
        return (answer["end"] - answer["begin"]) / 1000

    def several(self, label, grid, n):
        """Median us of @n launches, after one that does not count."""
        self.once(label, grid)
        return statistics.median(self.once(label, grid) for _ in range(n))

    def together(self, launches):
        """One launch each of [(label, grid, after_us, high)].

        (their begins and ends in us, whether all began in time)
        """
        base = now() + AHEAD_NS
        for label, grid, after_us, high in launches:
            at = base + int(after_us * 1000)
            self.tell(label, f"at {at} {int(high)} {grid[0]} {grid[1]} {grid[2]}")
        answers = [self.heard(label) for label, _, _, _ in launches]
        late = max(a["begin"] - base - 1000 * l[2] for a, l in zip(answers, launches))
        times = [((a["begin"] - base) / 1000, (a["end"] - base) / 1000) for a in answers]
        return times, late <= LATE_NS

    def loops(self, programs, seconds, meanwhile=None):
        """All of [(label, grid, period_us)] launch for @seconds: what each says."""
        begin = now() + AHEAD_NS
        end = begin + int(seconds * 1e9)
        for label, grid, period_us in programs:
            size = f"{grid[0]} {grid[1]} {grid[2]}"
            self.tell(label, f"loop {begin} {end} {int(period_us * 1000)} 0 {size}")
        extra = meanwhile(begin, end) if meanwhile else None
        return [self.heard(label, ANSWER_S + seconds) for label, _, _ in programs], extra

    def set(self, label, **files):
        """Files of the label's group; _ stands for a point."""
        if self.high:
            files = {k.replace("_", ".", 1): v for k, v in files.items()}
            self.way.change(self.session, self.setup, label, files)

    def prefer(self, label):
        """The one program that is more important than all others."""
        if label != self.raised:
            if self.raised:
                self.set(self.raised, gpu_priority=0)
            self.raised = None
            if label:
                self.set(label, gpu_priority=10)
                self.raised = label

    def device(self, **files):
        if self.high:
            text = [f"{k}={v}" for k, v in files.items()]
            self.way.ctl(self.session, self.setup, "device", "set", *text)

    def client(self, label):
        for client in self.way.device(self.session, self.setup).get("clients", []):
            if client.get("group") == label:
                return client
        raise RowFailed(f"{label} is no client of gschedd")

    def stat(self, label, key):
        text = self.way.ctl(self.session, self.setup, "group", "get", label, "gpu.stat")
        for line in text.splitlines():
            if line.startswith(key + " "):
                return int(line.split()[1])
        raise RowFailed(f"no {key} in gpu.stat of {label}")

    def warm_up(self, label, grids):
        """Launches each of {size: grid} until a twin is used, or it is clear that none will be."""
        if not self.high:
            for grid in grids.values():
                self.several(label, grid, 2)
            return
        first, used = None, 0
        for n in range(WARM_UP):
            us = {size: self.once(label, grid) for size, grid in grids.items()}
            was, used = used, self.client(label)["managed"]["block"]
            if used > was:
                first = n if first is None else first
                if n >= first + 3:
                    break
            elif n >= (5 if label.startswith("high-") else 8):
                break  # too short for a twin, or fits the device
        self.twins[label] = {"first": first, "us": us}


def close(programs):
    """All at once, in order: a client of MPS that is killed may take others along."""
    for program in programs.values():
        with contextlib.suppress(OSError):
            program.process.stdin.close()
    until = time.monotonic() + END_S
    for program in programs.values():
        with contextlib.suppress(subprocess.TimeoutExpired):
            program.process.wait(max(0.01, until - time.monotonic()))
        program.end()


@contextlib.contextmanager
def opened(session, way, table, labels, tree, failed):
    """A Place with a program for each label. @failed is told of those that do not start."""
    high = hasattr(way, "ctl")
    groups = {l: {"gpu.priority": 10} if l.startswith("high-") else {} for l in labels}
    names = list(dict.fromkeys(labels if high else [l.partition("-")[2] for l in labels]))
    reason = way.missing(session)
    if reason:
        raise RowFailed(reason)
    with contextlib.ExitStack() as stack:
        setup = stack.enter_context(way.opened(session, groups if high else {}))
        programs = {}
        for name in names:
            kernel = table[name.rpartition("-")[2]]
            argv, env = way.start(session, setup, name, kernel.argv(session, tree))
            programs[name] = Resident(session, name, argv, env)
        ready = {}
        stack.callback(close, programs)
        until = time.monotonic() + READY_S
        for name, program in programs.items():
            try:
                found = json.loads(program.hear(max(1, until - time.monotonic())))
            except (RowFailed, ValueError) as e:
                failed(str(e))
                continue
            kernel = table[name.rpartition("-")[2]]
            kernel.sms, kernel.per_sm = found["sms"], found["per_sm"]
            ready[name] = program
        if not ready:
            raise RowFailed("no program started")
        place = Place(session, way, ready, setup, high)
        # its stream has a priority now; until its turn it is one of many
        for label in labels:
            if high and label.startswith("high-"):
                place.set(label, gpu_priority=0)
        yield place
