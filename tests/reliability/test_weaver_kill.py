"""kill -9 while a model thinks, and between its answer and the edit: nothing is lost, and nothing is done twice."""

import pytest
from django.db import transaction
from django.db.models import F

from agents.models import ModelCall, Stream
from agents.streams.verify import verify_database
from constellations.models import Constellation, Edit
from tests.agents.llm.conftest import loopback, openai_provider  # noqa: F401  fixtures
from tests.constellations.runs.weaving.conftest import ask, calls, edited, planned, task, thinking  # noqa: F401  fixture
from tests.reliability.cluster import until
from tests.reliability.test_kill import all_answered

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.kill]

PLAN = planned({**task("a"), "device": "east"})
REPORT = edited(("add_task", {**task("report"), "device": "west"}), thought="Then a report.")
NOTHING = edited(thought="Nothing to do.")


@pytest.fixture(autouse=True)
def _models_here(monkeypatch):
    """The runners may ask models of this machine."""
    monkeypatch.setenv("ORRERY_MODEL_HOSTS", "127.0.0.1")


def check_all_is_there_once(purpose_lost: str) -> None:
    made = Constellation.objects.get()
    assert dict(made.tasks.values_list("task_id", "state")) == {"a": "COMPLETED", "report": "COMPLETED"}
    assert (made.state, Edit.objects.count()) == ("COMPLETED", 1)
    lost = list(ModelCall.objects.filter(outcome="lost").values_list("purpose", flat=True))
    assert lost == ([purpose_lost] if purpose_lost else [])
    assert list(verify_database()) == []


@pytest.mark.parametrize("purpose", ["creation", "editing"])
def test_a_call_that_dies_with_its_runner_is_made_again(clusters, engine, wide, thinking, purpose):  # noqa: F811
    answers = [PLAN, REPORT, NOTHING]
    answers.insert(0 if purpose == "creation" else 1, {"say": "never", "first_after": 60})
    model = thinking(*answers).model
    ask(engine)
    first = clusters(runners=1)
    first.start()
    until(lambda: len(model.asked) == 1 + (purpose == "editing"), "the model thinks")
    first.kill()
    clusters(runners=1).start()
    until(all_answered, "everything ends")
    check_all_is_there_once(purpose)
    lost, again = calls(purpose=purpose)[:2]
    assert (again.outcome, again.asked_again, again.taken) == ("answered", 1, lost.taken)


def test_an_answer_that_has_come_is_never_asked_for_twice(clusters, engine, wide, thinking, state_dir):  # noqa: F811
    model = thinking(PLAN, {"say": REPORT, "first_after": 2}, NOTHING).model
    session, _ = ask(engine)
    first = clusters(runners=1)
    first.start()
    until(lambda: len(model.asked) == 2, "the model thinks about its edit")
    key = str(ModelCall.objects.get(purpose="editing").pk)

    def is_in_the_file() -> bool:
        return any(key in path.read_text() for path in state_dir.rglob("outcomes-*.jsonl"))

    with transaction.atomic():  # nobody records anything in the session as long as this lasts
        Stream.objects.filter(pk=session.pk).update(head=F("head"))
        until(is_in_the_file, "the answer has come")
        first.kill()
    assert not Edit.objects.exists()
    assert ModelCall.objects.get(pk=int(key)).outcome == ""
    clusters(runners=1).start()
    until(all_answered, "everything ends")
    check_all_is_there_once("")
    assert len(model.asked) == 3
    assert [row.outcome for row in calls()] == ["answered"] * 3
