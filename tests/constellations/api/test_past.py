"""A session's rows over REST by columns, now and at any moment of the past; when things happened, and who did them."""

import gzip
import json
import random
from collections import OrderedDict
from itertools import pairwise

import pytest
from django.test import Client

from agents.models import Event
from agents.services import sessions
from agents.streams import past
from agents.streams.fold import events_since, fold_events, read_rows, stream_head
from agents.streams.tables import TABLES
from constellations.reads import density
from tests.agents.conftest import Rest, add_agents, record

pytestmark = pytest.mark.django_db(transaction=True)
PLAN = "name: two\ntasks:\n  - {task_id: a, tool: noop}\n  - {task_id: b, tool: noop, after: [a]}\n"


@pytest.fixture
def session(operator, engine, device):
    made = sessions.session_create(operator, "s", by=f"user:{operator.pk}")
    sessions.request_submit(made.pk, "interaction", "c", {"plan": PLAN}, by=f"user:{operator.pk}")
    engine.run()
    return made


@pytest.fixture
def wandered(session):
    """The same session after rows have come, changed and gone, some of them within one event."""
    chance, there = random.Random(1), []
    for number in range(60):
        kind = chance.choice(["add", "add", "change", "change", "remove"]) if there else "add"
        if kind == "add":
            there += add_agents(session, chance.randint(1, 3), name=f"agent {number}")
        elif kind == "change":
            record(session.pk, "noted", set={"agent": {str(chance.choice(there)): {"reason": str(number)}}})
        else:
            gone = there.pop(chance.randrange(len(there)))
            record(session.pk, "noted", set={"agent": {str(gone): {"reason": "last"}}}, delete={"agent": [gone]})
    return session


@pytest.fixture
def rest(operator):
    return Rest(operator)


def rows_of(snapshot) -> dict:
    """{table: {id: row}}, as the fold has them."""
    found = {}
    for name, table in snapshot["tables"].items():
        rows = (dict(zip(table["columns"], row, strict=True)) for row in table["rows"])
        found[name] = {str(row["id"]): TABLES[name].whole(row) for row in rows}
    return found


def filled(rows: dict) -> dict:
    return {name: found for name, found in rows.items() if found}


def folded(session, seq) -> dict:
    return fold_events(events_since(session.pk, 0, seq)) if seq else {}


def lead(rows, told) -> None:
    """Change the rows of one moment into those of another, as a page does."""
    for name, fresh in rows_of(told).items():
        rows.setdefault(name, {}).update(fresh)
    for name, table in told["changed"].items():
        for values in table["rows"]:
            fields = dict(zip(table["columns"], values, strict=True))
            rows[name][str(fields["id"])] |= fields
    for name, gone in told["gone"].items():
        for key in gone:
            del rows[name][str(key)]


def begin_anew(monkeypatch, every, steps=256, rows=2_000) -> None:
    """No step of any stream is kept."""
    monkeypatch.setattr(past, "EVENTS_BETWEEN", every)
    monkeypatch.setattr(past, "ROWS_BETWEEN", rows)
    monkeypatch.setattr(past, "KEPT_STEPS", steps)
    monkeypatch.setattr(past, "_KEPT", OrderedDict())


def snapshot(rest, session, **query) -> dict:
    answer = rest.get(f"/api/sessions/{session.pk}/snapshot/", **query)
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_a_snapshot_by_columns_is_what_the_tables_hold(rest, session):
    told = snapshot(rest, session)
    assert (told["seq"], told["head"], told["not_kept"]) == (stream_head(session.pk), stream_head(session.pk), [])
    assert filled(rows_of(told)) == filled(read_rows(session.pk))
    assert "error" not in told["tables"]["task"]["columns"]


def test_it_is_compressed_for_who_takes_that(operator, rest, session):
    client = Client()
    client.force_login(operator)
    answer = client.get(f"/api/sessions/{session.pk}/snapshot/", headers={"accept-encoding": "gzip, br"})
    assert answer.headers["Content-Encoding"] == "gzip"
    assert b'"tables"' in gzip.decompress(answer.content)
    assert "Content-Encoding" not in rest.get(f"/api/sessions/{session.pk}/snapshot/").headers


