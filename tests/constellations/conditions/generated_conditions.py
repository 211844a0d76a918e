"""Conditions and results made up by chance, and what the language says of them.

`python -m tests.constellations.conditions.generated_conditions OTHER.py` asks this tree's conditions and those of another
module the same 100,000 and ends with 1 unless all answers agree. With `--keep N` it writes the first N short answers of
OTHER.py to conditions.json.
"""

import argparse
import importlib.util
import itertools
import json
import random
import sys
from collections import Counter
from pathlib import Path

from constellations import conditions
from constellations.errors import ConditionRejected, ConditionUnknown

KEPT = Path(__file__).parent / "conditions.json"
KEPT_LENGTH = 600
"""Characters of one line in that file."""
KEYS = ["a", "b", "c", "n", "name", "losses", "model", "true", "len", "result", "x-y", "1"]
TASKS = ["train", "first-step", "a"]
NUMBERS = ["0", "1", "2", "-3", "7", "0.5", "1e3", "1e308", "1e999", "100", "2 ** 8000", "10 ** 30", "True", "False"]
TEXTS = ["''", "'a'", "'digits'", '"n"', "'x-y'", "'ü'", "'train'"]
OTHERS = ["None", "null", "true", "false", "[]", "()", "[1, 'a', None]", "(1, 2)", "[[1], [2]]"]
COMPARED = ["==", "!=", "<", "<=", ">", ">=", "in", "not in"]
CALCULATED = ["+", "-", "*", "/", "//", "%", "**"]
CALLED = ["len", "min", "max", "abs", "round"]
NOT_PART = [
    "lambda: 1", "[x for x in a]", "a[0:1]", "{'a': 1}", "{1}", "a is None", "a & b", "a << 2", "~a", "f'{a}'", "(x := 1)",
    "1 if a else 2", "a.b()", "eval('1')", "lenn(a)", "len()", "len(a, b)", "round(1, 2, 3)", "max(*a)", "max(a, key=b)",
    "a.__class__", "__import__('os')", "b'a'", "1j", "...", "await a", "a = 1", "a && b", "a || b", "import os", "a; b",
]  # fmt: skip
PIECES = "ab1.()[]'+-*/%<>=! ,\n_&|:"


def generated(seed: int, count: int):
    """(text, result, results, beside), so many of them, the same for the same seed."""
    chance = random.Random(seed)
    for _ in range(count):
        text = _sensible(chance, 2) if chance.random() < 0.5 else _condition(chance, chance.randrange(1, 5))
        if chance.random() < 0.08:
            text = _spoilt(chance, text)
        result = _value(chance, 3) if chance.random() < 0.1 else _object(chance, 3) | _sensible_object(chance)
        results = {task: _value(chance, 3) for task in TASKS if chance.random() < 0.7}
        yield text, result, results, {"seen": _value(chance, 1)} if chance.random() < 0.2 else {}


def answer(language, text: str, result, results, beside):
    """What such a module says: [kind, message or truth, ...] for check, tasks and evaluation."""
    try:
        language.check_condition(text)
        read = sorted(language.tasks_read_by(text))
    except ConditionRejected as refused:
        return ["refused", str(refused)]
    try:
        return ["said", language.evaluate_condition(text, result, results, beside), read]
    except ConditionUnknown as unknown:
        return ["unknown", str(unknown), unknown.name, read]


def _condition(chance: random.Random, depth: int) -> str:
    kind = chance.randrange(12) if depth else 0
    inner = [_condition(chance, depth - 1) for _ in range(3)] if kind > 1 else []
    if kind <= 1:
        return _leaf(chance)
    if kind <= 4:
        return f"{inner[0]} {chance.choice(COMPARED)} {inner[1]}"
    if kind == 5:
        return f"{inner[0]} {chance.choice(COMPARED)} {inner[1]} {chance.choice(COMPARED)} {inner[2]}"
    if kind == 6:
        return f"({inner[0]} {chance.choice(['and', 'or'])} {inner[1]} {chance.choice(['and', 'or'])} {inner[2]})"
    if kind == 7:
        return f"{chance.choice(['not ', '-', '+'])}({inner[0]})"
    if kind <= 9:
        return f"({inner[0]} {chance.choice(CALCULATED)} {inner[1]})"
    if kind == 10:
        return f"{chance.choice(CALLED)}({', '.join(inner[: chance.randrange(1, 4)])})"
    return chance.choice([f"({inner[0]})[{inner[1]}]", f"({inner[0]}).{chance.choice(['a', 'n', 'real', 'upper', 'size'])}"])


