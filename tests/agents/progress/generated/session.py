"""How an agent acts: its tools' names, what it records of a change, and one method for each thing an agent does."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from random import Random
from typing import Any

from tests.agents.progress.generated.texts import RUNNERS, Texts

TARGET_LIMIT = 160
"""Characters of a target: a long command is cut, as in the traces of real agents."""

Action = dict
"""A trace's action with its texts still whole: `text` (the answer), `args_text`, `error`; `before` and `after` of a change."""


@dataclass(frozen=True)
class Style:
    """The names one agent has for its tools; "" means that it uses its shell. `sees_changes`: it knows a file's two states."""

    name: str
    shell: str
    read: str = ""
    edit: str = ""
    search: str = ""
    plan: str = "update_plan"
    helper: str = "delegate"
    web: str = "fetch"
    sees_changes: bool = False
    marks_tests: bool = False
    short: bool = False


STYLES = (
    Style("claude", "Bash", "Read", "Edit", "Grep", "TodoWrite", "Task", "WebFetch", sees_changes=True),
    Style("gemini", "run_shell_command", "read_file", "replace", "grep_search", "write_todos", web="web_fetch"),
    Style("cline", "execute_command", "read_file", "replace_in_file", "search_files", "update_todo_list", "new_task",
          "browser_action"),
    Style("openhands", "execute_bash", "str_replace_editor", "str_replace_editor", "", "task_tracker", web="browser"),
    Style("opencode", "bash", "read", "edit", "grep", "todowrite", "task", "webfetch", sees_changes=True, marks_tests=True),
    Style("codex", "shell", "", "apply_patch", "", "update_plan", "spawn_agent", "web_search"),
    Style("mcp", "mcp__shell__run_command", "mcp__filesystem__read_text_file", "mcp__filesystem__edit_file",
          "mcp__ripgrep__search", "mcp__tasks__update_plan", "mcp__agents__run_agent", "mcp__playwright__browser_navigate"),
    Style("house", "bash", "view", "edit", "grep", sees_changes=True, marks_tests=True),
    Style("bash-only", "bash"),
    Style("weak", "bash", short=True),
)  # fmt: skip


