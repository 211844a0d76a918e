"""Conditions: `accuracy > 0.95` over the result of the task a dependency comes from. Pure.

The language: comparison, and / or / not, arithmetic, indexing, `in`, and len min max abs round.
Names are the keys of the result; `result` is all of it, `results['task_id']` that of another task; a dotted name reads a
key of a JSON object, and nothing else has attributes. It is written as Python's expressions are, and parsed by Python; what
else these may hold is refused when a condition is written, so what is evaluated has passed `check_condition`.

Nothing grows without bound. The nodes of a condition are few and each is evaluated once at most, only numbers are calculated
with, and whole numbers have a largest size.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import lru_cache
from itertools import accumulate
from types import MappingProxyType
from typing import Any

from constellations.errors import ConditionRejected, ConditionUnknown

MAX_LENGTH = 500
"""Characters of a condition."""
MAX_NODES = 100
"""Names, values and operations of a condition."""
MAX_BITS = 16_384
"""Size of a whole number a calculation may give; anything larger is an error, not a wait."""
MAX_DIGITS = 100
"""Decimal places `round` takes, either way."""
CACHED = 1_024
"""Parsed conditions kept; the largest takes about 50 kB."""

Result = Any
Results = Mapping[str, Any]


def check_condition(text: str) -> None:
    """Raises ConditionRejected unless `text` is a condition; the message names what is wrong and in which column."""
    _parsed(text)


def evaluate_condition(text: str, result: Result, results: Results, beside: Mapping[str, Any] = MappingProxyType({})) -> bool:
    """Whether the condition holds for a task's `result`; `results` has every task's by task_id.

    `beside` are names that count where the result has no key of that name. Raises ConditionUnknown when that cannot be said:
    a name is missing, or the calculation fails. A value that is not true or false counts as Python counts it: 0, "", [], {}
    and null are false.
    """
    try:
        return bool(_value(_parsed(text), _Scope(result, results, beside)))
    except ConditionRejected as error:
        raise ConditionUnknown(str(error)) from error
    except IndexError as error:
        raise ConditionUnknown(f"`{text}` asks for a place in a list that is not there") from error
    except RecursionError as error:
        raise ConditionUnknown(f"`{text}` compares values that are nested too deeply") from error
    except (ArithmeticError, TypeError, ValueError) as error:
        raise ConditionUnknown(f"`{text}` cannot be calculated: {error.args[-1]}") from error


def tasks_read_by(text: str) -> set[str]:
    """The ids in `results['...']` and `results.name`; raises ConditionRejected."""
    return {_key(node) for node in condition_parts(text) if _reads_results(node)}


def condition_parts(text: str) -> Iterator[ast.AST]:
    """The names, values and operations of a condition; raises ConditionRejected."""
    return ast.walk(_parsed(text))


def rename_read_tasks(text: str, names: Mapping[str, str]) -> str:
    """The condition with `results['old']` reading the tasks that `names` has in their place; raises ConditionRejected."""
    lines = text.strip().replace("\r\n", "\n").replace("\r", "\n").encode().splitlines(keepends=True)
    before = [0, *accumulate(map(len, lines))]
    nodes = (node for node in ast.walk(_parsed(text)) if isinstance(node, ast.expr))
    found = [node for node in nodes if _reads_results(node) and _key(node) in names]
    written = b"".join(lines)
    for node in sorted(found, key=lambda node: (node.lineno, node.col_offset), reverse=True):
        start = before[node.lineno - 1] + node.col_offset
        end = before[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        written = written[:start] + f"results[{names[_key(node)]!r}]".encode() + written[end:]
    return written.decode()


def is_calculation(text: str) -> bool:
    """Whether a condition does more than name one thing, or be one; raises ConditionRejected."""
    return not isinstance(_parsed(text), ast.Name | ast.Constant)


def _reads_results(node: ast.AST) -> bool:
    if not isinstance(node, ast.Attribute | ast.Subscript):
        return False
    return isinstance(node.value, ast.Name) and node.value.id == "results" and isinstance(_key(node), str)


def _key(node: Any) -> Any:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node.slice, "value", None)


# Writing: what a condition may be made of


@lru_cache(maxsize=CACHED)
def _parsed(text: str) -> ast.expr:
    if not isinstance(text, str):
        raise ConditionRejected(f"a condition is text, not {_kind(text)}")
    if len(text) > MAX_LENGTH:
        raise ConditionRejected(f"the condition has {len(text)} characters; {MAX_LENGTH} are allowed")
    if not text.strip():
        raise ConditionRejected("the condition is empty")
    body = _syntax(text)
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


def _syntax(text: str) -> ast.expr:
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
    known = node.value is None or isinstance(node.value, bool | int | float | str)
    return "" if known else f"{node.value!r} is neither text nor a number"


def _allowed(node: ast.AST) -> str:
    return ""


# Evaluating


def _number(value: Any) -> int | float:
    if not isinstance(value, int | float):
        raise TypeError(f"{_kind(value)} is not a number")
    return value


def _kind(value: Any) -> str:
    return KINDS.get(type(value), "an object")


def _arithmetic(function):
    """`function` for two numbers; whole numbers stay within MAX_BITS, and nan is an error and not a number."""

    def calculate(left, right):
        value = function(_number(left), _number(right))
        if isinstance(value, complex) or value != value:
            raise ArithmeticError("the result is not a number")
        return value

    return calculate


def _bits(value: int | float) -> int:
    return value.bit_length() if isinstance(value, int) else 0


def _multiply(left, right):
    if _bits(left) + _bits(right) > MAX_BITS:
        raise OverflowError("the product is too large")
    return left * right


def _power(left, right):
    if isinstance(left, int) and isinstance(right, int) and _bits(left) * abs(right) > MAX_BITS:
        raise OverflowError("the power is too large")
    return left**right


def _ordered(function):
    """`function` for two values that have an order: nan has none, and would silently be false."""

    def compare(left, right):
        if (isinstance(left, float) and left != left) or (isinstance(right, float) and right != right):
            raise ArithmeticError("nan cannot be compared")
        try:
            return function(left, right)
        except TypeError as error:
            raise TypeError(f"{_kind(left)} and {_kind(right)} have no order between them") from error

    return compare


def _contains(value, container) -> bool:
    try:
        return value in container
    except TypeError as error:
        raise TypeError(f"{_kind(value)} cannot be in {_kind(container)}") from error


def _length(value) -> int:
    try:
        return len(value)
    except TypeError as error:
        raise TypeError(f"{_kind(value)} has no length") from error


def _extreme(function):
    """`function` is min or max, of several values or of those in a list."""

    def find(*values):
        try:
            return function(*values)
        except (TypeError, ValueError) as error:
            raise TypeError(f"{function.__name__} needs values that have an order") from error

    return find


def _round(value, digits=None):
    if digits is not None and (not isinstance(digits, int) or abs(digits) > MAX_DIGITS):
        raise ValueError(f"round takes at most {MAX_DIGITS} decimal places")
    return round(_number(value), digits)


def _absolute(value):
    return abs(_number(value))


FUNCTIONS = {"len": _length, "min": _extreme(min), "max": _extreme(max), "abs": _absolute, "round": _round}
MOST_VALUES = {"len": 1, "abs": 1, "round": 2}

OPERATORS = {
    ast.Add: _arithmetic(operator.add),
    ast.Sub: _arithmetic(operator.sub),
    ast.Mult: _arithmetic(_multiply),
    ast.Div: _arithmetic(operator.truediv),
    ast.FloorDiv: _arithmetic(operator.floordiv),
    ast.Mod: _arithmetic(operator.mod),
    ast.Pow: _arithmetic(_power),
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: _ordered(operator.lt),
    ast.LtE: _ordered(operator.le),
    ast.Gt: _ordered(operator.gt),
    ast.GtE: _ordered(operator.ge),
    ast.In: _contains,
    ast.NotIn: lambda value, container: not _contains(value, container),
    ast.Not: operator.not_,
    ast.USub: lambda value: -_number(value),
    ast.UAdd: lambda value: +_number(value),
}

CHECKS: dict[type, Any] = {
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

KINDS = {
    str: "text",
    int: "a number",
    float: "a number",
    bool: "true or false",
    type(None): "null",
    list: "a list",
    tuple: "a list",
}

LITERALS = {"true": True, "false": False, "null": None}
"""JSON's spelling, where the result has no key of that name."""


