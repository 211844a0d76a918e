"""What one attempt has of a browser: a context of its own, which shares nothing with others, and its pages by name."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agents.browsing.sites import INERT, Sites
from agents.errors import AgentsError
from agents.tools.calls import GONE

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Dialog, Download, Frame, Page, Route

MAIN = "main"
"""The page of an attempt that names none."""
PAGES = 10
"""Of one attempt, popups included."""
HAPPENINGS = 50
"""Refusals, dialogs and downloads that are told with one call."""
REOPEN_MS = 15_000.0
"""A page may take so long to be shown again."""
CLEARINGS = 5
"""Tries to show nothing."""
TEXT = 500
"""Characters of an address or of a dialog's message."""


class BrowsingFailed(AgentsError):
    """A call could not do what it was for."""

    code = "browsing_failed"

    def __init__(self, message: str, kind: str = ""):
        super().__init__(message)
        self.error_kind = kind


@dataclass(frozen=True)
class Happening:
    """Something that nobody asked for: what it was about, and why.

    A page did it (`refused`, `dialog`, `download`, `crashed`), or it became of one whose browser was gone (`reopened`,
    `not_reopened`).
    """

    kind: str
    about: str
    why: str = ""

    def as_json(self) -> dict[str, str]:
        return {"kind": self.kind, "about": self.about, **({"why": self.why} if self.why else {})}


class Desk:
    """`tell` hears of everything that happens, in the moment it does. `roots` are the processes of pages, as far as known.
    `gone` are pages of the same attempt that ended with the browser before this one.
    """

    def __init__(self, context: BrowserContext, sites: Sites, tell: Callable[[Happening], None]):
        self._context, self._sites, self._tell = context, sites, tell
        self.pages: dict[str, Page] = {}
        self.happened: list[Happening] = []
        self.roots: dict[str, Mapping[str, Any]] = {}
        self.gone: frozenset[str] = frozenset()
        context.on("page", self._take_popup)

    async def prepare(self) -> None:
        await self._context.route("**/*", self._route)

    async def page(self, name: str, *, make: bool = False) -> Page:
        """A page by its name; `make` opens one. Raises BrowsingFailed, which says which there are."""
        if (found := self.pages.get(name)) is not None and not found.is_closed():
            return found
        if not make:
            there = ", ".join(self.names()) or "none (begin with browser.open; pages end with the browser that showed them)"
            raise BrowsingFailed(f"there is no page {name}; there is {there}", GONE if name in self.gone else "")
        if len(self.names()) >= PAGES:
            raise BrowsingFailed(f"there are {PAGES} pages, and no more are opened")
        self.pages[name] = page = await self._context.new_page()
        self._watch(page)
        return page

    async def reopen(self, pages: Mapping[str, str]) -> None:
        """Show what an attempt had in a browser that is gone. Only addresses come back, and what cannot be shown says why."""
        from playwright.async_api import Error

        for name, url in pages.items():
            why = self._sites.why_refused(url, is_page=True)
            if not why:
                try:
                    page = await self.page(name, make=True)
                    await page.goto(url, wait_until="domcontentloaded", timeout=REOPEN_MS)
                    why = await self.leave_refused(page)
                except (Error, BrowsingFailed) as error:
                    why = str(error).partition("\n")[0]
            self._note(Happening("not_reopened" if why else "reopened", f"{name}: {url}"[:TEXT], why[:TEXT]))

    def names(self) -> list[str]:
        return [name for name, page in self.pages.items() if not page.is_closed()]

    def name_of(self, page: Page) -> str:
        return next((name for name, known in self.pages.items() if known is page), "")

    def take_happened(self) -> list[Happening]:
        """What has happened since this was asked last."""
        found, self.happened = self.happened, []
        return found

    def refuse(self, url: str, why: str) -> None:
        self._note(Happening("refused", url[:TEXT], why))

    async def is_alive(self) -> bool:
        """Whether its browser still answers."""
        from playwright.async_api import Error

        with contextlib.suppress(Error):
            await self._context.cookies()
            return True
        return False

    async def close(self) -> None:
        await self._context.close()

    async def leave_refused(self, page: Page) -> str:
        """Why the page is where it must not be, and away from there; empty where it may be."""
        why = self._sites.why_refused(page.url, is_page=True)
        if why:
            shown = page.url
            self.refuse(shown, why)
            await clear_page(page)
            return f"{shown[:TEXT]} is refused: {why}"
        return ""

    # --- what pages do

    async def _route(self, route: Route) -> None:
        request = route.request
        why = self._sites.why_refused(request.url, is_page=request.is_navigation_request())
        if why:
            self.refuse(request.url, why)
            await route.abort("blockedbyclient")
        else:
            await route.continue_()

    async def _take_popup(self, page: Page) -> None:
        """A page that another one opened has a name below that one's; those too many are closed."""
        opener = await page.opener()
        if opener is None or page in self.pages.values():
            return
        above = self.name_of(opener) or MAIN
        if len(self.names()) >= PAGES:
            self._note(Happening("refused", page.url[:TEXT], f"there are {PAGES} pages, and no more are opened"))
            await page.close()
            return
        name = next(name for number in range(1, PAGES + 1) if (name := f"{above}/{number}") not in self.names())
        self.pages[name] = page
        self._watch(page)

    def _watch(self, page: Page) -> None:
        page.on("framenavigated", self._forget_root)
        page.on("crash", self._let_crashed_go)
        page.on("dialog", self._dismiss)
        page.on("download", self._refuse_download)

    def _forget_root(self, frame: Frame) -> None:
        """Another site has another process."""
        if frame.parent_frame is None:
            self.roots.pop(self.name_of(frame.page), None)

    async def _let_crashed_go(self, page: Page) -> None:
        """A page whose process has died shows nothing any more, and whatever is asked of it would wait."""
        from playwright.async_api import Error

        name = self.name_of(page)
        self._note(Happening("crashed", f"{name}: {page.url}"[:TEXT], "its process has ended"))
        self.roots.pop(name, None)
        self.pages.pop(name, None)  # before anything is waited for: the next call makes a page of its own
        with contextlib.suppress(Error):
            await page.close()

    async def _dismiss(self, dialog: Dialog) -> None:
        self._note(Happening("dialog", f"{dialog.type}: {dialog.message}"[:TEXT], "dismissed"))
        await dialog.dismiss()

    def _refuse_download(self, download: Download) -> None:
        self._note(Happening("download", f"{download.suggested_filename}: {download.url}"[:TEXT], "downloads are refused"))

    def _note(self, happening: Happening) -> None:
        if len(self.happened) < HAPPENINGS:
            self.happened.append(happening)
            self._tell(happening)


async def clear_page(page: Page) -> None:
    """Show nothing. A navigation that was refused may still be about to show its error, and comes first then."""
    from playwright.async_api import Error

    for _ in range(CLEARINGS):
        with contextlib.suppress(Error):
            await page.goto(INERT[0])
            return


def told_state(desk: Desk, page: Page, title: str) -> dict[str, Any]:
    """Where a page is: its name, address and title, and which pages there are; what has happened where anything has."""
    happened = [each.as_json() for each in desk.take_happened()]
    told: dict[str, Any] = {"page": desk.name_of(page), "url": page.url[:TEXT], "title": title[:TEXT], "pages": desk.names()}
    return told | ({"happened": happened} if happened else {})
