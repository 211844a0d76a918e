"""What an edit would do: the same editor on a graph that was read. It writes nothing and takes no lock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import count
from typing import Any

from agents.clock import now_iso
from agents.crews.script import call_of
from agents.gates.policies import Act, Rule, judge_act
from agents.streams.fold import consistent_read
from agents.streams.garbage import nothing_collected
from agents.streams.tables import Fields
from agents.streams.turn import Turn
from constellations import analysis
from constellations.editor import editor
from constellations.live.kept import graph_copied
from constellations.live.live import LiveGraph
from constellations.machines.task import ENDED
from constellations.plan.script import calls_of, rule_of, script_of
from constellations.reads.devices import known_devices
from constellations.reads.watching import sites_of
from constellations.services import edits, standing
from constellations.services.edits import EditRequest, edit_row
from constellations.services.gates.keeping import known_rules

PREVIEW = "preview"
"""Author of an edit that is not made."""


def edit_preview(constellation_id: int, operations: Sequence[Any], based_on: int | None = None) -> Fields:
    """What `operations` would change on the newest version, and what would follow; raises as `edit_apply` does.

    {"version", "newest", "between", "between_total", "diff", "before", "after", "consequences": {"ready", "blocked", "revived":
    task_ids, "skipped": [{"task_id", "reason"}], "critical_path_before", "critical_path_after", "approvals_needed": task_ids}}.
    It is made on `newest`. `version` is the one that its author has seen, `based_on` where that is given: apply the operations
    with it as `based_on`.
    """
    with nothing_collected():  # all of the copy is in use until it is taken apart
        with consistent_read():
            live, devices, rules = graph_copied(constellation_id), known_devices(), known_rules()
            newest = live.constellation["version"]
            stands = asdict(standing.standing_on(constellation_id, newest if based_on is None else based_on, newest))
        try:
            return {**stands, **preview_on_graph(live, operations, devices, rules, based_on)}
        finally:
            live.release()


class PreviewWatch:
    """Sees what follows from an edit: `before` it is applied to a graph, and `after`; then `consequences` has it.

    Whoever makes an edit may have it watched (`edits.EditRequest`). The answer then says what a preview would have said. Both
    looks are taken under the session's lock, so they only note what they see; the longest paths are sought afterwards.
    """

    def __init__(self, devices: Mapping[str, Fields], rules: Sequence[Rule]):
        self._devices, self._rules = devices, rules
        self._were: dict[str, tuple[str, bool]] = {}
        self._touched: list[str] = []
        self._shapes: list[Shape] = []
        self._found: Fields = {}

    def before(self, live: LiveGraph, changes: editor.Changes) -> None:
        self._were = {key: (node.row["state"], node.skipped) for key, node in live.nodes.items()}
        self._touched = [*(row["task_id"] for row in changes.added_tasks), *changes.updated_tasks]
        self._shapes = [_shape(live)]

    def after(self, live: LiveGraph) -> None:
        self._found = {"ready": [], "blocked": [], "skipped": [], "revived": []}
        for key, node in live.nodes.items():  # oldest first
            state, skipped = self._were.get(key, ("", False))
            if node.row["state"] == "PENDING" != state:
                self._found["ready"].append(key)
            if state == "PENDING" and node.row["state"] == "WAITING_DEPENDENCY":
                self._found["blocked"].append(key)
            if node.skipped and not skipped:
                self._found["skipped"].append({"task_id": key, "reason": node.row["reason"]})
            if skipped and not node.skipped:
                self._found["revived"].append(key)
        # of the tasks that the edit adds, changes or revives those that would ask a person before something is done
        nodes = live.nodes
        revived = [key for key, (_, skipped) in self._were.items() if skipped and key in nodes and not nodes[key].skipped]
        rows = [nodes[key].row for key in dict.fromkeys([*self._touched, *revived])]
        self._found["approvals_needed"] = [
            row["task_id"] for row in rows if row["state"] not in ENDED and asks_a_person(row, self._devices, self._rules)
        ]
        self._shapes.append(_shape(live))

    @property
    def consequences(self) -> Fields | None:
        """None where nothing was changed."""
        if not self._found:
            return None
        with nothing_collected():
            before = _longest_path(self._shapes[0])
            after = before if self._shapes[0] == self._shapes[1] else _longest_path(self._shapes[1])
        return {**self._found, "critical_path_before": before, "critical_path_after": after}


Shape = tuple[list[Any], list[Any]]
"""The tasks of a graph in a topological order, and its edges."""


def _shape(live: LiveGraph) -> Shape:
    return live.graph.topological_order(), list(live.graph.edges())


def _longest_path(shape: Shape) -> list[str]:
    order, edges = shape
    return [str(key) for key in analysis.longest_path(analysis.build_digraph(order, edges), order)]


def critical_path(live: LiveGraph) -> list[str]:
    """The longest chain of tasks, first to last."""
    return _longest_path(_shape(live))


def preview_on_graph(
    live: LiveGraph, operations: Sequence[Any], devices: Mapping[str, Fields], rules: Sequence[Rule],
    based_on: int | None = None,
) -> Fields:  # fmt: skip
    """The diff and what follows, as `edit_preview` has them. `live` is afterwards as if the edit had been made."""
    _, changes = edits.decide_edit(live, EditRequest(lambda live: operations, PREVIEW, "", PREVIEW, based_on), devices)
    told = {"diff": changes.diff, "before": changes.before, "after": changes.after}
    watch = PreviewWatch(devices, rules)
    watch.before(live, changes)
    if changes:  # made in memory, in a turn that nobody records
        numbers = count(max(live.ids, default=0) + 1)
        turn = Turn(now_iso(), PREVIEW, lambda: next(numbers))
        request = EditRequest(lambda live: operations, PREVIEW, "", PREVIEW)
        live.apply(turn, changes, edit_row(live, request, operations, changes, {"id": next(numbers), "at": turn.at}))
    watch.after(live)
    return {**told, "consequences": watch.consequences}


def asks_a_person(task: Mapping[str, Any], devices: Mapping[str, Fields], rules: Sequence[Rule]) -> bool:
    """Whether a task waits for a person: by its gate, a step's, or a policy about one of its calls on a device it may get."""
    calls = calls_of(script_of(task))
    if task["confirm"] or any(call.get("confirm") for call in calls):
        return True
    own = [rule_of(row) for row in task["policies"]]
    sites = sites_of(task, devices)
    acts = [Act(*call_of(call), writes=call.get("writes", "")) for call in calls]
    return any(judge_act(rules, own, act, site).decision == "ask" for act in acts for site in sites)
