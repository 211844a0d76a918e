"""A planner that answers at random within the schema, on graphs that run: whatever it says, no invariant is broken.

For speed the model is a double in this process, which answers by the events of the port.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator
from itertools import pairwise
from random import Random

import pytest

from agents.llm.conversation import Message, Text
from agents.llm.exchange import Ended, Event, ModelRequest, Reply, TextPiece, Usage
from agents.llm.profiles import Profile
from agents.minds import asking
from agents.models import InboxItem, ModelCall
from agents.services.model_profiles import model_profile_create
from constellations.editor.draft import may_change
from constellations.live.live import LiveGraph
from constellations.models import Edit
from tests.agents.llm.conftest import loopback  # noqa: F401  fixture
from tests.constellations.runs.weaving.conftest import answer, ask, edited, planned

SEED = 20260713
NAMES = 16
"""Names of tasks that it uses, so that it meets its own."""
TYPES = ("SUCCESS_ONLY", "UNCONDITIONAL", "COMPLETION_ONLY", "CONDITIONAL")


class RandomPlanner:
    """Answers as the schema has it, without a look at the graph. Mostly it goes on; now and then it ends or begins again."""

    def __init__(self, seed: int):
        self.random, self.answers = Random(seed), 0

    async def stream_answer(self, profile: Profile, request: ModelRequest) -> AsyncGenerator[Event]:
        self.answers += 1
        creates = request.reply_schema is not None and "constellation" in request.reply_schema.schema["properties"]
        text = self.plan() if creates else self.edit()
        yield TextPiece(text)
        usage = Usage(10, 10, measured=True)
        yield Ended(Reply(Message("assistant", (Text(text),)), "stop", usage, profile.model, "", 0.0, 0.0))

    def name(self) -> str:
        return f"t{self.random.randrange(NAMES)}"

    def task(self) -> dict:
        after = [self.name()] if self.random.random() < 0.3 else []
        does = {"tool": "noop"} if self.random.random() < 0.9 else {"command": ["false"]}
        device = "laptop" if self.random.random() < 0.97 else "nowhere"
        return {"task_id": self.name(), "description": "d", "device": device, "after": after, **does}

    def plan(self) -> str:
        tasks = {task["task_id"]: {**task, "after": []} for task in (self.task() for _ in range(5))}
        names = [*tasks]
        lines = [{"from": one, "to": other} for one, other in pairwise(names) if self.random.random() < 0.7]
        return planned(*tasks.values(), dependencies=lines)

    def edit(self) -> str:
        status = self.random.choices(("CONTINUE", "FINISH", "FAIL", "START"), (96, 2, 1, 1))[0]
        if status in ("FAIL", "START"):
            return answer(status, thought="enough")
        actions = [self.action() for _ in range(self.random.choices((0, 1, 2, 3), (2, 5, 2, 1))[0])]
        return edited(*actions, status=status, thought="at random", result="r")

    def action(self) -> tuple[str, dict]:
        ends = {"from": self.name(), "to": self.name()}
        line = self.random.choice(TYPES)
        typed = {"type": line, **({"condition": "n > 1"} if line == "CONDITIONAL" else {})}
        return self.random.choice(
            [
                ("add_task", self.task()), ("add_task", self.task()), ("add_task", self.task()),
                ("update_task", {"task_id": self.name(), "priority": "HIGH"}),
                ("update_task", {"task_id": self.name(), "unasked": {"commands": [["true"]]}}),
                ("remove_task", {"task_id": self.name()}), ("add_dependency", {**ends, **typed}),
                ("remove_dependency", ends), ("update_dependency", {**ends, **typed}),
            ]
        )  # fmt: skip


@pytest.fixture
def touched(monkeypatch) -> list[str]:
    """Tasks that an edit changed or removed though they had begun."""
    wrong, apply = [], LiveGraph.apply

    def watched(self, turn, changes, row):
        for key in (*changes.updated_tasks, *changes.removed_tasks):
            if not may_change(self.nodes[key].row):
                wrong.append(key)
        return apply(self, turn, changes, row)

    monkeypatch.setattr(LiveGraph, "apply", watched)
    return wrong


@pytest.fixture
def planner(monkeypatch, settings) -> RandomPlanner:
    settings.UNASKED = {"commands": [["false"]]}  # else a person is asked about each
    found = RandomPlanner(SEED)
    monkeypatch.setattr(asking, "stream_answer", found.stream_answer)
    return found


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("verified")
@pytest.mark.parametrize("wanted", [30, pytest.param(2_000, marks=[pytest.mark.attack, pytest.mark.one_database])])
def test_a_planner_that_answers_at_random_breaks_no_invariant(engine, device, planner, touched, loopback, wanted):  # noqa: F811
    model_profile_create(
        "weaver", by="system", provider="openai_compatible", model="m", base_url="http://127.0.0.1:9/v1",
        purposes=["creation", "editing"],
    )  # fmt: skip
    while planner.answers < wanted:
        ask(engine)
        engine.run()
    assert touched == []
    calls = ModelCall.objects.all()
    outcomes = Counter(calls.values_list("outcome", flat=True))
    assert sum(outcomes.values()) == planner.answers
    assert outcomes.keys() == {"answered", "rejected"}
    assert not calls.filter(outcome="rejected", error="").exists()
    assert not calls.filter(reply=None).exists()
    assert not InboxItem.objects.exclude(state="done").exists()
    assert Edit.objects.count() > wanted / 20
    assert not Edit.objects.filter(diff__icontains='"unasked"').exists()
