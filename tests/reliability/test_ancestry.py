"""A parent is cancelled: its descendants end with it, also when runners are killed, and nothing of them goes on."""

from datetime import timedelta

import pytest

from agents.devices import host
from agents.devices.processes import attempts_at_work
from agents.models import Actor, InboxItem, Session
from agents.services.sessions import request_submit, session_create
from agents.services.tokens import token_create
from agents.streams.verify import verify_database
from constellations.models import Attempt, Constellation
from constellations.services.lifecycle import constellation_cancel
from tests.reliability.cluster import marked, until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.kill]

BY = "user:1"


def all_answered() -> bool:
    return not InboxItem.objects.filter(state__in=("queued", "running")).exists()


def family_at_work(engine, operator, device: str, size: int) -> list[Session]:
    """A session, its child, and so on, each with a command that would run for minutes."""
    plan = {"tasks": [{"task_id": "long", "device": device, "command": ["sleep", "600"]}]}
    family = [engine.submit(plan)[0]]
    for _ in range(size - 1):
        token, _ = token_create(operator, "", ["operate"], timedelta(days=1), by="system", session=family[-1].pk)
        family.append(session_create(operator, by=f"token:{token.token_key}"))
        engine.submit(plan, family[-1])
    return family


def test_descendants_end_with_their_parent_also_when_the_runners_are_killed_in_between(clusters, engine, operator, wide):
    family = family_at_work(engine, operator, wide[0], 3)
    first = clusters()
    first.start()
    until(lambda: len(attempts_at_work(host.instance_name())) >= 3, "the three commands run")
    first.kill()
    request_submit(family[0].pk, "cancel", "", {"reason": "enough"}, by=BY)
    second = clusters()
    second.start()
    until(lambda: Actor.objects.filter(state="cancelled").exists(), "one of them has ended")
    second.kill()
    clusters().start()
    until(all_answered, "all that was asked for is answered")
    until(lambda: not marked(), "the commands are gone")
    ended = dict(Actor.objects.values_list("session_id", "reason"))
    assert ended == dict(zip((each.pk for each in family), ("enough", *["parent cancelled"] * 2), strict=True))
    assert set(Actor.objects.values_list("state", flat=True)) == {"cancelled"}
    assert not Attempt.objects.filter(outcome="").exists()
    assert list(verify_database()) == []


def test_a_constellation_that_is_cancelled_takes_with_it_what_was_started_from_its_session(clusters, engine, operator, wide):
    session, child = family_at_work(engine, operator, wide[0], 2)
    clusters().start()
    until(lambda: len(attempts_at_work(host.instance_name())) >= 2, "both commands run")
    constellation_cancel(Constellation.objects.get(session=session).pk, by=BY, reason="enough")
    until(all_answered, "all that was asked for is answered")
    until(lambda: not marked(), "the commands are gone")
    assert Actor.objects.get(session=session).state == "idle"
    assert Actor.objects.values_list("state", "reason").get(session=child) == ("cancelled", "parent cancelled")
    assert set(Constellation.objects.values_list("state", flat=True)) == {"CANCELLED"}
    assert InboxItem.objects.get(session=child, kind="cancel").by == BY
    assert list(verify_database()) == []
