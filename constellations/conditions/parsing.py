"""What may be written as a condition, and which tasks it reads. Pure."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from functools import lru_cache
from itertools import accumulate
from typing import Any

from constellations.conditions.operators import FUNCTIONS, MOST_VALUES, OPERATORS, kind_of
from constellations.errors import ConditionRejected

MAX_LENGTH = 500
"""Characters of a condition."""
MAX_NODES = 100
"""Names, values and operations of a condition."""
CACHED = 1_024
"""Parsed conditions kept; the largest takes about 50 kB."""


def check_condition(text: str) -> None:
    """Raises ConditionRejected unless `text` is a condition; the message names what is wrong and in which column."""
    parse_condition(text)


def tasks_read_by(text: str) -> set[str]:
    """The ids in `results['...']` and `results.name`; raises ConditionRejected."""
    return {_key(node) for node in condition_parts(text) if _reads_results(node)}


def condition_parts(text: str) -> Iterator[ast.AST]:
    """The names, values and operations of a condition; raises ConditionRejected."""
    return ast.walk(parse_condition(text))


def rename_read_tasks(text: str, names: Mapping[str, str]) -> str:
    """The condition with `results['old']` reading the tasks that `names` has in their place; raises ConditionRejected."""
    lines = text.strip().replace("\r\n", "\n").replace("\r", "\n").encode().splitlines(keepends=True)
    before = [0, *accumulate(map(len, lines))]
    nodes = (node for node in ast.walk(parse_condition(text)) if isinstance(node, ast.expr))
    found = [node for node in nodes if _reads_results(node) and _key(node) in names]
    written = b"".join(lines)
    for node in sorted(found, key=lambda node: (node.lineno, node.col_offset), reverse=True):
        start = before[node.lineno - 1] + node.col_offset
        end = before[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        written = written[:start] + f"results[{names[_key(node)]!r}]".encode() + written[end:]
    return written.decode()


def is_calculation(text: str) -> bool:
    """Whether a condition does more than name one thing, or be one; raises ConditionRejected."""
    return not isinstance(parse_condition(text), ast.Name | ast.Constant)


def _reads_results(node: ast.AST) -> bool:
    if not isinstance(node, ast.Attribute | ast.Subscript):
        return False
    return isinstance(node.value, ast.Name) and node.value.id == "results" and isinstance(_key(node), str)


def _key(node: Any) -> Any:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node.slice, "value", None)


# What a condition may be made of


@lru_cache(maxsize=CACHED)
def parse_condition(text: str) -> ast.expr:
    """The expression of a condition, all of whose nodes the language has; raises ConditionRejected."""
    if not isinstance(text, str):
        raise ConditionRejected(f"a condition is text, not {kind_of(text)}")
    if len(text) > MAX_LENGTH:
        raise ConditionRejected(f"the condition has {len(text)} characters; {MAX_LENGTH} are allowed")
    if not text.strip():
        raise ConditionRejected("the condition is empty")
    body = _parse_expression(text)
    nodes = [node for node in ast.walk(body) if isinstance(node, ast.expr)]
    if len(nodes) > MAX_NODES:
        raise ConditionRejected(f"the condition has {len(nodes)} names, values and operations; {MAX_NODES} are allowed")
    for node in ast.walk(body):
        check = CHECKS.get(type(node))
        unknown = UNKNOWN_PARTS.get(type(node), type(node).__name__)
        if problem := check(node) if check else f"{unknown} is not part of conditions":
            column = f"column {node.col_offset + 1 + _indent(text)}: " if isinstance(node, ast.expr) else ""
            raise ConditionRejected(f"{column}{problem}")
    return body


def _parse_expression(text: str) -> ast.expr:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        column = (error.offset or len(text.strip()) + 1) + _indent(text)
        hint = "; to compare, write ==" if "=" in text and "==" not in text else ""
        if any(sign in text for sign in ("&&", "||")):  # as other languages have them
            hint = "; write and, or, not"
        raise ConditionRejected(f"column {column}: the condition is not understood: {error.msg}{hint}") from error
    except (ValueError, MemoryError, RecursionError) as error:
        why = "it is nested too deeply, or holds a character that no text may hold"
        raise ConditionRejected(f"the condition is not understood: {why}") from error


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


def _check_call(node: ast.Call) -> str:
    if not isinstance(node.func, ast.Name):
        return "only functions are called, and a function is called by its name"
    if node.func.id not in FUNCTIONS:
        close = get_close_matches(node.func.id, FUNCTIONS, 1)
        hint = f"; did you mean {close[0]}?" if close else f"; there are {', '.join(FUNCTIONS)}"
        return f"there is no function {node.func.id}{hint}"
    if node.keywords or not node.args:
        return f"{node.func.id} takes values only, one after the other"
    most = MOST_VALUES.get(node.func.id, MAX_NODES)
    values = f"{most} value{'s' * (most > 1)}, not {len(node.args)}"
    return f"{node.func.id} takes at most {values}" if len(node.args) > most else ""


def _check_word(word: str) -> str:
    return f"names do not begin with two underscores: {word}" if word.startswith("__") else ""


def _check_constant(node: ast.Constant) -> str:
    is_json = node.value is None or isinstance(node.value, bool | int | float | str)
    return "" if is_json else f"{node.value!r} is neither text nor a number"


def _allowed(node: ast.AST) -> str:
    return ""


CHECKS: dict[type[ast.AST], Callable[[Any], str]] = {
    ast.Call: _check_call,
    ast.Name: lambda node: _check_word(node.id),
    ast.Attribute: lambda node: _check_word(node.attr),
    ast.Constant: _check_constant,
    **dict.fromkeys((ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Subscript, ast.List, ast.Tuple), _allowed),
    **dict.fromkeys((ast.And, ast.Or, ast.Load), _allowed),
    **dict.fromkeys(OPERATORS, _allowed),
}

UNKNOWN_PARTS: dict[type[ast.AST], str] = {
    ast.Slice: "a slice [a:b]",
    ast.Is: "`is` (write ==)",
    ast.IsNot: "`is not` (write !=)",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.BitAnd: "& (write and)",
    ast.BitOr: "| (write or)",
    ast.BitXor: "^",
    ast.Invert: "~ (write not)",
    ast.MatMult: "@",
    ast.IfExp: "if ... else",
    ast.Lambda: "lambda",
    ast.NamedExpr: ":=",
    ast.JoinedStr: "a text with {}",
    ast.Dict: "an object {}",
    ast.Set: "a set {}",
    ast.Starred: "*",
    **dict.fromkeys((ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp), "`for`"),
    **dict.fromkeys((ast.Await, ast.Yield, ast.YieldFrom), "await or yield"),
}
