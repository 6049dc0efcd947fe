# SPDX-License-Identifier: LGPL-2.1-or-later
"""The experiments: which programs run together in which way, and the figures of a row."""

import dataclasses
import statistics
import time

import output
import report
import running
import ways
import workloads
from procs import RowFailed
from running import BesideFailed, Member, WayFailed

PRIORITY = {"gpu.priority": 10}  # a request's group
ALONE = ways.Way("alone")


def key_of(fields):
    return "|".join(str(v) for v in fields.values())


def labels(word, n):
    """One program has the word itself."""
    return [word] if n == 1 else [f"{word}{i}" for i in range(n)]


def said(window):
    messages = {label: text for label, text in window.messages.items() if text}
    return {"messages": messages} if messages else {}


class Bench:
    def __init__(self, session, args, data, changed):
        self.session = session
        self.args = args
        self.data = data
        self.changed = changed  # called after each row: keeps the results
        self.requests = workloads.requests(session.vgpu)
        self.batches = workloads.batches()
        self.prepared = {}
        self.taken = set()  # keys of this run's rows, also of those that failed or are planned
        self.broken_ways = {}  # how often each could not be set up
        self.planned_s = 0

    def say(self, text):
        print(self.args.prefix + text, flush=True)

    # One row

    def missing(self, members):
        """Why one of the programs cannot be had here, or None."""
        for m in members:
            reason = m.workload.missing(self.session)
            if reason:
                return f"{m.workload.name}: {reason}"
        return None

    def prepare(self, workload):
        """Once for each program: RowFailed if it cannot run here."""
        if workload.name not in self.prepared:
            self.prepared[workload.name] = None
            try:
                workload.prepare(self.session, self.data["calibration"])
            except RowFailed as e:
                self.prepared[workload.name] = str(e)
        if self.prepared[workload.name]:
            raise RowFailed(f"{workload.name}: {self.prepared[workload.name]}")

    def run(self, way, groups, beside, turns, outcomes, hook=None):
        if self.broken_ways.get(way.name, 0) >= 2:
            raise RowFailed(f"{way.name} could not be set up twice")
        seconds, settle = self.args.seconds, self.args.settle
        try:
            running.run(
                self.session, way, groups, beside, turns, seconds, settle, outcomes, hook
            )
        except WayFailed:
            self.broken_ways[way.name] = self.broken_ways.get(way.name, 0) + 1
            raise

    def together(self, way, members, groups, hook=None):
        """The window of programs that all run."""
        outcomes = {}
        self.run(way, groups, members, [], outcomes, hook)
        return outcomes[None]

    def wanted(self, key):
        """Is the row to be measured in this run?"""
        old = self.data["rows"].get(key)
        measured = old and old["status"] == "ok" and not self.args.again
        return not measured and key not in self.taken and key not in self.args.known

    def begin(self, fields):
        return dict(fields, status="ok", seconds=self.args.seconds)

    def keep(self, record, fields):
        """A row that could not be taken again does not replace one that was."""
        key = key_of(fields)
        old = self.data["rows"].get(key)
        self.taken.add(key)
        if not (old and old["status"] == "ok" and record["status"] != "ok"):
            self.data["rows"][key] = record
            self.changed()

    def row(self, fields, way, members, measure):
        """One row: not again if it is there, failures kept with their reason.

        @measure: its window and figures.
        """
        key = key_of(fields)
        if not self.wanted(key):
            return self.data["rows"].get(key, fields | {"status": "planned", "reason": ""})
        record = self.begin(fields)
        reason = None if self.args.plan else way.missing(self.session) or self.missing(members)
        cost_s = running.cost_s(way, members, [], self.args.seconds)
        if reason:
            record.update(status="skipped", reason=reason)
        elif self.args.plan:
            self.plan(cost_s, key)
            self.taken.add(key)
            return record
        elif self.session.left_s() < cost_s:
            record.update(status="not run", reason="no time was left")
        else:
            self.say(f"# {key} ({cost_s:.0f} s)")
            begun = time.monotonic()
            try:
                for m in members:
                    self.prepare(m.workload)
                window, figures = measure()
                record.update(figures, **said(window))
            except RowFailed as e:
                record.update(status="failed", reason=str(e))
            record["took_s"] = round(time.monotonic() - begun, 1)
            self.say(f"#   {report.summary(record)}, {record['took_s']} s")
        self.keep(record, fields)
        return self.data["rows"][key]

    def plan(self, cost_s, what):
        self.planned_s += cost_s
        print(f"{cost_s:5.0f} s  {what}")

    # Several requests in turn

    def in_turns(self, what, way, beside, requests, fields, figures):
        """A row for each of @requests, one after another beside one run of @beside.

        @fields: of a member, its row's key; @figures: of a member and its window.
        """
        todo = [m for m in requests if self.wanted(key_of(fields(m)))]
        if not self.args.plan:
            reason = way.missing(self.session) or self.missing(beside)
            for m in list(todo):
                skipped = reason or self.missing([m])
                if skipped:
                    todo.remove(m)
                    self.unmeasured(fields(m), "skipped", skipped)
        for part in self.parts(todo):
            # each has a group of its own, whose priority is raised in its turn
            part = [
                dataclasses.replace(m, label=label, group=label)
                for m, label in zip(part, labels("request", len(part)))
            ]
            if self.args.plan:
                cost_s = running.cost_s(way, beside, part, self.args.seconds)
                self.plan(cost_s, f"{what}: {', '.join(m.named() for m in part)}")
                self.taken.update(key_of(fields(m)) for m in part)
            else:
                self.part(what, way, beside, part, fields, figures)

    def parts(self, members):
        """No more programs at once than wanted, none of which waits too long for its turn."""
        part, left_s = [], running.WAIT_S
        for m in members:
            left_s -= running.turn_s(m.workload, self.args.seconds)
            if part and (left_s < 0 or len(part) == (self.args.at_once or len(members))):
                yield part
                part = []
                left_s = running.WAIT_S - running.turn_s(m.workload, self.args.seconds)
            part.append(m)
        if part:
            yield part

    def unmeasured(self, fields, status, reason):
        self.keep(self.begin(fields) | {"status": status, "reason": reason}, fields)

    def prepared_ones(self, part, fields):
        ready = []
        for m in part:
            try:
                self.prepare(m.workload)
                ready.append(m)
            except RowFailed as e:
                self.unmeasured(fields(m), "failed", str(e))
        return ready

    def part(self, what, way, beside, part, fields, figures):
        part = self.prepared_ones(part, fields)
        while part and self.session.left_s() < running.cost_s(
            way, beside, part, self.args.seconds
        ):
            self.unmeasured(fields(part.pop()), "not run", "no time was left")
        groups = {m.group: {} for m in beside} | {m.group: PRIORITY for m in part}
        for again in (True, False):
            if not part:
                return
            cost_s = running.cost_s(way, beside, part, self.args.seconds)
            self.say(f"# {what}: {', '.join(m.named() for m in part)} ({cost_s:.0f} s)")
            error, outcomes = None, {}
            try:
                for m in beside:
                    self.prepare(m.workload)
                self.run(way, groups, beside, part, outcomes)
            except RowFailed as e:
                error = e
            finally:
                self.finish(part, outcomes, fields, figures)
            if not error:
                return
            part = [m for m in part if m.label not in outcomes]
            # a program beside them failed in somebody's turn: the others have another try
            culprit = error.label if again and isinstance(error, BesideFailed) else None
            for m in part:
                if culprit in (None, m.label):
                    self.say(f"#   {m.named()}: failed: {error}")
                    self.unmeasured(fields(m), "failed", str(error))
            part = [m for m in part if culprit not in (None, m.label)]

    def finish(self, part, outcomes, fields, figures):
        for m in part:
            if m.label not in outcomes:
                continue
            outcome, record = outcomes[m.label], self.begin(fields(m))
            try:
                if isinstance(outcome, RowFailed):
                    raise outcome
                record.update(figures(m, outcome), **said(outcome))
                record["took_s"] = round(outcome.took_s, 1)
            except RowFailed as e:
                record.update(status="failed", reason=str(e))
            self.say(f"#   {m.named()}: {report.summary(record)}")
            self.keep(record, fields(m))

    # Alone

    def latency_of(self, member, window):
        pace = member.pace
        latency = output.latencies(
            window.records[member.label],
            window.begin,
            window.end,
            pace.period_us * 1000,
            pace.kind == "closed",
        )
        if not latency["arrival"]:
            raise RowFailed("no request in the window")
        return latency

    def alone_fields(self, member):
        request = member.role == "request"
        return {
            "experiment": "alone",
            "role": "request" if request else "batch",
            "program": member.workload.name,
            "pace": str(member.pace) if request else "",
            "way": "alone",
        }

    def alone_requests(self, members):
        """What each does by itself, in turns beside nobody; once in a run."""

        def figures(member, window):
            return {"latency": self.latency_of(member, window)}

        self.in_turns("alone", ALONE, [], members, self.alone_fields, figures)

    def alone_batch(self, member):
        """The row of what a batch program does by itself, measured once in a run."""
        member = dataclasses.replace(member, label=member.workload.name)

        def measure():
            window = self.together(ALONE, [member], {})
            mine, begin, end = window.records[member.label], window.begin, window.end
            # also one that is longer than the window
            took = [r[1] for r in mine if r[0] < end and r[0] + r[1] > begin]
            if not took:
                raise RowFailed("no step in the window: give more --seconds")
            figures = {"rate": output.rate(mine, begin, end), "step_ns": statistics.median(took)}
            return window, figures

        return self.row(self.alone_fields(member), ALONE, [member], measure)

    def alone(self, member):
        """The figures of the row, or RowFailed."""
        if member.role == "request":
            record = self.data["rows"].get(key_of(self.alone_fields(member)))
        else:
            record = self.alone_batch(member)
        if not record or record["status"] != "ok":
            said = f"{record['status']}: {record['reason']}" if record else "not measured"
            raise RowFailed(f"{member.workload.name} alone: {said}")
        return record

    # Requests beside batch programs

    def request_members(self):
        members = []
        for text in self.args.request:
            name, pace = workloads.asked(text, self.args.pace, self.requests)
            members.append(Member("request", "request", self.requests[name][0], pace))
        return list({m.named(): m for m in members}.values())

    def sets(self):
        """(way, batch): settings of the same way last, else one batch program after another."""
        for sweep in (False, True):
            for batch in self.args.batch:
                for name in ways.in_order(self.args.only):
                    if ways.is_sweep(name) == sweep:
                        yield name, batch

    def set_cost_s(self, name, batch, copies):
        """About how long the set takes, and its batch program alone."""
        way, beside = ways.find(name), [Member("batch", "batch", self.batches[batch])] * copies
        seconds = self.args.seconds
        parts = self.parts(self.request_members())
        cost_s = sum(running.cost_s(way, beside, part, seconds) for part in parts)
        return cost_s, running.cost_s(ALONE, beside[:1], [], seconds)

    def pair(self, copies=1):
        requests = self.request_members()
        for name, batch in self.sets():
            if self.args.sets is None or f"{name}:{batch}" in self.args.sets:
                self.pair_set(name, batch, copies, requests)

    def pair_set(self, name, batch, copies, requests):
        way = ways.find(name, self.args.gschedd)
        beside = [
            Member(label, "batch", self.batches[batch]) for label in labels("batch", copies)
        ]
        experiment = "three" if copies > 1 else "pair"

        def fields(member):
            return {
                "experiment": experiment,
                "request": member.workload.name,
                "batch": batch,
                "pace": str(member.pace),
                "way": name,
            }

        def figures(member, window):
            latency, rate = self.latency_of(member, window), self.alone(beside[0])["rate"]
            alone = self.alone(member)["latency"]["arrival"]["p99"]
            begin, end = window.begin, window.end
            each = [output.rate(window.records[m.label], begin, end) / rate for m in beside]
            return {
                "latency": latency,
                "keeps": sum(each),
                "each": each,
                "report": window.state,
                "p99_alone": latency["arrival"]["p99"] / alone,
            }

        todo = [m for m in requests if self.wanted(key_of(fields(m)))]
        possible = self.args.plan or not (way.missing(self.session) or self.missing(beside))
        if todo and possible:
            self.alone_requests(requests)
            self.alone_batch(beside[0])
        if possible and not self.args.plan:
            for m in list(todo):
                try:
                    if not self.missing([m]):
                        self.alone(beside[0])
                        self.alone(m)
                except RowFailed as e:
                    todo.remove(m)
                    self.unmeasured(fields(m), "failed", str(e))
        what = f"{experiment} {name} {batch}"
        self.in_turns(what, way, beside, todo, fields, figures)

    def three(self):
        self.pair(copies=3)

    # Fair shares

    def ffs(self):
        for batch in self.args.batch:
            for weights in self.args.weights:
                for name in self.args.only:
                    self.ffs_row(self.batches[batch], weights, ways.find(name, self.args.gschedd))

    def ffs_row(self, workload, weights, way):
        members = [Member(f"p{i}", f"p{i}", workload) for i in range(len(weights))]
        groups = {f"p{i}": {"gpu.weight": w} for i, w in enumerate(weights)}
        fields = {
            "experiment": "ffs",
            "batch": workload.name,
            "weights": ":".join(map(str, weights)),
            "way": way.name,
        }

        def measure():
            alone = self.alone(members[0])["rate"]
            window = self.together(way, members, groups)
            begin, end = window.begin, window.end
            each = [output.rate(window.records[m.label], begin, end) / alone for m in members]
            return window, {
                "each": each,
                "keeps": sum(each),
                "report": window.state,
                "shares": [e / sum(each) if sum(each) else 0.0 for e in each],
            }

        self.row(fields, way, members, measure)

    # Quotas

    def quota(self):
        for batch in self.args.batch:
            for percent in self.args.quota:
                for name in self.args.only:
                    self.quota_row(self.batches[batch], percent, name)

    def quota_row(self, workload, percent, name):
        way = ways.find(f"mps-{percent}" if name == "mps" else name, self.args.gschedd)
        member = Member("batch", "batch", workload)
        fields = {"experiment": "quota", "batch": workload.name, "quota": percent, "way": name}

        def limit(place):
            if not isinstance(way, ways.Gsched):
                return
            sms = way.report(self.session, place, {"batch"}).get("sms")
            if not sms:
                raise RowFailed("the status has no number of SMs")
            way.change(self.session, place, "batch", {"capsm.max": f"{sms * percent / 100:g}"})
            time.sleep(0.5)

        def measure():
            alone = self.alone(member)
            window = self.together(way, [member], {"batch": {}}, limit)
            mine, begin, end = window.records["batch"], window.begin, window.end
            shares = output.windows(mine, begin, end, alone["rate"])
            if not shares:
                raise RowFailed("--seconds is below one second")
            burst, pause = output.bursts(mine, begin, end, alone["step_ns"])
            return window, {
                "mean": statistics.mean(shares),
                "min": min(shares),
                "max": max(shares),
                "burst_ms": burst / 1e6,
                "pause_ms": pause / 1e6,
                "report": window.state,
            }

        self.row(fields, way, [member], measure)

    # What gsched costs a program that is alone
