"""Variables of the environment as settings have them; ImproperlyConfigured names one that is wrong."""

from __future__ import annotations

import json
import os
import re
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from django.core.exceptions import ImproperlyConfigured

from agents.devices.limits import LARGEST
from agents.devices.profiles.ceilings import CEILINGS
from agents.gates import unasked
from constellations.plan.assigning import NAMES
from constellations.plan.keys import guards
from constellations.plan.values import Misfit, key_text

HOST = re.compile(r"[a-z0-9_]([a-z0-9._-]{0,251}[a-z0-9_])?")
DOTTED = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")
LARGEST_WHOLE = (1 << 63) - 1
BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
LONGEST_S = 10 * 365 * 86_400.0
"""Of any span of time."""


def seconds_of(name: str, default: float) -> float:
    """A span of time from the environment."""
    text = os.environ.get(name, "") or str(default)
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < LONGEST_S:
        raise ImproperlyConfigured(f"{name} must be a number of seconds above 0, such as {default:g}, not {text!r}")
    return seconds


def whole_of(name: str, default: int, most: int | None = None) -> int:
    """A number of something from the environment, `most` at most."""
    text = os.environ.get(name, "") or str(default)
    if not (text.isascii() and text.isdigit() and 0 < int(text[:20]) <= (most or LARGEST_WHOLE)):
        within = f"from 1 to {most}" if most else "above 0"
        raise ImproperlyConfigured(f"{name} must be a whole number {within}, such as {default}, not {text!r}")
    return int(text)


def whole_or_none_of(name: str, default: int) -> int:
    """The same, or 0, which is no bound."""
    return 0 if os.environ.get(name, "") == "0" else whole_of(name, default)


def ports_of(name: str) -> tuple[int, ...]:
    """Ports from the environment, separated by commas."""
    texts = [each.strip() for each in os.environ.get(name, "").split(",") if each.strip()]
    if wrong := [each for each in texts if not (each.isascii() and each.isdigit() and 0 < int(each[:6]) < 65_536)]:
        raise ImproperlyConfigured(f"{name} must be ports such as 8000,8443, not {wrong[0]!r}")
    return tuple(map(int, texts))


def choice_of(name: str, choices: tuple[str, ...]) -> str:
    """One of `choices` from the environment; the first where nothing is said."""
    text = os.environ.get(name, "") or choices[0]
    if text not in choices:
        raise ImproperlyConfigured(f"{name} must be one of {', '.join(filter(None, choices))}, not {text!r}")
    return text


class Bucket(NamedTuple):
    """Where an S3-compatible service has a bucket, and what it calls its region."""

    endpoint: str
    name: str
    region: str


def bucket_of(name: str) -> Bucket | None:
    """A bucket from the environment, as https://HOST[:PORT]/BUCKET[?region=REGION]; None where nothing is said."""
    text = os.environ.get(name, "")
    if not text:
        return None
    try:
        found = urlsplit(text)
        port = f":{found.port}" if found.port else ""
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} is no address: {error}") from error
    bucket, region = found.path.strip("/"), dict(parse_qsl(found.query)).get("region", "us-east-1")
    if found.scheme not in ("https", "http") or not found.hostname or not BUCKET.fullmatch(bucket) or found.username:
        raise ImproperlyConfigured(f"{name} must be https://HOST/BUCKET, perhaps with ?region=REGION; its keys are secrets")
    return Bucket(f"{found.scheme}://{found.hostname}{port}", bucket, region)


def networks_of(name: str) -> list[IPv4Network | IPv6Network]:
    """Addresses and networks from the environment, separated by commas."""
    texts = [each.strip() for each in os.environ.get(name, "").split(",") if each.strip()]
    try:
        return [ip_network(each) for each in texts]
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} must be addresses or networks such as 10.0.0.0/8: {error}") from error


class Hosts(NamedTuple):
    """Hosts by their names, in small letters, and networks of addresses."""

    names: frozenset[str]
    networks: tuple[IPv4Network | IPv6Network, ...]


