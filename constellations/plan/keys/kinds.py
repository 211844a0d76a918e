"""What keys of plans are made of: a field says what readers, schemas, columns and forms of its key are made from. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass
from enum import Enum, Flag, auto
from typing import Any

from constellations.plan import values
from constellations.plan.keys import calls, json_schema
from constellations.plan.keys.json_schema import Schema
from constellations.plan.values import MAX_ITEMS, Reader, Row


class Shape(Enum):
    """How a value is stored and shown; columns, serializers and form fields are chosen by it."""

    ID = auto()
    WORD = auto()
    LINE = auto()
    """A text of one line that may be as long as prose."""
    PROSE = auto()
    CHOICE = auto()
    PLACE = auto()
    """One of several words, stored as its place among them."""
    FLAG = auto()
    NUMBER = auto()
    COUNT = auto()
    NAMES = auto()
    """A list of words, none of which has a comma."""
    TEXTS = auto()
    LIST = auto()
    OBJECT = auto()


class Lists(Flag):
    """Lists of tasks that show a key; where one task is shown alone it has all keys."""

    NOWHERE = 0
    REST = auto()
    MCP = auto()
    ADMIN = auto()
    EVERYWHERE = REST | MCP | ADMIN


@dataclass(frozen=True, slots=True)
class Kind:
    """What a key takes. `limit` counts characters of a text, as its column has them; `choices` are the words of an enum."""

    read: Reader
    schema: Schema
    shape: Shape
    limit: int = 0
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Field:
    """A key of a task, a step or a dependency.

    about    what programs and people are told of it          hint     what an operator is told in its place, in a form
    column   what rows call it, where that is another word; None: no row has it
    label    its name in a form                               is_new   only a new task, or a new dependency, takes it
    lists    lists of tasks that show it                      filters  whether they are narrowed down by one of its names
    """

    key: str
    takes: Kind
    default: Any = ""
    about: str = ""
    column: str | None = ""
    hint: str = ""
    label: str = ""
    is_new: bool = False
    lists: Lists = Lists.NOWHERE
    filters: bool = False

    @property
    def name(self) -> str:
        """What rows call it; its key where none has it."""
        return self.column or self.key

    @property
    def is_stored(self) -> bool:
        return self.column is not None

    def word_of(self, value: Any) -> Any:
        """A value of a row as a plan writes it."""
        return self.takes.choices[value] if self.takes.shape is Shape.PLACE else value

    @property
    def schema(self) -> Schema:
        return json_schema.said(self.about, self.takes.schema) if self.about else self.takes.schema


def defaults_of(fields: Iterable[Field]) -> Row:
    """The normal form of a part that says nothing. Its lists and objects are shared: see `fresh`."""
    return {field.name: field.default for field in fields if field.is_stored}


def fresh(default: Any) -> Any:
    """A default that may be changed: an empty list or object of one's own."""
    return copy(default) if isinstance(default, list | dict) else default


def readers_of(fields: Iterable[Field]) -> dict[str, Reader]:
    """Readers by the keys of plans."""
    return {field.key: field.takes.read for field in fields}


def schemas_of(fields: Iterable[Field]) -> dict[str, Schema]:
    """JSON Schemas by the keys of plans."""
    return {field.key: field.schema for field in fields}


# Kinds


def identifier(limit: int) -> Kind:
    return Kind(values.identifier_reader(limit), json_schema.IDENT, Shape.ID, limit)


def word(limit: int) -> Kind:
    return Kind(values.text_reader(limit), json_schema.TEXT, Shape.WORD, limit)


def line(read: Reader) -> Kind:
    return Kind(read, json_schema.TEXT, Shape.LINE)


def prose(read: Reader = calls.prose) -> Kind:
    return Kind(read, json_schema.TEXT, Shape.PROSE)


def choice(choices: tuple[str, ...], limit: int = 0) -> Kind:
    return Kind(values.choice_reader(choices), json_schema.one_of(choices), Shape.CHOICE, limit, choices)


def count(least: int, most: int) -> Kind:
    return Kind(values.whole_reader(least, most), json_schema.whole(least), Shape.COUNT)


def names(read_one: Reader, limit: int = MAX_ITEMS, characters: int = 0) -> Kind:
    """`characters` of each name, for who asks for one."""
    return Kind(values.list_reader(read_one, limit), json_schema.TEXTS, Shape.NAMES, characters)


def parts(read: Reader, items: Schema) -> Kind:
    """A list of objects."""
    return Kind(read, json_schema.many(items), Shape.LIST)


FLAG = Kind(values.read_flag, json_schema.FLAG, Shape.FLAG)
OBJECT = Kind(values.read_mapping, json_schema.OBJECT, Shape.OBJECT)
SECONDS = Kind(values.number_reader(0, calls.MAX_SECONDS), json_schema.SECONDS, Shape.NUMBER)
TIME = Kind(values.number_reader(0, calls.MAX_SECONDS, exclusive=True), json_schema.TIME, Shape.NUMBER)
"""Seconds, of which there have to be some."""
TEXTS = Kind(values.list_reader(calls.prose), json_schema.TEXTS, Shape.TEXTS)
COMMAND = Kind(calls.read_command, json_schema.COMMAND, Shape.PROSE)
