"""From a POST over HTTP to the durable answer, as a client of a real web server and a real runner sees it."""

import http.client
import json
import os
import re
import socket
import time
from pathlib import Path

from agents.api.serializers.sessions import PLAN_LENGTH
from agents.engine.runner import Runner
from agents.engine.sessions import Sessions
from agents.models import Event
from benchmarks.inside import (
    load,
    tools,  # noqa: F401 (registers the bodies)
)

PATIENCE_S = 120
CHUNK = 1 << 16
WARM = load.layered(2 * load.WIDTH)
"""Carried out once before anything is measured: what a process does only the first time is not part of the way."""
ENDED = b"\nevent: interaction_ended\n"
IDS = re.compile(rb"^id: (\d+)\nevent: .+\ndata: .+\n", re.MULTILINE)
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


class Noting(Sessions):
    """The real sessions of a runner, which print when the runner was where on its way with the second interaction."""

    def __init__(self, *arguments) -> None:
        super().__init__(*arguments)
        self._noted: dict[str, float] = {}
        self._is_warm = False

    def _prepared(self, drive) -> bool:
        is_prepared = super()._prepared(drive)
        if not is_prepared:  # said once: a session whose plan is being read gets no turn
            self._noted = {"noticed": time.time()}
        return is_prepared

    async def _was_read(self, drive) -> None:
        if self._noted.keys() == {"noticed"}:
            self._noted["read"] = time.time()
        await super()._was_read(drive)

    def _turns(self):
        began = time.time()
        batches = super()._turns()
        if "built" not in self._noted and any(_tells(batch, "constellation_built") for batch in batches):
            self._noted |= {"decided": began, "built": time.time()}
        return batches

    def _written(self, batch) -> None:
        if _tells(batch, "constellation_built"):
            self._noted["first commit"] = time.time()
        if _tells(batch, "interaction_ended"):
            if self._is_warm:
                print(json.dumps(self._noted | {"answer": time.time()}), flush=True)
            self._is_warm = True
        super()._written(batch)


class NotingRunner(Runner):
    sessions_type = Noting


def _tells(batch, event: str) -> bool:
    return any(each.type == event for each in batch.events)


def serve() -> None:
    """A runner that says "ready", and of the second interaction when it was noticed, read, built, committed and answered."""
    runner = NotingRunner()
    print(json.dumps("ready"), flush=True)
    runner.run()


def measure(tasks: int, port: int, token: str, web: int, runner: int) -> dict:
    """Seconds of the way and the times at which the client and the web server were where; user CPU of both processes."""
    _post(port, token, WARM)
    body, before = load.layered(tasks), (_user_cpu(web), _user_cpu(runner))
    found = _post(port, token, body)
    found |= {"web": _user_cpu(web) - before[0], "runner": _user_cpu(runner) - before[1]}
    return found


def _post(port: int, token: str, plan: dict) -> dict:
    """Post a plan into a new session and wait on its stream for the answer."""
    session = load.session()
    payload = load.payload(plan)
    assert len(payload["plan"]) <= PLAN_LENGTH
    body, path = json.dumps(payload), f"/api/sessions/{session}"
    head = Event.objects.filter(stream=session).count()
    stream = _stream(port, token, path, head)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    client = http.client.HTTPConnection("127.0.0.1", port)
    client.connect()
    posted = time.time()
    client.request("POST", f"{path}/interactions/", body, headers)
    answer = client.getresponse()
    text = answer.read()
    accepted = time.time()
    assert answer.status == 202, text
    seen = _wait(port, token, path, head, stream)
    asked = Event.objects.get(stream=session, type="command_received").at.timestamp()
    ended = Event.objects.get(stream=session, type="interaction_ended")
    assert '"completed"' in json.dumps(ended.data), ended.data
    return {"posted": posted, "asked": asked, "accepted": accepted, "seen": seen}


def _stream(port: int, token: str, path: str, since: int) -> socket.socket:
    """A connection over which the events of a session come. It is read as it stands: a client that understood each event would
    take as long as the server, and both share two cores with the runner.
    """
    client = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
    lines = [f"GET {path}/stream/?since={since} HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {token}"]
    client.sendall("\r\n".join([*lines, "Connection: close", "", ""]).encode())
    answer = client.recv(CHUNK)
    assert b" 200 " in answer.partition(b"\r\n")[0], answer
    return client


def _wait(port: int, token: str, path: str, since: int, stream: socket.socket) -> float:
    """When the client has the event of the answer. The stream ends now and then, and the client comes back to it."""
    text = bytearray()
    while True:
        piece = stream.recv(CHUNK)
        if ENDED in text[-len(ENDED) :] + piece:
            return time.time()
        if not piece:
            since = int(IDS.findall(text)[-1])
            stream.close()
            stream, text = _stream(port, token, path, since), bytearray()
        text += piece


def _user_cpu(pid: int) -> float:
    """Seconds in which a process has computed, without what the system did for it."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11]) * TICK_S
