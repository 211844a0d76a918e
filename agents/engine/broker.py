"""django-q2's broker on the database, which outlasts an outage of it.

The library's process that fetches jobs logs an error, sleeps ten seconds and ends; so after each lost connection no job would
run for that long (seen with django-q2 1.11).
"""

from __future__ import annotations

import logging
import time
from typing import Any

from django.db import Error as DatabaseError
from django.db import connections
from django_q.brokers.orm import ORM
from django_q.conf import Conf

from agents.engine.summon import queue_of
from agents.streams.outages import outage_refusal

RETRY_S = 0.2
log = logging.getLogger(__name__)


class PatientBroker(ORM):  # type: ignore[misc]  # the library has no types
    """Jobs are rows, as django-q2 has them, in the queue of their cluster; without the database there are none for now."""

    _is_away = False

    def __init__(self, list_key: str | None = None):
        super().__init__(queue_of(list_key or Conf.CLUSTER_NAME))

    def dequeue(self) -> Any:
        try:
            jobs = super().dequeue()
        except DatabaseError as error:
            refusal = outage_refusal(error)
            if refusal is None:
                raise
            if not self._is_away:
                log.warning("no jobs are fetched: %s", refusal)
            self._is_away = True
            connections[Conf.ORM].close()
            time.sleep(RETRY_S)
            return None
        self._is_away = False
        return jobs
