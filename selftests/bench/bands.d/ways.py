# SPDX-License-Identifier: LGPL-2.1-or-later
"""Ways of sharing the GPU. Each sets itself up, starts programs, and leaves nothing behind."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import time

from procs import Program, RowFailed, tail

# The order of measuring and of tables: a run that is cut short has what is most worth comparing
PAIR = [
    "gsched",
    "gsched-bands",
    "gsched-one",
    "time-slicing",
    "mps-priority",
    "mps",
    "mps-50",
    "mps-75",
    "mps-88",
]


def is_request(group):
    """Requests that take turns have a group each: request0, request1, ..."""
    return group.startswith("request")


def is_sweep(name):
    """One of several settings of the same way, of least interest by itself."""
    return re.fullmatch(r"mps.*-\d+", name) is not None


def in_order(names):
    """As in PAIR; others behind those of the same kind."""
    known = {name: i for i, name in enumerate(PAIR)}
    return sorted(names, key=lambda name: (is_sweep(name), known.get(name, len(PAIR))))


class Way:
    """Two processes, nothing set."""

    high_priority = False  # the request's streams

    def __init__(self, name):
        self.name = name

    def cost_s(self):
        """About how long it takes to set up."""
        return 0

    def missing(self, session):
        """Why this way cannot be had here, or None."""
        return None

    @contextlib.contextmanager
    def opened(self, session, roles):
        """What runs beside the programs; @roles: the groups' files by role. Gives what start() takes."""
        yield None

    def start(self, session, place, role, argv):
        """(argv, environment) of a program of this role."""
        return argv, session.env

    def change(self, session, place, group, files):
        """Sets files of a group while its programs run."""

    def report(self, session, place, groups):
        """What the way itself says of programs of @groups while they run."""
        return None


