"""What a body of work can be: tools by name, and the calls of them that are under way.

A tool is a plain function or a coroutine function from a `Call` to an `Outcome`. A plain function must not block; a
coroutine may take its time, is interrupted by cancelling it, and is called again after a transient fault. Tools register
themselves with `@tool(name)`.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any

from agents.errors import AgentsError
from agents.faults import error_kind_of, pause_seconds
from agents.progress.calls import is_infrastructure
from agents.tools.catalogue import PATHS, SCHEMAS, TOOLS, Schema

RETRIES = 3
"""A call that meets a transient fault is made again so often at most, all within its time-out."""
FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 2.0
GRACE_S = 10.0
"""A tool that keeps its time-out itself is cut off only so long after it."""
MISTAKES_SHOWN = 3
"""Wrong arguments that one message names."""


@dataclass(slots=True)
class Outcome:
    """How a body ended: `completed`, `failed`, `timeout`, `cancelled` or `lost`.

    `error_kind` is one of `agents.crews.ways.KINDS`. `digest` is that of what it answered, or of the file's state
    after it, `before` that of the file before a change (agents.progress.evidence). `reason` is what the task's end will say.
    `text` is the last it printed, at most agents.devices.output.TEXT_CHARACTERS, `printed` how many characters its `attempt`
    has printed in all, `unwritten` what of that was not yet durable: where it begins, and the text.
    """

    outcome: str
    result: Any = None
    error: str = ""
    exit_code: int | None = None
    error_kind: str = ""
    digest: str | None = None
    before: str | None = None
    reason: str = ""
    text: str = ""
    printed: int = 0
    unwritten: tuple[int, str] | None = None
    attempt: int = 0

    def as_json(self) -> dict[str, Any]:
        """Without what says nothing."""
        told: dict[str, Any] = {"outcome": self.outcome}
        if self.result is not None:
            told["result"] = self.result
        if self.exit_code is not None:
            told["exit_code"] = self.exit_code
        return told | {name: value for name in OFTEN_EMPTY if (value := getattr(self, name))}


OFTEN_EMPTY = ("error", "error_kind", "digest", "before", "reason", "text", "printed", "unwritten")
"""Fields that an outcome in a file has only where they say something."""


@dataclass(slots=True)
class Call:
    """One call of a tool: everything it may know.

    `key` is the row that its outcome belongs to: the attempt itself, or a row of evidence. Calls of one `scope` share files,
    which begin as those of the scope that it `inherits` from. `writes` names a file of the
    workspace whose state before and after is wanted; `blackboard` is what the task's agents share, `printed` how many
    characters the attempt has printed so far. `place` is where its path led when it was judged, None where nobody did.
    `body` is what the call does, where that is no tool's that plans can name: then what it says on the way are deltas, and it
    tells the session's stream what it has found so far by `note`, an event without rows.
    """

    attempt: int
    session: int
    tool: str
    arguments: Mapping[str, Any]
    device: Mapping[str, Any]
    timeout: float | None
    scope: str = ""
    inherits: str = ""
    key: int = 0
    writes: str = ""
    printed: int = 0
    place: str | None = None
    blackboard: Mapping[str, Any] = field(default_factory=dict)
    on_output: Callable[[str], None] = field(default=lambda text: None)
    on_thinking: Callable[[str], None] = field(default=lambda text: None)
    note: Callable[..., None] = field(default=lambda event, **data: None)
    body: Callable[[Call], Awaitable[Outcome]] | None = None

    def __post_init__(self) -> None:
        self.key = self.key or self.attempt


Tool = Callable[[Call], Outcome | Awaitable[Outcome]]
SECONDS: dict[str, float] = {}
"""Time-outs of tools, by name, for calls that say none; a tool without one has no other end than its device's limits."""
KEEP_TIME: set[str] = set()
"""Names of tools that end by themselves when their time is over, with an outcome that says what there was until then."""


class BadArguments(AgentsError):
    """A tool was called with arguments that it does not take."""

    code = "bad_arguments"
    error_kind = "bad_arguments"


def register_tool(
    name: str, schema: Schema | None = None, keeps_time: bool = False, seconds: float | None = None, paths: tuple[str, ...] = ()
) -> Callable[[Tool], Tool]:
    """Register a tool under `name`, with the JSON Schema of its arguments and the time-out of a call that says none.

    `paths` are those of its arguments that are paths in the workspace.
    """

    def register(function: Tool) -> Tool:
        TOOLS[name] = function
        if schema is not None:
            SCHEMAS[name] = schema
        if keeps_time:
            KEEP_TIME.add(name)
        if seconds is not None:
            SECONDS[name] = seconds
        if paths:
            PATHS[name] = paths
        return function

    return register


