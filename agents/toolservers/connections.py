"""How a tool server is reached, as the row of its device says it: looked at before it is written, and where it is opened.

    {"transport": "stdio", "argv": ["mcp-server-git"], "env": {...}, "namespace": "git"}
    {"transport": "http", "url": "https://tools.example/mcp", "headers": {...}, "namespace": "tickets"}

Values of `env` and `headers` are texts, or {"secret": NAME}. The namespace is the device's name where none is given.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

from agents.devices.profiles.connections import heartbeat_problems
from agents.masks.values import environment_flaw
from agents.outside import addresses
from agents.tools.namespaces import NAMESPACE, RESERVED

KEYS = {"stdio": ("argv", "env"), "http": ("url", "headers")}
"""By transport, beside COMMON."""
COMMON = ("transport", "namespace", "protocol", "heartbeat_s")
PROTOCOLS = ("newest", "handshake")
"""The newest that both know; or one that begins with a handshake, in which a server may ask questions of its own accord."""
ARGUMENTS = 100
TEXT = 2_000
"""Characters of an argument, an address, a header's value."""
HEADERS = 20
HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
OWN_HEADERS = ("host", "content-length", "transfer-encoding", "connection", "mcp-session-id", "mcp-protocol-version")
"""Headers that are the connection's own."""

Found = Iterator[tuple[str, str]]


def connection_flaws(connection: Mapping[str, Any]) -> Found:
    """What is wrong with it: (key, message)."""
    transport = connection.get("transport")
    if transport not in KEYS:
        yield "transport", f"must be {' or '.join(KEYS)}, as the server is started here or reached over HTTP"
        return
    for key in connection:
        if key not in (*COMMON, *KEYS[transport]):
            yield key, f"there is no such key with {transport}; there are {', '.join((*COMMON, *KEYS[transport]))}"
    namespace = connection.get("namespace", "")
    if namespace and not (isinstance(namespace, str) and NAMESPACE.fullmatch(namespace)):
        yield "namespace", "must begin with a letter and have at most 40 letters, digits, _ and -"
    if namespace in RESERVED:
        yield "namespace", f"may not be {', '.join(RESERVED)}, which are what agents do themselves"
    if connection.get("protocol", PROTOCOLS[0]) not in PROTOCOLS:
        yield "protocol", f"must be {' or '.join(PROTOCOLS)}"
    yield from heartbeat_problems(connection)
    yield from _stdio_flaws(connection) if transport == "stdio" else _http_flaws(connection)


def is_code(connection: Mapping[str, Any]) -> bool:
    """Whether to make such a device is to run a program here, which only admins may."""
    return connection.get("transport") == "stdio"


def namespace_of(device: Mapping[str, Any]) -> str:
    """What stands before the dot in the names of its tools; characters that cannot stand there are _."""
    if given := str(device["connection"].get("namespace") or ""):
        return given
    made = re.sub(r"[^A-Za-z0-9_-]", "_", re.sub(r"^[^A-Za-z]+", "", device["name"]))[:40] or "tools"
    return f"{made}_server" if made in RESERVED else made


def _stdio_flaws(connection: Mapping[str, Any]) -> Found:
    argv = connection.get("argv")
    if not isinstance(argv, list) or not argv or not all(isinstance(word, str) for word in argv) or not argv[0]:
        yield "argv", 'must be the program and its arguments, such as ["mcp-server-git"]'
    elif len(argv) > ARGUMENTS or any(len(word) > TEXT or "\0" in word for word in argv):
        yield "argv", f"may have {ARGUMENTS} words of {TEXT:,} characters"
    if flaw := environment_flaw(connection.get("env", {})):
        yield "env", flaw


def _http_flaws(connection: Mapping[str, Any]) -> Found:
    if flaw := url_flaw(connection.get("url")):
        yield "url", flaw
    headers = connection.get("headers", {})
    if not isinstance(headers, Mapping) or len(headers) > HEADERS:
        yield "headers", f"must be an object of at most {HEADERS} headers"
        return
    for name, value in headers.items():
        if not isinstance(name, str) or not HEADER.fullmatch(name) or name.lower() in OWN_HEADERS:
            yield "headers", f"{str(name)[:100]} is no header that can be set"
        elif isinstance(value, Mapping):
            if set(value) != {"secret"} or not isinstance(value["secret"], str):
                yield f"headers.{name}", 'must be text or {"secret": NAME}'
        elif not isinstance(value, str) or len(value) > TEXT or any(letter < " " for letter in value):
            yield f"headers.{name}", f"must be a line of at most {TEXT:,} characters"


def url_flaw(url: Any) -> str:
    """What is wrong with the address of a server; empty when nothing is."""
    if not isinstance(url, str) or len(url) > TEXT or not url.isascii() or any(letter <= " " for letter in url):
        return f"must be an address of at most {TEXT:,} characters"
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        return "is no address"
    if parts.scheme not in ("http", "https") or not host:
        return "must begin with https:// or http:// and name a host"
    if parts.username is not None or parts.password is not None or parts.fragment:
        return "may hold no password, and nothing behind #; what proves who asks goes into headers"
    if addresses.is_named(host, settings.TOOL_SERVERS):
        return ""
    if parts.scheme == "http":
        return f"has http, by which everything travels in the clear; use https, or name {host} in ORRERY_TOOL_SERVERS"
    if addresses.is_address(host) and not addresses.is_reachable(host, host, settings.TOOL_SERVERS):
        return f"is an address inside; name {host} in ORRERY_TOOL_SERVERS if it is a tool server"
    return ""
