# SPDX-License-Identifier: LGPL-2.1-or-later
"""Programs that run together: some all the time, and beside them others, one after another."""

import contextlib
import dataclasses
import os
import shutil
import time

import output
import workloads
from procs import Program, RowFailed, Stopped, now, tail

# What a request's group has until its turn: the priority of the batch programs. Beside a waiting
# program that is as important, the measured one has 2 ms for its time slice, and its launches ask.
WAITING = {"gpu.priority": 0}
# Programs that are ready wait for 180 s at most; the rest is for those that load longer
WAIT_S = 100


@dataclasses.dataclass
class Member:
    """One program of a row. Only one with the role request serves requests."""

    label: str
    role: str
    workload: workloads.Workload
    pace: workloads.Pace = None
    group: str = None  # of gsched, the role's name if none is given

    def __post_init__(self):
        self.group = self.group or self.role

    def named(self):
        return self.workload.name + (f" {self.pace}" if self.pace else "")


@dataclasses.dataclass
class Window:
    """What was measured in one window."""

    begin: int
    end: int
    state: object  # what the way reports
    took_s: float
    records: dict = dataclasses.field(default_factory=dict)  # of each program, by label
    messages: dict = dataclasses.field(default_factory=dict)  # what they wrote to stderr


class BesideFailed(RowFailed):
    """A program that runs all the time failed, in the turn of @label (None: in nobody's)."""

    def __init__(self, text, label):
        super().__init__(text)
        self.label = label


class WayFailed(RowFailed):
    """The way of sharing could not be set up."""


def turn_s(workload, seconds):
    return workload.turn_settle_s + seconds + workload.stop_s


def cost_s(way, beside, turns, seconds):
    """About how long run() takes."""
    members = beside + turns
    start = max(m.workload.cost_s for m in members) * (1 + 0.1 * (len(members) - 1))
    settle = max([m.workload.settle_s for m in beside], default=0)
    windows = sum(turn_s(m.workload, seconds) for m in turns) if turns else seconds
    stop = max([m.workload.stop_s for m in beside], default=0)
    return way.cost_s() + start + settle + windows + stop + 0.5


