"""Every tool of a browser on real pages."""

import asyncio
import hashlib
from pathlib import Path

import pytest

from agents.artifacts.opening import open_store
from agents.browsing.tools import TOOLS
from agents.errors import AgentsError

PATIENCE_S = 30.0
pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

FORM = """<!doctype html><title>Orders</title><h1>Orders</h1>
<label>Name <input id=n></label>
<label>Size <select id=s><option>small</option><option>large</option></select></label>
<button onclick="o.textContent = n.value + ', ' + s.value">Order</button> <a href="/second">Second</a>
<p id=o></p><script>n.onkeydown = e => { if (e.key == 'Enter') o.textContent = 'by key: ' + n.value }</script>"""


@pytest.fixture
async def window(open_window, web):
    web.show("/", FORM)
    web.show("/second", "<title>Second</title><h1>The second page</h1>")
    return await open_window(web.address)


async def test_a_page_is_opened_filled_in_and_read(window, web):
    opened = await window("open", url=web.address + "/")
    assert (opened.outcome, opened.result["title"], opened.result["status"]) == ("completed", "Orders", 200)
    assert (await window("fill", role="textbox", name="Name", text="Ann")).outcome == "completed"
    assert (await window("fill", role="combobox", name="Size", text="large")).outcome == "completed"
    clicked = await window("click", role="button", name="Order")
    assert clicked.digest != opened.digest
    assert "Ann, large" in (await window("read")).result["content"]
    await window("press", role="textbox", name="Name", key="Enter")
    assert (await window("wait", text="by key: Ann")).outcome == "completed"


async def test_a_look_gives_the_tree_with_marks_and_a_picture_that_is_kept(window, web):
    await window("open", url=web.address + "/")
    seen = await window("look")
    assert 'button "Order" [ref=' in seen.result["tree"]
    assert seen.text == seen.result["tree"]
    picture = seen.result["picture"]
    content = b"".join(open_store().read(picture["sha256"]))
    assert content.startswith(b"\x89PNG")
    assert (hashlib.sha256(content).hexdigest(), len(content)) == (picture["sha256"], picture["size"])
    assert [(each["name"], each["kind"]) for each in seen.artifacts] == [("main.png", "picture")]
    ref = seen.result["tree"].partition('link "Second" [ref=')[2].partition("]")[0]
    assert (await window("click", ref=ref)).result["title"] == "Second"
    assert (await window("back")).result["title"] == "Orders"


async def test_before_anything_is_opened_a_look_sees_nothing_and_the_others_say_how_to_begin(window):
    assert (await window("look")).result["tree"] == ""
    failed = await window("click", role="button", name="Order")
    assert failed.outcome == "failed"
    assert failed.error.startswith("there is no page main; there is none (begin with browser.open")


async def test_a_text_is_read_in_parts(window, web):
    web.show("/long", f"<p>{'x' * 30_000}</p>")
    await window("open", url=web.address + "/long")
    first = (await window("read")).result
    assert (len(first["content"]), first["offset"], first["size"]) == (20_000, 0, 30_000)
    assert len((await window("read", offset=20_000)).result["content"]) == 10_000


async def test_what_cannot_be_found_or_done_is_an_answer_and_says_what(window, web, monkeypatch):
    monkeypatch.setattr("agents.browsing.actions.ELEMENT_MS", 300.0)
    web.show("/two", "<button>Go</button><button>Go</button>")
    await window("open", url=web.address + "/two")
    missing = await window("click", role="button", name="Stop")
    assert (missing.outcome, missing.error_kind) == ("failed", "")
    assert "Timeout 300ms exceeded" in missing.error
    several = await window("click", role="button", name="Go")
    assert "strict mode violation" in several.error
    assert (await window("click", role="button", name="Go", nth=1)).outcome == "completed"
    waited = await window("wait", text="nothing of that", seconds=0.2)
    assert waited.outcome == "failed"


@pytest.mark.parametrize(
    ("tool", "arguments", "says"),
    [
        ("click", {}, "needs an element"),
        ("click", {"name": "Go"}, "role is missing"),
        ("click", {"ref": "e1", "role": "button"}, "and not both"),
        ("click", {"ref": "e1 >> css=body"}, "is no mark of a tree"),
        ("open", {}, "browser.open needs url"),
        ("open", {"url": "https://a.example", "script": "1"}, "browser.open takes no script"),
        ("click", {"role": "css=body"}, "is not one of"),
    ],
)
async def test_half_a_name_and_code_are_bad_arguments(window, web, tool, arguments, says):
    await window("open", url=web.address + "/")
    with pytest.raises(AgentsError, match=says):
        await window(tool, **arguments)


async def test_a_dialog_is_dismissed_a_download_refused_and_a_popup_is_a_page_below(window, web):
    web.show("/file", "content", Content_Disposition="attachment; filename=a.txt")
    web.show("/busy", "<a href=/file>File</a><button onclick=\"alert('Sure?')\">Ask</button>"
             "<button onclick=\"window.open('/second')\">Open</button>")  # fmt: skip
    await window("open", url=web.address + "/busy")
    asked = (await window("click", role="button", name="Ask")).result
    assert asked["happened"] == [{"kind": "dialog", "about": "alert: Sure?", "why": "dismissed"}]
    results = [
        (await window("click", role="link", name="File")).result,
        (await window("click", role="button", name="Open")).result,
    ]
    async with asyncio.timeout(PATIENCE_S):
        while "main/1" not in results[-1].get("pages", []):  # it opens when the click has ended
            results.append((await window("read")).result)
    results.append((await window("wait", text="The second page", page="main/1")).result)
    assert results[-1]["pages"] == ["main", "main/1"]
    happened = [each for result in results for each in result.get("happened", [])]
    wanted = {"kind": "download", "about": f"a.txt: {web.address}/file", "why": "downloads are refused"}
    assert happened == [wanted]


async def test_an_app_agent_acts_on_its_own_page_and_sees_no_picture_unless_it_is_visual(window, web):
    app = {"page": "shop", "visual": False}
    opened = await window("open", app=app, url=web.address + "/second")
    assert opened.result["page"] == "shop"
    seen = await window("look", app=app)
    assert ("picture" in seen.result, seen.result["title"]) == (False, "Second")
    refused = await window("read", app=app, page="main")
    assert (refused.error, refused.error_kind) == ("this agent works on the page shop, not on main", "denied")


async def test_two_attempts_do_not_see_each_others_cookies_or_pages(window, web):
    web.show("/set", "<p>set</p>", Set_Cookie="who=ann")
    web.show("/tell", "<p>[COOKIE]</p>")
    await window("open", url=web.address + "/set")
    for attempt, told in ((1, "[who=ann]"), (2, "[]")):
        await window("open", attempt=attempt, url=web.address + "/tell")
        assert (await window("read", attempt=attempt)).result["content"] == told
    assert (await window("look", attempt=3)).result["pages"] == []


async def test_a_device_offers_the_tools_with_what_they_take(window):
    assert [tool["name"] for tool in window.tools] == list(TOOLS)
    assert window.facts["browser"].startswith("Chromium ")


async def test_the_calls_of_an_app_agent_say_which_process_shows_its_page(window, web):
    app = {"page": "shop", "visual": False}
    opened = await window("open", app=app, url=web.address + "/")
    name, pid = opened.process["name"], opened.process["pid"]
    assert name == "chromium"
    assert b"--type=renderer" in await asyncio.to_thread(Path(f"/proc/{pid}/cmdline").read_bytes)
    assert (await window("read", app=app)).process == opened.process
    assert (await window("open", url=web.address + "/")).process == {}
