"""What each tool of a browser does on a page. Elements are named by role and name, or by a mark of the tree; never by code."""

from __future__ import annotations

import re
import struct
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from agents.artifacts.keeping import in_own_thread, keep_artifact
from agents.browsing.desk import MAIN, BrowsingFailed, Desk, clear_page, told_state
from agents.browsing.sites import Sites
from agents.browsing.tools import READ_CHARACTERS
from agents.progress.digests import text_digest
from agents.tools.calls import BadArguments, Call, Outcome

if TYPE_CHECKING:
    from playwright.async_api import Locator, Page

ELEMENT_MS = 10_000.0
"""An element may take so long to be there and to take what is done to it."""
LOAD_MS = 40_000.0
TREE_MS = 5_000.0
TREE_CHARACTERS = 40_000
"""Of an accessibility tree that is kept with the evidence."""
TREE_DEPTH = 60
MARK = re.compile(r" \[(?:ref=\w+|active|cursor=\w+)\]")
"""What a tree says of an element besides what is shown of it."""
SETTLE_MS = 3_000.0
"""A page may take so long to load where a call has sent it."""

Action = Callable[[Call, Desk, Sites], Awaitable[Outcome]]
ACTIONS: dict[str, Action] = {}


def _action(name: str) -> Callable[[Action], Action]:
    def register(function: Action) -> Action:
        ACTIONS[name] = function
        return function

    return register


def page_name(call: Call) -> str:
    """The page that a call is about. An app agent has its own, and those that this one opens. Raises BrowsingFailed."""
    own, wanted = str(call.app.get("page", "")), str(call.arguments.get("page", ""))
    if own and wanted and wanted != own and not wanted.startswith(f"{own}/"):
        raise BrowsingFailed(f"this agent works on the page {own}, not on {wanted}", "denied")
    return wanted or own or MAIN


async def read_tree(page: Page) -> str:
    """The accessibility tree, with marks for elements: an element keeps its own while it is there.

    Of a page with a frame that never answers, as one that was refused, there is only its text.
    """
    from playwright.async_api import TimeoutError as TooLate

    try:
        return await page.aria_snapshot(mode="ai", timeout=TREE_MS, depth=TREE_DEPTH)
    except TooLate:
        return await page.locator("body").inner_text(timeout=ELEMENT_MS)


async def _outcome(desk: Desk, page: Page, **more: Any) -> Outcome:
    """Where the page is after a call; its digest is equal while the page shows the same."""
    digest = text_digest(f"{page.url}\n{MARK.sub('', await read_tree(page))}")
    return Outcome("completed", result=told_state(desk, page, await page.title()) | more, digest=digest)


async def _after(desk: Desk, page: Page) -> Outcome:
    """The outcome of a call that may have sent its page elsewhere: the wall is the gateway, and this says so."""
    await page.wait_for_load_state("domcontentloaded", timeout=SETTLE_MS)
    if why := await desk.leave_refused(page):
        raise BrowsingFailed(why, "denied")
    return await _outcome(desk, page)


def png_size(picture: bytes) -> tuple[int, int]:
    """Width and height of a PNG, in pixels: its first chunk says them."""
    width, height = struct.unpack(">II", picture[16:24])
    return width, height


# --- elements


def find_element(call: Call, page: Page) -> Locator | None:
    """The element that a call names; None where it names none. Raises BadArguments for half a name."""
    arguments = call.arguments
    ref, role = arguments.get("ref"), arguments.get("role")
    if ref and (role or "name" in arguments):
        raise BadArguments(f"{call.tool}: an element has a ref, or a role and a name, and not both")
    if ref:
        if not (ref.isascii() and ref.isalnum()):
            raise BadArguments(f"{call.tool}: ref: {ref!r} is no mark of a tree, such as e12")
        return page.locator(f"aria-ref={ref}")
    if role is None:
        if "name" in arguments:
            raise BadArguments(f"{call.tool}: name: an element is named by its role and its name; role is missing")
        return None
    named = {"name": arguments["name"], "exact": True} if "name" in arguments else {}
    found = page.get_by_role(role, **named)
    return found.nth(arguments["nth"]) if "nth" in arguments else found


def _needed(call: Call, page: Page) -> Locator:
    found = find_element(call, page)
    if found is None:
        raise BadArguments(f"{call.tool} needs an element: ref, or role and name")
    return found


# --- the tools


