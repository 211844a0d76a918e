"""What must hold in every database, seen from the graph."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import Count, Q, Sum
from django.db.models.functions import Coalesce

from agents.models import Device, SlotRequest
from agents.streams.verify import Finding, register_invariant
from constellations.machines.constellation import CLOSED
from constellations.models import Attempt, Constellation, Task


@register_invariant
def one_running_attempt_a_task() -> Iterator[Finding]:
    for task in Task.objects.annotate(n=Count("attempts", filter=Q(attempts__outcome=""))).filter(n__gt=1):
        yield f"task {task.pk}: {task.n} attempts run side by side"


@register_invariant
def attempts_run_in_running_tasks() -> Iterator[Finding]:
    for attempt in Attempt.objects.filter(outcome="").exclude(task__state="RUNNING"):
        yield f"attempt {attempt.pk} has not ended, and its task {attempt.task_id} is not RUNNING"
    for task in Task.objects.filter(state="RUNNING").exclude(attempts__outcome=""):
        yield f"task {task.pk} is RUNNING and has no attempt that runs"


@register_invariant
def completed_once() -> Iterator[Finding]:
    for task in Task.objects.annotate(n=Count("attempts", filter=Q(attempts__outcome="completed"))).filter(n__gt=1):
        yield f"task {task.pk} was completed {task.n} times"


@register_invariant
def slots_are_held_by_attempts() -> Iterator[Finding]:
    holding = Attempt.objects.filter(outcome="", holds_slot=True).annotate(of=Coalesce("slot_device_id", "device_id"))
    held = dict(holding.values_list("of").annotate(n=Count("pk")))
    granted = dict(SlotRequest.objects.values_list("device_id").annotate(n=Sum("granted")))
    for device in Device.objects.all():
        taken = held.get(device.pk, 0) + granted.get(device.pk, 0)
        if device.used != taken:
            yield f"device {device.name}: {device.used} slots are taken, {taken} are held or granted"


@register_invariant
def closed_constellations_hold_nothing_open() -> Iterator[Finding]:
    open_states = ("RUNNING", "PENDING", "WAITING_DEPENDENCY")
    for task in Task.objects.filter(constellation__state__in=(*CLOSED, "CANCELLED"), state__in=open_states):
        yield f"task {task.pk} is {task.state} in a constellation that has ended"


@register_invariant
def the_planner_knew_all_ends_before_a_close() -> Iterator[Finding]:
    for task in Task.objects.filter(constellation__state__in=CLOSED, untold=True):
        yield f"task {task.pk} has ended, and its constellation was closed before the planner was told"


@register_invariant
def edits_count_versions() -> Iterator[Finding]:
    for constellation in Constellation.objects.annotate(n=Count("edits")).exclude(version=1):
        if constellation.version != constellation.n + 1:
            yield f"constellation {constellation.pk}: version {constellation.version} after {constellation.n} edits"
