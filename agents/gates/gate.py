"""The gate of one attempt: what its agents may do, by the policies and by what a person has let through."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agents.gates.judging import act_on
from agents.gates.policies import Act, Judgement, Rule, Site, judge_act


class Gate:
    """All agents of an attempt stand before the same gate.

    `device` is the live row. `rules` gives the installation's policies as they are now, `own` are the task's. `asks` says that
    a person is asked before the task begins; where the task `is_one_call`, that person sees the whole of it.
    """

    __slots__ = ("_device", "_is_one_call", "_leads_to", "_own", "_rules", "asks", "is_shut")

    def __init__(
        self,
        device: Mapping[str, Any],
        rules: Callable[[], Sequence[Rule]],
        own: Sequence[Rule],
        *,
        asks: bool,
        is_one_call: bool,
    ):
        self._device, self._rules, self._own = device, rules, own
        self.asks, self.is_shut = asks, asks
        self._is_one_call = is_one_call
        self._leads_to: str | None = None

    def describe_call(self, tool: str, arguments: Mapping[str, Any], writes: str = "") -> Act:
        """A call as policies and approvals see it."""
        return act_on(self._device, tool, arguments, writes)

    def judge(self, act: Act) -> Judgement:
        """What the policies say of a call."""
        return judge_act(self._rules(), self._own, act, Site.of(self._device))

    def open(self, leads_to: str | None) -> None:
        """A person has let the task begin; the path they were shown leads to `leads_to`, if elsewhere than it reads."""
        self.is_shut, self._leads_to = False, leads_to

    def covers(self, act: Act, critical: bool) -> bool:
        """Whether the person at the gate has answered a policy's `ask` too: for the one call, and for what is critical."""
        if not self.asks or self.is_shut or not (self._is_one_call or critical):
            return False
        # The path may lead elsewhere by now, and nobody was asked about that.
        return act.action.get("leads_to") == self._leads_to
