"""kill -9 of runners while models are asked: the books add up, and no place is held by the dead."""

import pytest
from django.db.models import Sum

from agents.models import InboxItem, ModelCall, Reservation, Spending
from agents.services.model_profiles import model_profile_create
from agents.streams.verify import verify_database
from tests.agents.llm.conftest import loopback, openai_provider  # noqa: F401  fixtures
from tests.constellations.runs.weaving.conftest import answer, ask
from tests.reliability.cluster import until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.kill]
SESSIONS = 4
AT_ONCE = 2
ENDED = answer("FINISH", result="Done.")


def in_flight() -> int:
    return Reservation.objects.filter(state="open").count()


def test_what_killed_runners_had_reserved_is_unknown_and_the_next_ones_have_room(
    clusters, engine, device, openai_provider, monkeypatch  # noqa: F811
):  # fmt: skip
    monkeypatch.setenv("ORRERY_MODEL_HOSTS", "127.0.0.1")
    slow = {"when": {}, "times": AT_ONCE, "say": ENDED, "first_after": 60.0}
    found = openai_provider(slow, {"when": {}, "say": ENDED, "tokens": {"input": 30, "output": 6}})
    model_profile_create(
        "weaver", by="system", provider=found.profile.provider, model="m", base_url=found.profile.base_url,
        purposes=["creation", "editing"], calls_in_flight=AT_ONCE,
    )  # fmt: skip
    for _ in range(SESSIONS):
        ask(engine)
    first = clusters()
    first.start()
    until(lambda: len(found.model.asked) == AT_ONCE, "two calls are under way")
    until(lambda: ModelCall.objects.count() == SESSIONS, "the others wait")
    assert (in_flight(), len(found.model.asked)) == (AT_ONCE, AT_ONCE), "a limit holds for two runners together"
    first.kill()
    clusters().start()
    until(lambda: not InboxItem.objects.exclude(state="done").exists(), "all are answered")

    assert ModelCall.objects.filter(outcome="lost").count() == SESSIONS
    answered = ModelCall.objects.filter(outcome="answered").count()
    assert answered >= SESSIONS
    until(lambda: in_flight() == 0, "nobody holds a place")
    assert Reservation.objects.filter(state="unknown").count() == AT_ONCE
    books, rows = Spending.objects.get(scope="installation", period=""), Reservation.objects
    assert (books.open_calls, books.open_tokens) == (0, 0)
    assert (books.calls, books.unknown_calls) == (answered, AT_ONCE)
    assert books.input_tokens + books.output_tokens == rows.filter(state="settled").aggregate(all=Sum("tokens"))["all"]
    assert books.unknown_tokens == rows.filter(state="unknown").aggregate(all=Sum("tokens"))["all"]
    assert set(rows.values_list("runner", flat=True)) & {None} == set(), "each says in whose process it is"
    assert list(verify_database()) == []
