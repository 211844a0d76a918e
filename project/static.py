"""Static files over HTTP: compressed, and kept by browsers where their address names the release that is served."""

from __future__ import annotations

import asyncio
import gzip
import os
from functools import lru_cache
from pathlib import Path

from starlette.datastructures import Headers
from starlette.responses import FileResponse, Response
from starlette.staticfiles import NotModifiedResponse, StaticFiles
from starlette.types import Scope

from frontend.static_files import RELEASE, find_file, release

KEPT = "public, max-age=31536000, immutable"
ASKED_AGAIN = "no-cache"
"""The browser keeps it too, and asks whether it has changed."""
PACKED = frozenset({".js", ".mjs", ".css", ".svg", ".json", ".map", ".html", ".txt"})
PACKED_FILES = 512
"""Whose compressed contents stay in memory: all that pages ask for, half a megabyte."""


@lru_cache(PACKED_FILES)
def packed(path: str, changed_ns: int) -> bytes:
    """A file's contents, compressed once for each time that it has changed."""
    return gzip.compress(Path(path).read_bytes(), mtime=0)


class Static(StaticFiles):
    """The places where apps keep their files, and STATIC_ROOT for what no app has."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        asked = RELEASE.fullmatch(path)
        name = asked[2] if asked else path
        answer = await super().get_response(name, scope)
        if isinstance(answer, FileResponse | NotModifiedResponse):
            answer.headers["Vary"] = "Accept-Encoding"
            is_kept = asked is not None and await asyncio.to_thread(_is_of, asked[1], name)
            answer.headers["Cache-Control"] = KEPT if is_kept else ASKED_AGAIN
        if isinstance(answer, FileResponse) and _may_be_packed(answer, scope):
            return await _packed_answer(answer)
        return answer

    def lookup_path(self, path: str) -> tuple[str, os.stat_result | None]:
        found = find_file(path)
        return (str(found), found.stat()) if found else ("", None)


def _is_of(digest: str, name: str) -> bool:
    """Whether a file is what the address says: neither of an older or newer release, nor changed since this process began."""
    file = find_file(name)
    return digest == release().digest and file is not None and release().has(name, file)


def _may_be_packed(answer: FileResponse, scope: Scope) -> bool:
    asked = Headers(scope=scope)
    return (
        scope["method"] == "GET"
        and Path(answer.path).suffix in PACKED
        and "gzip" in asked.get("accept-encoding", "")
        and "range" not in asked
    )


async def _packed_answer(answer: FileResponse) -> Response:
    assert answer.stat_result is not None
    body = await asyncio.to_thread(packed, str(answer.path), answer.stat_result.st_mtime_ns)
    kept = {name: answer.headers[name] for name in ("content-type", "last-modified", "vary", "cache-control")}
    # Weak: the same file, and not the same bytes.
    return Response(body, headers={**kept, "content-encoding": "gzip", "etag": f"W/{answer.headers['etag']}"})
