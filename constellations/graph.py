"""The graph of a constellation: plain dictionaries and an incremental topological order. Pure.

The order is Pearce and Kelly's idea - an edge that agrees with it costs nothing, one that does not is searched for and
repaired only between its ends - with two changes that keep edits local: labels leave room between them, so only one side
has to move, and the search goes from both ends in turn and stops with the smaller side. Adding a task before one with a
thousand descendants then costs one step, not a thousand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush

from constellations.analysis import Edge, Key, find_cycle
from constellations.errors import CycleFound

SPACING = 1 << 60
"""Distance of two labels in a fresh order: room for about sixty insertions at one spot before all are labelled anew."""


class Graph:
    """A directed graph without cycles, at every moment. An edge (u, v) says that v waits for u.

    Keys are any hashables. `_label` grows along every edge; tasks that are not related may share a label.
    Unknown keys raise KeyError.
    """

    __slots__ = ("_down", "_label", "_next", "_up")

    def __init__(self) -> None:
        self._up: dict[Key, dict[Key, None]] = {}
        self._down: dict[Key, dict[Key, None]] = {}
        self._label: dict[Key, int] = {}
        self._next = 0

    @classmethod
    def build(cls, keys: Iterable[Key], edges: Iterable[Edge]) -> Graph:
        """A graph in time proportional to its size. A repeated edge counts once; raises CycleFound, KeyError."""
        graph = cls()
        graph._up = {key: {} for key in keys}
        graph._down = {key: {} for key in graph._up}
        up, down = graph._up, graph._down
        for upstream, downstream in edges:
            down[upstream][downstream] = None
            up[downstream][upstream] = None
        graph._relabel(graph._first_order())
        return graph

    # Reading

    def __len__(self) -> int:
        return len(self._label)

    def __contains__(self, key: object) -> bool:
        return key in self._label

    def __iter__(self) -> Iterator[Key]:
        return iter(self._label)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Graph) and self._down == other._down

    __hash__ = None  # type: ignore[assignment]

    def upstream(self, key: Key) -> tuple[Key, ...]:
        """What `key` waits for directly."""
        return tuple(self._up[key])

    def downstream(self, key: Key) -> tuple[Key, ...]:
        """What waits for `key` directly."""
        return tuple(self._down[key])

    def has_edge(self, upstream: Key, downstream: Key) -> bool:
        return downstream in self._down.get(upstream, ())

    def edges(self) -> Iterator[Edge]:
        return ((upstream, downstream) for upstream, below in self._down.items() for downstream in below)

    def in_order(self, keys: Iterable[Key]) -> list[Key]:
        """`keys`, each after all it waits for."""
        return sorted(keys, key=self._label.__getitem__)

    def topological_order(self) -> list[Key]:
        return self.in_order(self._label)

    def copy(self) -> Graph:
        twin = Graph()
        twin._up = {key: dict(above) for key, above in self._up.items()}
        twin._down = {key: dict(below) for key, below in self._down.items()}
        twin._label, twin._next = dict(self._label), self._next
        return twin

    # Changing

    def add_task(self, key: Key) -> None:
        """Adds a task without edges; one that is there stays as it is."""
        if key not in self._label:
            self._up[key], self._down[key] = {}, {}
            self._label[key] = self._next
            self._next += SPACING

    def remove_task(self, key: Key) -> None:
        """Removes a task and its edges."""
        for upstream in self._up.pop(key):
            del self._down[upstream][key]
        for downstream in self._down.pop(key):
            del self._up[downstream][key]
        del self._label[key]

    def add_edge(self, upstream: Key, downstream: Key) -> None:
        """Raises CycleFound, and nothing has changed; an edge that is there stays as it is."""
        label = self._label
        if label[upstream] >= label[downstream]:
            # Labels such that upstream < downstream; a circle is found before anything has changed.
            below, above = self._search(upstream, downstream)
            if below is not None:
                self._raise_above(upstream, below)
            else:
                self._lower_below(downstream, above)
        self._down[upstream][downstream] = None
        self._up[downstream][upstream] = None

    def remove_edge(self, upstream: Key, downstream: Key) -> None:
        """Raises KeyError when it is not there."""
        del self._down[upstream][downstream]
        del self._up[downstream][upstream]

    # Analysis: what the engine asks for; whoever only looks asks constellations.analysis

    def remaining_path(self) -> dict[Key, int]:
        """For every task the longest path from it to an end, in tasks and with itself: an end has 1."""
        remaining: dict[Key, int] = {}
        for key in reversed(self.topological_order()):
            below = self._down[key]
            remaining[key] = 1 + max(map(remaining.__getitem__, below)) if below else 1
        return remaining

    # The order

    def _relabel(self, order: Iterable[Key]) -> None:
        self._label = {key: place * SPACING for place, key in enumerate(order)}
        self._next = len(self._label) * SPACING

    def _first_order(self) -> list[Key]:
        """The given order if it will do (plans mostly name a task after what it waits for), else Kahn's."""
        place = {key: number for number, key in enumerate(self._up)}
        if all(place[key] > place[other] for key, above in self._up.items() for other in above):
            return list(place)
        waits = {key: len(above) for key, above in self._up.items()}
        order = [key for key, count in waits.items() if not count]
        for key in order:
            for other in self._down[key]:
                waits[other] -= 1
                if not waits[other]:
                    order.append(other)
        if len(order) < len(waits):
            stuck = [key for key, count in waits.items() if count]
            among = ((key, other) for key in stuck for other in self._down[key])
            raise CycleFound(_from_first(find_cycle(stuck, among), self._up))
        return order

    def _search(self, upstream: Key, downstream: Key) -> tuple[dict[Key, Key | None] | None, dict[Key, Key | None]]:
        """Everything that must go above `upstream`, or (None, everything that must go below `downstream`).

        Both sides grow in turn, whichever has looked at fewer edges, and the one that first has no more to look at is the
        answer: the one with fewer edges costs as much again, not a hub at the other end. Each is {key: the key it was found
        from}; where they meet there is a cycle.
        """
        label, floor, ceiling = self._label, self._label[downstream], self._label[upstream]
        below: dict[Key, Key | None] = {downstream: None}
        above: dict[Key, Key | None] = {upstream: None}
        if upstream == downstream:
            raise CycleFound([upstream, upstream])
        todo_below, todo_above = [downstream], [upstream]
        cost_below, cost_above = 1 + len(self._down[downstream]), 1 + len(self._up[upstream])
        while True:
            if cost_below <= cost_above:
                key = todo_below.pop()
                for other in self._down[key]:
                    if other in above:
                        raise CycleFound(_meeting(below, above, key, other))
                    if other not in below and label[other] <= ceiling:
                        below[other] = key
                        todo_below.append(other)
                if not todo_below:
                    return below, above
                cost_below += 1 + len(self._down[todo_below[-1]])
            else:
                key = todo_above.pop()
                for other in self._up[key]:
                    if other in below:
                        raise CycleFound(_meeting(below, above, other, key))
                    if other not in above and label[other] >= floor:
                        above[other] = key
                        todo_above.append(other)
                if not todo_above:
                    return None, above
                cost_above += 1 + len(self._up[todo_above[-1]])

    def _raise_above(self, upstream: Key, moved: Mapping[Key, object]) -> None:
        """Moves `moved` between `upstream` and the lowest of what waits for them."""
        label, low = self._label, self._label[upstream]
        high = min((label[other] for key in moved for other in self._down[key] if other not in moved), default=None)
        step = SPACING if high is None else (high - low) // (len(moved) + 1)
        if not step:
            self._relabel(self.topological_order())
            return self._raise_above(upstream, moved)
        for place, key in enumerate(self.in_order(moved), 1):
            label[key] = low + place * step
        self._next = max(self._next, low + (len(moved) + 1) * step)

    def _lower_below(self, downstream: Key, moved: Mapping[Key, object]) -> None:
        """Moves `moved` between the highest of what they wait for and `downstream`."""
        label, high = self._label, self._label[downstream]
        low = max((label[other] for key in moved for other in self._up[key] if other not in moved), default=None)
        step = SPACING if low is None else (high - low) // (len(moved) + 1)
        if not step:
            self._relabel(self.topological_order())
            return self._lower_below(downstream, moved)
        for place, key in enumerate(reversed(self.in_order(moved)), 1):
            label[key] = high - place * step


