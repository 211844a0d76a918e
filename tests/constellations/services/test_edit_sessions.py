"""Fifty editing sessions in one constellation: the planner's own, and random ones that are previewed, made and taken back."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents.models import Agent, Transition
from agents.services.devices import device_create
from agents.streams.verify import verify_database, verify_stream
from constellations.editor.inverse import inverse_operations
from constellations.errors import EditRefused, UndoRefused
from constellations.limits import EDITING_SESSIONS
from constellations.live.kept import read_graph
from constellations.models import Constellation, Edit, Task
from constellations.services.edits import edit_apply
from constellations.services.preview import edit_preview
from constellations.services.undo import edit_undo
from tests.constellations.editor.test_editor import OPERATION, short
from tests.constellations.planting import graph_of
from tests.constellations.runs.test_run import noop, query
from tests.constellations.services.test_edits import OPERATOR, agrees, fresh, outcome

SESSIONS = 50
EXAMPLES = settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.data_too_large]
)


# The planner's


def replanned(sessions: int, rules_each: int = 1) -> dict:
    """A chain of which each end makes as many rules fire as are wanted; each of them adds a task."""
    tasks = [noop(f"t{number}", after=[f"t{number - 1}"] if number else []) for number in range(sessions + 1)]
    rules = [
        {
            "name": f"r{number}-{part}",
            "when": {"event": "task_completed", "task": f"t{number}"},
            "edit": [{"add_task": noop(f"x{number}-{part}", after=[f"t{sessions}"])}],
        }
        for number in range(sessions)
        for part in range(rules_each)
    ]
    return {"tasks": tasks, "replan": rules}


def sessions_of(agent: Agent) -> int:
    return Transition.objects.filter(subject_id=agent.pk, event="edited").count()


@pytest.mark.django_db(transaction=True)
def test_fifty_editing_sessions_are_carried_out(engine, device):
    found = engine.carry_out(replanned(EDITING_SESSIONS))
    assert (found.state, found.version, found.edits.count()) == ("COMPLETED", SESSIONS + 1, SESSIONS)
    assert found.result["completed"] == 2 * SESSIONS + 1
    assert sessions_of(found.agent) == SESSIONS == EDITING_SESSIONS
    assert list(verify_database()) == []


@pytest.mark.django_db(transaction=True)
def test_one_more_fails_the_agent_and_names_the_limit(engine, device):
    found = engine.carry_out(replanned(EDITING_SESSIONS + 1))
    assert (found.agent.state, found.agent.reason) == ("FAIL", "limit reached: 50 editing sessions")
    assert (found.state, found.edits.count(), sessions_of(found.agent)) == ("FAILED", SESSIONS, SESSIONS)
    assert (found.interaction.outcome, found.reason) == ("failed", found.agent.reason)
    assert found.interaction.result["summary"].endswith(f"; {found.reason}")
    assert not found.tasks.filter(state__in=("PENDING", "WAITING_DEPENDENCY", "RUNNING")).exists()
    assert list(verify_database()) == []


@pytest.mark.django_db(transaction=True)
def test_a_runner_that_takes_over_counts_sessions_and_not_their_edits(engine, device):
    """Two edits a session: by edits the limit would be passed after half of them."""
    sessions = EDITING_SESSIONS // 2 + 5
    _, item = engine.submit(replanned(sessions, rules_each=2))
    engine.run(until=lambda: query("SELECT count(*) FROM constellations_edit") >= EDITING_SESSIONS)
    assert Constellation.objects.get().state == "EXECUTING"
    engine.run()
    found = Constellation.objects.get(interaction=item)
    assert (found.state, found.edits.count(), sessions_of(found.agent)) == ("COMPLETED", 2 * sessions, sessions)
    assert list(verify_database()) == []


@pytest.mark.django_db(transaction=True)
def test_a_rule_that_finds_all_as_it_wants_it_makes_a_session_and_no_edit(engine, device):
    plan = {
        "tasks": [noop("a"), noop("b", after=["a"])],
        "replan": [{"name": "x", "when": {"event": "task_completed"}, "times": 2, "edit": [{"add_task": noop("x")}]}],
    }
    found = engine.carry_out(plan)
    assert (found.state, found.version, found.edits.count()) == ("COMPLETED", 2, 1)
    assert (sessions_of(found.agent), found.fired) == (2, {"x": 2})
    assert list(verify_database()) == []


# Anybody's

SESSION = st.one_of(
    st.lists(OPERATION, min_size=1, max_size=4), st.lists(OPERATION, min_size=1, max_size=4), st.integers(0, 99)
)
"""Operations, or which of the edits so far is to be taken back."""


@pytest.fixture
def laptop(db):
    return device_create("laptop", by="system")


def states(constellation: Constellation) -> dict[str, str]:
    return dict(Task.objects.filter(constellation=constellation).values_list("task_id", "state"))


def previewed(constellation: Constellation, operations: list) -> dict | None:
    return outcome(edit_preview, constellation.pk, operations)[0]


def carry_out(constellation: Constellation, wanted, made: list[Edit]) -> tuple[dict | None, Edit | None]:
    """One session: (what the preview said, the edit); the preview refuses what is refused."""
    if isinstance(wanted, list):
        operations = [short(each) for each in wanted]
        told = previewed(constellation, operations)
        try:
            return told, edit_apply(constellation.pk, operations, author=OPERATOR)[0]
        except EditRefused:
            assert told is None
            return None, None
    if not made:
        return None, None
    undone = made[wanted % len(made)]
    try:
        operations = inverse_operations(undone.before, undone.after, read_graph(constellation.pk).snapshot())
        told = previewed(constellation, operations) if operations else {"diff": []}
        edit, changed = edit_undo(constellation.pk, undone.edit_id, OPERATOR)
        return told, edit if changed else None
    except UndoRefused:
        return None, None


@pytest.mark.attack
@pytest.mark.django_db
@EXAMPLES
@given(st.lists(SESSION, min_size=SESSIONS, max_size=SESSIONS))
def test_fifty_sessions_do_what_their_previews_said_and_are_taken_back_one_by_one(operator, laptop, sessions):
    constellation = fresh(operator)
    graphs, made = [graph_of(constellation)], []
    for wanted in sessions:
        before = states(constellation)
        told, edit = carry_out(constellation, wanted, made)
        assert bool(told and told["diff"]) == (edit is not None)
        if edit is not None and told is not None:
            assert (edit.before, edit.after, edit.diff) == (told["before"], told["after"], told["diff"])
            agrees(told["consequences"], before, states(constellation))
            made.append(edit)
            graphs.append(graph_of(constellation))
        else:
            assert states(constellation) == before
    for edit, graph in zip(reversed(made), reversed(graphs[:-1]), strict=True):
        assert edit_undo(constellation.pk, edit.edit_id, OPERATOR)[1]
        assert graph_of(constellation) == graph
    assert list(verify_stream(constellation.session_id)) == []
