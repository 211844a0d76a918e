"""Contents of artifacts as answers: attachments, in ranges, and never anything that a browser would show or run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from django.core.handlers.asgi import ASGIRequest
from django.http import HttpResponseBase, StreamingHttpResponse
from django.utils.http import content_disposition_header
from rest_framework.exceptions import APIException
from rest_framework.request import Request

from agents.artifacts.media_types import TEXT
from agents.artifacts.opening import open_store
from agents.artifacts.reading import pieces_beside, whole_content
from agents.masks.doors import AS_IT_IS
from agents.models import Artifact

RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})")
POLICY = "default-src 'none'; sandbox; frame-ancestors 'none'"


class RangeUnfit(APIException):
    """The content has no such bytes."""

    status_code = 416
    default_code = "range_unfit"


def download(request: Request, artifact: Artifact) -> HttpResponseBase:
    """The content of an artifact, or the part of it that the request asks for. Raises ContentMissing, RangeUnfit."""
    part = wanted_range(request.headers.get("Range", ""), artifact.size)
    if part is None:
        pieces, size = whole_content(artifact.sha256), artifact.size
    else:
        pieces, size = open_store().read(artifact.sha256, *part), part[1] - part[0]
    answer = StreamingHttpResponse(_streamed(request, pieces), status=200 if part is None else 206)
    placed = {} if part is None else {"Content-Range": f"bytes {part[0]}-{part[1] - 1}/{artifact.size}"}
    for name, value in {**_headers(artifact, size), **placed}.items():
        answer[name] = value
    setattr(answer, AS_IT_IS, True)
    return answer


def wanted_range(header: str, size: int) -> tuple[int, int] | None:
    """The first byte and the one beyond the last of one range; None for all of it, and for what is none of ours to know."""
    found = RANGE.fullmatch(header.strip())
    if found is None or found.groups() == ("", ""):
        return None
    first, last = found.groups()
    if first == "":  # so many at the end
        start, stop = max(0, size - int(last)), size
    else:
        start, stop = int(first), min(int(last) + 1, size) if last else size
    if start >= stop:
        raise RangeUnfit(f"the content has {size} bytes")
    return start, stop


def _headers(artifact: Artifact, size: int) -> dict[str, str]:
    kind = f"{TEXT}; charset=utf-8" if artifact.media_type == TEXT else artifact.media_type
    named = content_disposition_header(True, artifact.name.rpartition("/")[2])
    return {
        "Content-Type": kind, "Content-Length": str(size), "Content-Disposition": named or "attachment",
        "X-Content-Type-Options": "nosniff", "Content-Security-Policy": POLICY, "Cross-Origin-Resource-Policy": "same-origin",
        "Accept-Ranges": "bytes", "ETag": f'"{artifact.sha256}"',
    }  # fmt: skip


def _streamed(request: Request, pieces: Iterator[bytes]) -> Any:
    """As the server takes them: one of a loop would read all pieces of an ordinary iterator before it sends the first."""
    return pieces_beside(pieces) if isinstance(request._request, ASGIRequest) else pieces