class Sweep:
    """Tasks to look at, each once and after all it waits for, or `backwards` after all that wait for it.

    More may be added meanwhile, if they come after the one that is looked at. The graph stays as it is meanwhile.
    """

    __slots__ = ("_known", "_label", "_sign", "_todo")

    def __init__(self, graph: Graph, keys: Iterable[str], backwards: bool = False):
        self._label, self._sign = graph._label, -1 if backwards else 1
        self._known: set[str] = set()
        self._todo: list[tuple[int, int, str]] = []
        for key in keys:
            self.add(key)

    def add(self, key: str) -> None:
        if key not in self._known:
            heappush(self._todo, (self._sign * self._label[key], len(self._known), key))
            self._known.add(key)

    def __iter__(self) -> Iterator[str]:
        while self._todo:
            yield heappop(self._todo)[-1]


def _walk(links: Mapping[Key, Key | None], key: Key | None) -> list[Key]:
    """`key` and what its links lead to."""
    path = []
    while key is not None:
        path.append(key)
        key = links.get(key)
    return path


def _meeting(below: Mapping[Key, Key | None], above: Mapping[Key, Key | None], key: Key, other: Key) -> list[Key]:
    """The cycle that a new edge upstream > downstream closes when `key` (of `below`) leads to `other` (of `above`).

    Walking from `other` through `above` leads to upstream; from `key` through `below` back to downstream.
    """
    up_to = _walk(above, other)
    return [up_to[-1], *reversed(_walk(below, key)), *up_to]


def _from_first(cycle: Sequence[Key], order: Iterable[Key]) -> list[Key]:
    """The same cycle, begun at whichever of its keys comes first in `order`."""
    members = set(cycle)
    start = cycle.index(next(key for key in order if key in members))
    return [*cycle[start:-1], *cycle[: start + 1]]
