"""The version over HTTP: the ETag of every answer about a constellation, and in If-Match what an author has seen."""

from __future__ import annotations

import re
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import ValidationError
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request

from agents.api.views import Api

VERSION = re.compile(r'"v([1-9][0-9]{0,8})"')
"""A constellation's ETag."""
ANY = "*"
"""An If-Match that asks for nothing."""

IF_MATCH = OpenApiParameter(
    "If-Match", OpenApiTypes.STR, OpenApiParameter.HEADER, description='The version it was made on, as its ETag: "v12".'
)


class Versioned(Api):
    """Views whose `by_version` names the actions that look at If-Match; the others that write refuse it."""

    by_version: frozenset[str] = frozenset()

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if request.method not in SAFE_METHODS and self.action not in self.by_version and if_match_of(request) != ANY:
            raise ValidationError(
                {"If-Match": "is for edits, previews, undos and retries with operations; this does not ask for a version"}
            )


def if_match_of(request: Request) -> str:
    return str(request.headers.get("If-Match", ANY)).strip()


def etag_header(version: int) -> dict[str, str]:
    return {"ETag": f'"v{version}"'}


def seen_version(request: Request, based_on: int | None = None) -> int | None:
    """The version that the author of an edit has seen, by the body or by If-Match; `*` and nothing mean the newest."""
    condition = if_match_of(request)
    if condition == ANY:
        return based_on
    found = VERSION.fullmatch(condition)
    if found is None:
        raise ValidationError({"If-Match": 'must be the ETag of a constellation, such as "v12"'})
    version = int(found[1])
    if based_on not in (None, version):
        raise ValidationError({"based_on": f"is {based_on}, and If-Match says {version}"})
    return version