def _sensible(chance: random.Random, depth: int) -> str:
    """A condition that can mostly be evaluated: numbers are calculated with, and what is compared has an order."""
    kind = chance.randrange(6)
    if depth and kind == 0:
        return f"({_sensible(chance, depth - 1)} {chance.choice(['and', 'or'])} {_sensible(chance, depth - 1)})"
    if depth and kind == 1:
        return f"not ({_sensible(chance, depth - 1)})"
    if kind == 2:
        return f"{chance.choice(TEXTS)} {chance.choice(['in', 'not in'])} {chance.choice(['word', 'words', 'result', 'inner'])}"
    if kind == 3:
        return f"word {chance.choice(COMPARED[:6])} {chance.choice([*TEXTS, 'words[-1]', 'inner.word'])}"
    chain = [_number(chance, 2) for _ in range(chance.choice([2, 2, 2, 3]))]
    return f"{chain[0]} " + " ".join(f"{chance.choice(COMPARED[:6])} {number}" for number in chain[1:])


def _number(chance: random.Random, depth: int) -> str:
    kind = chance.randrange(6) if depth else 0
    inner = [_number(chance, depth - 1) for _ in range(2)] if kind > 1 else []
    if kind <= 1:
        return chance.choice([*NUMBERS, "x", "y", "inner.x", "inner['y']", "numbers[0]", "numbers[-1]", "result.x", "missing"])
    if kind <= 3:
        return f"({inner[0]} {chance.choice(CALCULATED)} {inner[1]})"
    if kind == 4:
        return f"-{inner[0]}"
    call = chance.choice(["len(words)", "min(numbers)", "max({}, {})", "abs({})", "round({})", "round({}, 1)", "min({}, {})"])
    return call.format(*inner)


def _sensible_object(chance: random.Random):
    def number():
        return chance.choice([0, 1, 2, -3, 30, 0.5, -1.5, 1e308, 10**30, chance.random()])

    words = [chance.choice(["a", "digits", "x-y", "ü"]) for _ in range(3)]
    inner = {"x": number(), "y": number(), "word": words[0]}
    return {"x": number(), "y": number(), "word": words[1], "words": words, "numbers": [number(), number()], "inner": inner}


def _leaf(chance: random.Random) -> str:
    kind = chance.randrange(20)
    if kind < 8:
        return chance.choice([*KEYS[:9], "missing", "seen", "result", "results", "max"])
    if kind < 12:
        return chance.choice(NUMBERS)
    if kind < 14:
        return chance.choice(TEXTS)
    if kind < 16:
        return chance.choice(OTHERS)
    if kind == 16:
        return f"results[{chance.choice(TASKS)!r}]" + chance.choice(["", ".a", "['n']", "[0]"])
    if kind == 17:
        return chance.choice(["results.train.a", "result['x-y']", "result.a", "model.size", "losses[-1]", "losses[99]"])
    return chance.choice(NOT_PART) if chance.random() < 0.15 else chance.choice(["n", "a", "losses", "name", "model"])


def _spoilt(chance: random.Random, text: str) -> str:
    at = chance.randrange(len(text) + 1)
    return text[:at] + chance.choice([chance.choice(PIECES), "", "", " " * 500, "(" * 90]) + text[at + chance.randrange(2) :]


def _object(chance: random.Random, depth: int):
    return {key: _value(chance, depth - 1) for key in KEYS if chance.random() < 0.6}


def _value(chance: random.Random, depth: int):
    kind = chance.randrange(10 if depth else 7)
    if kind == 0:
        return chance.choice([None, True, False, ""])
    if kind <= 2:
        return chance.choice([0, 1, 2, 3, -3, 7, 30, 10**30, -(2**9000)])
    if kind <= 4:
        return chance.choice([0.5, 0.92, -1.5, 1e308, float("nan"), float("inf"), chance.random()])
    if kind <= 6:
        return chance.choice(["a", "digits", "x-y", "ü", "n"])
    if kind <= 8:
        return [_value(chance, depth - 1) for _ in range(chance.randrange(4))]
    return _object(chance, depth)


def _module(path: str):
    spec = importlib.util.spec_from_file_location("other_conditions", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if hasattr(module, "check"):  # as they were called up to 5.0
        module.check_condition, module.evaluate_condition = module.check, module.evaluate
        module.tasks_read_by = module.tasks_read
    return module


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("other")
    options.add_argument("--count", type=int, default=100_000)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--keep", type=int, default=0)
    given = options.parse_args()
    other = _module(given.other)
    if given.keep:
        made = (json.dumps([*case, answer(other, *case)], ensure_ascii=False) for case in generated(given.seed, given.count))
        lines = itertools.islice((line for line in made if len(line) <= KEPT_LENGTH), given.keep)
        KEPT.write_text("[\n" + ",\n".join(lines) + "\n]\n")
        return 0
    kinds: Counter[str] = Counter()
    different = 0
    for case in generated(given.seed, given.count):
        before, now = answer(other, *case), answer(conditions, *case)
        kinds[f"{before[0]} {before[1]}" if before[0] == "said" else before[0]] += 1
        if before != now:
            different += 1
            print(f"{case!r}\n  other {before}\n  here  {now}", file=sys.stderr)
    print(f"{given.count:,} conditions, {different:,} answers differ: {dict(sorted(kinds.items()))}")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