def hosts_of(name: str, also: str) -> Hosts:
    """Names, addresses and networks from the environment, separated by commas, and the host of the address `also`."""
    texts = [each.strip().lower() for each in os.environ.get(name, "").split(",") if each.strip()]
    try:
        texts += [host] if (host := urlsplit(also).hostname) else []
    except ValueError as error:
        raise ImproperlyConfigured(f"LLM_BASE_URL is no address: {error}") from error
    names, networks = set(), []
    for text in texts:
        try:
            networks.append(ip_network(text))
        except ValueError as error:
            if not HOST.fullmatch(text):
                raise ImproperlyConfigured(f"{name} must be hosts or networks such as 10.0.0.0/8: {error}") from error
            names.add(text)
    return Hosts(frozenset(names), tuple(networks))


def paths_of(name: str) -> tuple[Path, ...]:
    """Absolute paths from the environment, parted by colons."""
    paths = tuple(Path(text) for text in os.environ.get(name, "").split(":") if text)
    for path in paths:
        if not path.is_absolute() or path == Path("/"):
            raise ImproperlyConfigured(f"{name} must be absolute paths parted by colons, none of them /: {str(path)!r}")
    return paths


def assignment_of(name: str) -> str:
    """The name of a strategy, or the form of a dotted path; whether a function is there, a check says (project.checks)."""
    text = os.environ.get(name, "") or NAMES[0]
    if text not in NAMES and not DOTTED.fullmatch(text):
        raise ImproperlyConfigured(f"{name} must be one of {', '.join(NAMES)} or the dotted path of a function, not {text!r}")
    return text


def tool_seconds_of(name: str) -> dict[str, float]:
    """Time-outs by the names of tools, from a JSON object; `default` is the name of all others."""
    try:
        said = json.loads(os.environ.get(name, "") or "{}")
    except json.JSONDecodeError as error:
        raise ImproperlyConfigured(f'{name} must be JSON such as {{"default": 600, "command": 3600}}: {error}') from error
    if not isinstance(said, dict):
        raise ImproperlyConfigured(f'{name} must be a JSON object such as {{"default": 600, "command": 3600}}')
    for tool, seconds in said.items():
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < LONGEST_S:
            raise ImproperlyConfigured(f"{name}: {tool} must be a number of seconds above 0, not {seconds!r}")
    return {tool: float(seconds) for tool, seconds in said.items()}


def progress_of(variable: str) -> dict:
    """What an installation's agents have instead of the defaults of `agents.progress.settings`, as tasks have it in plans."""
    try:
        return guards.read_progress(json.loads(os.environ.get(variable, "") or "{}"))
    except json.JSONDecodeError as error:
        flaw = str(error)
    except Misfit as error:
        key = key_text(error.path)
        flaw = str(error) if str(error).startswith(key) else f"{key}: {error}"
    raise ImproperlyConfigured(f'{variable} must be JSON such as {{"stuck_threshold": 5}}: {flaw}')


def unasked_of(variable: str) -> dict[str, Any]:
    """Which calls models make without asking, by agents.gates.unasked: `DEFAULT` where nothing is said, nothing for {}."""
    text = os.environ.get(variable, "")
    try:
        return unasked.read_unasked(json.loads(text) if text else unasked.DEFAULT)
    except json.JSONDecodeError as error:
        flaw = str(error)
    except unasked.UnaskedRejected as error:
        flaw = f"{key_text(error.path)}: {error}" if error.path else str(error)
    raise ImproperlyConfigured(f'{variable} must be JSON such as {{"commands": [["pytest", "-q"]]}}: {flaw}')


def ceilings_of(variable: str) -> dict[str, float]:
    """How far who may make devices raises their limits: `CEILINGS` of a device, changed by a JSON object."""
    try:
        said = json.loads(os.environ.get(variable, "") or "{}")
    except json.JSONDecodeError as error:
        raise ImproperlyConfigured(f'{variable} must be JSON such as {{"processes": 100}}: {error}') from error
    if not isinstance(said, dict):
        raise ImproperlyConfigured(f'{variable} must be a JSON object such as {{"processes": 100}}')
    for name, value in said.items():
        if name not in CEILINGS:
            raise ImproperlyConfigured(f"{variable}: there is no ceiling {name}; there are {', '.join(CEILINGS)}")
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < LARGEST:
            raise ImproperlyConfigured(f"{variable}: {name} must be a number above 0, not {value!r}")
    return {**CEILINGS, **said}
