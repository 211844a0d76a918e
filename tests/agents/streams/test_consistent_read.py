"""A consistent read, also inside another one."""

from __future__ import annotations

import threading

import pytest
from django.contrib.auth.models import Group
from django.db import connections

from agents.streams.fold import consistent_read

pytestmark = pytest.mark.django_db(transaction=True)


def add_elsewhere(name: str) -> None:
    def add() -> None:
        Group.objects.create(name=name)
        connections.close_all()

    thread = threading.Thread(target=add)
    thread.start()
    thread.join()


def test_a_read_inside_a_read_is_of_the_same_moment():
    names = Group.objects.filter(name="late")
    with consistent_read():
        assert not names.exists()
        add_elsewhere("late")
        with consistent_read():
            assert not names.exists()
        assert not names.exists(), "the inner one has not ended the outer one"
    assert names.exists()
