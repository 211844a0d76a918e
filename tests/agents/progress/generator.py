"""Sessions of agents made up from a seed: benign work and loops with noise between, as traces (format: stuck_eval).

`benign(seed)` here and `loop(kind, seed)` in loops.py give one trace each; the same seed gives the same trace.
"""

import hashlib
import json
from collections.abc import Callable, Iterator
from random import Random

STEPS = 60
"""Actions of a session."""
NOISE = 0.25
"""Share of a loop's actions that are noise."""
LOOPS = ("exact", "same_error", "new_arguments", "cycle", "flip_flop", "stagnation")
ERRORS = ("old_string not found", "Permission denied", "401 Unauthorized", "no such column: colour", "E: unable to locate x")

Action = dict
Stream = Iterator[Action]


def digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]


def action(tool: str, target: str, outcome: object, **fields) -> Action:
    """A call that went well; its arguments are its target unless `arguments` says otherwise."""
    arguments = fields.pop("arguments", "")
    return {
        "kind": "tool", "tool": tool, "target": target, "args_digest": digest(tool, target, arguments),
        "error": None, "content_hash": digest(outcome), "success": True,
    } | fields  # fmt: skip


def failed(tool: str, target: str, error: str, arguments: object = "") -> Action:
    return action(tool, target, None, arguments=arguments, error=error, success=False) | {"content_hash": None}


def said(text: str) -> Action:
    return {"kind": "message", "tool": "", "target": "", "args_digest": digest(text), "error": None,
            "content_hash": digest(text), "success": True}  # fmt: skip


def control(kind: str) -> Action:
    return {"kind": kind, "tool": "", "target": kind, "args_digest": "", "error": None, "content_hash": None, "success": True}


class World:
    """Files, a clock of changes and names that never come again."""

    def __init__(self, seed: int):
        self.random = Random(seed)
        self.count = 0
        self.states: dict[str, int] = {}

    def new(self) -> int:
        self.count += 1
        return self.count

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def path(self) -> str:
        return f"src/part{self.random.randrange(9)}/file{self.new()}.py"

    def edit(self, path: str, tool: str = "edit") -> Action:
        """A change to a content the file never had."""
        before, self.states[path] = self.states.get(path, 0), self.new()
        known = {"pre_hash": digest(path, before)} if self.chance(0.6) else {}
        made = action(tool, path, None, arguments=self.states[path], **known)
        return made | {"content_hash": digest(path, self.states[path])}

    def view(self, path: str) -> Action:
        return action("view", path, ["seen", path, self.states.get(path, 0)])

    def test(self, command: str, result: object, passes: bool) -> Action:
        error = None if passes or self.chance(0.5) else f"FAILED in {self.random.random():.2f}s: {result}"
        return action("bash", command, result, kind="test", success=passes, error=error)


def batch(world: World) -> Stream:
    """One change, or one command, applied to many files."""
    tool = world.random.choice(("edit", "write", "bash"))
    for _ in range(world.random.randint(8, 25)):
        path = world.path()
        if world.chance(0.3):
            yield world.view(path)
        yield action("bash", f"mv {path} {path}.old", "") if tool == "bash" else world.edit(path, tool)


def polling(world: World) -> Stream:
    """A job is asked how far it is; the answer stays for a while, then moves."""
    declared = world.chance(0.7)
    tool, job = ("poll" if declared else "bash"), f"job-{world.new()} status"
    for step in range(world.random.randint(4, 8)):
        for _ in range(world.random.randint(1, 5) if declared else world.random.randint(1, 2)):
            yield action(tool, job, [job, step])
            if world.chance(0.2):
                yield action("bash", "sleep 5", "")


def test_fix(world: World) -> Stream:
    """Read, change, test until the test passes; it may fail in the same way several times, and a change be taken back."""
    path, command = world.path(), world.random.choice(("pytest -q", "go test ./...", "npm test"))
    for attempt in range(world.random.randint(3, 7)):
        if world.chance(0.6):
            yield world.view(path)
        made = world.edit(path)
        yield made
        yield world.test(command, ["fails", path, attempt // 2], passes=False)
        if world.chance(0.2) and "pre_hash" in made:
            yield action("edit", path, None, arguments=["back", attempt], pre_hash=made["content_hash"]) | {
                "content_hash": made["pre_hash"]
            }
    yield world.edit(path)
    yield world.test(command, "all passed", passes=True)


def audit(world: World) -> Stream:
    """Many files are read; some searches find nothing, some files are looked at twice."""
    path = world.path()
    for _ in range(world.random.randint(12, 30)):
        roll = world.random.random()
        if roll < 0.25:
            found = "no matches" if world.chance(0.3) else world.new()
            yield action("grep", f"pattern {world.new()}", found)
        elif roll < 0.32:
            yield action("bash", world.random.choice(("git status", "ls src", "git log -5")), "as before")
        elif roll < 0.40:
            yield world.view(path)
        else:
            path = world.path()
            yield world.view(path)


def status_between(world: World) -> Stream:
    """Status and tests, which say the same, between edits, which do not."""
    paths = [world.path() for _ in range(world.random.randint(1, 4))]
    for _ in range(world.random.randint(4, 10)):
        yield world.edit(world.random.choice(paths))
        if world.chance(0.8):
            yield action("bash", "git status", "modified")
        if world.chance(0.8):
            yield world.test("pytest -q", "all passed", passes=True)
        if world.chance(0.3):
            yield action("bash", "git diff --stat", world.count)


def retries(world: World) -> Stream:
    """A call fails once or twice, sometimes by the infrastructure's fault more often, then goes well."""
    for _ in range(world.random.randint(2, 5)):
        tool = world.random.choice(("edit", "bash", "mcp:fetch_page"))
        target = f"make part{world.new()}" if tool == "bash" else world.path()
        faulty = world.chance(0.25)
        error = "503 Service Unavailable" if faulty else world.random.choice(ERRORS)
        for again in range(world.random.randint(1, 5 if faulty else 2)):
            yield failed(tool, target, error, "" if faulty else again)
            if not faulty and world.chance(0.6):
                yield world.view(target if tool == "edit" else world.path())
        yield world.edit(target) if tool == "edit" else action(tool, target, world.new())


BENIGN: tuple[Callable[[World], Stream], ...] = (batch, polling, test_fix, audit, status_between, retries)


def trace(name: str, actions: list[Action], stuck_from: int | None) -> dict:
    """`stuck_from` is the place of the first action of the loop, from 1; None for benign work."""
    return {"name": name, "source": "generator", "tier": "C", "eval": "any", "expected_stuck": stuck_from is not None,
            "detect_by": stuck_from and len(actions), "reason": "", "actions": actions, "stuck_from": stuck_from}  # fmt: skip


def work(world: World, steps: int, kinds: tuple[Callable[[World], Stream], ...]) -> list[Action]:
    done: list[Action] = []
    while len(done) < steps:
        for one in world.random.choice(kinds)(world):
            done.append(one)
            if world.chance(0.08):
                done.append(said(f"step {world.new()}"))
    return done[:steps]


def benign(seed: int) -> dict:
    """A session of STEPS: half of them of one kind of work, half mixed."""
    world = World(seed)
    kinds = BENIGN if world.chance(0.5) else (BENIGN[seed % len(BENIGN)],)
    return trace(f"benign/{kinds[0].__name__ if len(kinds) == 1 else 'mixed'}-{seed}", work(world, STEPS, kinds), None)
