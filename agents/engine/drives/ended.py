"""The ends of a session's calls, from the moment a body has ended until what follows from it is durable."""

from __future__ import annotations

from agents.tools.calls import Outcome


class Ended(dict[int, Outcome]):
    """Outcomes by the keys of their calls (`Call.key`). One that is consumed stays until what follows from it is durable."""

    __slots__ = ("_consumed",)

    def __init__(self) -> None:
        super().__init__()
        self._consumed: list[int] = []

    def unconsumed(self) -> list[int]:
        """Keys of the calls whose outcomes wait for a decision."""
        if not self._consumed:
            return list(self)
        done = set(self._consumed)
        return [key for key in self if key not in done]

    def consume(self, key: int) -> Outcome:
        """The outcome of a call that is decided about now."""
        self._consumed.append(key)
        return self[key]

    def discard(self, key: int) -> None:
        """The outcome of a call that is closed already tells nothing."""
        self.pop(key, None)

    def settle(self) -> None:
        """What was decided about the consumed outcomes is durable."""
        for key in self._consumed:
            self.pop(key, None)
        self._consumed.clear()

    def restore(self) -> None:
        """What was decided is forgotten: every outcome waits for a decision again."""
        self._consumed.clear()
