"""What devices said of themselves in the last day: a reading of each in every span of time, written by one statement."""

from __future__ import annotations

import time
from datetime import timedelta

from django.db.models import QuerySet
from django.db.models.functions import Now

from agents.links.holders import HEARTBEAT_S, MISSING
from agents.links.moves import REACHED
from agents.models import DeviceReading
from agents.streams.statements import current_store, insert_missing, write_transaction

SPAN_S = 300
"""One reading in so many seconds: 288 a day are as many as a small chart can draw, and 1,000 devices have 288,000 rows."""
KEPT = timedelta(days=1)


def span_now() -> int:
    """The span of time that it is."""
    return int(time.time()) // SPAN_S


def keep_readings(span: int) -> None:
    """Keep how every device is that was heard of lately, unless that was done in this span. Any process may do this."""
    store = current_store()
    reached = ", ".join(f"'{state}'" for state in REACHED)
    select = (
        f"l.device_id, %s, {store.now}, l.readings, d.used, d.max_concurrent"
        " FROM agents_devicelink l JOIN agents_device d ON d.id = l.device_id"
        f" WHERE d.state IN ({reached}) AND {store.seconds_since('l.heard_at')} < %s"
    )
    columns = "device_id, span, at, readings, used, max_concurrent"
    with write_transaction():
        insert_missing("agents_devicereading", columns, select, (span, MISSING * HEARTBEAT_S))


def kept_readings(device: int) -> QuerySet[DeviceReading]:
    """Those of a device, oldest first: of the last day, and not more than fit into it."""
    newest = span_now()
    spans = int(KEPT.total_seconds()) // SPAN_S
    return DeviceReading.objects.filter(device=device, span__gt=newest - spans, span__lte=newest).order_by("span")


def forget_old_readings() -> int:
    """Remove readings that are older than a day; how many."""
    return DeviceReading.objects.filter(at__lt=Now() - KEPT).delete()[0]
