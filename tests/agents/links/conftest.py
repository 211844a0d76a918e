"""A session that a lease is on, a device that this process holds, and calls for it."""

from __future__ import annotations

import pytest

from agents.links import holders
from agents.models import Stream
from agents.services import sessions
from agents.services.devices import device_create
from agents.tools.calls import Call

FENCE = 3
"""Of the session's lease."""


@pytest.fixture
def session(transactional_db, operator):
    made = sessions.session_create(operator, by=f"user:{operator.pk}")
    Stream.objects.filter(pk=made.pk).update(token=FENCE)
    return made


@pytest.fixture
def far(transactional_db):
    """A device that some other process than the session's runner holds; here it is this one."""
    return device_create("far", kind="remote", by="system")


@pytest.fixture
def held(far) -> dict[int, int]:
    """The fence of that hold, by device."""
    return {far.pk: holders.take_link(far.pk)}


@pytest.fixture
def make_call(session, far):
    def make(key: int, **more) -> Call:
        device = {"id": far.pk, "name": far.name, "kind": "remote", "host": "", "limits": {}}
        return Call(
            attempt=key, session=session.pk, tool="noop", arguments={"result": key}, device=device, timeout=5.0, key=key,
            fence=more.pop("fence", FENCE), **more,
        )  # fmt: skip

    return make
