"""From a commit to a websocket client of a real web server."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction
from websockets.sync.client import connect

from agents.streams import nudges
from agents.streams.door import door
from benchmarks.inside import load
from benchmarks.inside.tools import clock

PATIENCE_S = 30
SETTLE_S = nudges.ADDRESSES_S + 0.1
"""Until the committing process knows the address of a web server that has just begun to listen."""
GAPS_S = (0.011, 0.023, 0.037)
"""Between two commits, in turn."""


def commits(count: int, port: int, token: str) -> list[float]:
    """Seconds from the end of a commit to the message with its event, for `count` events of one session."""
    session, committed = load.session(), {}
    login = {"Authorization": f"Bearer {token}"}
    with connect(f"ws://127.0.0.1:{port}/ws/sessions/{session}/", additional_headers=login, open_timeout=PATIENCE_S) as client:
        first = json.loads(client.recv(PATIENCE_S))["seq"] + 1
        committing = threading.Thread(target=_commit, args=(session, count, committed))
        committing.start()
        seen = _receive(client, first + count - 1)
        committing.join()
    return [seen[seq] - committed[seq] for seq in committed]


@contextmanager
def listening(port: int, token: str) -> Iterator[None]:
    """Meanwhile a client listens to a session, so that the web server follows the streams."""
    login, place = {"Authorization": f"Bearer {token}"}, f"ws://127.0.0.1:{port}/ws/sessions/{load.session()}/"
    with connect(place, additional_headers=login, open_timeout=PATIENCE_S) as client:
        client.recv(PATIENCE_S)
        yield


def _commit(session: int, count: int, committed: dict[int, float]) -> None:
    """One event a transaction, through the one write path; notes when each was committed, before anybody is nudged."""
    time.sleep(SETTLE_S)
    for number in range(count):
        time.sleep(GAPS_S[number % len(GAPS_S)])
        seq, at = _commit_one(session, number)
        committed[seq] = at


def _commit_one(session: int, number: int) -> tuple[int, float]:
    times: list[float] = []
    with transaction.atomic():
        transaction.on_commit(lambda: times.append(clock()))
        with door(session, "system") as opened:
            opened.turn.record("noted", number=number)
    return opened.head + 1, times[0]


def _receive(client, last: int) -> dict[int, float]:
    seen: dict[int, float] = {}
    while last not in seen:
        text = client.recv(PATIENCE_S)
        at = clock()
        message = json.loads(text)
        if message["type"] != "events":
            continue
        seen.update((event["seq"], at) for event in message["events"])
        client.send(json.dumps({"type": "ack", "seq": message["events"][-1]["seq"]}))
    return seen
