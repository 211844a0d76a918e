"""A page that asks before something is done that cannot simply be done back, and why it is done."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.admin import ModelAdmin, helpers
from django.http import HttpRequest
from django.template.response import TemplateResponse

from constellations.services.edits import REASON_LENGTH

NAMED = 50
"""Things that a page of confirmation names."""
CONFIRMED, REASON, ONCE = "confirmed", "reason", "once"
"""Fields of the page. ONCE is a fresh word: the same page sent twice asks for one thing."""


@dataclass(frozen=True)
class Question:
    """What is asked: a title, what follows, what it is about (NAMED of `total`), where no leads, whether it takes away."""

    title: str
    text: str
    names: Sequence[str]
    total: int
    back: str
    danger: bool = False


def is_confirmed(request: HttpRequest) -> bool:
    return request.POST.get(CONFIRMED) == "yes" and not reason_fault(request)


def reason_fault(request: HttpRequest) -> str:
    """What is wrong with the reason that was given."""
    length = len(request.POST.get(REASON, ""))
    return f"at most {REASON_LENGTH:,} characters, not {length:,}" if length > REASON_LENGTH else ""


def reason_of(request: HttpRequest) -> str:
    return request.POST.get(REASON, "").replace("\r\n", "\n").strip()


def request_mark(request: HttpRequest) -> str:
    """A word for what was asked for, the same when the page is sent again; empty where no page was."""
    return request.POST.get(ONCE, "")[:32]


def confirmation_page(admin: ModelAdmin[Any], request: HttpRequest, question: Question) -> TemplateResponse:
    """The page; what was sent comes along, so that the answer meets the same rows and action."""
    sent = ("action", "select_across", "index", "back", helpers.ACTION_CHECKBOX_NAME)  # the choice that the list sent
    context = {
        **admin.admin_site.each_context(request), "opts": admin.opts, "title": question.title, "question": question,
        "hidden": [(name, value) for name in sent for value in request.POST.getlist(name)],
        "once": request.POST.get(ONCE) or secrets.token_hex(12),
        "reason": request.POST.get(REASON, ""), "problem": reason_fault(request), "reason_length": REASON_LENGTH,
        "more": question.total - len(question.names),
    }  # fmt: skip
    return TemplateResponse(request, "admin/constellations/confirm.html", context)
