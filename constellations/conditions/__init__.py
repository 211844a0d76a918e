"""The language of conditions: `accuracy > 0.95` over the result of the task a dependency comes from. Pure.

May import: agents, analysis, errors.
Begin at: constellations.conditions.parsing (what may be written), constellations.conditions.evaluation (whether it holds),
    constellations.conditions.operators (what is calculated with values).
Called by: plan and editor, which check conditions; live, reads and runs, which evaluate them.

The language: comparison, and / or / not, arithmetic, indexing, `in`, and len min max abs round.
Names are the keys of the result; `result` is all of it, `results['task_id']` that of another task; a dotted name reads a
key of a JSON object, and nothing else has attributes. It is written as Python's expressions are, and parsed by Python; what
else these may hold is refused when a condition is written, so what is evaluated has passed `check_condition`.

Nothing grows without bound. The nodes of a condition are few and each is evaluated once at most, only numbers are calculated
with, and whole numbers have a largest size.
"""

from constellations.conditions.evaluation import evaluate_condition
from constellations.conditions.parsing import (
    MAX_LENGTH,
    MAX_NODES,
    check_condition,
    condition_parts,
    is_calculation,
    rename_read_tasks,
    tasks_read_by,
)

__all__ = [
    "MAX_LENGTH",
    "MAX_NODES",
    "check_condition",
    "condition_parts",
    "evaluate_condition",
    "is_calculation",
    "rename_read_tasks",
    "tasks_read_by",
]
