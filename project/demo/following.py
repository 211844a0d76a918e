"""A session's stream as a terminal follows it: the rows it folds to, and a line for each thing that happens."""

from collections.abc import Iterator
from typing import Any

from agents.masks.values import mask_value
from agents.models import Device
from agents.streams.fold import apply_event, events_since

Event = dict[str, Any]
Row = dict[str, Any]
SUBJECTS = {
    "actor": "actor",
    "constellation_agent": "agent",
    "device_agent": "agent",
    "tool_loop": "agent",
    "task": "task",
    "constellation": "constellation",
}
"""Which table a machine's rows are in."""


class Following:
    """Reads behind a cursor and folds; what is read is what the database holds at `seq`, masked: it is for a terminal."""

    def __init__(self, session_id: int):
        self.session_id, self.seq = session_id, 0
        self.rows: dict[str, dict[str, Row]] = {}
        self._devices: dict[int, str] = {}

    def news(self) -> Iterator[Event]:
        """The events since the last call, at most one page. Each is folded when it is handed out, and not those after it."""
        for event in map(mask_value, events_since(self.session_id, self.seq)):
            apply_event(event["data"], self.rows)
            self.seq = event["seq"]
            yield event

    def tasks(self) -> list[Row]:
        """In the order in which they came."""
        return sorted(self.rows.get("task", {}).values(), key=lambda task: task["id"])

    def request(self, inbox_id: int) -> Row | None:
        return self.rows.get("inbox", {}).get(str(inbox_id))

    def edits(self) -> list[Row]:
        return sorted(self.rows.get("edit", {}).values(), key=lambda edit: edit["id"])

    def device(self, task: Row) -> str:
        """Where the task runs, or shall run."""
        key = task["device_id"]
        if key is None:
            return task["wanted_device"] or task["device_type"]
        if key not in self._devices:
            self._devices.update(Device.objects.values_list("pk", "name"))
        return self._devices.get(key, str(key))

    def lines(self, event: Event) -> Iterator[str]:
        """What an event says to a person: a line for each transition, edit, and edit of a rule that was refused."""
        steps = [event["data"]] if event["type"] == "state_changed" else event["data"].get("transitions", [])
        for told in steps:
            reason = f"  ({told['reason']})" if told["reason"] else ""
            yield f"{event['at'][11:23]}  {self._subject(told)}: {told['from_state']} > {told['to_state']}{reason}"
        for edit in event["data"].get("add", {}).get("edit", ()):
            yield f"{event['at'][11:23]}  edit by {edit['author']}: {edit.get('reason') or 'no reason given'}"
        if event["type"] == "edit_refused":
            yield f"{event['at'][11:23]}  edit of the rule {event['data']['rule']} refused: {event['data']['message']}"

    def _subject(self, told: Row) -> str:
        table = SUBJECTS.get(told["machine"], "")
        row = self.rows.get(table, {}).get(str(told["id"]), {})
        name = row.get("name") or row.get("task_id") or ""
        kind = told["machine"].replace("_", " ")
        if table == "task" and row:
            return f"{name} on {self.device(row)}"
        return kind if name in ("", kind) else f"{kind} {name}"