class Mps(Way):
    """NVIDIA's MPS; request streams at high priority and a share for batch programs, if wanted."""

    def __init__(self, name, high_priority, percent):
        super().__init__(name)
        self.high_priority = high_priority
        self.percent = percent

    def cost_s(self):
        return 2

    def missing(self, session):
        if session.vgpu:
            return "the simulated GPU has no MPS daemon"
        if not shutil.which("nvidia-cuda-mps-control"):
            return "nvidia-cuda-mps-control is not in PATH"
        return None

    @contextlib.contextmanager
    def opened(self, session, roles):
        place = session.directory("mps")
        env = dict(
            session.env,
            CUDA_MPS_PIPE_DIRECTORY=os.path.join(place, "pipe"),
            CUDA_MPS_LOG_DIRECTORY=os.path.join(place, "log"),
        )
        os.mkdir(env["CUDA_MPS_PIPE_DIRECTORY"], 0o700)
        os.mkdir(env["CUDA_MPS_LOG_DIRECTORY"], 0o700)
        try:
            # the daemon keeps what it inherits: no pipes of ours, on whose end we would wait
            try:
                rc = subprocess.run(
                    ["nvidia-cuda-mps-control", "-d"],
                    env=env,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    timeout=20,
                    check=False,
                ).returncode
            except subprocess.TimeoutExpired:
                raise RowFailed("nvidia-cuda-mps-control -d took longer than 20 s") from None
            if rc:
                raise RowFailed(f"nvidia-cuda-mps-control -d: status {rc}")
            yield env
        finally:
            try:
                session.call(["nvidia-cuda-mps-control"], env, limit_s=20, stdin="quit\n")
            except RowFailed:
                pass  # Session.sweep() ends what did not end so
            until = time.monotonic() + 10
            while session.leftovers() and time.monotonic() < until:
                time.sleep(0.05)
            session.sweep()
            shutil.rmtree(place, ignore_errors=True)

    def start(self, session, place, role, argv):
        env = dict(place)
        if self.percent and not is_request(role):
            env["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = str(self.percent)
        return argv, env


class Gsched(Way):
    """gsched with the embedded arbiter; @bands: the band of each role, None without MPS."""

    def __init__(self, name, bands=None, policy=None, options=()):
        super().__init__(name)
        self.bands = bands
        self.options = (
            list(options) + (["--policy", policy] if policy else []) + (["--mps"] if bands else [])
        )

    def cost_s(self):
        return 3 if self.bands else 1

    def band(self, group):
        """Its gpu.band; None: each program of it has one of its own, without MPS."""
        return self.bands["request" if is_request(group) else "batch"]

    def missing(self, session):
        for tool in ("gschedd", "gschedctl"):
            if not os.access(session.binary("bin", tool), os.X_OK):
                return f"{session.binary('bin', tool)} is not built: make all"
        if not self.bands:
            return None
        if session.vgpu:
            return "the simulated GPU has no MPS daemon"
        if not shutil.which("nvidia-cuda-mps-control"):
            return "nvidia-cuda-mps-control is not in PATH"
        if "--mps" not in session.call([session.binary("bin", "gschedd"), "--help"]):
            return "this gschedd has no --mps"
        return None

    def ctl(self, session, place, *argv):
        return session.call(
            [session.binary("bin", "gschedctl"), "--socket", place["socket"], *argv],
            place["env"],
            limit_s=20,
        )

    def change(self, session, place, group, files):
        if files:
            text = [f"{k}={v}" for k, v in files.items()]
            self.ctl(session, place, "group", "set", group, *text)

    @contextlib.contextmanager
    def opened(self, session, roles):
        directory = session.directory("gsched")
        socket = os.path.join(directory, "sock")
        # one for all rows: what was rewritten once stays so
        cache = os.path.join(session.tmp, "cache")
        os.makedirs(cache, 0o700, exist_ok=True)
        env = dict(session.env, GSCHED_SOCKET=socket)
        if self.bands:
            del env["CUDA_MPS_PIPE_DIRECTORY"]  # gschedd says where its servers are
        argv = [
            session.binary("bin", "gschedd"),
            "--embedded",
            "--socket",
            socket,
            "--cache",
            cache,
            *self.options,
        ]
        if self.bands:
            # not the system's, which another gschedd may use, for another GPU
            argv += ["--mps-dir", os.path.join(directory, "mps")]
        if session.vgpu:
            argv += ["--driver", session.binary("vgpu", "libcuda.so.1")]
        daemon = Program("gschedd", argv, env, directory, 600)
        place = {"socket": socket, "env": env, "log": daemon.err}
        try:
            until = time.monotonic() + 20
            while not os.path.exists(socket):
                daemon.check()
                if time.monotonic() > until:
                    raise RowFailed("gschedd has no socket after 20 s")
                time.sleep(0.01)
            for role, files in roles.items():
                self.ctl(session, place, "group", "create", role)
                files = dict(files)
                if self.bands and self.band(role):
                    files["gpu.band"] = self.band(role)
                self.change(session, place, role, files)
            yield place
        except RowFailed as e:
            said = tail(daemon.err)
            raise RowFailed(
                f"{e}; gschedd: {said}" if said and said not in str(e) else str(e)
            ) from None
        finally:
            try:
                daemon.stop()
            except RowFailed:
                pass  # its end does not change what was measured
            daemon.kill()
            session.sweep()
            shutil.rmtree(directory, ignore_errors=True)

    def start(self, session, place, role, argv):
        return [
            session.binary("bin", "gschedctl"),
            "--socket",
            place["socket"],
            "run",
            "--strict",
            "--group",
            role,
            "--",
            *argv,
        ], place["env"]

    def device(self, session, place):
        return json.loads(self.ctl(session, place, "status", "--json"))["devices"][0]

    def report(self, session, place, groups):
        """The device's mode, the bands, and how each client's launches were managed."""
        try:
            device = self.device(session, place)
        except (RowFailed, ValueError, LookupError) as e:
            return {"error": str(e), "log": tail(place["log"])}
        drop = ("slots", "pid")
        clients = [c for c in device.get("clients", []) if c.get("group") in groups]
        used = {c.get("band") for c in clients}
        keys = ("mode", "policy", "sms", "bands", "unmanaged")
        found = {k: device[k] for k in keys if k in device}
        if "bands" in found:
            found["bands"] = [b for b in found["bands"] if b.get("name") in used]
        found["clients"] = [{k: v for k, v in c.items() if k not in drop} for c in clients]
        return found | {"log": tail(place["log"])}


def find(name, options=()):
    """The way of this name; @options: more of gschedd's. ValueError if there is none."""
    m = re.fullmatch(r"mps(-priority)?(?:-(\d\d?|100))?", name)
    if m:
        return Mps(name, bool(m[1]), int(m[2]) if m[2] else None)
    if name in ("alone", "time-slicing"):
        return Way(name)
    m = re.fullmatch(r"gsched(-bands|-one)?(?:-(ffs|hpf))?", name)
    if m:
        bands = {
            None: None,
            "-bands": {"request": None, "batch": "b"},
            "-one": {"request": "a", "batch": "a"},
        }[m[1]]
        return Gsched(name, bands, m[2], options)
    raise ValueError(
        f"no way of sharing {name}: alone time-slicing mps[-priority][-PERCENT] gsched[-bands|-one][-POLICY]"
    )
