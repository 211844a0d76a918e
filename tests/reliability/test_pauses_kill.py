"""A pause holds what was asked before it, also where every runner is killed while it comes about, and when it has."""

import json

import pytest

from agents.models import Actor, InboxItem
from agents.services import sessions
from agents.streams.verify import verify_database
from constellations.models import Constellation, Task
from tests.reliability.cluster import Marks, until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.kill]
BY = "user:1"


def is_decided(item: InboxItem) -> bool:
    item.refresh_from_db()
    return item.state == "done"


def test_a_pause_outlives_every_runner_and_holds_what_was_asked_before_it(operator, device, state_dir, clusters):
    marks, cluster = Marks(state_dir), clusters(runners=1)
    session = sessions.session_create(operator, by=BY)
    first = {"name": "first", "tasks": [marks.command("a", "laptop", 1.0)]}
    second = {"name": "second", "tasks": [marks.command("b", "laptop", 0.1)]}
    for name, plan in (("one", first), ("two", second)):
        sessions.request_submit(session.pk, "interaction", name, {"plan": json.dumps(plan)}, by=BY)
    cluster.start()
    until(lambda: marks.count("start") == 1, "the command runs")
    sessions.request_submit(session.pk, "pause", "p", {"reason": "look"}, by=BY)
    until(lambda: Actor.objects.filter(pausing=True).exists(), "the pause waits for the command")
    cluster.kill()
    cluster.start()
    until(lambda: Actor.objects.filter(state="paused").exists(), "the next runner ends the pause's wait")
    cluster.kill()
    cluster.start()
    ping, _ = sessions.request_submit(session.pk, "ping", "look", {}, by=BY)
    until(lambda: is_decided(ping), "the third runner has looked")
    actor = Actor.objects.get()
    assert (actor.state, actor.reason, actor.held_from) == ("paused", "look", InboxItem.objects.get(client_id="p").pk)
    assert dict(InboxItem.objects.filter(kind="interaction").values_list("client_id", "state")) == {
        "one": "running",
        "two": "queued",
    }
    assert Constellation.objects.count() == 1
    sessions.request_submit(session.pk, "resume", "r", {}, by=BY)
    until(lambda: InboxItem.objects.filter(kind="interaction", state="done").count() == 2, "both are done")
    assert list(Constellation.objects.order_by("id").values_list("name", flat=True)) == ["first", "second"]
    assert set(Task.objects.values_list("state", flat=True)) == {"COMPLETED"}
    marks.check()
    assert list(verify_database()) == []
