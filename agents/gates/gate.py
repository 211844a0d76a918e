"""The gate of one attempt: what its agents may do, by the policies and by what a person has let through."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.conf import settings

from agents.gates.chosen import judge_chosen
from agents.gates.judging import act_on, site_of
from agents.gates.policies import Act, Judgement, Rule, Site, judge_act
from agents.gates.unasked import Unasked


class Gate:
    """All agents of an attempt stand before the same gate.

    `device` is the live row. `rules` gives the installation's policies as they are now, `own` are the task's. `asks` says that
    a person is asked before the task begins; where the task `is_one_call`, that person sees the whole of it. `unasked` is what
    the task says of calls that a model chooses.
    """

    # `inputs`: digests of what the first call finds in its workspace, by path, until it has been made.

    __slots__ = ("_device", "_is_one_call", "_leads_to", "_own", "_rules", "_unasked", "asks", "inputs", "is_shut")

    def __init__(
        self,
        device: Mapping[str, Any],
        rules: Callable[[], Sequence[Rule]],
        own: Sequence[Rule],
        *,
        asks: bool,
        is_one_call: bool,
        unasked: Mapping[str, Any] | None = None,
    ):
        self._device, self._rules, self._own = device, rules, own
        self.asks, self.is_shut = asks, asks
        self._is_one_call = is_one_call
        self._unasked = Unasked.of(unasked or {})
        self._leads_to: str | None = None
        self.inputs: Mapping[str, str] = {}

    def describe_call(self, tool: str, arguments: Mapping[str, Any], writes: str = "", *, is_chosen: bool = False) -> Act:
        """A call as policies and approvals see it. `is_chosen`: by a model."""
        return act_on(self._device, tool, arguments, writes, is_chosen=is_chosen, inputs=self.inputs)

    def judge(self, act: Act) -> Judgement:
        """What the policies say of a call."""
        return judge_act(self._rules(), self._own, act, Site.of(self._device))

    def judge_chosen(self, act: Act) -> Judgement:
        """What is to be done about a call that a model chose: what the policies say, and to ask where nothing lets it run."""
        levels = Unasked.of(settings.UNASKED).merge(Unasked.of(self._device.get("unasked") or {}), self._unasked)
        return judge_chosen(act, site_of(self._device), self.judge(act), levels)

    def open(self, leads_to: str | None) -> None:
        """A person has let the task begin; the path they were shown leads to `leads_to`, if elsewhere than it reads."""
        self.is_shut, self._leads_to = False, leads_to

    def covers(self, act: Act, critical: bool) -> bool:
        """Whether the person at the gate has answered a policy's `ask` too: for the one call, and for what is critical."""
        if not self.asks or self.is_shut or not (self._is_one_call or critical):
            return False
        # The path may lead elsewhere by now, and nobody was asked about that.
        return act.action.get("leads_to") == self._leads_to
