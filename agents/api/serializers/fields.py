"""What bodies are made of: strict ones that name an unknown key, and fields that turn nothing into what it is not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers
from rest_framework.validators import ProhibitSurrogateCharactersValidator

from agents.api.pagination import LARGEST
from agents.reads.authors import names_of


class RequestBody(serializers.Serializer):
    """A request's body; refuses keys it does not know, and turns no number into text.

    `also` is what its JSON schema says beside its fields.
    """

    also: Mapping[str, Any] = {"additionalProperties": False}

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if isinstance(data, Mapping) and (unknown := sorted(set(data) - set(self.fields))):
            known = ", ".join(self.fields)
            raise serializers.ValidationError({str(key): f"unknown key; known are {known}" for key in unknown})
        if isinstance(data, Mapping) and (no_text := [name for name in data if self._is_no_text(name, data[name])]):
            raise serializers.ValidationError(dict.fromkeys(no_text, "must be a text"))
        return super().to_internal_value(data)

    def _is_no_text(self, name: str, value: Any) -> bool:
        """Whether a field of text would take a value that is none, as the number 0 for "0". `StrictText` looks itself."""
        known = self.fields[name]
        return (
            isinstance(known, serializers.CharField) and not isinstance(known, StrictText) and not isinstance(value, str | None)
        )


class Truth(serializers.BooleanField):
    """`true` or `false`; 1, "yes" and null are neither."""

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


class StrictText(serializers.CharField):
    """Text and nothing that is turned into text; at least one character, unless it may be blank."""

    default_error_messages = {"invalid": "must be a text"}

    def __init__(self, *, allow_blank: bool = False, **kwargs: Any):
        super().__init__(allow_blank=allow_blank, min_length=None if allow_blank else 1, **kwargs)
        # Who parsed the body has refused half characters already; this looks at each character of a plan again.
        given: Any = self  # the framework's stubs know no type of `validators`
        given.validators = [one for one in given.validators if not isinstance(one, ProhibitSurrogateCharactersValidator)]

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class WholeNumber(serializers.IntegerField):
    """A JSON number without a fraction; `true` and "4" are none."""

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, bool) or not isinstance(data, int):
            self.fail("invalid")
        return super().to_internal_value(data)


class ClientId(serializers.RegexField):
    """An id of the client's choosing: the same id again is the same request."""

    default_error_messages = {"invalid": "up to 64 letters, digits and . _ : - make one"}

    def __init__(self, **kwargs: Any):
        super().__init__(r"^[A-Za-z0-9._:-]+\Z", max_length=64, required=False, **kwargs)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


KEY_HEADER = "Idempotency-Key"
"""The header by which programs say the id of a request that takes one, in the place of a key of its body."""


def id_field(form: Any) -> str | None:
    """What a body calls the id of its request; None where it takes none."""
    return next((name for name, field in getattr(form, "fields", {}).items() if isinstance(field, ClientId)), None)


def with_key(form: Any, given: str) -> Any:
    """The data of `form` with the id that the header gives, bare or as a quoted string. Raises ValidationError for two ids."""
    name, data = id_field(form), form.initial_data
    if name is None or not isinstance(data, Mapping):
        return data
    quoted = len(given) > 1 and given[0] == given[-1] == '"'
    key = given[1:-1] if quoted else given
    if data.get(name, key) != key:
        raise serializers.ValidationError({name: f"is another id than the header {KEY_HEADER} gives"})
    return {**data, name: key}


class Parent(WholeNumber):
    """The session that a new one is started from."""

    def __init__(self) -> None:
        text = "A session that this token started: the new one is its child, and is cancelled with it. Only of a token."
        super().__init__(min_value=1, max_value=LARGEST, required=False, help_text=text)


class AuthorName(serializers.CharField):
    """Who the author of a row is, as people call them: one look for all rows of an answer (agents.reads.authors)."""

    def __init__(self, source: str):
        super().__init__(source=source, read_only=True, help_text="As people call them; the same where there is no name.")

    def to_representation(self, author: str) -> str:
        known = self.context.setdefault("author_names", {})
        if author and author not in known:
            rows = self.root.instance if isinstance(self.root.instance, list) else []
            known.update(names_of([author, *(getattr(row, self.source) for row in rows)]))
        return known.get(author, author)
