"""The client's command line: what it is given, and its life from the first connection to the last."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from agents.devices.client.calls import Calls
from agents.devices.client.link import Link, Server
from agents.devices.client.place import ClientRefused, Place, TokenFile, only_client_of
from agents.devices.confinement import MECHANISMS, NONE, ConfinementMissing, find_confinement

PATH = "/ws/devices/"
WALLS = ("auto", *MECHANISMS, NONE)
DIALLED = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}
SURE = "Install bubblewrap (apt install bubblewrap), or start the client with --unconfined: commands may then do all it may."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """As `manage.py device` and `python -m agents.devices.client` take them."""
    home = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "orrery-device"
    parser.add_argument("--server", required=True, help="where Orrery is, such as https://orrery.example.org")
    parser.add_argument("--token", default="", help="a one-time token, or the device's own; later starts need none")
    parser.add_argument("--device", default="", help="its name: refused if the token is another device's")
    parser.add_argument("--state", type=Path, default=home, help=f"folder for what the client keeps ({home})")
    parser.add_argument("--workspace", type=Path, help="folder where commands run (`workspace` in the folder of --state)")
    parser.add_argument("--confinement", choices=WALLS, default="auto", help="walls around commands (auto)")
    parser.add_argument("--unconfined", action="store_true", help="run commands without walls where none can be put up")
    parser.add_argument("--quiet", action="store_true", help="say warnings only")


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 0 after a signal to end, 1 when the server does not let this device in, 2 for a wrong command line."""
    parser = argparse.ArgumentParser(
        "orrery-device", description="Offers this machine to Orrery: it dials in and waits for work."
    )
    add_arguments(parser)
    return run_client(parser.parse_args(arguments))


def run_client(given: argparse.Namespace) -> int:
    """As `main`, with the command line read."""
    level = logging.WARNING if given.quiet else logging.INFO
    logging.basicConfig(level=level, stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("websockets").setLevel(logging.WARNING)
    state = given.state.absolute()
    try:
        address = dialled_address(given.server)
        with only_client_of(state):
            place = find_place(state, given.workspace or state / "workspace", given.confinement, given.unconfined)
            place.end_leftovers()
            asyncio.run(_live(address, place, given.token or os.environ.get("ORRERY_DEVICE_TOKEN", ""), given.device))
    except ClientRefused as refused:
        print(refused, file=sys.stderr)
        return 1
    return 0


def dialled_address(server: str) -> str:
    """The websocket of a server; raises ClientRefused for what is no address."""
    parts = urlsplit(server)
    if parts.scheme not in DIALLED or not parts.netloc or "@" in parts.netloc or parts.query or parts.fragment:
        raise ClientRefused(f"--server must be an address such as https://orrery.example.org, not {server}")
    return urlunsplit((DIALLED[parts.scheme], parts.netloc, parts.path.rstrip("/") + PATH, "", ""))


def find_place(state: Path, workspace: Path, confinement: str, unconfined: bool) -> Place:
    """Raises ClientRefused where there are no walls and nobody has said that none are needed."""
    workspace.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        found = find_confinement(confinement, state)
    except ConfinementMissing as missing:
        raise ClientRefused(f"{missing}. {SURE}") from missing
    if found.mechanism == NONE and not unconfined:
        raise ClientRefused(f"commands would not be confined here: {'; '.join(found.reasons)}. {SURE}")
    return Place(workspace.absolute(), state, found)


async def _live(address: str, place: Place, given: str, device: str) -> None:
    tokens = TokenFile(place.state, address)
    server = Server(address, lambda: tokens.token_for(given), lambda token: tokens.keep(token, given), device)
    link = Link(server, place, Calls(place))
    running = asyncio.ensure_future(link.run())
    loop = asyncio.get_running_loop()
    told = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.set)
    waiting = asyncio.ensure_future(told.wait())
    try:
        await asyncio.wait([running, waiting], return_when=asyncio.FIRST_COMPLETED)
        if not running.done():
            await link.end("the client was told to end")
            running.cancel()
        await asyncio.gather(running, return_exceptions=told.is_set())
    finally:
        waiting.cancel()
