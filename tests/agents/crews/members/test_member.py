"""One agent of a crew by itself: what it records, and what it leaves to its crew."""

import pytest

from agents.crews.members.assignment import BLACKBOARD_BYTES, Assignment, Blackboard, BlackboardFull
from agents.crews.members.member import Member
from agents.crews.script import DELEGATIONS, Script, plain_script
from agents.errors import AgentsError
from agents.gates.gate import Gate
from agents.ids import row_id
from agents.progress.settings import Settings
from agents.streams.tables import TABLES
from agents.streams.turn import Turn

NOW = "2026-11-21T03:04:05.000000Z"
CHILD = {"do": "delegate", "name": "helper", "steps": [], "if": ""}


class Alone:
    """A member without a crew, and the turn that it records in."""

    def __init__(self, *, asks=False, depth=0, holds_slot=True):
        self.numbers = iter(range(100, 1000))
        self.turn = Turn(NOW, "system", lambda: row_id(1, next(self.numbers)))
        script = plain_script("command", {"argv": ["true"]}, 5.0)
        attempt = {"id": 3, "device_id": 9, "holds_slot": holds_slot}
        device = {"id": 9, "platform": "shell", "kind": "remote", "name": "far", "labels": []}
        self.assignment = Assignment(
            stream=1, interaction=2, attempt=attempt, device=device, task=4, title="t", scope="s",
            inherits="", script=script, plain=True, is_gated=asks, timeout=None, on_lost="retry", settings=Settings(),
            accepted=(), has_arbiter=False, own=(), unasked={}, is_chosen=False,
            rules=tuple, holds=lambda condition, value: True, fleet=None,
        )  # fmt: skip
        agent = TABLES["agent"].whole(
            {"id": row_id(1, 5), "name": "host", "platform": "shell", "state": "CONTINUE", "created_at": NOW, "entered_at": NOW}
        )
        gate = Gate(device, tuple, (), asks=asks, is_one_call=True)
        self.member = Member(
            self.assignment, gate, Blackboard(agent), agent, Script(script, self.assignment.holds, plain=True), depth
        )
        self.member.begin(self.turn)

    def events(self) -> list[str]:
        return [event.type for event in self.turn.events]


def test_a_call_is_recorded_and_left_to_the_crew_to_begin():
    alone = Alone()
    member = alone.member
    for event in ("prompt", "responding"):
        member.move(alone.turn, event)
    member.perform(alone.turn, "tool_allowed", member.next_act)
    assert member.state == "ExecutingTool"
    assert (member.call.attempt, member.call.tool, member.call.timeout) == (3, "command", 5.0)
    assert member.call.key == member.row["id"]


def test_a_child_is_recorded_and_left_to_the_crew_to_take_on():
    alone = Alone()
    alone.member.delegate(alone.turn, CHILD)
    assert alone.member.agent["state"] == "PENDING"
    assert alone.member.child["parent_id"] == alone.member.agent["id"]
    assert alone.events()[-1] == "agent_created"


def test_an_agent_does_not_delegate_deeper_than_plans_may():
    alone = Alone(depth=DELEGATIONS)
    with pytest.raises(AgentsError, match=f"{DELEGATIONS + 1} deep"):
        alone.member.delegate(alone.turn, CHILD)
    assert alone.member.child is None


def test_only_the_host_waits_at_the_gate_and_only_until_it_has_begun():
    assert not Alone(asks=True, depth=1).member.waits_at_gate
    alone = Alone(asks=True)
    assert alone.member.waits_at_gate
    alone.member.move(alone.turn, "prompt")
    assert not alone.member.waits_at_gate


def test_what_an_approver_changed_is_what_is_done():
    alone = Alone(asks=True)
    action = {"tool": "command", "arguments": {"argv": ["false"]}}
    alone.member.pass_gate({"action": action, "edited": True})
    assert not alone.member.waits_at_gate
    assert alone.member.next_act.arguments == {"argv": ["false"]}
    assert alone.member.step["timeout"] == 5.0


@pytest.mark.parametrize("holds_slot", [True, False])
def test_an_agent_whose_attempt_has_given_its_slot_back_wants_it(holds_slot):
    member = Alone(holds_slot=holds_slot).member
    assert member.claim_slot() is holds_slot
    assert member.wants_slot is not holds_slot


def test_a_blackboard_takes_no_more_than_it_holds_and_nothing_without_a_name():
    alone = Alone()
    board, before = alone.member.blackboard, alone.events()
    board.save(alone.turn, "", 1)
    with pytest.raises(BlackboardFull):
        board.save(alone.turn, "large", "x" * BLACKBOARD_BYTES)
    assert (dict(board.values), alone.events()) == ({}, before)
    board.save(alone.turn, "small", 1)
    assert dict(board.values) == {"small": 1}
    assert alone.events()[-1] == "blackboard_changed"
