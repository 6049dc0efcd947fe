# SPDX-License-Identifier: LGPL-2.1-or-later
"""The experiments: which programs run together in which way, and the figures of a row."""

import contextlib
import dataclasses
import os
import shutil
import statistics
import time

import output
import report
import ways
import workloads
from procs import Program, RowFailed, now, tail

PRIORITY = {"request": {"gpu.priority": 10}, "batch": {}}


@dataclasses.dataclass
class Member:
    """One program of a row. @role is its group; only the one called request serves requests."""

    label: str
    role: str
    workload: workloads.Workload
    pace: workloads.Pace = None


class Bench:
    def __init__(self, session, args, data, changed):
        self.session = session
        self.args = args
        self.data = data
        self.changed = changed  # called after each row: keeps the results
        self.requests = workloads.requests(session.vgpu)
        self.batches = workloads.batches()
        self.prepared = {}
        self.failed_alone = {}
        self.broken_ways = {}  # how often each could not be set up
        self.planned_s = 0
        self.messages = {}  # what the programs of the last row wrote to stderr

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

    def cost_s(self, way, members, seconds):
        start = max(m.workload.cost_s for m in members) * (1 + 0.1 * (len(members) - 1))
        return way.cost_s + start + max(m.workload.settle_s for m in members) + seconds + 1

    def together(self, way, members, groups, seconds, hook=None):
        """Runs the programs together: (records by label, begin, end, what the way reports)."""
        session = self.session
        if self.broken_ways.get(way.name, 0) >= 2:
            raise RowFailed(f"{way.name} could not be set up twice")
        directory = session.directory("row")
        go = os.path.join(directory, "go")
        start_s = min(
            max(m.workload.start_limit_s for m in members), max(10, session.left_s() - seconds - 10)
        )
        with contextlib.ExitStack() as stack:
            stack.callback(shutil.rmtree, directory, ignore_errors=True)
            try:
                place = stack.enter_context(way.opened(session, groups))
            except RowFailed:
                self.broken_ways[way.name] = self.broken_ways.get(way.name, 0) + 1
                raise
            programs = []
            for m in members:
                argv = m.workload.argv(
                    session,
                    "request" if m.role == "request" else "batch",
                    os.path.join(directory, m.label + ".log"),
                    go,
                    m.pace,
                    way.high_priority and m.role == "request",
                )
                argv, env = way.start(session, place, m.role, argv)
                programs.append(Program(m.label, argv, env, directory, start_s + seconds + 60))
                stack.callback(programs[-1].kill)
            until = time.monotonic() + start_s
            for p in programs:
                while not p.ready():
                    if time.monotonic() > until:
                        raise RowFailed(f"{p.name} was not ready after {start_s:.0f} s")
                    time.sleep(0.02)
            with open(go, "wb"):
                pass
            time.sleep(
                max(m.workload.settle_s for m in members)
                if self.args.settle is None
                else self.args.settle
            )
            if hook:
                hook(place)
            begin = now()
            end = begin + int(seconds * 1e9)
            while now() < end:
                time.sleep(min(0.2, max(0.0, (end - now()) / 1e9)))
                for p in programs:
                    p.check()
            state = way.report(session, place)
            for p in programs:
                p.process.terminate()
            for p in programs:
                p.stop()
            self.messages = {p.name: tail(p.err) for p in programs if tail(p.err)}
            records = {}
            for m in members:
                try:
                    with open(os.path.join(directory, m.label + ".log"), encoding="ascii") as f:
                        records[m.label] = output.parse_log(f.read())
                except (OSError, ValueError, IndexError) as e:
                    raise RowFailed(f"{m.label}: no usable log: {e}") from None
        return records, begin, end, state

    def row(self, fields, way, members, measure):
        """One row: not again if it is there, failures kept with their reason. @measure: its figures."""
        key = "|".join(str(v) for v in fields.values())
        old = self.data["rows"].get(key)
        if old and old["status"] == "ok" and not self.args.again:
            return old
        record = dict(fields, status="ok", seconds=self.args.seconds)
        reason = None if self.args.plan else way.missing(self.session) or self.missing(members)
        cost_s = self.cost_s(way, members, self.args.seconds)
        if reason:
            record.update(status="skipped", reason=reason)
        elif self.args.plan:
            self.planned_s += cost_s
            print(f"{cost_s:5.0f} s  {key}")
            return record
        elif self.session.left_s() < cost_s:
            record.update(status="not run", reason="no time was left")
        else:
            print(f"# {key} ({cost_s:.0f} s)", flush=True)
            begun = time.monotonic()
            self.messages = {}
            try:
                for m in members:
                    self.prepare(m.workload)
                record.update(measure())
            except RowFailed as e:
                record.update(status="failed", reason=str(e))
            if self.messages:
                record["messages"] = self.messages
            record["took_s"] = round(time.monotonic() - begun, 1)
            print(f"#   {report.summary(record)}, {record['took_s']} s", flush=True)
        # a row that could not be taken again does not replace one that was
        if not (old and old["status"] == "ok" and record["status"] != "ok"):
            self.data["rows"][key] = record
            self.changed()
        return self.data["rows"][key]

    # Alone

    def latency_of(self, member, records, begin, end):
        pace = member.pace
        return output.latencies(
            records[member.label], begin, end, pace.period_us * 1000, pace.kind == "closed"
        )

    def alone(self, member):
        """What the program does by itself, measured once in a run."""
        request = member.role == "request"
        fields = {
            "experiment": "alone",
            "role": "request" if request else "batch",
            "program": member.workload.name,
            "pace": str(member.pace) if request else "",
            "way": "alone",
        }
        name = member.workload.name + fields["pace"]
        if name in self.failed_alone:
            raise RowFailed(self.failed_alone[name])
        way = ways.Way("alone")
        member = dataclasses.replace(member, label=member.workload.name)

        def measure():
            records, begin, end, _ = self.together(way, [member], {}, self.args.seconds)
            mine = records[member.label]
            if request:
                latency = self.latency_of(member, records, begin, end)
                if not latency["arrival"]:
                    raise RowFailed("no request in the window")
                return {"latency": latency}
            took = [r[1] for r in mine if begin <= r[0] < end]
            if not took:
                raise RowFailed("no step in the window: give more --seconds")
            return {"rate": output.rate(mine, begin, end), "step_ns": statistics.median(took)}

        record = self.row(fields, way, [member], measure)
        if record["status"] != "ok":
            self.failed_alone[name] = (
                f"{member.workload.name} alone: {record['status']}: {record['reason']}"
            )
            raise RowFailed(self.failed_alone[name])
        return record

    # One request beside batch programs

    def pair(self, copies=1):
        for request in self.args.request:
            workload, pace = self.requests[request]
            pace = workloads.Pace(self.args.pace or pace, workloads.Pace(pace).period_us)
            for batch in self.args.batch:
                members = [Member("request", "request", workload, pace)]
                members += [
                    Member(f"batch{i}" if copies > 1 else "batch", "batch", self.batches[batch])
                    for i in range(copies)
                ]
                for name in self.args.only:
                    self.pair_row(members, name, "three" if copies > 1 else "pair")

    def pair_row(self, members, name, experiment):
        way = ways.find(name, self.args.gschedd)
        request, batch = members[0], members[1]
        fields = {
            "experiment": experiment,
            "request": request.workload.name,
            "batch": batch.workload.name,
            "pace": str(request.pace),
            "way": name,
        }
        if self.args.plan:
            for m in (request, batch):
                if m.workload.name + (str(m.pace) if m is request else "") not in self.failed_alone:
                    self.failed_alone[m.workload.name + (str(m.pace) if m is request else "")] = (
                        "planned"
                    )
                    self.planned_s += self.cost_s(ways.Way("alone"), [m], self.args.seconds)

        def measure():
            alone, batch_alone = self.alone(request), self.alone(batch)
            records, begin, end, state = self.together(way, members, PRIORITY, self.args.seconds)
            latency = self.latency_of(request, records, begin, end)
            if not latency["arrival"]:
                raise RowFailed("no request in the window")
            each = [
                output.rate(records[m.label], begin, end) / batch_alone["rate"] for m in members[1:]
            ]
            return {
                "latency": latency,
                "keeps": sum(each),
                "each": each,
                "report": state,
                "p99_alone": latency["arrival"]["p99"] / alone["latency"]["arrival"]["p99"],
            }

        self.row(fields, way, members, measure)

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
            alone = self.alone(members[0])
            records, begin, end, state = self.together(way, members, groups, self.args.seconds)
            each = [output.rate(records[m.label], begin, end) / alone["rate"] for m in members]
            return {
                "each": each,
                "keeps": sum(each),
                "report": state,
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
            sms = (way.report(self.session, place) or {}).get("sms")
            if not sms:
                raise RowFailed("the status has no number of SMs")
            way.ctl(
                self.session, place, "group", "set", "batch", f"capsm.max={sms * percent / 100:g}"
            )
            time.sleep(0.5)

        def measure():
            alone = self.alone(member)
            records, begin, end, state = self.together(
                way, [member], {"batch": {}}, self.args.seconds, limit
            )
            mine = records["batch"]
            shares = output.windows(mine, begin, end, alone["rate"])
            if not shares:
                raise RowFailed("--seconds is below one second")
            burst, pause = output.bursts(mine, begin, end, alone["step_ns"])
            return {
                "mean": statistics.mean(shares),
                "min": min(shares),
                "max": max(shares),
                "burst_ms": burst / 1e6,
                "pause_ms": pause / 1e6,
                "report": state,
            }

        self.row(fields, way, [member], measure)

    # What gsched costs a program that is alone

    def overhead(self):
        members = []
        for name in self.args.request:
            workload, pace = self.requests[name]
            pace = workloads.Pace(self.args.pace or pace, workloads.Pace(pace).period_us)
            members.append(Member("request", "request", workload, pace))
        members += [Member("batch", "batch", self.batches[name]) for name in self.args.batch]
        for member in members:
            for repetition in range(self.args.reps):
                for name in ["native"] + [n for n in self.args.only if n != "native"]:
                    self.overhead_row(member, repetition, name)

    def overhead_row(self, member, repetition, name):
        way = ways.Way("native") if name == "native" else ways.find(name, self.args.gschedd)
        fields = {
            "experiment": "overhead",
            "role": member.role,
            "program": member.workload.name,
            "pace": str(member.pace) if member.pace else "",
            "repetition": repetition,
            "way": name,
        }

        def measure():
            records, begin, end, state = self.together(
                way, [member], {member.role: {}}, self.args.seconds
            )
            if member.role == "request":
                latency = self.latency_of(member, records, begin, end)
                if not latency["service"]:
                    raise RowFailed("no request in the window")
                return {"latency": latency, "report": state}
            return {"rate": output.rate(records[member.label], begin, end), "report": state}

        self.row(fields, way, [member], measure)