class Session:
    """One agent at work in one world; what it does is appended to `actions`."""

    def __init__(self, random: Random, style: Style):
        self.random, self.style = random, style
        self.texts = Texts(random)
        self.actions: list[Action] = []
        self.revisions: dict[str, int] = {}
        self.new_revisions = count(2)  # 0 is what a file is at first, 1 is for those who go back and forth
        self.poll_tools: list[str] = []
        self.runner = random.choice(list(RUNNERS))
        self.test_module = f"tests/test_{self.texts.name()}.py"
        self.passed = random.randint(4, 40)
        self.root = self.paths(5)

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def number(self, least: int, most: int) -> int:
        return self.random.randint(least, most)

    def times(self, least: int, most: int) -> range:
        return range(self.number(least, most))

    def pick(self, *options: Any) -> Any:
        return self.random.choice(options)

    def shuffled(self, items: Sequence[Any]) -> list[Any]:
        return self.random.sample(items, len(items))

    def name(self) -> str:
        return self.texts.name()

    def names(self, least: int, most: int | None = None) -> list[str]:
        return [self.name() for _ in self.times(least, most or least)]

    def path(self) -> str:
        return self.texts.path()

    def paths(self, least: int, most: int | None = None) -> list[str]:
        return [self.path() for _ in self.times(least, most or least)]

    def tests(self, least: int, most: int | None = None) -> list[str]:
        """Names of tests, for `test` to let them fail."""
        return [f"test_{self.name()}" for _ in self.times(least, most or least)]

    def call(self, tool: str, target: str, text: str = "", *, arguments: object = None, error: str = "", kind: str = "tool",
             **fields: object) -> None:  # fmt: skip
        """A call that is over. Its arguments are its target unless they are given; with an error it failed."""
        given = json.dumps(target if arguments is None else arguments, sort_keys=True)
        self.actions.append({
            "kind": kind, "tool": tool, "target": target[:TARGET_LIMIT], "args_text": given, "text": text, "error": error,
            "success": not error,
        } | fields)  # fmt: skip

    def shell(self, command: str, text: str = "", code: int = 0, kind: str = "tool") -> None:
        """A command; one that fails has its exit code and its last line as error, and what it printed as answer."""
        last = text.strip().rsplit("\n", 1)[-1]
        self.call(self.style.shell, command, text, error=f"exit code {code}: {last}" if code else "", kind=kind)

    def read(self, path: str, first: int = 1, lines: int = 40) -> None:
        text = self.texts.source(path, self.revisions.get(path, 0), first, lines)
        if self.style.read:
            self.call(self.style.read, path, text, arguments={"path": path, "offset": first, "limit": lines})
        else:
            self.shell(f"sed -n '{first},{first + lines - 1}p' {path}", text)

    def search(self, pattern: str, found: Sequence[str] = ()) -> None:
        """A search of the sources; nothing found is an empty answer, and exit code 1 in a shell."""
        text = "\n".join(found)
        if self.style.search:
            self.call(self.style.search, pattern, text or "No matches found", arguments={"pattern": pattern})
        else:
            self.shell(f"grep -rn '{pattern}' src", text, code=0 if found else 1)

    def edit(self, path: str, revision: int | None = None) -> None:
        """A change to a revision the file never had, or to the one given. A shell's changes are silent."""
        before = self.revisions.get(path, 0)
        after = next(self.new_revisions) if revision is None else revision
        self.revisions[path] = after
        change = {"old": self.texts.source(path, before, 1, 3), "new": self.texts.source(path, after, 1, 3)}
        if not self.style.edit:
            self.shell(f"cat > {path} <<'EOF'\n{self.texts.source(path, after)}\nEOF")
        elif self.style.sees_changes:
            states = {"before": f"{path} {before}", "after": f"{path} {after}"}
            self.call(self.style.edit, path, f"{path} was changed", arguments=change | {"path": path}, **states)
        else:
            self.call(self.style.edit, path, f"{path} was changed:\n{change['new']}", arguments=change | {"path": path})

    def take_back(self, path: str, revision: int) -> None:
        """The file is again as it was at that revision."""
        if self.style.edit:
            self.edit(path, revision)
        else:
            self.revisions[path] = revision
            self.shell(f"git checkout {path}", "Updated 1 path from the index")

    def fail_edit(self, path: str, error: str) -> None:
        """A change that could not be made, to new content each time."""
        change = {"path": path, "old": self.texts.source(path, self.random.randrange(10**6), 1, 3)}
        if self.style.edit:
            self.call(self.style.edit, path, error, arguments=change, error=error)
        else:
            self.shell(f"git apply --recount {self.texts.temporary()}.patch  # {path}", error, code=1)

    def test(self, failing: Sequence[str] = ()) -> None:
        """The tests run; those that are named fail."""
        text = self.texts.test_report(self.runner, self.test_module, failing, self.passed)
        kind = "test" if self.style.marks_tests else "tool"
        self.shell(RUNNERS[self.runner], text, code=1 if failing else 0, kind=kind)

    def plan(self, steps: Sequence[tuple[str, str]]) -> None:
        """The plan is written anew: (step, its state) each."""
        todos = [{"content": step, "status": state} for step, state in steps]
        shown = "; ".join(f"[{state}] {step}" for step, state in steps)
        self.call(self.style.plan, shown, "The plan was updated.", arguments={"todos": todos})

    def browse(self, address: str, text: str, error: str = "") -> None:
        self.call(self.style.web, address, text, arguments={"url": address}, error=error)

    def delegate(self, order: str, answer: str, error: str = "") -> None:
        self.call(self.style.helper, order, answer, arguments={"prompt": order}, error=error)

    def start_job(self) -> tuple[str, str]:
        """The tool that asks for it, which may or may not be known for polling, and the job's name."""
        tool = self.pick("BashOutput", "get_job_status", "mcp__ci__poll_job")
        if self.chance(0.5):
            self.poll_tools.append(tool)
        return tool, f"job-{self.texts.identifier(6)}"

    def say(self, text: str) -> None:
        self.actions.append({
            "kind": "message", "tool": "", "target": "", "args_text": text, "text": text, "error": "", "success": True,
        })  # fmt: skip

    def control(self, kind: str) -> None:
        """A control event: user, nudge, phase or compaction."""
        self.actions.append({
            "kind": kind, "tool": "", "target": kind, "args_text": "", "text": "", "error": "", "success": True,
        })  # fmt: skip

    def fault(self, tool: str, target: str, fault: str) -> None:
        """A call that the infrastructure let down; who records it knows that."""
        self.call(tool, target, error=fault, error_kind="rate_limit" if "429" in fault else "server_error")
