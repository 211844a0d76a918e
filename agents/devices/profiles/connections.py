"""How a device is reached: what its `connection` may say, by kind. Each kind registers what it takes.

Secrets stand there by their names only, {"secret": NAME}, as in `env` of limits (docs/secrets.md).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from agents.masks.masking import is_hidden
from agents.masks.values import NAME, reference_of, secret_flaw

CONNECTION_LENGTH = 20_000
"""Characters of a connection as JSON."""
HEARTBEAT_S = (1, 300)
"""Seconds between two heartbeats: the least and the most that may be asked for."""

Found = Iterator[tuple[str, str]]
"""(place, what is wrong there); the empty place is the whole connection."""
Connection = Mapping[str, Any]
Check = Callable[[Connection], Found]


class ConnectionKind(NamedTuple):
    """What a kind of device takes: what is wrong with a connection, and whether it has its host run a program of its author.

    `is_volatile`: what calls leave there ends with the open connection, as pages of a browser do.
    """

    check: Check
    is_code: Callable[[Connection], bool]
    is_volatile: bool


def is_never_code(connection: Connection) -> bool:
    return False


def is_always_code(connection: Connection) -> bool:
    return True


KINDS: dict[str, ConnectionKind] = {}


def register_connection_check(
    kind: str, check: Check, is_code: Callable[[Connection], bool] = is_never_code, *, is_volatile: bool = False
) -> None:  # fmt: skip
    """Connections of `kind` are looked at by `check`; only admins make and change devices of which `is_code` holds."""
    KINDS[kind] = ConnectionKind(check, is_code, is_volatile)


def is_volatile(kind: str) -> bool:
    """Whether what an attempt has made on such a device ends with the device's connection."""
    return kind in KINDS and KINDS[kind].is_volatile


def connection_problems(kind: str, connection: Any) -> Found:
    """(place below `connection`, what is wrong there)."""
    if not isinstance(connection, Mapping):
        yield "", "must be an object"
        return
    if len(json.dumps(connection)) > CONNECTION_LENGTH:
        yield "", f"has more than {CONNECTION_LENGTH:,} characters as JSON"
        return
    yield from _secret_problems("", "", connection)
    yield from KINDS[kind].check(connection) if kind in KINDS else takes_only()(connection)


def is_code(kind: str, connection: Any) -> bool:
    """Whether whoever says this has the device's host run a program of theirs."""
    return kind in KINDS and isinstance(connection, Mapping) and KINDS[kind].is_code(connection)


def takes_only(*names: str) -> Check:
    """A check that refuses every key but these, and looks at `heartbeat_s`."""

    def check(connection: Connection) -> Found:
        for key in connection:
            if key not in names:
                known = f"there are {', '.join(names)}" if names else "devices of this kind take none"
                yield str(key)[:80], f"there is no such key; {known}"
        yield from heartbeat_problems(connection)

    return check


def heartbeat_problems(connection: Connection) -> Found:
    """What is wrong with the seconds between two heartbeats, where they are given."""
    least, most = HEARTBEAT_S
    seconds = connection.get("heartbeat_s", least)
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not least <= seconds <= most:
        yield "heartbeat_s", f"must be seconds from {least} to {most}, not {str(seconds)[:80]}"


def _secret_problems(place: str, key: str, value: Any) -> Found:
    """Texts that look like secrets, and references that name none, wherever they stand."""
    secret = reference_of(value)
    if secret is not None:
        if not isinstance(secret, str) or not NAME.fullmatch(secret):
            yield place, "names no secret: letters, digits and _"
    elif isinstance(value, Mapping):
        for name, each in value.items():
            yield from _secret_problems(f"{place}.{name}".lstrip("."), str(name), each)
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from _secret_problems(f"{place}[{number}]", key, each)
    elif isinstance(value, str) and is_hidden(value):
        yield place, "holds what is shown in the place of a secret; leave it as it was, or name the secret"
    elif isinstance(value, str) and (flaw := secret_flaw(key.replace("-", "_"), value)):
        yield place, flaw


register_connection_check("local", takes_only())
register_connection_check("remote", takes_only("heartbeat_s"))
