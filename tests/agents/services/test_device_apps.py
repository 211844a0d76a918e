"""The apps of a device as they are written: what an agent that is held to one is given."""

import pytest

from agents.devices.profiles.profile import DeviceRejected
from agents.services.devices import device_change, device_create

pytestmark = pytest.mark.django_db(transaction=True)

PROMPTS = {"main": "version: 3\nWork in $app on $device with $tools.", "example": "version: 1\nIt costs $$5."}
SHOP = {"process": "chromium", "visual": False, "tools": ["browser.open", "browser.read"], "prompts": PROMPTS}


def test_what_a_device_says_of_its_apps_is_kept_and_changed():
    made = device_create("window", kind="browser", apps={"shop": SHOP}, by="system")
    assert made.apps == {"shop": SHOP}
    assert device_change(made.pk, apps={}, by="system").apps == {}


@pytest.mark.parametrize(("kind", "apps", "place", "says"), [
    ("browser", [], "apps", "must be an object"), ("browser", {"a b": {}}, "apps.a b", "letters, digits"),
    ("browser", {"a": 1}, "apps.a", "must be an object"), ("browser", {"a": {"url": 1}}, "apps.a.url", "no such field"),
    ("browser", {"a": {"process": "/bin/sh"}}, "apps.a.process", "without its folder"),
    ("browser", {"a": {"visual": 1}}, "apps.a.visual", "true or false"),
    ("browser", {"a": {"tools": ["command"]}}, "apps.a.tools[0]", "offers no tool command"),
    ("local", {"a": {"tools": ["browser.open"]}}, "apps.a.tools[0]", "there are command"),
    ("mcp", {"a": {"tools": ["command"]}}, "apps.a.tools[0]", "offers no tool command"),
    ("acp", {"a": {}}, "apps", "takes whole tasks"),
    ("browser", {"a": {"prompts": {"main": "Work."}}}, "apps.a.prompts.main", "first line must be"),
    ("browser", {"a": {"prompts": {"main": "version: 1\n$secret"}}}, "apps.a.prompts.main", "no value for $secret"),
    ("browser", {"a": {"prompts": {"main": "version: 1\n$ 5"}}}, "apps.a.prompts.main", "begins no name"),
    ("browser", {"a": {"prompts": {"main": "version: 1\n" + "x" * 8_000}}}, "apps.a.prompts.main", "at most 8,000"),
    ("browser", {"a": {"prompts": {"main": f"version: {'1' * 11}\nx"}}}, "apps.a.prompts.main", "1 to 10"),
    ("browser", {"a": {"prompts": {"other": "version: 1\nx"}}}, "apps.a.prompts", "some of main, example"),
    ("browser", {"a": {"prompts": {"main": "version: 1\nghp_0123456789abcdefghij0123456789abcdef"}}},
     "apps.a.prompts.main", "looks like a secret"),
])  # fmt: skip
def test_what_makes_no_sense_is_refused_at_its_place(kind, apps, place, says):
    connection = {"acp": {"profile": "opencode"}, "mcp": {"transport": "http", "url": "https://tools.example/mcp"}}.get(
        kind, {}
    )
    with pytest.raises(DeviceRejected) as refused:
        device_create("window", kind=kind, apps=apps, connection=connection, by="system")
    assert [each["key"] for each in refused.value.problems] == [place]
    assert says in refused.value.problems[0]["message"]


def test_of_a_server_that_was_never_reached_any_tool_may_be_named():
    connection = {"transport": "http", "url": "https://tools.example/mcp"}
    made = device_create("git", kind="mcp", apps={"log": {"tools": ["git.git_log"]}}, connection=connection, by="system")
    assert made.apps["log"]["tools"] == ["git.git_log"]
