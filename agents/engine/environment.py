"""What all sessions of a runner look at: the devices, how hard these are pressed, the policies, and the model profiles."""

from __future__ import annotations

from typing import Any

from agents.devices.profiles.names import name_fault
from agents.devices.readings import Pressure, Reading, take_reading
from agents.gates.policies import Rule
from agents.llm.profiles import Profile, read_profiles
from agents.streams.row_types import LiveDevice, PolicyRow
from agents.streams.statements import current_store, raw_cursor
from agents.streams.tables import TABLES, fold_rows
from agents.tools.command import device_workspace

READ_S = 5.0
"""Between two readings of a device's memory, disk and processor."""


class Surroundings:
    """`devices` are live rows by id, with `low`: why work on them pauses, if it does. `policies` come in their order.

    `profiles` are the model profiles by name.
    """

    def __init__(self) -> None:
        self.devices: dict[int, LiveDevice] = {}
        self.policies: list[Rule] = []
        self.profiles: dict[str, Profile] = {}
        self._pressures: dict[int, Pressure] = {}
        self._readings: dict[int, Reading] = {}
        self._read_at = 0.0

    def look(self, now: float) -> bool:
        """Read everything anew; whether anything has changed that sessions decide by."""
        table, changed = TABLES["device"], False
        columns = (*table.columns, ("used", "int"), ("queued", "int"))
        names = [name for name, _ in columns]
        for values in current_store().select(raw_cursor(), table.db_table, columns, "id > %s", (0,)):
            row: Any = dict(zip(names, values, strict=True))
            known: Any = self.devices.setdefault(values[0], {"low": ""})  # type: ignore[typeddict-item]  # filled here
            # Slots change with every commit; who waits for one is told by whoever gives it back.
            changed |= any(known.get(name) != row[name] for name, _ in table.columns)
            known.update(row)
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

    def _take_readings(self) -> bool:
        """Take a reading of every device of this host; whether one has become low, or is no more."""
        changed = False
        for key, device in self.devices.items():
            if device["kind"] != "local" or name_fault(device["name"]):
                continue
            reading = self._readings[key] = take_reading(device_workspace(device["name"]), self._readings.get(key))
            try:
                wanted = Pressure.of(device["limits"])
            except ValueError:  # nobody else must suffer for limits that say nothing
                wanted = Pressure()
            # It is kept from reading to reading, as it says for how long; only other limits begin it anew.
            pressure = self._pressures.get(key)
            if pressure is None or (pressure.limits, pressure.hold_s) != (wanted.limits, wanted.hold_s):
                pressure = self._pressures[key] = wanted
            low = pressure.take(reading)
            changed |= bool(low) != bool(device["low"])
            device["low"] = low
        return changed


def rule_of(row: PolicyRow) -> Rule:
    """A policy's row as it is judged by."""
    return Rule(row["tool"], row["pattern"], row["device"], row["decision"], row["critical"], row["note"], row["label"])
