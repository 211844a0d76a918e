"""What conditions calculate with values: the operators and functions, and where each of them ends in an error. Pure."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

MAX_BITS = 16_384
"""Size of a whole number a calculation may give; anything larger is an error, not a wait."""
MAX_DIGITS = 100
"""Decimal places `round` takes, either way."""

# A value is any value of JSON, so `Any` says all there is to say; each operator looks for itself what it can take.
Operator = Callable[..., Any]
Number = int | float

KINDS = {
    str: "text",
    int: "a number",
    float: "a number",
    bool: "true or false",
    type(None): "null",
    list: "a list",
    tuple: "a list",
}


def kind_of(value: Any) -> str:
    """A value as a message calls it."""
    return KINDS.get(type(value), "an object")


def _number(value: Any) -> Number:
    if not isinstance(value, int | float):
        raise TypeError(f"{kind_of(value)} is not a number")
    return value


def _arithmetic(function: Operator) -> Operator:
    """`function` for two numbers; whole numbers stay within MAX_BITS, and nan is an error and not a number."""

    def calculate(left: Any, right: Any) -> Number:
        value: Number = function(_number(left), _number(right))
        if isinstance(value, complex) or value != value:
            raise ArithmeticError("the result is not a number")
        return value

    return calculate


def _bits(value: Number) -> int:
    return value.bit_length() if isinstance(value, int) else 0


def _multiply(left: Number, right: Number) -> Number:
    # Before it is calculated: a product of this size would be a wait, and its error would come too late.
    if _bits(left) + _bits(right) > MAX_BITS:
        raise OverflowError("the product is too large")
    return left * right


def _power(left: Number, right: Number) -> Any:
    """A number; of a negative one and a fraction a complex one, which `_arithmetic` refuses."""
    if isinstance(left, int) and isinstance(right, int) and _bits(left) * abs(right) > MAX_BITS:
        raise OverflowError("the power is too large")
    return left**right


def _ordered(function: Callable[[Any, Any], bool]) -> Operator:
    """`function` for two values that have an order: nan has none, and would silently be false."""

    def compare(left: Any, right: Any) -> bool:
        if (isinstance(left, float) and left != left) or (isinstance(right, float) and right != right):
            raise ArithmeticError("nan cannot be compared")
        try:
            return function(left, right)
        except TypeError as error:
            raise TypeError(f"{kind_of(left)} and {kind_of(right)} have no order between them") from error

    return compare


def is_in(value: Any, container: Any) -> bool:
    """Whether a container has a value; TypeError where it is none, or can have no such value."""
    try:
        return value in container
    except TypeError as error:
        raise TypeError(f"{kind_of(value)} cannot be in {kind_of(container)}") from error


def _length(value: Any) -> int:
    try:
        return len(value)
    except TypeError as error:
        raise TypeError(f"{kind_of(value)} has no length") from error


def _extreme(function: Operator) -> Operator:
    """`function` is min or max, of several values or of those in a list."""

    def find(*values: Any) -> Any:
        try:
            return function(*values)
        except (TypeError, ValueError) as error:
            raise TypeError(f"{function.__name__} needs values that have an order") from error

    return find


def _round(value: Any, digits: Any = None) -> Number:
    if digits is not None and (not isinstance(digits, int) or abs(digits) > MAX_DIGITS):
        raise ValueError(f"round takes at most {MAX_DIGITS} decimal places")
    return round(_number(value), digits)


FUNCTIONS: dict[str, Operator] = {
    "len": _length, "min": _extreme(min), "max": _extreme(max), "abs": lambda value: abs(_number(value)), "round": _round,
}  # fmt: skip
MOST_VALUES = {"len": 1, "abs": 1, "round": 2}
"""Values that a function takes; of the others there may be as many as a condition holds."""

OPERATORS: dict[type[ast.AST], Operator] = {
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
    ast.In: is_in,
    ast.NotIn: lambda value, container: not is_in(value, container),
    ast.Not: operator.not_,
    ast.USub: lambda value: -_number(value),
    ast.UAdd: lambda value: +_number(value),
}
