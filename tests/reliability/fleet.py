"""Real clients of devices as processes, a proxy that cuts connections, and what commands leave in files of their own."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

from django.conf import settings

from agents.devices.client.place import Place
from agents.devices.confinement import Confinement
from agents.devices.processes import list_pids, read_mark
from agents.engine.hosted import set_device
from agents.models import Device
from agents.services.device_tokens import enrolment_create
from agents.services.devices import device_create
from tests.reliability.cluster import until

ONCE = 'echo "$ORRERY_ATTEMPT start" >>marks; sleep "$0"; echo "$ORRERY_ATTEMPT end" >>marks; echo "$ORRERY_ATTEMPT"'
"""Leaves its marks in the workspace of the device that carries it out."""
HEARTBEAT_S = 1


def make_remote(name: str, heartbeat_s: float = HEARTBEAT_S, **more) -> Device:
    """A device that dials in; short heartbeats, and offered to tasks that wish for none."""
    made = device_create(name, kind="remote", by="system", **more)
    set_device(made.pk, "device_changed", connection={"heartbeat_s": heartbeat_s}, is_offered=True)
    return Device.objects.get(pk=made.pk)


class DeviceClient:
    """`python -m agents.devices.client` for one device, with a folder of its own; `within` is what it is started by."""

    def __init__(self, folder: Path, device: Device, within: tuple[str, ...] = ()):
        self.device, self.folder, self._within = device, folder / device.name, within
        self.folder.mkdir()
        self.process: subprocess.Popen | None = None
        self.token = enrolment_create(device.pk, by="system")[1]

    def start(self, server: str, *arguments: str) -> None:
        argv = [sys.executable, "-m", "agents.devices.client", "--server", server, "--token", self.token]
        with (self.folder / "client.log").open("a") as log:
            self.process = subprocess.Popen(
                [*self._within, *argv, "--state", str(self.folder), *arguments], cwd=settings.BASE_DIR, stdout=log, stderr=log,
                env={"PATH": os.environ["PATH"]},
            )  # fmt: skip

    def signal(self, number: int) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def end(self) -> None:
        """Let it end by itself."""
        if self.process is not None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
            self.process.wait(20)
            self.process = None

    def log(self) -> str:
        return (self.folder / "client.log").read_text()

    def state(self) -> str:
        return Device.objects.values_list("state", flat=True).get(pk=self.device.pk)

    def until_connected(self) -> None:
        until(lambda: self.state() == "connected", f"{self.device.name} is connected; {self.log()[-2000:]}")

    def marks(self, kind: str) -> list[int]:
        """Attempts whose commands have left this mark, in their order."""
        path = self.folder / "workspace" / "marks"
        lines = path.read_text().splitlines() if path.exists() else []
        return [int(line.split()[0]) for line in lines if line.endswith(f" {kind}")]

    def at_work(self) -> set[int]:
        """Attempts with processes of this client's commands."""
        mark = Place(self.folder, self.folder, Confinement("none")).mark
        return {found.attempt_id for pid in list_pids() if (found := read_mark(pid)) is not None and found.instance == mark}


class CuttingProxy:
    """Passes connections on to a port of this host, until it is told to cut them; then it refuses new ones."""

    def __init__(self, target: int):
        self.target = target
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._listening.setblocking(False)
        self.port = self._listening.getsockname()[1]
        self.is_cut = self._is_over = False
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listening, selectors.EVENT_READ)
        self._pairs: dict[socket.socket, socket.socket] = {}
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def cut(self) -> None:
        with self._lock:
            self.is_cut = True
            for one in list(self._pairs):
                self._drop(one)

    def restore(self, target: int | None = None) -> None:
        with self._lock:
            self.is_cut, self.target = False, target or self.target

    def close(self) -> None:
        self._is_over = True
        self._thread.join()
        self.cut()
        self._listening.close()
        self._selector.close()

    def _run(self) -> None:
        while not self._is_over:
            for key, _ in self._selector.select(timeout=0.05):
                with self._lock:
                    self._accept() if key.fileobj is self._listening else self._pass(key.fileobj)

    def _accept(self) -> None:
        near, _ = self._listening.accept()
        if self.is_cut:
            near.close()
            return
        try:
            far = socket.create_connection(("127.0.0.1", self.target), timeout=5)
        except OSError:
            near.close()
            return
        for one, other in ((near, far), (far, near)):
            self._pairs[one] = other
            self._selector.register(one, selectors.EVENT_READ)

    def _pass(self, one) -> None:
        if one not in self._pairs:
            return
        try:
            data = one.recv(1 << 16)
            if data:
                self._pairs[one].sendall(data)
                return
        except OSError:
            pass
        self._drop(one)

    def _drop(self, one: socket.socket) -> None:
        other = self._pairs.pop(one, None)
        if other is None:
            return
        self._pairs.pop(other, None)
        for each in (one, other):
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(each)
            each.close()
