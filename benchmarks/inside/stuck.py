"""What a judgement of being stuck costs: time a step, memory of a loop, and reading its rows again."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from statistics import median, quantiles

from agents.progress.evidence import Evidence
from agents.progress.shapes import shape_of
from agents.progress.state import State
from agents.progress.tracker import observe_item

ANSWER = "\n".join(f"line {number}: value_{number} = {number * 7} at 10:{number % 60:02}:11" for number in range(40))
SHAPES = 200


def measure(steps: int, again: int) -> dict[str, float]:
    """µs of the processor a step after `steps` of them, bytes of the state, µs of a shape, seconds for `again` rows."""
    state = _after(State(), _work(0, steps))
    costs = []
    for item in _work(steps, 2 * steps):
        begun = time.process_time_ns()
        state, _ = observe_item(state, item)
        costs.append((time.process_time_ns() - begun) / 1e3)
    begun = time.process_time()
    for number in range(SHAPES):
        shape_of(f"{number}\n{ANSWER}")
    shape = (time.process_time() - begun) / SHAPES * 1e6
    rows = list(_work(0, again))
    begun = time.process_time()
    _after(State(), rows)
    reading = time.process_time() - begun
    return {
        "median": median(costs), "p99": quantiles(costs, n=100)[98], "bytes": len(state.to_json()), "shape": shape,
        "reading": reading,
    }  # fmt: skip


def _after(state: State, items: Iterable[Evidence]) -> State:
    for item in items:
        state, _ = observe_item(state, item)
    return state


def _work(begin: int, end: int) -> Iterator[Evidence]:
    """Work that is never stuck, of the dearer kinds: long command lines, changes, tests that fail and then pass."""
    for number in range(begin, end):
        line = f"cd src/part{number % 9} && grep -rn 'name_{number}' lib/file{number}.py --include '*.py' | sort | head -20"
        item = Evidence("bash", line, call=line, outcome=f"answer {number}", shape=shape_of(f"answer number{number}"))
        if number % 4 == 1:
            item = Evidence("edit", f"src/part{number % 400}.py", call=line, outcome=str(number), before=str(number - 1))
        if number % 4 == 3:
            failed = number % 8 == 3
            item = replace(item, target=f"pytest tests/part{number % 40}", kind="test", success=not failed)
            item = replace(item, error=f"{number} failed", raw_error=f"{number} failed") if failed else item
        yield item
