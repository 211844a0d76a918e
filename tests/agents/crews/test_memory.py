"""Evidence as rows: whatever is read back gives the same memory and the same verdicts as it did live."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents import ids
from agents.clock import now_iso
from agents.crews.evidence import (
    ARGUMENT_BYTES,
    RAW_ERROR,
    RESULT_BYTES,
    LoopMemory,
    call_row,
    ended_fields,
    item_of,
    message_row,
)
from agents.models import Agent, Evidence, Loop
from agents.progress.settings import Settings
from agents.progress.shapes import kept_part, similar
from agents.services import sessions
from agents.streams.statements import current_store, raw_cursor
from agents.streams.tables import TABLES
from agents.tools.calls import Outcome

PATIENT = Settings.of({"stuck_threshold": 2, "progress_check_interval": 4, "steer_budget": 3})
AT = "2026-11-21T03:04:{:02d}.{:06d}Z"


class Life:
    """A loop as its agent lives it: rows by the moment at which they ended, and what was said of each."""

    def __init__(self, accepted=()):
        self.memory = LoopMemory(PATIENT, accepted)
        self.rows: list[dict] = []
        self.moment = 0

    def now(self) -> str:
        self.moment += 1
        return AT.format(self.moment // 1000, self.moment % 1000)

    def _new(self, **fields) -> dict:
        self.memory.count += 1
        row = TABLES["evidence"].whole({"id": self.memory.count, "loop_id": 1, "number": self.memory.count, **fields})
        row["started_at"] = self.now()
        self.rows.append(row)
        return row

    def call(self, tool, arguments, outcome, wrong="", accepting="", ordered=False):
        """One call from its beginning to its end, and perhaps a person's word in between."""
        row = self._new(**call_row(tool, arguments, "", PATIENT), ordered=ordered)
        if accepting:
            self.note(kind="accept", target=accepting, success=True)
        row.update(ended_fields(row, outcome, wrong, self.now()))
        self.memory.take(row)

    def note(self, **fields):
        row = self._new(**fields)
        row["ended_at"] = self.now()
        self.memory.take(row)

    def verdict(self):
        return self.memory.verdict


CALLS = st.tuples(
    st.sampled_from(["command", "read_file", "write_file"]),
    st.sampled_from(["a", "b"]),
    st.sampled_from(["", "no such thing", "denied"]),
    st.sampled_from(["", "", "rate_limit", "missing"]),
    st.sampled_from([None, "x", "y", "took 3 s", "took 4 s"]),
    st.booleans(),
)
NOTES = st.sampled_from(["user", "nudge", "phase", "compaction"])
DEEDS = st.lists(st.one_of(CALLS, NOTES, st.sampled_from(["say: so", "say: well", "go on"])), max_size=25)


def live(deeds, accepted=()) -> Life:
    life, known = Life(accepted), "same_tool_error:0"
    for deed in deeds:
        if isinstance(deed, tuple):
            tool, target, wrong, kind, said, ordered = deed
            arguments = {"argv": ["sh", target]} if tool == "command" else {"path": target}
            outcome = Outcome(
                "failed" if wrong else "completed", error=wrong, error_kind=kind if wrong else "", digest=said, text=said or ""
            )
            life.call(tool, arguments, outcome, wrong, accepting=known if kind == "missing" else "", ordered=ordered)
        elif deed == "go on":
            life.note(kind="accept", target=known, success=True)
        elif deed.startswith("say"):
            life.note(**message_row(deed))
        else:
            life.note(kind=deed, success=True)
        if life.verdict() is not None:
            known = life.verdict().identity
    return life


@given(DEEDS)
def test_whatever_an_agent_did_is_judged_the_same_when_it_is_read_back(deeds):
    life = live(deeds)
    back = LoopMemory(PATIENT, [row["target"] for row in life.rows if row["kind"] == "accept"])
    assert back.read(life.rows) is None
    assert (back.state, back.verdict, back.count) == (life.memory.state, life.memory.verdict, life.memory.count)


def test_a_call_that_has_not_ended_is_handed_back_and_counted():
    life = live([("command", "a", "", "", "x", False), "user"])
    life.rows.append({**life.rows[0], "id": 3, "number": 3, "ended_at": None})
    back = LoopMemory(PATIENT)
    assert back.read(life.rows) is life.rows[-1]
    assert (back.count, back.state.observed) == (3, 2)


def test_what_was_accepted_in_an_earlier_attempt_counts_from_the_beginning():
    failing = [("command", "a", "no such thing", "", None, False)] * 2
    identity = live(failing).verdict().identity
    assert live(failing, [identity]).verdict() is None or live(failing, [identity]).verdict().identity != identity


def test_a_word_of_a_person_during_a_call_counts_for_that_call():
    failing = ("command", "a", "no such thing", "", None, False)
    life = live([failing] * 2)
    identity = life.verdict().identity
    for _ in range(2):
        outcome = Outcome("failed", error="no such thing")
        life.call("command", {"argv": ["sh", "a"]}, outcome, outcome.error, accepting=identity)
    back = LoopMemory(PATIENT, [identity])
    back.read(life.rows)
    assert (back.state, back.verdict) == (life.memory.state, life.memory.verdict)


