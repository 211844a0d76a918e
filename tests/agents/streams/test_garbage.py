"""The search for garbage waits while it would be in the way, and never longer."""

import gc

import pytest

from agents.services.sessions import session_create
from agents.streams.door import door
from agents.streams.garbage import SearchPause, note_rows_made, nothing_collected


def test_the_search_goes_on_when_the_last_who_wanted_it_to_wait_has_ended():
    pause = SearchPause()
    for _ in range(2):
        pause.begin()
        pause.begin()
        pause.end()
        assert not gc.isenabled()
        pause.end()
        assert gc.isenabled()


def test_the_search_goes_on_after_an_error():
    with pytest.raises(ValueError, match="broken"), nothing_collected():
        raise ValueError("broken")
    assert gc.isenabled()


def test_a_process_that_never_searches_is_left_so():
    gc.disable()
    try:
        with nothing_collected():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_many_rows_count_as_old_at_once_and_are_still_found_when_nobody_has_them():
    rows = [[number] for number in range(3)]
    note_rows_made(3)
    assert not any(thing is rows for thing in gc.get_objects(generation=2))
    note_rows_made(1_000)
    assert any(thing is rows for thing in gc.get_objects(generation=2))
    assert gc.get_freeze_count() == 0


@pytest.mark.django_db(transaction=True)
def test_nobody_waits_at_a_door_for_a_search(operator):
    session = session_create(operator, by="system")
    with door(session.pk, "user:1"):
        assert not gc.isenabled()
    assert gc.isenabled()
