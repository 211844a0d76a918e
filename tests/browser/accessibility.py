"""axe-core on a page of chromium: what of it is serious for people who do not see, hear, point or read as most do."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

AXE = gzip.decompress((Path(__file__).parents[1] / "vendor" / "axe.min.js.gz").read_bytes()).decode()
"""Evaluated by the browser's own tools, which our policy for scripts does not concern."""
SERIOUS = ("serious", "critical")
COLOURS = {"runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}}
"""The rules whose answer another scheme can change."""
CONFIGURE = """
// A task's node is named by title, state and device. The rule asks for all that is written in it: its clock, too, and
// what is cut, which a reader would then say again each second.
axe.configure({ rules: [{ id: "label-content-name-mismatch", selector: "*:not(.node[data-task])" }] });
"""
RUN = """
async (options) => {
  const ends = (change) => Number.isFinite(change.effect.getComputedTiming().endTime);
  for (const change of document.getAnimations().filter(ends)) change.finish(); // a colour on its way to another is neither
  return (await axe.run(document, { ...options, resultTypes: ["violations"] })).violations
  .flatMap(({ id, impact, nodes }) => nodes.map(({ target, any, all, none }) =>
    ({ id, impact, target: target.join(" "), why: [...any, ...all, ...none].map((one) => one.message).join("; ") })));
}
"""


def serious_problems(page: Page, *, in_dark: bool = True) -> list[str]:
    """Lines of what axe finds serious or worse, in light and in dark; the page is left in light."""
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    page.evaluate(AXE)
    page.evaluate(CONFIGURE)
    found = _run(page, "light", {})
    if not in_dark:
        return found
    page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    found += _run(page, "dark", COLOURS)
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    return found


def _run(page: Page, scheme: str, options: dict[str, Any]) -> list[str]:
    found = page.evaluate(RUN, options)
    return [
        f"{page.url} in {scheme}: {one['id']} at {one['target']}: {json.dumps(one['why'])}"
        for one in found
        if one["impact"] in SERIOUS
    ]