@pytest.mark.parametrize("stuck", [True, False])
def test_a_ruling_waits_for_the_end_of_an_action_and_is_read_back_as_it_was(stuck):
    failing = ("command", "a", "no such thing", "", None, False)
    life = live([failing])
    suspected = {"rule": "no_novelty", "score": 0.8, "identity": "no_novelty:1", "rows": [1], "sentence": "Nothing new."}
    ruling = {"suspicion": {**suspected, "agent_id": 1}, "stuck": stuck, "why": "so", "by": "somebody"}
    life.note(kind="ruling", target="no_novelty:1", success=True, arguments=ruling)
    assert life.verdict() is None
    life.call("read_file", {"path": "a"}, Outcome("completed", text="it", digest="it"))
    assert (life.verdict() and life.verdict().identity) == ("no_novelty:1" if stuck else None)
    back = LoopMemory(PATIENT)
    back.read(life.rows)
    assert (back.state, back.verdict) == (life.memory.state, life.memory.verdict)


def test_what_is_too_large_is_not_kept_and_is_told_apart_all_the_same():
    one, other = ("x" * ARGUMENT_BYTES + end for end in "ab")
    rows = [call_row("write_file", {"path": "f", "content": content}, "", PATIENT) for content in (one, other)]
    assert [row["arguments"] for row in rows] == [{}, {}]
    assert rows[0]["call"] != rows[1]["call"]
    row = TABLES["evidence"].whole(rows[0])
    fields = ended_fields(row, Outcome("failed", result="x" * RESULT_BYTES, error="e"), "e" * (RAW_ERROR + 1), AT.format(0, 0))
    assert "result" not in fields
    assert len(fields["raw_error"]) == RAW_ERROR


def test_the_end_of_a_call_tells_only_what_the_row_does_not_say_yet():
    row = TABLES["evidence"].whole(call_row("noop", {}, "", PATIENT))
    assert ended_fields(row, Outcome("completed"), "", AT.format(0, 1)) == {
        "success": True,
        "ended_at": AT.format(0, 1),
        "shape": "",
    }


def ended_row(tool: str, arguments: dict, outcome: Outcome, wrong: str = "") -> dict:
    row = TABLES["evidence"].whole({"number": 1, **call_row(tool, arguments, "", PATIENT)})
    return {**row, **ended_fields(row, outcome, wrong, AT.format(0, 1))}


def test_an_answer_an_error_and_arguments_keep_their_shape_where_only_times_differ():
    rows = [
        ended_row(
            "command",
            {"argv": ["curl", f"http://{n}.example/jobs", "--max-time", f"{n}s"]},
            Outcome("failed", text=f"12:00:0{n} build running, {n} s so far", digest=str(n)),
            f"gave up after {n} ms",
        )
        for n in (3, 4)
    ]
    one, other = map(item_of, rows)
    assert (one.shape, one.error_shape) == (other.shape, other.error_shape)
    assert one.outcome != other.outcome
    assert similar(one.call_shape, other.call_shape)
    assert all(0 < len(shape) <= 64 for shape in (one.shape, one.error_shape, one.call_shape))


def test_an_answer_that_is_no_text_has_a_shape_too_silence_an_empty_one_and_a_change_none():
    counted = [ended_row("noop", {}, Outcome("completed", result={"left": n, "state": "running"})) for n in (1, 2)]
    assert kept_part(counted[0]["shape"]) == kept_part(counted[1]["shape"]) != ""
    assert ended_row("noop", {}, Outcome("completed"))["shape"] == ""
    written = Outcome("completed", result={"path": "f", "size": 1}, digest="x", before="absent")
    assert ended_row("write_file", {"path": "f", "content": "a"}, written)["shape"] is None


def test_what_an_agent_says_has_a_shape():
    one, other = message_row("I will try again in 5 s."), message_row("I will try again in 6 s.")
    assert one["shape"] == other["shape"] != ""
    assert one["call"] != other["call"]


def test_a_look_is_an_action_like_any_other():
    row = TABLES["evidence"].whole({"kind": "observe", "tool": "observe", "success": True, "outcome": "x", "number": 1})
    assert item_of(row).kind == "tool"


def test_a_row_of_an_earlier_release_has_no_shapes():
    row = TABLES["evidence"].whole({"kind": "tool", "tool": "command", "success": True, "outcome": "x", "number": 1})
    item = item_of(row)
    assert (item.shape, item.call_shape, item.error_shape, item.ordered) == (None, "", "", False)


@pytest.mark.django_db(transaction=True)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(deeds=DEEDS)
def test_rows_that_went_through_the_database_are_the_same_evidence(session_loop, deeds):
    life = live(deeds)
    table, back = TABLES["evidence"], LoopMemory(PATIENT, [row["target"] for row in life.rows if row["kind"] == "accept"])
    Evidence.objects.all().delete()
    own = [{**row, "loop_id": session_loop, "id": session_loop + 1 + at} for at, row in enumerate(life.rows)]
    names = [name for name, _ in table.columns]
    if own:
        current_store().insert(raw_cursor(), table.db_table, table.columns, [[row[name] for name in names] for row in own])
    found = current_store().select(raw_cursor(), table.db_table, table.columns, "loop_id = %s", (session_loop,))
    back.read(dict(zip(names, row, strict=True)) for row in found)
    assert (back.state, back.verdict) == (life.memory.state, life.memory.verdict)


@pytest.fixture
def session_loop(transactional_db, operator):
    """The id of a loop that evidence can belong to."""
    by, now = f"user:{operator.pk}", now_iso()
    session = sessions.session_create(operator, by=by)
    item, _ = sessions.request_submit(session.pk, "interaction", "", {"plan": "tasks: [{task_id: a, tool: noop}]"}, by=by)
    key = ids.row_id(session.pk, 500)
    agent = Agent.objects.create(
        id=key, session=session, interaction=item, machine="device_agent", state="CONTINUE", created_at=now, entered_at=now
    )
    return Loop.objects.create(id=key, agent=agent, created_at=now, entered_at=now).pk
