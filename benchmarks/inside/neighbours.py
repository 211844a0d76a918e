"""A single task beside a crowd: how long it waits to begin while others run large plans and watch them."""

import json
import threading
import time

from django.contrib.auth.models import User
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from agents.models import InboxItem
from agents.services.sessions import session_create
from benchmarks.inside import load, wakeups
from benchmarks.inside.tools import clock
from constellations.models import Task

CROWD = "crowd"
"""Title of its sessions."""
LOOK_S = 0.02
PATIENCE_S = 30


def crowd(port: int, token: str, runs: int, tasks: int, views: int) -> None:
    """`runs` plans, watched by `views` websockets; says "begun" and, when all have ended, how many seconds they took."""
    user = User.objects.get()
    sessions = [session_create(user, CROWD, by=load.by()).pk for _ in range(runs)]
    ended = threading.Event()
    watching = [_start(_watch, port, token, sessions[number % runs], ended) for number in range(views)]
    print(json.dumps("begun"), flush=True)
    began = clock()
    posting = [_start(load.submit, load.layered(tasks), session) for session in sessions]
    while InboxItem.objects.filter(session__in=sessions, state="done").count() < runs:
        time.sleep(LOOK_S)
    took = clock() - began
    ended.set()
    for thread in (*posting, *watching):
        thread.join(PATIENCE_S)
    print(json.dumps(took), flush=True)


def alone(trials: int) -> list[float]:
    """Seconds from the commit of a post to the first body of its session."""
    return [_trial() for _ in range(trials)]


def beside(runs: int) -> list[float]:
    """The same, from before the crowd begins until it has ended; says "ready" after the first."""
    found = [_trial()]
    print(json.dumps("ready"), flush=True)
    while InboxItem.objects.filter(session__title=CROWD, state="done").count() < runs:
        found.append(_trial())
    return found


def _start(function, *arguments) -> threading.Thread:
    thread = threading.Thread(target=function, args=arguments, daemon=True)
    thread.start()
    return thread


def _trial() -> float:
    """In a session of its own, as a neighbour has one."""
    session = load.submit(wakeups.ONE)
    posted = clock()
    while not InboxItem.objects.filter(session=session, state="done").exists():
        time.sleep(LOOK_S)
    return Task.objects.get(constellation__session=session).result["at"] - posted


def _watch(port: int, token: str, session: int, ended: threading.Event) -> None:
    """As a page does: receive, acknowledge."""
    address, login = f"ws://127.0.0.1:{port}/ws/sessions/{session}/", {"Authorization": f"Bearer {token}"}
    with connect(address, additional_headers=login, open_timeout=PATIENCE_S, max_size=None) as client:
        while not ended.is_set():
            try:
                message = json.loads(client.recv(LOOK_S * 10))
            except TimeoutError:
                continue
            except ConnectionClosed:
                return
            if message["type"] in ("snapshot", "events"):
                seq = message["seq"] if message["type"] == "snapshot" else message["events"][-1]["seq"]
                client.send(json.dumps({"type": "ack", "seq": seq}))
