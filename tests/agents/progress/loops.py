"""Loops of each kind, with noise between that does not clear them; what the generator's sessions get stuck in."""

from collections.abc import Iterator

from tests.agents.progress.generator import (
    BENIGN,
    ERRORS,
    LOOPS,
    NOISE,
    STEPS,
    Action,
    World,
    action,
    control,
    failed,
    said,
    trace,
    work,
)  # fmt: skip

WARM_UP = 15
"""Benign actions before a loop, at most."""


def exact(world: World) -> Iterator[Action]:
    tool, target = world.random.choice(
        (("bash", "gh api pulls/1/reviews"), ("view", "a.py"), ("mcp:lookup", ""), ("bash", "make"))
    )
    while True:
        yield action(tool, target, "the same")


def same_error(world: World) -> Iterator[Action]:
    tool, target = world.random.choice((("edit", "src/main.py"), ("bash", "make build"), ("mcp:save", "record 7")))
    error = world.random.choice(ERRORS)
    while True:
        yield failed(tool, target, f"{error} at 2026-11-{world.random.randint(10, 28)} 10:{world.random.randint(10, 59)}:00")


def new_arguments(world: World) -> Iterator[Action]:
    tool = world.random.choice(("edit", "bash", "mcp:search_notes", "ipython"))
    error, fixed = world.random.choice(ERRORS), world.chance(0.4)
    while True:
        target = "src/main.py" if fixed else f"ssh -o option{world.new()} host" if tool == "bash" else f"query {world.new()}"
        yield failed(tool, target, error, world.new())


def cycle(world: World) -> Iterator[Action]:
    calls = [
        world.random.choice((
            action("view", f"loop{place}.txt", ["round", place]),
            action("bash", f"./check {place}", ["check", place]),
            failed("bash", f"make part{place}", f"part {chr(97 + place)} is broken"),
        ))
        for place in range(world.random.randint(2, 5))
    ]  # fmt: skip
    while True:
        yield from calls


def flip_flop(world: World) -> Iterator[Action]:
    """One file or two flip between two states; what was found is recorded in half of the sessions."""
    recorded, paths = world.chance(0.5), ["a.go", "b.go"][: world.random.randint(1, 2)]
    now, then = "with", "without"
    while True:
        for path in paths:
            known = {"pre_hash": action("", path, [path, then])["content_hash"]} if recorded else {}
            yield action("edit", path, [path, now], arguments=now if world.chance(0.7) else world.new(), **known)
        now, then = then, now


def stagnation(world: World) -> Iterator[Action]:
    """Known things are looked at again in no order, or questions are turned over whose answer stays."""
    known = [action("view", f"known{place}.py", ["known", place]) for place in range(world.random.randint(3, 8))]
    known += [action("bash", "git status", "clean"), action("bash", "pytest -q", "1 failed", kind="test", success=False)]
    turning = world.chance(0.4)
    while True:
        yield action("grep", f"variant {world.new()}", "the same answer") if turning else world.random.choice(known)


MAKERS = dict(zip(LOOPS, (exact, same_error, new_arguments, cycle, flip_flop, stagnation), strict=True))


def noise(world: World, kind: str) -> Action:
    """An action that does not clear a loop of this kind: new information does clear a standstill, so there it is rare."""
    roll = world.random.random()
    if roll < (0.15 if kind == "stagnation" else 0.5):
        return world.view(world.path())
    if roll < 0.75:
        return action("bash", world.random.choice(("ls", "git status", "pwd")), "as ever")
    if roll < 0.8 and kind in ("same_error", "new_arguments"):
        return action("view", "src/main.py", "main")
    return control(world.random.choice(("nudge", "compaction"))) if roll > 0.93 else said(f"thought {world.new()}")


def loop(kind: str, seed: int) -> dict:
    """A session that works for a while and then is caught in a loop until its end."""
    world = World(seed)
    done = work(world, world.random.randint(0, WARM_UP), BENIGN)
    begins, making = len(done) + 1, MAKERS[kind](world)
    while len(done) < STEPS:
        done.append(noise(world, kind) if world.chance(NOISE) else next(making))
    return trace(f"{kind}-{seed}", done, begins)
