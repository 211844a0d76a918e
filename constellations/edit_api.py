"""REST of edits: made, previewed, taken back, listed. The version is the ETag, and If-Match says which one was seen."""

from __future__ import annotations

import re
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.decorators import action
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from agents.api import Api, request_id
from agents.pagination import LARGEST, optional
from agents.permissions import actor_name
from constellations import edit_serializers as forms
from constellations.edits import AUTHOR_LENGTH, edit_apply
from constellations.models import Constellation, Edit
from constellations.previews import edit_preview
from constellations.task_progress import same_stream
from constellations.undoing import edit_named, edit_undo
from constellations.values import MAX_ID

VERSION = re.compile(r'"v([1-9][0-9]{0,8})"')
"""A constellation's ETag."""
NAME = r"[^/\x00]{1,250}"
"""What an address calls an edit: its edit_id, or its row's id."""

IF_MATCH = OpenApiParameter(
    "If-Match", OpenApiTypes.STR, OpenApiParameter.HEADER, description='The version it was made on, as its ETag: "v12".'
)
EDIT_ID = OpenApiParameter("edit_id", OpenApiTypes.STR, OpenApiParameter.PATH, description="Its edit_id, or its id.")
AUTHOR = OpenApiParameter("author", {"type": "string", "maxLength": AUTHOR_LENGTH}, description="Edits by this author.")
SINCE = OpenApiParameter(
    "since", {"type": "integer", "minimum": 0, "maximum": LARGEST}, description="Edits after this version."
)
TASK_ID = OpenApiParameter("task_id", {"type": "string", "maxLength": MAX_ID}, description="Edits that changed this task.")


class EditViews(Api):
    """Edits of the constellation in the address."""

    needs = {"edit": "edit", "preview": "edit", "undo": "edit"}

    @extend_schema(parameters=[AUTHOR, SINCE, TASK_ID], responses=forms.EditRow(many=True), filters=False)
    @action(detail=True, methods=["get"], serializer_class=forms.EditRow)
    def edits(self, request: Request, pk: str) -> Response:
        """The history: the edits of a constellation, the newest first."""
        constellation = self.get_object()
        rows = self.paginate_queryset(chosen(edits_of(constellation), request))
        answer = self.get_paginated_response(forms.EditRow(rows, many=True).data)
        answer.headers["ETag"] = etag(constellation.version)["ETag"]
        return answer

    @extend_schema(parameters=[IF_MATCH], request=forms.EditBody, responses={200: forms.EditMade, 201: forms.EditMade})
    @edits.mapping.post
    def edit(self, request: Request, pk: str) -> Response:
        """Edit: all of the operations are made, as one change set, or none."""
        constellation, body = self.get_object(), self.body(forms.EditBody)
        based_on = seen_version(request, body.pop("based_on", None))
        said = {"author": actor_name(request), "request_id": request_id(request)}
        return made(constellation, *edit_apply(constellation.pk, **body, **said, based_on=based_on))

    @extend_schema(parameters=[EDIT_ID], responses=forms.EditDetail, filters=False)
    @action(detail=True, methods=["get"], pagination_class=None, url_path=f"edits/(?P<edit_id>{NAME})")
    def one_edit(self, request: Request, pk: str, edit_id: str) -> Response:
        """One edit, with what it changed as that was before and after."""
        return Response(forms.EditDetail(edit_named(self.get_object().pk, edit_id)).data)

    @extend_schema(request=forms.PreviewBody, responses=forms.Preview, filters=False)
    @action(detail=True, methods=["post"], pagination_class=None)
    def preview(self, request: Request, pk: str) -> Response:
        """What an edit would change, and what would follow; nothing is written."""
        found = edit_preview(self.get_object().pk, self.body(forms.PreviewBody)["operations"])
        return Response(found, headers=etag(found["version"]))

    @extend_schema(
        parameters=[EDIT_ID],
        request=forms.UndoBody, responses={200: forms.EditMade, 201: forms.EditMade}, filters=False,
    )  # fmt: skip
    @action(detail=True, methods=["post"], pagination_class=None, url_path=f"edits/(?P<edit_id>{NAME})/undo")
    def undo(self, request: Request, pk: str, edit_id: str) -> Response:
        """Take an edit back, by an edit of its own; undoing that one is the redo."""
        constellation, body = self.get_object(), self.body(forms.UndoBody)
        undo_id, reason = body.get("edit_id", ""), body.get("reason", "")
        said = {"reason": reason, "undo_id": undo_id, "request_id": request_id(request)}
        return made(constellation, *edit_undo(constellation.pk, edit_id, actor_name(request), **said))


def etag(version: int) -> dict[str, str]:
    return {"ETag": f'"v{version}"'}


def made(constellation: Constellation, edit: Edit | None, changed: bool) -> Response:
    """201 for an edit that was made, 200 where there was nothing to do."""
    version = Constellation.objects.values_list("version", flat=True).get(pk=constellation.pk)
    row = None if edit is None else forms.EditRow(edit).data
    answer: dict[str, Any] = {"edit": row, "changed": changed, "version": version}
    return Response(answer, status=201 if changed else 200, headers=etag(version))


def seen_version(request: Request, based_on: int | None) -> int | None:
    """The version that the author of an edit has seen, by the body or by If-Match; `*` and nothing mean the newest."""
    given = request.headers.get("If-Match", "*").strip()
    if given == "*":
        return based_on
    found = VERSION.fullmatch(given)
    if found is None:
        raise ValidationError({"If-Match": 'must be the ETag of a constellation, such as "v12"'})
    version = int(found[1])
    if based_on not in (None, version):
        raise ValidationError({"based_on": f"is {based_on}, and If-Match says {version}"})
    return version


def edits_of(constellation: Constellation) -> QuerySet[Edit]:
    rows = Edit.objects.filter(constellation=constellation).defer("before", "after")
    return same_stream(rows, constellation.pk)


def chosen(rows: QuerySet[Edit], request: Request) -> QuerySet[Edit]:
    """Those that the query string asks for."""
    author, task_id = (text_of(request, "author", AUTHOR_LENGTH), text_of(request, "task_id", MAX_ID))
    since = optional(request, "since", 0, LARGEST)
    if author is not None:
        rows = rows.filter(author=author)
    if since is not None:
        rows = rows.filter(version__gt=since)
    return rows if task_id is None else rows.filter(before__tasks__has_key=task_id)


def text_of(request: Request, key: str, longest: int) -> str | None:
    """Text of the query string, which a database can look for."""
    text = request.query_params.get(key)
    if text is not None and (len(text) > longest or "\x00" in text):
        raise ValidationError({key: f"must be text of at most {longest} characters"})
    return text