@_action("browser.open")
async def open_address(call: Call, desk: Desk, sites: Sites) -> Outcome:
    url, name = call.arguments["url"], page_name(call)
    if why := sites.why_refused(url, is_page=True):
        desk.refuse(url, why)
        raise BrowsingFailed(f"{url[:200]} is refused: {why}", "denied")
    page = await desk.page(name, make=True)
    from playwright.async_api import Error

    try:
        answer = await page.goto(url, wait_until="domcontentloaded", timeout=LOAD_MS)
    except Error as error:
        if not (refused := [each for each in desk.happened if each.kind == "refused"]):
            raise
        await clear_page(page)
        raise BrowsingFailed(f"{refused[-1].about} is refused: {refused[-1].why}", "denied") from error
    if why := await desk.leave_refused(page):
        raise BrowsingFailed(why, "denied")
    return await _outcome(desk, page, **({} if answer is None else {"status": answer.status}))


@_action("browser.click")
async def click(call: Call, desk: Desk, sites: Sites) -> Outcome:
    page = await desk.page(page_name(call))
    await _needed(call, page).click(timeout=ELEMENT_MS)
    return await _after(desk, page)


@_action("browser.fill")
async def fill(call: Call, desk: Desk, sites: Sites) -> Outcome:
    page = await desk.page(page_name(call))
    element = _needed(call, page)
    if await element.evaluate("element => element.tagName", timeout=ELEMENT_MS) == "SELECT":
        await element.select_option(label=call.arguments["text"], timeout=ELEMENT_MS)
    else:
        await element.fill(call.arguments["text"], timeout=ELEMENT_MS)
    return await _after(desk, page)


@_action("browser.press")
async def press(call: Call, desk: Desk, sites: Sites) -> Outcome:
    page = await desk.page(page_name(call))
    element = find_element(call, page)
    if element is None:
        await page.keyboard.press(call.arguments["key"])
    else:
        await element.press(call.arguments["key"], timeout=ELEMENT_MS)
    return await _after(desk, page)


@_action("browser.read")
async def read(call: Call, desk: Desk, sites: Sites) -> Outcome:
    page = await desk.page(page_name(call))
    element = find_element(call, page) or page.locator("body")
    whole = await element.inner_text(timeout=ELEMENT_MS)
    offset = int(call.arguments.get("offset", 0))
    content = whole[offset : offset + int(call.arguments.get("limit", READ_CHARACTERS))]
    told = told_state(desk, page, await page.title())
    result = {**told, "content": content, "offset": offset, "size": len(whole)}
    return Outcome("completed", result=result, digest=text_digest(content))


@_action("browser.look")
async def look(call: Call, desk: Desk, sites: Sites) -> Outcome:
    """Of an attempt that has opened nothing yet: nothing. An app agent that is not visual gets no picture."""
    name = page_name(call)
    if not call.arguments.get("page") and name not in desk.names():
        return Outcome("completed", result={"page": name, "url": "", "title": "", "pages": desk.names(), "tree": ""})
    page = await desk.page(name)
    tree = await read_tree(page)
    shown: dict[str, Any] = {"tree": tree[:TREE_CHARACTERS], "left_out": max(0, len(tree) - TREE_CHARACTERS)}
    kept: list[Mapping[str, Any]] = []
    if call.app.get("visual", True):
        picture = await page.screenshot(type="png", timeout=LOAD_MS)
        kept.append(await in_own_thread(keep_artifact, picture, name=f"{name}.png", kind="picture", media_type="image/png"))
        width, height = png_size(picture)
        shown["picture"] = {key: kept[0][key] for key in ("name", "sha256", "size")} | {"width": width, "height": height}
    outcome = await _outcome(desk, page, **shown)
    outcome.text, outcome.artifacts = shown["tree"], kept
    return outcome


@_action("browser.back")
async def go_back(call: Call, desk: Desk, sites: Sites) -> Outcome:
    page = await desk.page(page_name(call))
    if await page.go_back(wait_until="domcontentloaded", timeout=LOAD_MS) is None and page.url == "about:blank":
        raise BrowsingFailed("there is nothing to go back to")
    return await _after(desk, page)


@_action("browser.wait")
async def wait(call: Call, desk: Desk, sites: Sites) -> Outcome:
    page = await desk.page(page_name(call))
    state = "hidden" if call.arguments.get("gone") else "visible"
    seconds = float(call.arguments.get("seconds", 30.0))
    await page.get_by_text(call.arguments["text"]).first.wait_for(state=state, timeout=seconds * 1_000)  # type: ignore[arg-type]
    return await _after(desk, page)