class _Scope:
    """What the names of a condition stand for, each time it is evaluated."""

    __slots__ = ("beside", "result", "results")

    def __init__(self, result: Result, results: Results, beside: Mapping[str, Any]):
        self.result, self.results, self.beside = result, results, beside


def _value(node: ast.AST, scope: _Scope) -> Any:
    return VALUES[type(node)](node, scope)


def _value_of_name(node: ast.Name, scope: _Scope) -> Any:
    name, result = node.id, scope.result
    if name == "result":
        return result
    if name == "results":
        return scope.results
    if isinstance(result, Mapping) and name in result:
        return result[name]
    if name in scope.beside:
        return scope.beside[name]
    if name in LITERALS:
        return LITERALS[name]
    raise ConditionUnknown(f"`{name}` is missing: {_keys_of(result)}", name)


def _keys_of(result: Any) -> str:
    """What a result offers, for the message that something is not among it."""
    if not isinstance(result, Mapping):
        return "the task has no result" if result is None else f"the result is {_kind(result)}, not an object"
    if not result:
        return "the result is empty"
    return f"the result has {', '.join(sorted(map(str, result))[:20])}"


def _value_of_attribute(node: ast.Attribute, scope: _Scope) -> Any:
    """The value of a key: attributes of Python objects are never looked at."""
    container = _value(node.value, scope)
    if not isinstance(container, Mapping):
        name, owner = ast.unparse(node), ast.unparse(node.value)
        raise ConditionUnknown(f"`{name}` is missing: `{owner}` is {_kind(container)}, not an object", name)
    if node.attr not in container:
        name = ast.unparse(node)
        raise ConditionUnknown(f"`{name}` is missing", name)
    return container[node.attr]


