"""What a device's `connection` may say, by kind."""

from __future__ import annotations

import pytest

from agents.devices.profiles import connections
from agents.devices.profiles.connections import (
    connection_problems,
    is_always_code,
    is_code,
    register_connection_check,
    takes_only,
)
from agents.devices.profiles.profile import BeyondCeiling
from agents.services.devices import device_change, device_create


def has_command(connection) -> bool:
    return "command" in connection


@pytest.fixture
def kinds(monkeypatch):
    """Kinds that a test registers are forgotten after it."""
    monkeypatch.setattr(connections, "KINDS", dict(connections.KINDS))


@pytest.mark.parametrize(("kind", "connection", "places"), [
    ("local", {}, []), ("local", {"heartbeat_s": 5}, ["heartbeat_s"]), ("remote", {"heartbeat_s": 0.5}, ["heartbeat_s"]),
    ("remote", {"heartbeat_s": 300}, []), ("remote", {"url": 1, "heartbeat_s": "5"}, ["url", "heartbeat_s"]),
    ("remote", [], [""]), ("remote", {"heartbeat_s": 5, "x": "y" * 20_000}, [""]),
])  # fmt: skip
def test_each_kind_takes_its_keys(kind, connection, places):
    assert [place for place, _ in connection_problems(kind, connection)] == places


@pytest.mark.parametrize(("headers", "places"), [
    ({"Authorization": {"secret": "MCP"}}, []), ({"Authorization": "Bearer abcdefghijklmnopqrst"}, ["headers.Authorization"]),
    ({"X-Api-Key": "mine-only"}, ["headers.X-Api-Key"]), ({"Accept": "text/plain"}, []),
    ({"Authorization": {"secret": "not a name"}}, ["headers.Authorization"]),
    ({"Accept": ["text/plain", "ghp_0123456789abcdefghij"]}, ["headers.Accept[1]"]),
    ({"X": "\N{BULLET}" * 8}, ["headers.X"]),
])  # fmt: skip
def test_secrets_stand_there_by_their_names_only(kinds, headers, places):
    register_connection_check("mcp", takes_only("headers"))
    assert [place for place, _ in connection_problems("mcp", {"headers": headers})] == places


def test_a_kind_says_what_is_code(kinds):
    register_connection_check("acp", takes_only("profile"), is_always_code)
    register_connection_check("mcp", takes_only("command", "url"), has_command)
    assert is_code("acp", {})
    assert is_code("mcp", {"command": ["x"]})
    assert not is_code("mcp", {"url": "https://tools.example/"})
    assert not is_code("remote", {"command": ["x"]})


@pytest.mark.django_db(transaction=True)
def test_devices_that_are_code_are_made_and_changed_by_admins_only(kinds):
    register_connection_check("mcp", takes_only("command", "url"), has_command)
    with pytest.raises(BeyondCeiling, match=r"connection: has a program run .* only an admin"):
        device_create("tools", kind="mcp", connection={"command": ["x"]}, by="user:1", may_exceed=False)
    made = device_create("tools", kind="mcp", connection={"command": ["x"]}, by="user:1")
    for change in ({"connection": {"url": "https://tools.example/"}}, {"os": "linux"}):
        with pytest.raises(BeyondCeiling):
            device_change(made.pk, by="user:1", may_exceed=False, **change)
    plain = device_create("web", kind="mcp", connection={"url": "https://tools.example/"}, by="user:1", may_exceed=False)
    with pytest.raises(BeyondCeiling):
        device_change(plain.pk, by="user:1", may_exceed=False, connection={"command": ["x"]})
