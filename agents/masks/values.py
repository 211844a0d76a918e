"""The installation's secrets: where their values are, who names them, and what hides them in whatever leaves.

A secret's value is in the server's environment (ORRERY_SECRET_NAME; settings.SECRET_PREFIXES) or in the file NAME of
settings.SECRETS_DIR. Rows hold references, {"secret": "NAME"}; only where a command's environment is made does a
reference become its value (docs/secrets.md).
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from django.conf import settings

from agents.errors import AgentsError
from agents.masks.masking import LONGEST, MARK, SHORTEST, Masker, is_hidden, why_unmaskable

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
"""Of a secret."""
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")
"""Of the environment of a device's commands."""
VARIABLES = 200
VALUE_LENGTH = 32_768
"""Characters of a value that is no secret."""
FILES = 200
"""Files of the folder at most: each makes the search that masks larger."""
LOOK_S = 1.0
"""Between two looks whether the folder's files have changed."""
SENSITIVE = re.compile(
    r"(?i)(^|_)(api_?keys?|keys?|tokens?|pats?|secrets?|passwords?|passwd|passphrase|pwd|pass|credentials?|creds|auth"
    r"|authorization|cookies?|private|dsn|webhook)($|_)"
)
"""Names of variables that say that a value is nobody's business."""
HARMLESS = re.compile(r"[-+]?[0-9.,:]*|true|false|yes|no|on|off|none", re.IGNORECASE)
"""Values that are no secrets, whatever they are called."""
HIDDEN_VALUE = MARK * SHORTEST
KEY_PREFIX = "ORRERY_KEY_"
"""Variables that begin so may hold the key of a language model, whatever ORRERY_SECRET_PREFIXES says."""
OWN_MODEL_KEY = "LLM_API_KEY"
"""The variable with the key of the model profile that the environment makes."""
SETTINGS = ("ORRERY_SECRET_KEY", "ORRERY_SECRET_PREFIXES")
"""Variables that begin as secrets do and are settings: nobody names them."""


class SecretMissing(AgentsError):
    """A secret that a device names is not there, or cannot be used."""

    code = "secret_missing"
    error_kind = "missing"


class _Look(NamedTuple):
    """What the folder's files were like: they are read again when this has changed."""

    folder: Path | None
    files: tuple[tuple[str, int, int, int], ...]
    environment: frozenset[tuple[str, str]]


# References


def reference_of(value: Any) -> str | None:
    """The name in {"secret": NAME}; None for anything else."""
    return value["secret"] if isinstance(value, Mapping) and value.keys() == {"secret"} else None


def environment_flaw(wanted: Any) -> str:
    """What is wrong with the `env` of a device's limits: `API_KEY looks like a secret...`; empty when nothing is."""
    if not isinstance(wanted, Mapping) or len(wanted) > VARIABLES:
        return f": it is an object, {{NAME: text or {{secret: NAME}}}}, of at most {VARIABLES} names"
    for name, value in wanted.items():
        if not isinstance(name, str) or not VARIABLE.fullmatch(name):
            return f": {str(name)[:80]!r} is no name of a variable: letters, digits and _"
        if flaw := _value_flaw(name, value):
            return f".{name} {flaw}"
    return ""


def _value_flaw(name: str, value: Any) -> str:
    secret = reference_of(value)
    if secret is not None:
        return "" if isinstance(secret, str) and NAME.fullmatch(secret) else "names no secret: letters, digits and _"
    if not isinstance(value, str) or len(value) > VALUE_LENGTH or "\0" in value:
        return f'must be a text of at most {VALUE_LENGTH:,} characters without NUL, or {{"secret": "NAME"}}'
    if is_hidden(value):
        return "holds what is shown in the place of a secret; leave the variable as it was, or name the secret"
    return secret_flaw(name, value)


def secret_flaw(name: str, value: str) -> str:
    """What is to be done with a text called `name` that looks like a secret; empty where it does not."""
    if HARMLESS.fullmatch(value):
        return ""
    if SENSITIVE.search(name) or mask_text(value) != value:
        return (
            f'looks like a secret, and secrets are not kept here: write {{"secret": "{name}"}}, and put the value into '
            f"{settings.SECRET_PREFIXES[0]}{name} of the server's environment, or into the file {name} of ORRERY_SECRETS_DIR"
        )
    return ""


def resolve_environment(wanted: Mapping[str, Any]) -> dict[str, str]:
    """The `env` of a device's limits with each reference's value; raises SecretMissing."""
    return {name: value if (secret := reference_of(value)) is None else secret_value(secret) for name, value in wanted.items()}


def secret_value(name: str) -> str:
    """Of the environment, else of the folder; raises SecretMissing with what can be done."""
    return _look_up(name, settings.SECRET_PREFIXES)


def model_key(name: str) -> str:
    """The same for the key of a language model: of its own variables only, as others are not meant for who serves models."""
    return _look_up(name, [KEY_PREFIX])


