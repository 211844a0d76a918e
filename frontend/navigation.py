"""The pages that every page leads to, in their order and groups: the one place to add another."""

from __future__ import annotations

from itertools import groupby
from typing import Any, NamedTuple

from django.http import HttpRequest
from django.urls import reverse


class PageLink(NamedTuple):
    """`address` is the name of a URL, `below` the names of others for which the link is marked as where one is.

    Pages without a `group` stand in the bar by themselves; the others in the menu of their group's name.
    """

    address: str
    word: str
    below: tuple[str, ...] = ()
    group: str = ""
    is_for_staff: bool = False
    counts_waiting: bool = False


PAGES = (
    PageLink("frontend:sessions", "Sessions", ("frontend:session", "frontend:agent")),
    PageLink("frontend:inbox", "Inbox", counts_waiting=True),
    PageLink("frontend:runs", "Runs"),
    PageLink("frontend:search", "Search"),
    PageLink("frontend:devices", "Devices", group="Fleet"),
    PageLink("frontend:runners", "Runners and queues", group="Fleet"),
    PageLink("frontend:models", "Models and cost", group="Fleet"),
    PageLink("frontend:policies", "Policies", group="Fleet"),
    PageLink("frontend:stuck", "Stuck agents", group="Fleet"),
    PageLink("frontend:machines", "Machines", ("frontend:machine",), group="Reference"),
    PageLink("api-docs", "REST API", group="Reference"),
    PageLink("admin:index", "Admin", is_for_staff=True),
)


def list_pages(request: HttpRequest) -> dict[str, Any]:
    """For templates: `pages`, those that the reader may open, as [{word, is_here, pages}], a menu for each group.

    `pages` are {href, word, is_here, counts_waiting}; a group without a word is no menu.
    """
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return {"pages": []}
    here = request.resolver_match.view_name if request.resolver_match else ""
    found = []
    for word, links in groupby((page for page in PAGES if user.is_staff or not page.is_for_staff), lambda page: page.group):
        pages = [
            {
                "href": reverse(page.address), "word": page.word, "is_here": here in (page.address, *page.below),
                "counts_waiting": page.counts_waiting,
            }
            for page in links
        ]  # fmt: skip
        found.append({"word": word, "is_here": any(page["is_here"] for page in pages), "pages": pages})
    return {"pages": found}
