"""Creation by a model: words become a plan, which is read as any other plan is (docs/machines.md, "2. Constellation agent")."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents.errors import AgentsError
from agents.streams.tables import Fields
from agents.streams.turn import Turn
from constellations.errors import PlanRejected
from constellations.plan.fitting import Devices, missing_minds, unknown_devices
from constellations.plan.hidden_texts import refuse_hidden
from constellations.plan.plan import MAX_PROBLEMS, Plan, read_value
from constellations.plan.values import key_text
from constellations.prompts.answers import Answer
from constellations.runs.context import Context
from constellations.runs.weaving.model_calls import CREATION, GivenUp, ModelCalls
from constellations.runs.weaving.scenes import creation_scene
from constellations.services.plans import Words, unasked_widenings

KEYS = ("name", "tasks", "dependencies")
"""What a model's plan has: which rules and models a run has, and what it may do, is not for it to say."""
REMEMBERED = 100
"""Tasks of a constellation that is begun once more, of which the next model hears."""
BUILD = "build_constellation"


class Creating:
    """Of one interaction in words."""

    def __init__(self, context: Context, calls: ModelCalls):
        self._context, self._calls = context, calls
        self._words: Words | AgentsError | None = None
        self._former: list[Fields] = []

    @property
    def words(self) -> Words:
        assert isinstance(self._words, Words)
        return self._words

    def begin(self, turn: Turn, words: Words) -> None:
        """The agent is in START until its model has answered."""
        self._words, self._context.said = words, None
        self._context.memory = [*words.memory, *self._former]
        self._calls.begin(turn, CREATION, lambda: words.profiles, creation_scene(self._context))

    def load(self, words: Words | AgentsError) -> None:
        """After another runner began it. Where the words can no more be asked about, that ends it when the call has ended."""
        self._words = words
        if isinstance(words, Words):
            self._context.memory = words.memory
            self._calls.choose = lambda: words.profiles

    def remember(self, reason: str) -> None:
        """The run begins once more: what became of the tasks so far is part of what the model is told."""
        tasks = [
            {"task_id": node.key, "name": node.row["name"], "state": node.row["state"], "result": node.row["result"]}
            for node in self._context.graph.nodes.values()
            if node.ended
        ]
        said = self._context.interaction["payload"].get("request", "")
        told = {"request": said, "outcome": "restarted", "summary": reason, "tasks": tasks[-REMEMBERED:]}
        self._former = [*self._former, told]

    def decide(self, turn: Turn, now: float) -> Plan | None:
        """The plan, once there is one; without tasks it is a direct answer, which is in `context.said`. Raises GivenUp."""
        self._calls.cut_off_late(turn, now)
        if isinstance(self._words, AgentsError) and not self._calls.running():
            self._calls.drop(turn)
            raise GivenUp(str(self._words), self._words.problems)
        return self._calls.settle(turn, lambda: creation_scene(self._context), self._read_plan)

    def _read_plan(self, answer: Answer) -> tuple[Plan, Fields]:
        context = self._context
        if answer.status == "FAIL":
            raise GivenUp(f"the model finds no plan: {_in_words(answer)}")
        if answer.status == "FINISH":
            if answer.result in (None, ""):
                raise PlanRejected([_problem("result", "an answer without tasks needs a result: it is all that is said")])
            context.said = answer.result
            return Plan(), {"result": {"said": answer.result}}
        plan = answer.plan or {}
        made = read_plan_of_model(plan, context.known_devices)
        return made, {
            "actions": [{"tool": BUILD, "parameters": plan}],
            "result": {"tasks": len(made.tasks), "dependencies": len(made.dependencies), "said": answer.result},
        }  # fmt: skip


def read_plan_of_model(plan: Mapping[str, Any], devices: Devices) -> Plan:
    """The plan that a model gave, in normal form; raises PlanRejected with every problem, EditRefused for what is masked."""
    refuse_hidden([{"op": BUILD, "parameters": plan}])
    strange = [
        _problem(str(key)[:80], f"there is no such key; a plan has {', '.join(KEYS)}") for key in plan if key not in KEYS
    ]
    read, findings = read_value(dict(plan))
    findings += [*missing_minds(read.tasks, devices), *unknown_devices(read.tasks, devices)] if not findings else []
    if not findings:
        strange += [_problem(f"{task}.unasked", f"{let}: that is for a person to say") for task, let in unasked_widenings(read)]
    problems = strange + [_problem(key_text(path), message) for path, message in findings[:MAX_PROBLEMS]]
    if problems:
        raise PlanRejected(problems)
    return read


def _in_words(answer: Answer) -> str:
    return str(answer.result or answer.thought or "it does not say why")[:1000]


def _problem(key: str, message: str) -> Fields:
    return {"line": None, "key": key, "message": message}
