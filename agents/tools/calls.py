"""What a body of work can be: tools by name, and the calls of them that are under way.

A tool is a plain function or a coroutine function from a `Call` to an `Outcome`. A plain function must not block; a
coroutine may take its time, is interrupted by cancelling it, and is called again after a transient fault. Tools register
themselves with `@tool(name)`.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any

from django.conf import settings

from agents.artifacts.results import fit_result
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
    has printed in all, `unwritten` what of that was not yet durable: where it begins, and the text. `artifacts` refer to what
    the call has kept (agents.artifacts.keeping), which gets its rows with the record of the end. `process` is
    where the app of an app agent lives, {name, pid}, as far as its platform knows.
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
    artifacts: list[Mapping[str, Any]] = field(default_factory=list)
    process: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Without what says nothing."""
        told: dict[str, Any] = {"outcome": self.outcome}
        if self.result is not None:
            told["result"] = self.result
        if self.exit_code is not None:
            told["exit_code"] = self.exit_code
        return told | {name: value for name in OFTEN_EMPTY if (value := getattr(self, name))}


GONE = "gone"
"""Kind of error of a call that needs what an earlier call of the attempt has left on its device, and what has ended with the
connection. A model is told; a script cannot go on, and the call counts as lost."""
VIOLATION = "violation"
"""Reason of a call whose program did what it had no leave for: its task has failed, and is not tried again."""
OFTEN_EMPTY = ("error", "error_kind", "digest", "before", "reason", "text", "printed", "unwritten", "artifacts", "process")
"""Fields that an outcome in a file has only where they say something."""


@dataclass(slots=True)
class Call:
    """One call of a tool: everything it may know.

    `key` is the row that its outcome belongs to: the attempt itself, or a row of evidence. Calls of one `scope` share files,
    which begin as those of the scope that it `inherits` from. `writes` names a file of the
    workspace whose state before and after is wanted; `blackboard` is what the task's agents share, `printed` how many
    characters the attempt has printed so far. `agent` is the attempt's host, 0 of a plain task, `resumes` that of
    the attempt before this one, 0 for none; `app` is what an app agent is for: its page, whether it sees
    pictures. `inputs` are artifacts that it finds in its workspace (agents.artifacts.workspace), `outputs` patterns of files
    there that are kept when it has gone well. `place` is where its path led when it was judged, None where nobody did.
    `fence` is the lease of the session that it is made for. `adopted`: an earlier owner has begun it, and so many characters of
    what it has printed are known; None of a call that is new.
    `body` is what the call does, where that is no tool's that plans can name: then what it says on the way are deltas, and it
    tells the session's stream what it has found so far by `note`, an event without rows. A call that lasts tells the work it is
    part of what happens meanwhile by `on_update`, and is told what was decided about that: `hear`.
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
    fence: int = 0
    adopted: int | None = None
    writes: str = ""
    printed: int = 0
    place: str | None = None
    blackboard: Mapping[str, Any] = field(default_factory=dict)
    agent: int = 0
    resumes: int = 0
    app: Mapping[str, Any] = field(default_factory=dict)
    on_output: Callable[[str], None] = field(default=lambda text: None)
    on_thinking: Callable[[str], None] = field(default=lambda text: None)
    on_update: Callable[[str, Mapping[str, Any]], None] = field(default=lambda kind, data: None)
    note: Callable[..., None] = field(default=lambda event, **data: None)
    told: asyncio.Queue[tuple[str, Mapping[str, Any]]] = field(default_factory=asyncio.Queue)
    inputs: Sequence[Mapping[str, Any]] = ()
    outputs: Sequence[str] = ()
    body: Callable[[Call], Awaitable[Outcome]] | None = None

    def __post_init__(self) -> None:
        self.key = self.key or self.attempt

    async def hear(self) -> tuple[str, Mapping[str, Any]]:
        """What the call is told next while it is under way: a kind, and what belongs to it."""
        return await self.told.get()


Tool = Callable[[Call], Outcome | Awaitable[Outcome]]
Carrier = Callable[[Call], Tool | None]
"""Who carries a call to its device; None where it is made here, by its tool."""
SECONDS: dict[str, float] = {}
"""Time-outs of tools, by name, for calls that say none, unless the setting says another."""
UNSAID_S = 3600.0
"""...and of those of which nobody says one, but for tools that keep their time: these end by their device's limits."""
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


