"""Processes of this host whose attempts are over, because their device or their runner was lost: ended before others begin."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from agents import ids
from agents.devices.host import instance_name
from agents.devices.processes import attempts_at_work, end_attempts
from agents.models import DeviceCall
from agents.streams.row_types import HeldAttempt
from agents.streams.tables import fold_rows


def end_left_on_device(device: int) -> set[int]:
    """End whatever works here for a device that was lost, before it takes work again; whose attempts these were.

    Every attempt on it was lost with it, so no process of it is wanted. Raises TimeoutError where one cannot be ended.
    """
    instance = instance_name()
    at_work = sorted(attempts_at_work(instance))
    if not at_work:
        return set()
    where = f"COALESCE(slot_device_id, device_id) = %s AND id IN ({', '.join(['%s'] * len(at_work))})"
    rows: list[HeldAttempt] = fold_rows("attempt", where, device, *at_work)
    return end_attempts(instance, [row["id"] for row in rows]) if rows else set()


def end_left_of_calls(attempts: Iterable[int]) -> set[int]:
    """End what works here for calls whose process has gone. Raises TimeoutError."""
    return end_attempts(instance_name(), attempts)


def end_left_of_sessions(sessions: Collection[int]) -> set[int]:
    """End what works here for sessions that another runner drives from now on, also what was to be interrupted.

    Calls with rows are not touched: whoever carries them out goes on. All others the new runner takes for lost. Raises
    TimeoutError.
    """
    instance = instance_name()
    at_work = {attempt for attempt in attempts_at_work(instance) if ids.stream_of(attempt) in sessions}
    if not at_work:
        return set()
    open_calls = DeviceCall.objects.filter(attempt_id__in=at_work).exclude(state="ended")
    return end_attempts(instance, at_work - set(open_calls.values_list("attempt_id", flat=True)))
