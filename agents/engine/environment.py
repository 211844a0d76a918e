"""What all sessions of a runner look at: the devices, how hard these are pressed, the policies, and the model profiles."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import DurationField, ExpressionWrapper, F
from django.db.models.functions import Now

from agents.access.use import EVERYBODY, users_of
from agents.devices.host import is_of_this_host
from agents.devices.profiles.names import name_fault
from agents.devices.readings import DEFAULTS, Pressure, Reading, take_reading
from agents.gates.policies import Rule
from agents.links.holders import MISSING, heartbeat_s
from agents.llm.profiles import Profile, read_profiles
from agents.models import Device, DeviceLink
from agents.streams.row_types import LiveDevice, LiveDevices, PolicyRow
from agents.streams.statements import current_store, raw_cursor
from agents.streams.tables import TABLES, fold_rows
from agents.tools.workspaces import device_workspace

READ_S = 5.0
"""Between two readings of a device's memory, disk and processor."""


@dataclass(frozen=True)
class Told:
    """What only a thread reads: by device who may use it, where that is not everybody, and what its last heartbeat has told.

    The readings come with the time of the heartbeat, in seconds of this host's monotonic clock.
    """

    users: Mapping[int, frozenset[int] | None]
    readings: Mapping[int, tuple[Mapping[str, Any], float]]


class Surroundings:
    """`devices` are live rows by id, with `low`: why work on them pauses, if it does. `policies` come in their order.

    `profiles` are the model profiles by name.
    """

    def __init__(self) -> None:
        self.devices = LiveDevices()
        self.policies: list[Rule] = []
        self.profiles: dict[str, Profile] = {}
        self._pressures: dict[int, Pressure] = {}
        self._readings: dict[int, Reading] = {}
        self._read_at = 0.0
        self._told = Told({}, {})

    def look(self, now: float) -> bool:
        """Read everything anew; whether anything has changed that sessions decide by."""
        table, changed = TABLES["device"], False
        columns = (*table.columns, ("used", "int"), ("queued", "int"))
        names = [name for name, _ in columns]
        for values in current_store().select(raw_cursor(), table.db_table, columns, "id > %s", (0,)):
            row: Any = dict(zip(names, values, strict=True))
            fresh: Any = {"low": "", "users": frozenset(), "readings": {}}
            known: Any = self.devices.setdefault(values[0], fresh)
            # Slots change with every commit; who waits for one is told by whoever gives it back.
            changed |= any(known.get(name) != row[name] for name, _ in table.columns)
            known.update(row)
        changed |= self._take_users()
        self.devices.version += changed
        policies: list[PolicyRow] = sorted(fold_rows("policy", "id > %s", 0), key=lambda row: (row["order"], row["id"]))
        rules = [rule_of(row) for row in policies]
        changed |= rules != self.policies
        self.policies[:] = rules  # sessions have this very list
        profiles = read_profiles()
        changed |= profiles != self.profiles
        self.profiles.clear()
        self.profiles.update(profiles)  # and this very mapping
        if now >= self._read_at:
            self._read_at = now + READ_S
            changed |= self._take_readings()
        return changed

    def note_slots(self, free: dict[int, int]) -> None:
        """A commit has left so many slots free on these devices; the rows are read anew now and then."""
        for device, slots in free.items():
            row = self.devices[device]
            row["used"] = row["max_concurrent"] - slots

    def hear(self, told: Told) -> None:
        """Take up, with the next look, what was read in a thread."""
        self._told = told

    def _take_users(self) -> bool:
        """Who may use which device; whether that has changed. One that is not for everybody is nobody's until that is read."""
        changed = False
        for key, device in self.devices.items():
            users = None if EVERYBODY in device["used_by"] else self._told.users.get(key) or frozenset()
            changed |= device["users"] != users
            device["users"] = users
        return changed

    def _take_readings(self) -> bool:
        """Readings of all devices, taken here or told by those elsewhere; whether one has become low, or is no more."""
        changed = False
        for key, reading in [*self._readings_here(), *self._readings_elsewhere()]:
            device = self.devices[key]
            device["readings"] = {name: used for name in DEFAULTS if (used := getattr(reading, f"{name}_percent")) is not None}
            low = self._pressure_of(key, device).take(reading)
            changed |= bool(low) != bool(device["low"])
            device["low"] = low
        return changed

    def _readings_here(self) -> Iterator[tuple[int, Reading]]:
        for key, device in self.devices.items():
            if is_of_this_host(device) and not name_fault(device["name"]):
                self._readings[key] = take_reading(device_workspace(device["name"]), self._readings.get(key))
                yield key, self._readings[key]

    def _readings_elsewhere(self) -> Iterator[tuple[int, Reading]]:
        """What came with the last heartbeats. What is as old as a lost device is not known any more."""
        for key, (told, heard_at) in self._told.readings.items():
            device = self.devices.get(key)
            if device is not None and not is_of_this_host(device):
                is_old = time.monotonic() - heard_at > MISSING * heartbeat_s(device)
                yield key, reading_of({} if is_old else told, heard_at)

    def _pressure_of(self, key: int, device: LiveDevice) -> Pressure:
        """It is kept from reading to reading, as it says for how long; only other limits begin it anew."""
        try:
            wanted = Pressure.of(device["limits"])
        except ValueError:  # nobody else must suffer for limits that say nothing
            wanted = Pressure()
        pressure = self._pressures.get(key)
        if pressure is None or (pressure.limits, pressure.hold_s) != (wanted.limits, wanted.hold_s):
            pressure = self._pressures[key] = wanted
        return pressure


def read_told() -> Told:
    """Ask the database; in a thread, because it takes as long as there are devices."""
    now = time.monotonic()
    age = ExpressionWrapper(Now() - F("heard_at"), DurationField())
    links = DeviceLink.objects.filter(heard_at__isnull=False).annotate(age=age).values_list("device_id", "readings", "age")
    readings = {key: (told, now - max(silent.total_seconds(), 0.0)) for key, told, silent in links}
    return Told(users_of(Device.objects.values("id", "owner_id", "used_by")), readings)


def reading_of(told: Mapping[str, Any], at: float) -> Reading:
    """What a device has told with a heartbeat, by resource, in percent; anything that is no number is not known."""

    def percent(name: str) -> float | None:
        value = told.get(name, told.get(f"{name}_percent"))
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None

    return Reading(percent("memory"), percent("disk"), percent("cpu"), at)


def rule_of(row: PolicyRow) -> Rule:
    """A policy's row as it is judged by."""
    return Rule(row["tool"], row["pattern"], row["device"], row["decision"], row["critical"], row["note"], row["label"])
