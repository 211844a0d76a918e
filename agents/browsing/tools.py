"""What can be called of a browser: names, arguments, time. Who holds the device carries it out (agents.browsing.actions)."""

from __future__ import annotations

from typing import Any

from agents.progress.digests import canonical_json, text_digest
from agents.tools.calls import SECONDS
from agents.tools.namespaces import OFFERED

NAVIGATION_S = 45.0
ACTION_S = 30.0
LONGEST_WAIT_S = 120.0
URL_LENGTH = 2_000
TEXT_LENGTH = 20_000
READ_CHARACTERS = 20_000
"""Of a page's text that one call gives."""
ROLES = (
    "alert", "button", "cell", "checkbox", "columnheader", "combobox", "dialog", "form", "grid", "gridcell", "group", "heading",
    "img", "link", "list", "listbox", "listitem", "main", "menu", "menubar", "menuitem", "menuitemcheckbox", "menuitemradio",
    "navigation", "option", "paragraph", "progressbar", "radio", "radiogroup", "region", "row", "rowheader", "search",
    "searchbox", "slider", "spinbutton", "status", "switch", "tab", "table", "tablist", "tabpanel", "textbox", "toolbar",
    "tooltip", "tree", "treeitem",
)  # fmt: skip
"""Of elements, as accessibility trees have them."""


def _text(about: str, most: int = 200, least: int = 1) -> dict[str, Any]:
    return {"type": "string", "minLength": least, "maxLength": most, "description": about}


PAGE = _text("Name of the page; main unless given.", 80)
TARGET: dict[str, Any] = {
    "ref": _text("The element by its mark in the tree that browser.look gave last, such as e12.", 20),
    "role": {"enum": list(ROLES), "description": "The element by its role, with `name`, where there is no ref."},
    "name": _text("Its name in the tree, whole."),
    "nth": {"type": "integer", "minimum": 0, "maximum": 1_000, "description": "Which of several, from 0."},
}


def _takes(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    shape = {"type": "object", "properties": {**properties, "page": PAGE}}
    return {**shape, "required": list(required), "additionalProperties": False}


TOOLS: dict[str, tuple[str, dict[str, Any], float]] = {
    "browser.open": (
        "Open an address in a page; only where the device's allow-list lets it go.",
        _takes(("url",), url=_text("With https:// or http://.", URL_LENGTH)), NAVIGATION_S,
    ),
    "browser.click": ("Click an element of a page.", _takes(**TARGET), ACTION_S),
    "browser.fill": (
        "Put a text into a field of a page, in the place of what is there; into a list of choices, choose.",
        _takes(("text",), **TARGET, text=_text("What to put there.", TEXT_LENGTH, 0)), ACTION_S,
    ),
    "browser.press": (
        "Press a key, on an element where one is given.",
        _takes(("key",), **TARGET, key=_text("As Enter, Escape, ArrowDown, a, Control+A.", 40)), ACTION_S,
    ),
    "browser.read": (
        "What a page says: {content, offset, size}, in characters; of an element where one is given.",
        _takes(
            **TARGET, offset={"type": "integer", "minimum": 0, "description": "In characters."},
            limit={"type": "integer", "minimum": 1, "maximum": READ_CHARACTERS, "description": "In characters."},
        ), ACTION_S,
    ),
    "browser.look": ("What a page looks like: its accessibility tree with marks for elements, and a picture.", _takes(), 60.0),
    "browser.back": ("Go back to where a page was before.", _takes(), NAVIGATION_S),
    "browser.wait": (
        "Wait until a page shows a text, or with `gone` does no longer.",
        _takes(
            ("text",), text=_text("A part of what it shows.", 500), gone={"type": "boolean"},
            seconds={"type": "number", "minimum": 0.1, "maximum": LONGEST_WAIT_S, "description": "At most; 30 unless given."},
        ), LONGEST_WAIT_S + 5.0,
    ),
}  # fmt: skip
"""By tool: what it is for, what it takes, and the seconds of a call that says none."""


def offered_by_browsers() -> tuple[dict[str, Any], ...]:
    """The tools as a device's row has them (agents.tools.namespaces)."""
    told = {name: {"name": name, "description": about, "arguments": schema} for name, (about, schema, _) in TOOLS.items()}
    return tuple({**tool, "digest": text_digest(canonical_json(tool))} for tool in told.values())


def register() -> None:
    """Let plans name them, and end them in time."""
    OFFERED["browser"] = offered_by_browsers()
    SECONDS.update({name: seconds for name, (_, _, seconds) in TOOLS.items()})