class Run:
    """One start of all programs. @outcomes: by label, the Window or RowFailed of each turn."""

    def __init__(self, session, way, beside, turns, seconds, settle, outcomes):
        self.session = session
        self.way = way
        self.beside = beside
        self.turns = turns
        self.seconds = seconds
        self.settle = settle
        self.outcomes = outcomes
        self.directory = session.directory("row")
        self.programs = {}
        self.current = None  # label of the turn

    def path(self, member, kind):
        return os.path.join(self.directory, f"{member.label}.{kind}")

    def start(self, place, member, limit_s):
        argv = member.workload.argv(
            self.session,
            "request" if member.role == "request" else "batch",
            self.path(member, "log"),
            self.path(member, "go"),
            member.pace,
            self.way.high_priority and member.role == "request",
        )
        argv, env = self.way.start(self.session, place, member.group, argv)
        self.programs[member.label] = Program(member.label, argv, env, self.directory, limit_s)

    def go(self, member):
        with open(self.path(member, "go"), "wb"):
            pass

    def check_beside(self):
        for m in self.beside:
            try:
                self.programs[m.label].check()
            except RowFailed as e:
                raise BesideFailed(str(e), self.current) from None

    def fail(self, member, error):
        self.programs[member.label].kill()
        self.outcomes[member.label] = error

    def wait_ready(self, limit_s):
        loading = self.beside + self.turns
        until = time.monotonic() + limit_s
        while loading:
            for m in list(loading):
                program = self.programs[m.label]
                try:
                    if program.ready():
                        loading.remove(m)
                    elif time.monotonic() > until:
                        raise RowFailed(f"{m.label} was not ready after {limit_s:.0f} s")
                except RowFailed as e:
                    if m in self.beside:
                        raise BesideFailed(str(e), None) from None
                    self.fail(m, e)
                    loading.remove(m)
            time.sleep(0.02)

    def sleep(self, seconds):
        time.sleep(seconds if self.settle is None else self.settle)

    def window(self, place, groups, program=None):
        begin = now()
        end = begin + int(self.seconds * 1e9)
        while now() < end:
            time.sleep(min(0.2, max(0.0, (end - now()) / 1e9)))
            self.check_beside()
            if program:
                program.check()
        return Window(begin, end, self.way.report(self.session, place, groups), 0)

    def records(self, member):
        try:
            with open(self.path(member, "log"), encoding="ascii") as f:
                return output.parse_log(f.read())
        except (OSError, ValueError, IndexError) as e:
            raise RowFailed(f"{member.label}: no usable log: {e}") from None

    def turn(self, place, member, groups):
        program = self.programs[member.label]
        begun = time.monotonic()
        if len(self.turns) > 1:
            self.way.change(self.session, place, member.group, groups.get(member.group, {}))
        self.go(member)
        self.sleep(member.workload.turn_settle_s)
        own = {m.group for m in [member, *self.beside]}
        window = self.window(place, own, program)
        program.stop()
        window.records[member.label] = self.records(member)
        window.messages["request"] = tail(program.err)
        window.took_s = time.monotonic() - begun
        self.outcomes[member.label] = window

    def take_turns(self, place, groups):
        for m in self.turns:
            self.current = m.label
            if m.label in self.outcomes:
                continue
            try:
                self.check_beside()
                self.turn(place, m, groups)
            except BesideFailed:
                raise
            except RowFailed as e:
                # one that dies may take those beside it along: an MPS server ends for all clients
                time.sleep(0.5)
                try:
                    self.check_beside()
                except BesideFailed as b:
                    raise BesideFailed(f"{e}; {b}", m.label) from None
                self.fail(m, e)
        self.current = None

    def end_beside(self):
        """Ends what ran all the time, and gives each window their records."""
        for m in self.beside:
            self.programs[m.label].terminate()
        try:
            for m in self.beside:
                program = self.programs[m.label]
                program.stop()
                records = self.records(m)
                for window in windows_of(self.outcomes).values():
                    window.records[m.label] = records
                    window.messages[m.label] = tail(program.err)
        except RowFailed as e:
            raise BesideFailed(str(e), None) from None

    def run(self, groups, hook):
        members = self.beside + self.turns
        start_s = max(m.workload.start_limit_s for m in members) + 3 * len(members)
        most_s = sum(turn_s(m.workload, self.seconds) + 20 for m in self.turns) + self.seconds
        start_s = min(start_s, max(10, self.session.left_s() - self.seconds - 10))
        with contextlib.ExitStack() as stack:
            stack.callback(shutil.rmtree, self.directory, ignore_errors=True)
            try:
                place = stack.enter_context(self.way.opened(self.session, groups))
            except RowFailed as e:
                raise WayFailed(str(e)) from None
            for m in members:
                self.start(place, m, start_s + most_s + 60)
                stack.callback(self.programs[m.label].kill)
            self.wait_ready(start_s)
            if self.turns and len(self.outcomes) == len(self.turns):
                return
            for m in self.turns if len(self.turns) > 1 else ():
                self.way.change(self.session, place, m.group, WAITING)
            for m in self.beside:
                self.go(m)
            if self.beside:
                self.sleep(max(m.workload.settle_s for m in self.beside))
            if hook:
                hook(place)
            try:
                if self.turns:
                    self.take_turns(place, groups)
                else:
                    self.outcomes[None] = self.window(place, {m.group for m in self.beside})
            except Stopped:
                # what was measured until now counts
                try:
                    self.end_beside()
                except RowFailed:
                    forget_windows(self.outcomes)
                raise
            self.end_beside()


def windows_of(outcomes):
    return {label: o for label, o in outcomes.items() if isinstance(o, Window)}


def forget_windows(outcomes):
    for label in windows_of(outcomes):
        del outcomes[label]


def run(session, way, groups, beside, turns, seconds, settle, outcomes, hook=None):
    """Starts all programs at once. @beside run all the time, each of @turns in its own window.

    Without @turns there is one window, and its outcome's label is None. Where it raises RowFailed
    @outcomes has no windows, only what failed by itself.
    """
    try:
        Run(session, way, beside, turns, seconds, settle, outcomes).run(groups, hook)
    except RowFailed:
        forget_windows(outcomes)
        raise