def _value_of_subscript(node: ast.Subscript, scope: _Scope) -> Any:
    container, key = _value(node.value, scope), _value(node.slice, scope)
    if isinstance(container, Mapping) and not _contains(key, container):
        name = ast.unparse(node)
        raise ConditionUnknown(f"`{name}` is missing", name)
    try:
        return container[key]
    except TypeError as error:
        raise TypeError(f"{_kind(key)} finds nothing in {_kind(container)}") from error


def _value_of_and_or(node: ast.BoolOp, scope: _Scope) -> Any:
    """The first value that decides, else the last one; what stands behind it is not looked at, and may be missing."""
    is_or = type(node.op) is ast.Or
    for part in node.values:
        value = VALUES[type(part)](part, scope)
        if value if is_or else not value:
            break
    return value


def _value_of_comparison(node: ast.Compare, scope: _Scope) -> Any:
    """Of a chain as `0 < a < 1` each value is looked at once, and none behind the first comparison that does not hold."""
    left, holds = _value(node.left, scope), True
    for op, part in zip(node.ops, node.comparators, strict=True):
        right = VALUES[type(part)](part, scope)
        holds = OPERATORS[type(op)](left, right)
        if not holds:
            break
        left = right
    return holds


VALUES: dict[type[ast.AST], Any] = {
    ast.Name: _value_of_name,
    ast.Constant: lambda node, scope: node.value,
    ast.Attribute: _value_of_attribute,
    ast.Subscript: _value_of_subscript,
    ast.BoolOp: _value_of_and_or,
    ast.Compare: _value_of_comparison,
    ast.UnaryOp: lambda node, scope: OPERATORS[type(node.op)](_value(node.operand, scope)),
    ast.BinOp: lambda node, scope: OPERATORS[type(node.op)](_value(node.left, scope), _value(node.right, scope)),
    ast.Call: lambda node, scope: FUNCTIONS[node.func.id](*[_value(each, scope) for each in node.args]),
    ast.List: lambda node, scope: [_value(each, scope) for each in node.elts],
    ast.Tuple: lambda node, scope: tuple([_value(each, scope) for each in node.elts]),
}