def tool_seconds(call: Call) -> float | None:
    """The time-out of a call: its own, else its tool's by the setting, by its registration, or by default.

    None where it has no other end than its device's limits, or where it is no tool's: bodies see to their time themselves.
    """
    if call.timeout is not None or call.body is not None:
        return call.timeout
    said: dict[str, float] = settings.TOOL_SECONDS
    unsaid = said.get("default", None if call.tool in KEEP_TIME else UNSAID_S)
    return said.get(call.tool, SECONDS.get(call.tool, unsaid))


def missing_tool(call: Call) -> Outcome:
    """The end of a call of a tool that there is not."""
    error = f"there is no tool called {call.tool}; known: {', '.join(sorted(TOOLS))}"
    return Outcome("failed", error=error, error_kind="missing")


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
    """The calls under way in one process. `on_end(call, outcome)` is called on the loop for each, exactly once.

    `carrier` says who carries a call to its device; `sleep` waits between the tries of a call.
    """

    def __init__(
        self, on_end: Callable[[Call, Outcome], None], sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep,
        carrier: Carrier = lambda call: None,
    ):  # fmt: skip
        self._on_end, self._carrier = on_end, carrier
        self._sleep = sleep
        self._tasks: dict[int, asyncio.Task[Outcome]] = {}
        self._calls: dict[int, Call] = {}
        self._lost: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self._tasks)

    def __contains__(self, key: int) -> bool:
        return key in self._tasks

    def start(self, call: Call) -> None:
        """Begin a call. A plain function has ended when this returns."""
        function = call.body or self._carrier(call) or TOOLS.get(call.tool)
        if function is None:
            self._on_end(call, missing_tool(call))
        elif inspect.iscoroutinefunction(function):
            task = self._tasks[call.key] = asyncio.get_running_loop().create_task(self._follow(function, call))
            self._calls[call.key] = call
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
        call.timeout = seconds = tool_seconds(call)
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
        if call.body is None:
            await _fit_result(outcome)
        return outcome  # type: ignore[no-any-return]  # looked at above

    def _ended(self, call: Call, task: asyncio.Task[Outcome]) -> None:
        del self._tasks[call.key], self._calls[call.key]
        why = self._lost.pop(call.key, "")
        cut_off = Outcome("lost", error=why) if why else Outcome("cancelled", error="interrupted")
        self._on_end(call, cut_off if task.cancelled() else task.result())

    def attempts(self, keys: Iterable[int]) -> set[int]:
        """Whose calls these are, of those under way."""
        return {self._calls[key].attempt for key in keys if key in self._calls}

    def tell(self, key: int, kind: str, data: Mapping[str, Any]) -> None:
        """Tell a call under way what was decided about something that it has told."""
        if key in self._calls:
            self._calls[key].told.put_nowait((kind, data))

    def lose(self, device: int, why: str) -> None:
        """Cut off the calls on a device that is gone: each has ended as lost."""
        for key, call in self._calls.items():
            if call.body is None and call.device.get("id") == device and key not in self._lost:
                self._lost[key] = why
                self._tasks[key].cancel()

    async def gone(self, device: int) -> None:
        """Wait until no call on a device is under way any more."""
        tasks = [self._tasks[key] for key, call in self._calls.items() if call.device.get("id") == device]
        await asyncio.gather(*tasks, return_exceptions=True)

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


async def _fit_result(outcome: Outcome) -> None:
    """A result that is too large for a row becomes an artifact; where that cannot be kept, the call has failed."""
    try:
        outcome.result, kept = await fit_result(outcome.result)
    except Exception as error:  # the store, or the database, as in `_follow`; what has run is not run again
        outcome.outcome, outcome.result = "failed", None
        outcome.error = f"its result is too large for a row, and could not be kept: {_failure(error).error}"
    else:
        outcome.artifacts = [*outcome.artifacts, kept] if kept else outcome.artifacts


def _failure(error: Exception) -> Outcome:
    text = str(error) if isinstance(error, AgentsError) else f"{type(error).__name__}: {error}"
    return Outcome("failed", error=text, error_kind=error_kind_of(error))
