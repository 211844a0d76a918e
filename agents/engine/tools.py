"""What a body of work can be: tools by name, and the calls of them that are under way.

A tool is a plain function or a coroutine function from a `Call` to an `Outcome`. A plain function must not block; a
coroutine may take its time and is interrupted by cancelling it. Tools register themselves with `@tool(name)`.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Container, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Outcome:
    """How a body ended: `completed`, `failed`, `timeout`, `cancelled` or `lost`.

    `error_kind` is one of `agents.acting.recovery.KINDS`. `said` is the digest of what it answered, or of the file's state after
    it, `before` that of the file before a change (agents.progress.evidence). `reason` is what the task's end will say.
    """

    outcome: str
    result: Any = None
    error: str = ""
    exit_code: int | None = None
    error_kind: str = ""
    said: str | None = None
    before: str | None = None
    reason: str = ""

    def as_json(self) -> dict[str, Any]:
        return {name: value for name in self.__slots__ if (value := getattr(self, name)) not in ("", None) or name == "outcome"}


@dataclass(slots=True)
class Call:
    """One call of a tool: everything it may know.

    `key` is the row that its outcome belongs to: the attempt itself, or a row of evidence. `writes` names a file of the workspace
    whose state before and after is wanted; `blackboard` is what the task's agents share.
    """

    attempt: int
    session: int
    tool: str
    arguments: Mapping[str, Any]
    device: Mapping[str, Any]
    timeout: float | None
    scope: str = ""
    key: int = 0
    writes: str = ""
    blackboard: Mapping[str, Any] = field(default_factory=dict)
    on_output: Callable[[str], None] = field(default=lambda text: None)

    def __post_init__(self) -> None:
        self.key = self.key or self.attempt


Tool = Callable[[Call], Outcome | Awaitable[Outcome]]
TOOLS: dict[str, Tool] = {}


def tool(name: str) -> Callable[[Tool], Tool]:
    """Register a tool under `name`."""

    def register(function: Tool) -> Tool:
        TOOLS[name] = function
        return function

    return register


@tool("noop")
def noop(call: Call) -> Outcome:
    """Does nothing: what the engine itself costs. Its result is its argument `result`."""
    return Outcome("completed", result=call.arguments.get("result"))


class Bodies:
    """The calls under way in one runner. `on_end(call, outcome)` is called on the loop for each, exactly once."""

    def __init__(self, on_end: Callable[[Call, Outcome], None]):
        self._on_end = on_end
        self._tasks: dict[int, asyncio.Task[None]] = {}

    def __len__(self) -> int:
        return len(self._tasks)

    def __contains__(self, key: int) -> bool:
        return key in self._tasks

    def start(self, call: Call) -> None:
        """Begin a call. A plain function has ended when this returns."""
        function = TOOLS.get(call.tool)
        if function is None:
            known = ", ".join(sorted(TOOLS))
            self._on_end(call, Outcome("failed", error=f"there is no tool called {call.tool}; known: {known}"))
        elif inspect.iscoroutinefunction(function):
            self._tasks[call.key] = asyncio.get_running_loop().create_task(self._follow(function, call))
        else:
            self._on_end(call, _called(function, call))

    async def _follow(self, function: Tool, call: Call) -> None:
        try:
            outcome = await asyncio.wait_for(function(call), call.timeout)  # type: ignore[arg-type]
        except asyncio.CancelledError:
            outcome = Outcome("cancelled", error="interrupted")
        except TimeoutError:
            outcome = Outcome("timeout", error=f"stopped after {call.timeout:g} s")
        except Exception as error:  # a broken tool is a failed attempt, never a broken runner
            outcome = Outcome("failed", error=f"{type(error).__name__}: {error}")
        del self._tasks[call.key]
        self._on_end(call, outcome)

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


def _called(function: Tool, call: Call) -> Outcome:
    try:
        return function(call)  # type: ignore[return-value]
    except Exception as error:  # as above
        return Outcome("failed", error=f"{type(error).__name__}: {error}")