def check_arguments(name: str, arguments: Any) -> None:
    """Raises BadArguments naming the keys that are wrong and showing the tool's schema. Nothing when it has none."""
    if (schema := SCHEMAS.get(name)) is None:
        return
    from jsonschema import Draft202012Validator  # large, and most runs never need it

    errors = sorted(Draft202012Validator(schema).iter_errors(arguments), key=lambda error: list(map(str, error.absolute_path)))
    if errors:
        problems = [{"key": ".".join(map(str, error.absolute_path)), "message": error.message[:200]} for error in errors]
        shown = "; ".join(": ".join(filter(None, problem.values())) for problem in problems[:MISTAKES_SHOWN])
        raise BadArguments(f"{name}: {shown}. Its arguments: {json.dumps(schema, separators=(',', ':'))}", problems)


@register_tool("noop", {"type": "object", "properties": {"result": {}}, "additionalProperties": False})
def do_nothing(call: Call) -> Outcome:
    """Does nothing: what the engine itself costs. Its result is its argument `result`."""
    return Outcome("completed", result=call.arguments.get("result"))


class Bodies:
    """The calls under way in one runner. `on_end(call, outcome)` is called on the loop for each, exactly once.

    `sleep` waits between the tries of a call.
    """

    def __init__(self, on_end: Callable[[Call, Outcome], None], sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep):
        self._on_end = on_end
        self._sleep = sleep
        self._tasks: dict[int, asyncio.Task[Outcome]] = {}
        self._attempts: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._tasks)

    def __contains__(self, key: int) -> bool:
        return key in self._tasks

    def start(self, call: Call) -> None:
        """Begin a call. A plain function has ended when this returns."""
        function = call.body or TOOLS.get(call.tool)
        if function is None:
            known = ", ".join(sorted(TOOLS))
            error = f"there is no tool called {call.tool}; known: {known}"
            self._on_end(call, Outcome("failed", error=error, error_kind="missing"))
        elif inspect.iscoroutinefunction(function):
            task = self._tasks[call.key] = asyncio.get_running_loop().create_task(self._follow(function, call))
            self._attempts[call.key] = call.attempt
            task.add_done_callback(partial(self._ended, call))  # also of one that is interrupted before its first step
        else:
            try:
                outcome: Any = function(call)
            except Exception as error:  # a broken tool is a failed attempt, never a broken runner
                outcome = _failure(error)
            self._on_end(call, outcome)

    async def _follow(self, function: Tool, call: Call) -> Outcome:
        """What the last try of a call gave: one that meets a transient fault is followed by another, while any is left."""
        outcome: Any = None
        seconds = SECONDS.get(call.tool) if call.timeout is None else call.timeout
        grace = GRACE_S if call.tool in KEEP_TIME else 0.0
        try:
            async with asyncio.timeout(None if seconds is None else seconds + grace):
                for made in count(1):
                    try:
                        outcome = await function(call)  # type: ignore[misc]
                        if not isinstance(outcome, Outcome):
                            raise TypeError(f"the tool gave {type(outcome).__name__}, not an Outcome")
                    except Exception as error:  # as above
                        outcome = _failure(error)
                    if made > RETRIES or not is_infrastructure(outcome.error_kind):
                        break
                    await self._sleep(pause_seconds(made, call.key, FIRST_PAUSE_S, LONGEST_PAUSE_S))
        except TimeoutError:  # the call's own: what the tool raises is an outcome by now
            return Outcome("timeout", error=f"stopped after {seconds:g} s", error_kind="timeout")
        return outcome  # type: ignore[no-any-return]  # looked at above

    def _ended(self, call: Call, task: asyncio.Task[Outcome]) -> None:
        del self._tasks[call.key], self._attempts[call.key]
        self._on_end(call, Outcome("cancelled", error="interrupted") if task.cancelled() else task.result())

    def attempts(self, keys: Iterable[int]) -> set[int]:
        """Whose calls these are, of those under way."""
        return {self._attempts[key] for key in keys if key in self._attempts}

    def interrupt(self, key: int) -> bool:
        """Cancel a call; its end is told as any other. False when it is not under way."""
        task = self._tasks.get(key)
        return task is not None and task.cancel()

    async def interrupt_all(self, keys: Container[int] | None = None) -> None:
        """Cancel all calls, or those with `keys`, and wait until they have ended."""
        tasks = [task for key, task in self._tasks.items() if keys is None or key in keys]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _failure(error: Exception) -> Outcome:
    text = str(error) if isinstance(error, AgentsError) else f"{type(error).__name__}: {error}"
    return Outcome("failed", error=text, error_kind=error_kind_of(error))
