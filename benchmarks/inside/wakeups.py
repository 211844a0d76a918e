"""From the post of an interaction to the first body of its graph, which runs in another process."""

import http.client
import json
import time

from agents.models import InboxItem, Lease
from benchmarks.inside import load
from benchmarks.inside.tools import clock
from constellations.models import Task

LOOK_S = 0.005
GAPS_S = (0.005, 0.017, 0.031, 0.044)
"""Before a post, in turn: so that it keeps no step with anybody's look at the database."""
ONE = load.chain(1, "stamp")


def alive(trials: int) -> list[float]:
    """Seconds, for a session that a runner holds."""
    session = load.submit(ONE)
    _wait_for_answers([session], 1)
    return [_trial(session, number) for number in range(trials)]


def asleep(trials: int) -> list[float]:
    """Seconds, for sessions that had an answer before and were given back."""
    sessions = [load.submit(ONE) for _ in range(trials)]
    _wait_for_answers(sessions, trials)
    while Lease.objects.filter(runner__isnull=False).exists():
        time.sleep(LOOK_S)
    return [_trial(session, number) for number, session in enumerate(sessions)]


def over_http(trials: int, port: int, token: str) -> list[float]:
    """Seconds, posted to the REST API; for a session that a runner holds."""
    session = load.submit(ONE)
    _wait_for_answers([session], 1)
    client = http.client.HTTPConnection("127.0.0.1", port)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def post() -> None:
        client.request("POST", f"/api/sessions/{session}/interactions", json.dumps(load.payload(ONE)), headers)
        answer = client.getresponse()
        text = answer.read()
        assert answer.status == 202, text

    return [_trial(session, number, post) for number in range(trials)]


def _trial(session: int, number: int, post=None) -> float:
    time.sleep(GAPS_S[number % len(GAPS_S)])
    answered = _answers([session])
    posted = clock()
    if post is None:
        load.submit(ONE, session)
    else:
        post()
    _wait_for_answers([session], answered + 1)
    newest = Task.objects.filter(constellation__session=session).latest("id")
    return newest.result["at"] - posted


def _answers(sessions: list[int]) -> int:
    return InboxItem.objects.filter(session__in=sessions, state="done").count()


def _wait_for_answers(sessions: list[int], count: int) -> None:
    while _answers(sessions) < count:
        time.sleep(LOOK_S)
