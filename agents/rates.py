"""How much of something may come in a span of time."""

from __future__ import annotations


class Allowance:
    """So much at once, `at_once`, and then `per_s` more each second. Times are seconds of any clock that does not go back."""

    def __init__(self, at_once: float, per_s: float, now: float):
        self._at_once, self._per_s = at_once, per_s
        self._left, self._at = at_once, now

    def add(self, more: float) -> None:
        """Beside what time gives; never more than there may be at once."""
        self._left = min(self._at_once, self._left + more)

    def take(self, now: float) -> bool:
        """Whether one more may come; it has then come."""
        self._left = min(self._at_once, self._left + (now - self._at) * self._per_s)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True
