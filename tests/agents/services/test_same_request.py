"""What counts as the same request again, and what is refused under the id of another."""

import pytest

from agents.errors import Conflict
from agents.models import InboxItem
from agents.services.same_request import is_same_request, refuse_another_request

RETRY = {"constellation": 7, "retry": ["a"], "every_failed": False, "reason": "", "based_on": 3}

ANOTHER = "client_id c1 was used for another request, by user:1; give this one an id of its own"


def same(asked, **changed):
    return is_same_request("user:1", asked, "user:1", asked | changed)


def test_it_is_the_same_whatever_version_its_author_had_seen():
    assert same(RETRY, based_on=4)
    assert is_same_request("user:1", RETRY, "user:1", {key: RETRY[key] for key in RETRY if key != "based_on"})


def test_the_tasks_that_had_failed_then_do_not_count_and_those_that_were_named_do():
    assert not same(RETRY, retry=["a", "b"])
    assert not same(RETRY, every_failed=True, retry=["a", "b"])
    assert same(RETRY | {"every_failed": True}, retry=["a", "b"])


def test_an_event_that_was_named_counts_and_the_newest_one_does_not():
    fork = {"constellation": 7, "seq": 12, "newest": False}
    assert not same(fork, seq=13)
    assert same(fork | {"newest": True}, seq=13)


def test_what_an_undo_comes_to_does_not_count():
    assert same({"undoes": 5, "operations": [1]}, operations=[])
    assert not same({"undoes": 5, "operations": [1]}, undoes=6)
    assert not same({"undoes": None, "operations": [1]}, operations=[])


def test_nobody_else_sends_the_same_request():
    assert not is_same_request("user:1", RETRY, "user:2", RETRY)


@pytest.mark.parametrize(
    ("kind", "asked", "part", "said"),
    [
        ("stop", {}, "", "client_id c1 was used for a request of kind interaction"),
        (
            "interaction",
            {"plan": "x"},
            "",
            ANOTHER,
        ),
        ("interaction", RETRY, "fork", ANOTHER),
    ],
)
def test_another_request_under_the_same_id_is_refused(kind, asked, part, said):
    known = InboxItem(client_id="c1", kind="interaction", by="user:1", payload={"request": "y", "reopen": RETRY})
    with pytest.raises(Conflict) as refused:
        refuse_another_request(known, kind, "user:1", asked, part)
    assert str(refused.value) == said


def test_the_same_request_under_the_same_id_is_taken():
    known = InboxItem(client_id="c1", kind="interaction", by="user:1", payload={"request": "y", "reopen": RETRY})
    refuse_another_request(known, "interaction", "user:1", RETRY | {"based_on": 9}, "reopen")
    refuse_another_request(known, "interaction", "user:1", known.payload)
