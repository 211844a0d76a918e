"""Network namespaces: one for the server's socket, one for each device, a cable between the server's and each of them.

Nothing of it is in the network of this machine. Processes stay in it, all but those that are started inside a namespace: a
socket belongs to the namespace where it was made, so a server here can listen there.
"""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
import threading
from functools import cache
from pathlib import Path

NEW_NETWORK = 0x40000000
FOLDER = Path("/run/netns")


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@cache
def may_make_namespaces() -> bool:
    """Whether this machine lets us."""
    name = f"orrery-{os.getpid()}-try"
    try:
        ip("netns", "add", name)
        ip("netns", "delete", name)
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


class Namespaces:
    """A namespace for the server, and one for each device that is asked for."""

    def __init__(self) -> None:
        self._prefix = f"or{os.getpid() % 100_000}"
        self._server = f"{self._prefix}-s"
        self._made: dict[str, int] = {}
        ip("netns", "add", self._server)
        ip("-n", self._server, "link", "set", "lo", "up")

    def cable(self, name: str) -> tuple[tuple[str, ...], str]:
        """A namespace with a cable to the server's: what a command is started with to be in it, and the server's address."""
        number = self._made[name] = len(self._made) + 1
        space, here, there = f"{self._prefix}-{number}", f"s{number}", f"d{number}"
        ip("netns", "add", space)
        ip("-n", self._server, "link", "add", here, "type", "veth", "peer", "name", there, "netns", space)
        for where, link, address in ((self._server, here, "1"), (space, there, "2")):
            ip("-n", where, "address", "add", f"10.77.{number}.{address}/24", "dev", link)
            ip("-n", where, "link", "set", link, "up")
        ip("-n", space, "link", "set", "lo", "up")
        return ("ip", "netns", "exec", space), f"10.77.{number}.1"

    def cut(self, name: str) -> None:
        """Nothing passes any more, and nobody is told."""
        ip("-n", self._server, "link", "set", f"s{self._made[name]}", "down")

    def restore(self, name: str) -> None:
        ip("-n", self._server, "link", "set", f"s{self._made[name]}", "up")

    def listen(self) -> socket.socket:
        """A socket that listens at every address of the server's namespace."""
        made: list[socket.socket] = []
        thread = threading.Thread(target=lambda: made.append(_listen_in(FOLDER / self._server)))
        thread.start()  # a namespace is a thread's own
        thread.join()
        return made[0]

    def remove(self) -> None:
        for space in (self._server, *(f"{self._prefix}-{number}" for number in self._made.values())):
            ip("netns", "delete", space)


def _listen_in(namespace: Path) -> socket.socket:
    with namespace.open() as place:
        if ctypes.CDLL(None, use_errno=True).setns(place.fileno(), NEW_NETWORK):
            raise OSError(ctypes.get_errno(), "setns")
    return socket.create_server(("0.0.0.0", 0))
