"""The admin as a browser has it: pages whose forms are read from the HTML and sent back whole."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlencode

from django.test import Client
from django.urls import reverse


class Form(HTMLParser):
    """The fields of the page's sheet with their values, as a browser would send them. Templates are not sent."""

    def __init__(self, html: str, form_id: str):
        super().__init__()
        self.values: dict[str, Any] = {}
        self._form_id, self._inside, self._templates = form_id, False, 0
        self._select = self._area = ""
        self._first: dict[str, str] = {}
        self.feed(html)

    def handle_starttag(self, tag, attributes) -> None:
        given = {name: value or "" for name, value in attributes}
        if tag == "form":
            self._inside = given.get("id") == self._form_id
        elif tag == "template":
            self._templates += 1
        if not self._inside or self._templates:
            return
        if tag == "input" and given.get("type") not in ("submit", "checkbox"):
            self.values[given["name"]] = given.get("value", "")
        elif tag == "input" and given.get("type") == "checkbox" and "checked" in given:
            self.values[given["name"]] = "on"
        elif tag == "select":
            self._select = given["name"]
        elif tag == "option" and self._select:
            self.values.setdefault(self._select, given["value"])
            if "selected" in given:
                self.values[self._select] = given["value"]
        elif tag == "textarea":
            self._area = given["name"]
            self.values[self._area] = ""

    def handle_data(self, data) -> None:
        if self._area:
            self.values[self._area] += data

    def handle_endtag(self, tag) -> None:
        if tag == "form":
            self._inside = False
        elif tag == "template":
            self._templates -= 1
        elif tag == "select":
            self._select = ""
        elif tag == "textarea" and self._area:
            text = self.values[self._area].removeprefix("\n")
            self.values[self._area] = text.replace("\r\n", "\n").replace("\n", "\r\n")
            self._area = ""


class Staff:
    """Somebody in the admin."""

    def __init__(self, user, staff: bool = True):
        user.is_staff = staff
        user.save()
        self.user, self.client = user, Client()
        self.client.force_login(user)

    def page(self, row, **query):
        return self.client.get(address(row), query)

    def form(self, row) -> dict[str, Any]:
        """What a browser would send from the page of a row, unless something is changed."""
        page = self.page(row)
        assert page.status_code == 200
        return Form(page.content.decode(), f"{row._meta.model_name}_form").values

    def save(self, row, values, **more):
        """Send a page: a redirect where it was saved, else the page again."""
        return self.send(row, {**values, "_save": "1", **more})

    def send(self, row, values):
        """As a browser encodes a form without files."""
        return self.client.post(address(row), urlencode(values), content_type="application/x-www-form-urlencoded")

    def told(self, answer) -> list[str]:
        """The messages on the page that an answer leads to."""
        assert answer.status_code == 302, problems(answer)
        return [str(message) for message in self.client.get(answer["Location"]).context["messages"]]


def address(row, what: str = "change") -> str:
    return reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_{what}", args=() if what == "changelist" else (row.pk,))


def row_of(values: dict[str, Any], name: str) -> str:
    """The prefix of the row of a task or a dependency: tasks-3."""
    keys = ("-task_id", "-dependency_id")
    return next(key.rsplit("-", 1)[0] for key, value in values.items() if key.endswith(keys) and value == name)


def added(values: dict[str, Any], kind: str, **fields: Any) -> dict[str, Any]:
    """The fields of a page with one more row, as its script adds it."""
    number = int(values[f"{kind}-TOTAL_FORMS"])
    usual: dict[str, Any] = {"priority": "1", "max_attempts": "1", "on_lost": "retry", "type": "SUCCESS_ONLY"}
    rows = {f"{kind}-{number}-{name}": value for name, value in (usual | fields).items()}
    return {**values, **rows, f"{kind}-TOTAL_FORMS": str(number + 1)}


def problems(page) -> dict[str, list[str]]:
    """What a page that was refused says, by the row and field where it says it."""
    sheet = page.context["sheet"]
    found = {}
    for rows in sheet.all_rows:
        for form in rows.forms:
            name = form.row[form.name_field] if form.row else form.missing or "new"
            found.update({f"{name}.{key}": list(texts) for key, texts in form.errors.items()})
    return found | {key: list(texts) for key, texts in sheet.reason.errors.items()}
