"""A session's rows over REST by columns, now and at any moment of the past; when things happened, and who did them."""

import gzip
import json

import pytest
from django.test import Client

from agents.models import Event
from agents.services import sessions
from agents.streams import past
from agents.streams.fold import events_since, fold_events, read_rows, stream_head
from agents.streams.tables import TABLES
from constellations.reads import density
from tests.agents.conftest import Rest

pytestmark = pytest.mark.django_db(transaction=True)
PLAN = "name: two\ntasks:\n  - {task_id: a, tool: noop}\n  - {task_id: b, tool: noop, after: [a]}\n"


@pytest.fixture
def session(operator, engine, device):
    made = sessions.session_create(operator, "s", by=f"user:{operator.pk}")
    sessions.request_submit(made.pk, "interaction", "c", {"plan": PLAN}, by=f"user:{operator.pk}")
    engine.run()
    return made


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
    monkeypatch.setattr(past, "EVENTS_BETWEEN", between)
    past._KEPT.clear()
    head = stream_head(session.pk)
    for seq in (head, 1, head // 2, head - 1, 0):
        told = snapshot(rest, session, seq=seq)
        assert told["seq"] == seq
        assert filled(rows_of(told)) == filled(fold_events(events_since(session.pk, 0, seq)) if seq else {})
        assert told["not_kept"] == ["readings", "output", "lease"]


def test_many_kept_folds_are_thinned_out_and_still_right(session, monkeypatch):
    monkeypatch.setattr(past, "KEPT_FOLDS", 4)
    kept = past.KeptFolds(every=1)
    rows = {}
    for event in events_since(session.pk, 0):
        past.apply_anew(event["data"], rows)
        kept.keep(event["seq"], rows)
    assert len(kept.seqs) <= 4
    for seq, found in zip(kept.seqs, kept.folds, strict=True):
        assert filled(found) == filled(fold_events(events_since(session.pk, 0, seq)) if seq else {})


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
