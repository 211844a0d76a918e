"""What tests of minds share."""

from __future__ import annotations

import asyncio

import pytest
from asgiref.sync import sync_to_async
from django.db import connections


@pytest.fixture(autouse=True)
def connections_closed(request):
    """Bodies of calls use the database in a thread of their own; its connection must not outlive the test's database."""
    yield
    if request.node.get_closest_marker("django_db") is not None:
        asyncio.run(sync_to_async(connections.close_all)())
