"""Whether a condition holds for the results of tasks. Pure."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from constellations.conditions.operators import FUNCTIONS, OPERATORS, is_in, kind_of
from constellations.conditions.parsing import parse_condition
from constellations.errors import ConditionRejected, ConditionUnknown

Result = Any
Results = Mapping[str, Any]

LITERALS = {"true": True, "false": False, "null": None}
"""JSON's spelling, where the result has no key of that name."""
KEYS_SHOWN = 20
"""Keys of a result that a message names."""


def evaluate_condition(text: str, result: Result, results: Results, beside: Mapping[str, Any] = MappingProxyType({})) -> bool:
    """Whether the condition holds for a task's `result`; `results` has every task's by task_id.

    `beside` are names that count where the result has no key of that name. Raises ConditionUnknown when that cannot be said:
    a name is missing, or the calculation fails. A value that is not true or false counts as Python counts it: 0, "", [], {}
    and null are false.
    """
    try:
        return bool(_value(parse_condition(text), _Scope(result, results, beside)))
    except ConditionRejected as error:
        raise ConditionUnknown(str(error)) from error
    except IndexError as error:
        raise ConditionUnknown(f"`{text}` asks for a place in a list that is not there") from error
    except RecursionError as error:
        raise ConditionUnknown(f"`{text}` compares values that are nested too deeply") from error
    except (ArithmeticError, TypeError, ValueError) as error:
        raise ConditionUnknown(f"`{text}` cannot be calculated: {error.args[-1]}") from error


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
    if not isinstance(result, Mapping):
        offered = "the task has no result" if result is None else f"the result is {kind_of(result)}, not an object"
    elif not result:
        offered = "the result is empty"
    else:
        offered = f"the result has {', '.join(sorted(map(str, result))[:KEYS_SHOWN])}"
    raise ConditionUnknown(f"`{name}` is missing: {offered}", name)


def _value_of_attribute(node: ast.Attribute, scope: _Scope) -> Any:
    """The value of a key: attributes of Python objects are never looked at."""
    container = _value(node.value, scope)
    if not isinstance(container, Mapping):
        name, owner = ast.unparse(node), ast.unparse(node.value)
        raise ConditionUnknown(f"`{name}` is missing: `{owner}` is {kind_of(container)}, not an object", name)
    if node.attr not in container:
        name = ast.unparse(node)
        raise ConditionUnknown(f"`{name}` is missing", name)
    return container[node.attr]


def _value_of_subscript(node: ast.Subscript, scope: _Scope) -> Any:
    container, key = _value(node.value, scope), _value(node.slice, scope)
    if isinstance(container, Mapping) and not is_in(key, container):
        name = ast.unparse(node)
        raise ConditionUnknown(f"`{name}` is missing", name)
    try:
        return container[key]
    except TypeError as error:
        raise TypeError(f"{kind_of(key)} finds nothing in {kind_of(container)}") from error


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


VALUES: dict[type[ast.AST], Callable[[Any, _Scope], Any]] = {
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