def test_a_task_that_was_carried_out_is_less_than_200_bytes_on_the_wire(operator, engine, device):
    """So ten thousand are less than 2 MB: with agent, attempt and dependency, compressed."""
    tasks = [{"task_id": f"part{number}", "name": f"Part {number} of all", "tool": "noop"} for number in range(1_000)]
    for number, task in enumerate(tasks[1:], 1):
        task["after"] = [f"part{number // 2}"]
    made = sessions.session_create(operator, "large", by=f"user:{operator.pk}")
    sessions.request_submit(made.pk, "interaction", "c", {"plan": json.dumps({"tasks": tasks})}, by=f"user:{operator.pk}")
    engine.run()
    client = Client()
    client.force_login(operator)
    answer = client.get(f"/api/sessions/{made.pk}/snapshot/", headers={"accept-encoding": "gzip"})
    tables = json.loads(gzip.decompress(answer.content))["tables"]
    state = tables["task"]["columns"].index("state")
    assert [row[state] for row in tables["task"]["rows"]] == ["COMPLETED"] * 1_000
    assert len(tables["attempt"]["rows"]) == 1_000
    assert len(answer.content) < 1_000 * 200


@pytest.mark.parametrize("between", [3, 2_000])
def test_every_moment_of_the_past_is_the_fold_up_to_it(rest, session, between, monkeypatch):
    begin_anew(monkeypatch, every=between)
    head = stream_head(session.pk)
    for seq in (head, 1, head // 2, head - 1, 0):
        told = snapshot(rest, session, seq=seq)
        assert told["seq"] == seq
        assert filled(rows_of(told)) == filled(folded(session, seq))
        assert told["not_kept"] == ["readings", "output", "lease"]


@pytest.mark.parametrize(("every", "steps", "rows"), [(2, 256, 9), (3, 4, 9), (7, 2, 5), (2_000, 256, 4), (2_000, 256, 2_000)])
def test_from_any_moment_to_any_other_what_differs_leads_to_its_rows(rest, wandered, every, steps, rows, monkeypatch):
    """Forwards and backwards, over tasks that come, change and go, and however many steps have become one."""
    begin_anew(monkeypatch, every, steps, rows)
    head = stream_head(wandered.pk)
    chance = random.Random(every + rows)
    at, there = head, folded(wandered, head)
    for seq in [0, head, *(chance.randint(0, head) for _ in range(30))]:
        told = snapshot(rest, wandered, seq=seq, since=at)
        assert (told["seq"], told["since"], told["head"]) == (seq, at, head)
        lead(there, told)
        assert filled(there) == filled(folded(wandered, seq)), f"from {at} to {seq}"
        at = seq


def test_what_did_not_change_is_not_told(rest, session):
    head = stream_head(session.pk)
    assert snapshot(rest, session, seq=head, since=head)["tables"] == {}
    (first,) = [each for each in events_since(session.pk, 0) if "task" in each["data"].get("set", {})][:1]
    told = snapshot(rest, session, seq=first["seq"], since=first["seq"] - 1)
    ((row, fields),) = first["data"]["set"]["task"].items()
    assert set(told["changed"]["task"]["columns"]) == {"id", *fields}
    assert told["changed"]["task"]["rows"][0][0] == int(row)
    assert (len(told["changed"]["task"]["rows"]), "task" in told["tables"], told["gone"]) == (1, False, {})


def test_where_far_more_would_be_folded_all_rows_are_told(rest, session, monkeypatch):
    begin_anew(monkeypatch, every=3)
    monkeypatch.setattr(past, "SOON_EVENTS", 1)
    head = stream_head(session.pk)
    told = snapshot(rest, session, seq=4, since=head)
    assert (told["since"], filled(rows_of(told))) == (0, filled(folded(session, 4)))
    assert past._KEPT[session.pk].seqs[-1] < head
    assert snapshot(rest, session, seq=head, since=4)["since"] == 4
    assert snapshot(rest, session, seq=4, since=head)["since"] == head, "by now they are known"


def test_a_step_ends_with_the_event_that_touches_many_rows(rest, session, monkeypatch):
    begin_anew(monkeypatch, every=2_000, rows=6)
    events = events_since(session.pk, 0)
    snapshot(rest, session, seq=len(events))
    kept = past._KEPT[session.pk]
    assert 2 < len(kept.steps) < len(events)
    for begin, end in pairwise(kept.seqs):
        touched = [
            sum(len(rows) for kind in ("add", "set") for rows in event["data"].get(kind, {}).values())
            for event in events[begin:end]
        ]
        assert sum(touched[:-1]) < 6 <= sum(touched)
    assert kept.seqs[-1] < len(events), "the last one goes on"


def test_a_part_of_a_step_is_read_once(rest, session, monkeypatch):
    begin_anew(monkeypatch, every=5)
    head = stream_head(session.pk)
    snapshot(rest, session, seq=8, since=head)
    monkeypatch.setattr(past, "changes_after", None)
    assert snapshot(rest, session, seq=5, since=8)["since"] == 8


def test_the_steps_of_few_streams_are_kept_and_not_for_ever(session, monkeypatch):
    begin_anew(monkeypatch, every=3)
    first = past._history_of(session.pk)
    for stream in range(1_000, 1_000 + past.KEPT_STREAMS):
        past._history_of(stream)
    assert len(past._KEPT) == past.KEPT_STREAMS
    assert past._history_of(session.pk) is not first
    past._KEPT[session.pk].looked_at -= past.KEPT_S + 1
    past._history_of(1_003)
    assert session.pk not in past._KEPT


def test_a_moment_is_found_by_its_time(rest, session):
    third = Event.objects.filter(stream=session.pk, seq=3).get()
    told = snapshot(rest, session, at=third.at.isoformat())
    assert told["seq"] >= 3
    assert Event.objects.get(stream=session.pk, seq=told["seq"]).at == third.at
    assert snapshot(rest, session, at="2001-01-01T00:00:00Z")["seq"] == 0


@pytest.mark.parametrize(
    ("query", "key"),
    [
        ({"seq": 10_000}, "seq"),
        ({"at": "yesterday"}, "at"),
        ({"at": "2026-11-23T03:05:12"}, "at"),
        ({"seq": 1, "at": "2026-11-23T03:05:12Z"}, "at"),
        ({"seq": 1, "since": 10_000}, "since"),
        ({"since": 1}, "since"),
    ],
)
def test_a_moment_that_is_none_is_refused_by_its_name(rest, session, query, key):
    answer = rest.get(f"/api/sessions/{session.pk}/snapshot/", **query)
    assert (answer.status_code, answer.json()["problems"][0]["key"]) == (400, key)


def test_somebody_elses_past_is_not_there(user, session):
    for part in ("snapshot", "density", "people"):
        assert Rest(user).get(f"/api/sessions/{session.pk}/{part}/").status_code == 404


def test_density_counts_every_event_once_and_marks_what_happened(rest, session):
    told = rest.get(f"/api/sessions/{session.pk}/density/", buckets=7).json()
    head = stream_head(session.pk)
    assert len(told["buckets"]) == 7
    assert (sum(each["events"] for each in told["buckets"]), told["buckets"][-1]["seq"], told["head"]) == (head, head, head)
    assert [mark["kind"] for mark in told["marks"] if mark["kind"] != "edit"] == ["request", "outcome"]
    assert sorted(mark["seq"] for mark in told["marks"]) == [mark["seq"] for mark in told["marks"]]


def test_people_are_named(rest, operator, session):
    told = rest.get(f"/api/sessions/{session.pk}/people/").json()
    assert told[f"user:{operator.pk}"] == "operator"


def test_of_very_many_events_some_are_read_and_count_for_all(rest, session, monkeypatch):
    monkeypatch.setattr(density, "LOOKED_AT", stream_head(session.pk) // 2)
    told = rest.get(f"/api/sessions/{session.pk}/density/", buckets=3).json()
    assert abs(sum(each["events"] for each in told["buckets"]) - stream_head(session.pk)) <= 2
    assert told["buckets"][-1]["seq"] == stream_head(session.pk)
