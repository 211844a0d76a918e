"""What the views of a session are drawn from: states between two moments, and one log of all that was printed."""

from datetime import timedelta

import pytest
from django.utils.dateparse import parse_datetime

from agents.models import Artifact, Event, Output, Transition
from agents.reads import timeline
from agents.services import sessions
from agents.services.outputs import keep_long_output
from constellations.models import Task
from constellations.reads import session_log
from tests.agents.conftest import Rest
from tests.constellations.api.test_api import add_attempts, printed
from tests.constellations.planting import advance, noop, plant

pytestmark = pytest.mark.django_db(transaction=True)
SECRET = "ghp_0123456789abcdefghij0123456789"


@pytest.fixture
def rest(operator):
    return Rest(operator)


@pytest.fixture
def session(operator):
    return sessions.session_create(operator, "mine", by="system")


@pytest.fixture
def attempts(session, device):
    """Of task `a` two, of task `b` one."""
    plant(session, noop("a"), noop("b"))
    a, b = (Task.objects.get(task_id=name).pk for name in "ab")
    return [*add_attempts(session, a, device, 2), *add_attempts(session, b, device, 1)]


def log(rest, session, **query):
    answer = rest.get(f"/api/sessions/{session.pk}/log/", **query)
    assert answer.status_code == 200, answer.content
    return answer.json()


def texts(page) -> list[str]:
    return [piece["text"] for piece in page["pieces"]]


def prints(attempt, text):
    last = Output.objects.filter(attempt_id=attempt).order_by("-offset").first()
    Output.objects.create(attempt_id=attempt, offset=last.offset + len(last.text) if last else 0, text=text)


def test_the_log_is_what_all_attempts_printed_in_the_order_in_which_it_came(rest, session, attempts):
    first, second, third = attempts
    for attempt, text in ((first, "one\n"), (third, "two\n"), (first, "three\n"), (second, "four\n")):
        prints(attempt, text)
    page = log(rest, session, after=0)
    assert texts(page) == ["one\n", "two\n", "three\n", "four\n"]
    assert [piece["task_id"] for piece in page["pieces"]] == ["a", "b", "a", "a"]
    assert [piece["number"] for piece in page["pieces"]] == [1, 1, 1, 2]
    assert [piece["offset"] for piece in page["pieces"]] == [0, 0, 4, 0]
    assert (page["first"], page["last"], page["more"]) == (page["pieces"][0]["id"], page["pieces"][3]["id"], False)
    assert log(rest, session) == page


def test_pages_go_on_and_back_from_a_place(rest, session, attempts):
    for number in range(7):
        prints(attempts[number % 3], f"{number}")
    begins = log(rest, session, after=0, limit=3)
    assert (texts(begins), begins["more"]) == (["0", "1", "2"], True)
    onward = log(rest, session, after=begins["last"], limit=4)
    assert (texts(onward), onward["more"]) == (["3", "4", "5", "6"], False)
    assert log(rest, session, after=onward["last"]) == {"pieces": [], "first": None, "last": None, "more": False}
    ends = log(rest, session, limit=2)
    assert (texts(ends), ends["more"]) == (["5", "6"], True)
    assert texts(log(rest, session, before=ends["first"], limit=2)) == ["3", "4"]


def test_a_page_ends_where_its_characters_do_but_has_one_piece(rest, session, attempts, monkeypatch):
    monkeypatch.setattr(session_log, "PAGE_CHARACTERS", 10)
    for text in ("x" * 20, "y" * 4, "z" * 6, "w"):
        prints(attempts[0], text)
    assert [len(text) for text in texts(log(rest, session, after=0))] == [20]
    page = log(rest, session)
    assert [len(text) for text in texts(page)] == [6, 1]
    assert page["more"]


def test_one_task_or_one_attempt_alone(rest, session, attempts):
    for attempt in attempts:
        prints(attempt, f"{attempt}")
    task = Task.objects.get(task_id="a").pk
    assert texts(log(rest, session, task=task)) == [str(attempts[0]), str(attempts[1])]
    assert texts(log(rest, session, attempt=attempts[1])) == [str(attempts[1])]
    assert texts(log(rest, session, task=task, attempt=attempts[2])) == []


def test_a_secret_that_two_pieces_part_is_hidden_in_both(rest, session, attempts):
    for part in ("with " + SECRET[:9], SECRET[9:20], SECRET[20:] + " in it"):
        prints(attempts[0], part)
        prints(attempts[2], "between")
    page = "".join(piece["text"] for piece in log(rest, session, after=0)["pieces"] if piece["attempt"] == attempts[0])
    assert page == f"with {'•' * len(SECRET)} in it"
    second = log(rest, session, after=0, limit=3)["pieces"][2]
    assert second["text"] == "•" * 11
    whole = downloaded(rest, session)
    assert SECRET[:9] not in whole
    assert f"with {'•' * len(SECRET)} in it" in whole


def downloaded(rest, session, **query) -> str:
    answer = rest.get(f"/api/sessions/{session.pk}/log/download/", **query)
    assert answer.status_code == 200
    assert answer["Content-Disposition"] == f'attachment; filename="session-{session.pk}.log"'
    return b"".join(answer.streaming_content).decode()


