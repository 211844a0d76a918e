"""The mask at the ways out that belong to no app of ours: Django's answers, logs, and what commands print.

Streams of events are masked where they are encoded (agents.streams.tail, agents.api.live_view), MCP in its server, output where
it is read (agents.reads.printed); docs/secrets.md, "Where it is masked".
"""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import Callable
from typing import Any

from django.core.management.base import BaseCommand
from django.http import HttpRequest, HttpResponse

from agents.masks.masking import MARK
from agents.masks.values import get_masker, mask_json, mask_text

SHOWN_ONCE = "shown_once"
"""Attribute of an answer: the one text that it exists to show, as a new token."""
AS_IT_IS = "as_it_is"
"""Attribute of an answer that hands a file out: its content is nobody's to change (docs/secrets.md, "Files")."""


class MaskedAnswers:
    """Middleware around all others: masks what REST, admin, pages and errors answer, body and headers."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]):
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        for name, value in response.headers.items():
            if (masked := mask_text(value)) is not value:
                response.headers[name] = masked.replace(MARK, "*")  # a header has no other letters than these
        if getattr(response, AS_IT_IS, False):
            return response
        if response.streaming:
            response.streaming_content = [get_masker().data(b"".join(response.streaming_content))]  # type: ignore[attr-defined]
            return response
        before = response.content
        if "json" in response.headers.get("Content-Type", ""):
            masked_content = mask_json(before, getattr(response, SHOWN_ONCE, ""))
        else:
            masked_content = get_masker().data(before)
        if masked_content is not before:
            response.content = masked_content
            if "Content-Length" in response.headers:
                response.headers["Content-Length"] = str(len(response.content))
        return response


class MaskedLogs(logging.Filter):
    """On every handler of logs: masks the message, and the traceback with the texts of its exceptions."""

    def filter(self, record: logging.LogRecord) -> bool:
        try:
            message = record.getMessage()
        except Exception:  # its arguments do not fit; the handler would have said so, and shown them
            message = f"{record.msg} {record.args}"
        record.msg, record.args = mask_text(message), None
        if record.exc_info and not record.exc_text:
            record.exc_text = _FORMATTER.formatException(record.exc_info)
        record.exc_text = mask_text(record.exc_text) if record.exc_text else record.exc_text
        record.stack_info = mask_text(record.stack_info) if record.stack_info else record.stack_info
        return True


_FORMATTER = logging.Formatter()


class MaskedStream(io.TextIOBase):
    """A text stream that masks line by line what is written to it, on its way to `stream`."""

    def __init__(self, stream: Any):
        self._stream = stream
        self._line = ""

    def write(self, text: str) -> int:
        whole, end, self._line = (self._line + text).rpartition("\n")
        if end:
            self._stream.write(mask_text(whole + end))
        return len(text)

    def flush(self) -> None:
        line, self._line = self._line, ""
        if line:
            self._stream.write(mask_text(line))
        self._stream.flush()

    def fileno(self) -> int:
        return self._stream.fileno()

    def isatty(self) -> bool:
        return hasattr(self._stream, "isatty") and self._stream.isatty()


class MaskedCommand(BaseCommand):
    """A command whose output passes the mask; those that are there to print a secret are no such commands."""

    def __init__(self, stdout: Any = None, stderr: Any = None, **more: Any):
        printed: list[Any] = [MaskedStream(stdout or sys.stdout), MaskedStream(stderr or sys.stderr)]
        super().__init__(*printed, **more)

    def execute(self, *args: Any, **options: Any) -> str | None:
        given = {name: MaskedStream(options[name]) for name in ("stdout", "stderr") if options.get(name)}
        try:
            return super().execute(*args, **{**options, **given})
        finally:
            self.stdout.flush()


def mask_what_is_printed() -> None:
    """Of this process: its standard streams are log files, and not everything that is printed there is logged."""
    sys.stdout, sys.stderr = MaskedStream(sys.stdout), MaskedStream(sys.stderr)
