"""Keeps the web server and the clusters running, and ends them for certain.

One loop in one thread: it looks at the children every TICK_S, at all processes every LOOK_S, starts again what fell, and
on SIGINT, SIGTERM or SIGHUP stops everything in bounded time (a second signal: at once).
"""

import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from django.conf import settings
from django.db import connection

from agents.devices.host import process_start, runtime_dir
from agents.engine.runner import DRAIN_S
from agents.masks.values import mask_text
from project.private_files import close_to_others
from project.up.children import SupervisedChild
from project.up.hindrances import DATABASE_ERRORS, Hindrances
from project.up.instance import Instance, InstanceRecord
from project.up.processes import MARK, Identity, Look, end_processes, find_marked, is_alive, read_processes, with_descendants
from project.up.retired import RetiredRunners
from project.up.watchdog import CanaryProbe, RunnersProbe, WebProbe

TICK_S = 0.1
LOOK_S = 0.5
"""Between two looks at all processes: what the record may miss of a sudden end."""
STOP_WEB_S = 5.0
STOP_JOBS_S = 10.0
STOP_RUNNERS_S = DRAIN_S + 5.0
"""A runner gives its running steps DRAIN_S, and then records how they ended."""
DATABASE_WAIT_S = 5
"""An `up` that waits longer for SQLite's lock would be late for everything else."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Say = Callable[[str], None]


class ChildBroken(Exception):
    """A child fell again and again before it ever worked."""


class Supervisor:
    """Runs `children` under the lock that `instance` holds; `say` gets one line for each thing a person should know."""

    def __init__(self, instance: Instance, children: Sequence[SupervisedChild], say: Say, address: str = ""):
        self.instance, self.children, self._say, self.address = (
            instance,
            list(children),
            lambda line: say(mask_text(line)),
            address,
        )
        self._me = Identity(os.getpid(), process_start())
        self._seen: Look = {}
        self._look_at = 0.0
        self._signals = 0
        self._hindrances = Hindrances(say)

    @property
    def is_ready(self) -> bool:
        return all(child.probe.ready for child in self.children)

    def run(self, each: Callable[[], int | None] = lambda: None) -> int:
        """Serve until a signal comes, or `each`, called every TICK_S, returns an exit code. Raises ChildBroken."""
        with self._signals_counted():
            try:
                self.start()
                while not self._signals:
                    now = time.monotonic()
                    self.tick(now)
                    try:
                        if (code := each()) is not None:
                            return code
                    except (*DATABASE_ERRORS, OSError) as error:
                        self._hindrances.met(error, now)
                    time.sleep(TICK_S)
                return 0
            finally:
                self.stop()

    @contextmanager
    def _signals_counted(self) -> Iterator[None]:
        def count(signum, frame) -> None:
            self._signals += 1

        before = {signum: signal.signal(signum, count) for signum in SIGNALS}
        try:
            yield
        finally:
            for signum, handler in before.items():
                signal.signal(signum, handler)

    def start(self) -> None:
        for child in self.children:
            child.begin_log()

    def tick(self, now: float) -> None:
        """One look at everything."""
        if now >= self._look_at:
            self._look_at = now + LOOK_S
            self._look(now)
        for child in self.children:
            child.look_at_retired(now, child.process is not None and child.probe.ready)
            if child.process is None and now >= child.start_at:
                try:
                    child.start(now)
                except OSError as error:
                    self._hindrances.met(error, now)
                    child.start_at = now + LOOK_S
                self._look_at = now  # into the record at once
            elif child.process is None:
                continue
            elif trouble := self._trouble(child, now):
                self._repair(child, trouble, now)
            elif child.probe.ready and not child.is_announced:
                child.was_ready = child.is_announced = True
                self._say(f"{child.name:<8} ready")

    def _look(self, now: float) -> None:
        self._seen = read_processes()
        processes = set[Identity]().union(*(child.remember(self._seen) for child in self.children))
        try:
            self.instance.write(InstanceRecord(self._me, self.address, processes))
            for child in self.children:
                child.bound_log()
        except OSError as error:
            self._hindrances.met(error, now)
            return
        if self._hindrances.look(now):
            for child in self.children:
                child.excused(now)

    def _trouble(self, child: SupervisedChild, now: float) -> str:
        code, trouble = child.exit_code(), ""
        if code is not None:
            return f"ended with signal {-code}" if code < 0 else f"ended with code {code}"
        if child.has_orphans(self._seen):
            return "some of its processes have outlived their parent"
        try:
            trouble = child.probe.look(now, child.cluster(self._seen))
        except DATABASE_ERRORS as error:
            self._hindrances.met(error, now)
        # Whether a child works cannot be known without the database, or room, so nobody is judged until it is back.
        return "" if self._hindrances else trouble

    def _repair(self, child: SupervisedChild, trouble: str, now: float) -> None:
        """End what does not work. What does goes on until the child that is started next can take its place."""
        self._say(f"{child.name}: {trouble}; it will be started again")
        for line in child.last_lines():
            self._say(f"  | {line}")
        working = {one for one in child.probe.at_work(child.cluster(read_processes())) if is_alive(one)}
        child.kill(but=working | child.retired_runners())
        if working:
            child.retired.append(RetiredRunners(working, now))
        delay = child.fell(now)
        if child.is_broken and not self._hindrances:
            raise ChildBroken(f"{child.name} does not start; its output is in {child.log}")
        self._say(f"{child.name}: next start in {delay:g} s")

    def stop(self) -> None:
        """End everything: first asked, then killed; a second signal cuts the asking short."""
        self._say("Stopping. Ctrl-C again ends everything at once.")
        began, signals = time.monotonic(), self._signals
        for child in self.children:
            try:  # what works is told to come to an end
                child.probe.farewell(child.cluster(read_processes()))
            except DATABASE_ERRORS:
                connection.close()  # what cannot be told ends by its own time limit
            child.ask_to_stop()
        while self._signals == signals and self._still_stopping(time.monotonic() - began):
            time.sleep(TICK_S)
        for child in self.children:
            child.kill()
        end_processes(lambda seen: with_descendants(find_marked(self.instance.mark, seen), seen))
        self.instance.forget()
        self._say(f"Stopped after {time.monotonic() - began:.1f} s.")

    def _still_stopping(self, waited_s: float) -> bool:
        for child in self.children:
            child.look_at_retired(time.monotonic(), True)
        seen = read_processes()
        return any([waited_s < child.stop_s and child.is_running(seen) for child in self.children])


def mcp_address(bind: str, port: int) -> str:
    """Where coding agents of this host reach the MCP server: what the setting says, else this web server itself."""
    return os.environ.get("ORRERY_MCP_URL", f"{address_of(bind, port).rstrip('/')}/mcp")


def children_of(instance: Instance, bind: str, port: int, runners: int) -> list[SupervisedChild]:
    """The web server and the two clusters."""
    logs = settings.STATE_DIR / "logs"
    env = {
        MARK: instance.mark, "PYTHONUNBUFFERED": "1", "ORRERY_RUNNERS": str(runners),
        "ORRERY_MCP_URL": mcp_address(bind, port),
    }  # fmt: skip
    web = [sys.executable, "-m", "project.web_server", "-v", "0", "-b", bind, "-p", str(port), "project.asgi:application"]
    cluster = [sys.executable, "manage.py", "qcluster", "--skip-checks"]  # `up` itself has just made them
    return [
        SupervisedChild("web", web, env, logs / "web.log", WebProbe(bind, port), STOP_WEB_S),
        SupervisedChild("jobs", cluster, {**env, "Q_CLUSTER_NAME": "jobs"}, logs / "jobs.log", CanaryProbe(), STOP_JOBS_S),
        SupervisedChild(
            "runners",
            cluster,
            {**env, "Q_CLUSTER_NAME": "runners"},
            logs / "runners.log",
            RunnersProbe(runners),
            STOP_RUNNERS_S,
        ),
    ]


@contextmanager
def make_supervisor(bind: str, port: int, runners: int, say: Say, *, replace: bool = False) -> Iterator[Supervisor]:
    """A supervisor for this installation, not yet started. Raises AlreadyUp, PortTaken."""
    if closed := close_to_others():
        say(f"Closed {len(closed)} files and folders that others could read, such as {closed[0]}.")
    instance = Instance(runtime_dir())
    instance.take(replace=replace)
    try:
        if left := instance.end_leftovers():
            say(f"Ended {len(left)} processes that an earlier run had left.")
        refuse_taken_port(bind, port)
        be_impatient()
        yield Supervisor(instance, children_of(instance, bind, port, runners), say, address_of(bind, port))
    finally:
        instance.release()


class PortTaken(Exception):
    """Another program listens where the web server should."""


def refuse_taken_port(bind: str, port: int) -> None:
    """Raises PortTaken; a server that could not bind would only say so in its log."""
    family = socket.AF_INET6 if ":" in bind else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((bind, port))
        except OSError as error:
            raise PortTaken(f"cannot listen on {bind} port {port}: {error.strerror}; choose another with --port") from error


def be_impatient() -> None:
    """Do not let this process wait long for SQLite's lock."""
    if connection.vendor == "sqlite":
        connection.close()
        connection.settings_dict["OPTIONS"]["timeout"] = DATABASE_WAIT_S


def address_of(bind: str, port: int) -> str:
    host = "localhost" if bind in ("0.0.0.0", "::", "") else f"[{bind}]" if ":" in bind else bind
    return f"http://{host}:{port}/"