def test_what_is_left_out_of_a_long_output_is_said_and_downloaded(rest, session, attempts, settings):
    settings.OUTPUT_ROWS = 4_000
    lines = [f"line {number:05}\n" * 100 for number in range(10)]
    printed(attempts[0], *lines)
    prints(attempts[2], "after it\n")
    assert keep_long_output(attempts[0])
    page = log(rest, session, after=0)
    (cut,) = [piece for piece in page["pieces"] if piece["left_out"]]
    shown = sum(len(piece["text"]) for piece in page["pieces"] if piece["attempt"] == attempts[0])
    assert cut["left_out"] == sum(map(len, lines)) - shown > 0
    assert cut["whole"] == Artifact.objects.get().pk
    assert log(rest, session, after=cut["id"] - 1, limit=1)["pieces"] == [cut]
    whole = downloaded(rest, session)
    assert whole.startswith(f"==> a, attempt 1 (running) <==\n{''.join(lines)}\n==> b, attempt 1")
    assert whole.endswith("(running) <==\nafter it\n\n")


def test_a_download_says_where_it_ends(rest, session, attempts, monkeypatch):
    monkeypatch.setattr(session_log, "DOWNLOAD_CHARACTERS", 5)
    prints(attempts[0], "0123456789")
    prints(attempts[1], "never")
    whole = downloaded(rest, session)
    assert "01234\n==> The rest is left out" in whole
    assert "never" not in whole


def test_a_session_that_printed_nothing_has_an_empty_log(rest, session):
    assert log(rest, session) == {"pieces": [], "first": None, "last": None, "more": False}
    assert downloaded(rest, session) == ""


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("address", "query", "named"),
    [
        ("log", {"after": 1, "before": 2}, "before"),
        ("log", {"limit": 501}, "limit"),
        ("log", {"after": "x"}, "after"),
        ("log", {"tasks": 1}, "tasks"),
        ("timeline", {"from": "yesterday"}, "from"),
        ("timeline", {"until": "2026-11-23T10:00:00"}, "until"),
        ("timeline", {"from": "2026-13-45T10:00:00Z"}, "from"),
    ],
)
def test_what_is_asked_wrongly_is_named(rest, session, address, query, named):
    answer = rest.get(f"/api/sessions/{session.pk}/{address}/", **query)
    assert answer.status_code == 400
    assert named in answer.content.decode()


@pytest.mark.one_database
@pytest.mark.parametrize("address", ["log", "log/download", "timeline"])
def test_what_is_of_another_is_not_there(session, attempts, viewer, address):
    prints(attempts[0], "mine")
    assert Rest(viewer).get(f"/api/sessions/{session.pk}/{address}/").status_code == 404


def test_an_attempt_of_another_session_is_in_no_log_but_its_own(rest, session, attempts, operator):
    prints(attempts[0], "mine")
    other = sessions.session_create(operator, "other", by="system")
    assert log(rest, other, attempt=attempts[0])["pieces"] == []
    assert rest.get(f"/api/sessions/{other.pk}/log/download/", attempt=attempts[0]).status_code == 404


def states(rest, session, **query):
    answer = rest.get(f"/api/sessions/{session.pk}/timeline/", **query)
    assert answer.status_code == 200, answer.content
    return answer.json()


def moments(session, *seconds):
    """Gives the events that have transitions, one after the other, these times after the first event."""
    begins = Event.objects.filter(stream=session.pk).order_by("seq").first().at
    rows = list(Transition.objects.filter(stream=session.pk).order_by("pk"))
    for row, after in zip(rows, seconds, strict=True):
        at = begins + timedelta(seconds=after)
        Transition.objects.filter(pk=row.pk).update(at=at)
        Event.objects.filter(stream=session.pk, seq=row.seq).update(at=at)
    Event.objects.filter(stream=session.pk, seq__gt=rows[-1].seq).update(at=at)
    return [(begins + timedelta(seconds=after)).isoformat() for after in seconds]


@pytest.fixture
def moved(session):
    """A task that became ready, ran and completed."""
    made = plant(session, noop("a"))
    advance(made, a="COMPLETED")
    return Task.objects.get(task_id="a")


def test_states_come_in_columns_in_the_order_of_the_stream(rest, session, moved):
    found = states(rest, session)
    count = Transition.objects.filter(stream=session.pk).count()
    assert (found["rows"], found["truncated"]) == (count, False)
    assert {name: len(values) for name, values in found["columns"].items()} == dict.fromkeys(timeline.COLUMNS, count)
    mine = [i for i, subject in enumerate(found["columns"]["subject_id"]) if subject == moved.pk]
    assert [found["columns"]["to_state"][i] for i in mine][-2:] == ["RUNNING", "COMPLETED"]
    assert {found["columns"]["machine"][i] for i in mine} == {"task"}


def test_only_what_ended_between_two_moments_is_read(rest, session, moved):
    count = Transition.objects.filter(stream=session.pk).count()
    times = moments(session, *(1000 + 10 * i for i in range(count)))
    assert states(rest, session, **{"from": times[1]})["rows"] == count - 1
    assert states(rest, session, until=times[1])["rows"] == 1
    between = states(rest, session, **{"from": times[1], "until": times[2]})["columns"]["at"]
    assert [parse_datetime(at) for at in between] == [parse_datetime(times[1])]
    assert states(rest, session, **{"from": "2099-01-01T00:00:00Z"})["rows"] == 0
    assert states(rest, session, until="2001-01-01T00:00:00Z")["rows"] == 0


def test_more_than_a_page_is_said(rest, session, moved, monkeypatch):
    monkeypatch.setattr(timeline, "ROWS", 1)
    found = states(rest, session)
    assert (found["rows"], found["truncated"]) == (1, True)


def test_short_outputs_of_many_attempts_are_read_together(rest, session, device, django_assert_max_num_queries):
    plant(session, noop("a"))
    for attempt in add_attempts(session, Task.objects.get().pk, device, 20):
        prints(attempt, "x")
    with django_assert_max_num_queries(15):
        assert texts(log(rest, session)) == ["x"] * 20