def _look_up(name: str, prefixes: list[str]) -> str:
    for prefix in prefixes:
        if (value := os.environ.get(prefix + name, "")) and prefix + name not in SETTINGS:
            return usable_secret(name, value)
    folder = settings.SECRETS_DIR
    places = [f"{prefixes[0]}{name} is not set"]
    if folder is not None:
        path = folder / name
        if os.path.lexists(path):
            return usable_secret(name, read_secret_file(path))
        places.append(f"{folder} has no file {name}")
    raise SecretMissing(f"the secret {name} is not there: {' and '.join(places)}")


def usable_secret(name: str, value: str) -> str:
    """The value of the secret `name`, if the mask can hide it; raises SecretMissing."""
    if flaw := why_unmaskable(value):
        raise SecretMissing(f"the secret {name} cannot be used: {flaw}")
    return value


def read_secret_file(path: Path) -> str:
    """A secret's file, without the line end at its end; raises SecretMissing saying why it is refused."""
    try:
        with path.open("rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise SecretMissing(f"the secret {path.name} cannot be used: {path} is no file")
            if found.st_mode & 0o077:
                raise SecretMissing(
                    f"the secret {path.name} cannot be used: others may read {path} (mode {found.st_mode & 0o777:o}); "
                    f"run: chmod 600 {path}"
                )
            return file.read(LONGEST + 1).decode().rstrip("\r\n")
    except OSError as error:
        raise SecretMissing(f"the secret {path.name} cannot be read: {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SecretMissing(f"the secret {path.name} cannot be used: {path} is not UTF-8") from error


def shown_limits(limits: Mapping[str, Any], to_admin: bool = False) -> dict[str, Any]:
    """A device's limits as they are shown: values of its environment to admins only, secrets by their names."""
    given = limits.get("env")
    if to_admin or not isinstance(given, Mapping):
        return dict(limits)
    shown = {name: value if reference_of(value) is not None else HIDDEN_VALUE for name, value in given.items()}
    return {**limits, "env": shown}


def literal_secrets(devices: Iterable[tuple[str, Mapping[str, Any]]]) -> list[str]:
    """`device: NAME` of the values in limits, by device, that would be refused today; they are not known to the mask."""
    return [
        f"{device}: {name}"
        for device, limits in devices
        if isinstance(limits.get("env"), Mapping)
        for name, value in limits["env"].items()
        if _value_flaw(name, value)
    ]


# What hides them


def known_values() -> Iterator[str]:
    """All values that must not leave: secrets, and what this process itself works with."""
    yield settings.SECRET_KEY
    yield settings.DATABASES["default"].get("PASSWORD") or ""
    yield unquote(urlsplit(settings.REDIS_URL).password or "")
    yield os.environ.get("ORRERY_TOKEN", "")
    yield from (value for _, value in _variables())
    for path in _files():
        try:  # also of one that is refused because others may read it
            yield path.read_text().rstrip("\r\n") if path.stat().st_size <= LONGEST else ""
        except (OSError, UnicodeDecodeError):
            continue


def _variables() -> list[tuple[str, str]]:
    beginnings = (*settings.SECRET_PREFIXES, KEY_PREFIX, OWN_MODEL_KEY)
    return [(name, value) for name, value in os.environ.items() if name.startswith(beginnings) and name not in SETTINGS]


def _files() -> list[Path]:
    """NAME and NAME.anything: a value that was replaced and is to stay hidden is kept as NAME.old."""
    if settings.SECRETS_DIR is None:
        return []
    try:
        return sorted(path for path in settings.SECRETS_DIR.iterdir() if NAME.fullmatch(path.name.split(".")[0]))[:FILES]
    except OSError:  # `manage.py check` says so
        return []


def _look() -> _Look:
    files: list[tuple[str, int, int, int]] = []
    for path in _files():
        try:
            found = path.stat()
        except OSError:
            continue
        files.append((path.name, found.st_mtime_ns, found.st_size, found.st_mode))
    return _Look(settings.SECRETS_DIR, tuple(files), frozenset(_variables()))


class _Known:
    """The masker of this process. What it has known once it goes on to hide, as a value that was replaced is still in rows."""

    def __init__(self) -> None:
        self.masker: Masker | None = None
        self._look: _Look | None = None
        self._look_at = 0.0

    def current(self) -> Masker:
        now = time.monotonic()
        if self.masker is None or now >= self._look_at:
            self._look_at = now + LOOK_S
            look = _look()
            if self.masker is None or look != self._look:
                before = self.masker.values if self.masker is not None else frozenset()
                self.masker, self._look = Masker(before | set(known_values())), look
        return self.masker


_KNOWN = _Known()


def get_masker() -> Masker:
    """Hides the installation's secrets; in one place for each way out (docs/secrets.md, "Where it is masked")."""
    return _KNOWN.current()


def mask_text(text: str) -> str:
    return get_masker().text(text)


def mask_value(value: Any) -> Any:
    """A JSON value with all its texts masked."""
    return get_masker().value(value)


def mask_json(data: bytes, shown: str = "") -> bytes:
    """JSON text with its strings masked, but one that is equal to `shown`."""
    return get_masker().json(data, shown)


def mask_jsons(texts: list[bytes]) -> list[bytes]:
    """The same of many JSON texts, at the price of one search where there is nothing to hide."""
    return get_masker().jsons(texts)
