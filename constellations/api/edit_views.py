"""REST of edits: made, previewed, taken back, listed. The version is the ETag, and If-Match says which one was seen."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.decorators import action
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from agents.access.permissions import actor_name
from agents.api.pagination import LARGEST, optional_parameter
from agents.api.views import request_id
from agents.models import Approval
from agents.reads.authors import names_of
from agents.streams.fold import consistent_read
from constellations.api import edit_serializers
from constellations.api.versioned import IF_MATCH, Versioned, etag_header, seen_version
from constellations.errors import GateKept
from constellations.models import Constellation, Edit
from constellations.plan.operations import write_in_full
from constellations.plan.values import MAX_ID
from constellations.reads.excerpts import history
from constellations.services import standing
from constellations.services.edits import AUTHOR_LENGTH, edit_apply
from constellations.services.preview import edit_preview
from constellations.services.proposals import edit_propose
from constellations.services.undo import edit_named, edit_undo

NAME = r"[^/\x00]{1,250}"
"""What an address calls an edit: its edit_id, or its row's id."""

EDIT_ID = OpenApiParameter("edit_id", OpenApiTypes.STR, OpenApiParameter.PATH, description="Its edit_id, or its id.")
AUTHOR = OpenApiParameter("author", {"type": "string", "maxLength": AUTHOR_LENGTH}, description="Edits by this author.")
SINCE = OpenApiParameter(
    "since", {"type": "integer", "minimum": 0, "maximum": LARGEST}, description="Edits after this version."
)
TASK_ID = OpenApiParameter(
    "task_id", {"type": "string", "maxLength": MAX_ID}, description="Edits that changed this task, or a dependency of it."
)


class EditViews(Versioned):
    """Edits of the constellation in the address."""

    needs = {"edit": "edit", "preview": "edit", "undo": "edit"}
    by_version = frozenset({*needs, "retry"})
    cursor_field = "id"

    @extend_schema(parameters=[AUTHOR, SINCE, TASK_ID], responses=edit_serializers.EditRow(many=True), filters=False)
    @action(detail=True, methods=["get"], serializer_class=edit_serializers.EditRow, cursor_field="version", newest_first=True)
    def edits(self, request: Request, pk: str) -> Response:
        """The history: the edits of a constellation, the newest first; of a long one the beginning."""
        with consistent_read():
            constellation = self.get_object()
            rows = self.paginate_queryset(history.edits_of(constellation.pk, **edit_filters(request)))
            answer = self.get_paginated_response(edit_serializers.EditRow(history.list_edits(rows), many=True).data)
        answer.headers["ETag"] = etag_header(constellation.version)["ETag"]
        return answer

    @extend_schema(
        parameters=[IF_MATCH], request=edit_serializers.EditBody,
        responses={200: edit_serializers.EditMade, 201: edit_serializers.EditMade, 202: edit_serializers.EditMade},
    )  # fmt: skip
    @edits.mapping.post
    def edit(self, request: Request, pk: str) -> Response:
        """Edit: all of the operations are made, as one change set, or none.

        Where they would let something be done unasked, and their author may not approve that, they are proposed (202).
        """
        constellation, body = self.get_object(), self.body(edit_serializers.EditBody)
        based_on, author, proposal = seen_version(request, body.pop("based_on", None)), actor_name(request), None
        said = {**body, "author": author, "request_id": request_id(request), "based_on": based_on}
        try:
            edit, changed = edit_apply(constellation.pk, **said)
        except GateKept:
            proposed = edit_propose(
                constellation.pk, **{**said, "operations": write_in_full(body["operations"])}, who=names_of([author])[author]
            )
            edit, changed, proposal = proposed.edit, False, proposed.approval
        return edit_response(constellation, edit, changed, body.get("edit_id", ""), based_on, proposal)

    @extend_schema(parameters=[EDIT_ID], responses=edit_serializers.EditDetail, filters=False)
    @action(detail=True, methods=["get"], pagination_class=None, url_path=f"edits/(?P<edit_id>{NAME})")
    def one_edit(self, request: Request, pk: str, edit_id: str) -> Response:
        """One edit as a whole, with what it changed as that was before and after."""
        with consistent_read():
            constellation = self.get_object()
            found = edit_serializers.EditDetail(edit_named(constellation.pk, edit_id)).data
        return Response(found, headers=etag_header(constellation.version))

    @extend_schema(
        parameters=[IF_MATCH], request=edit_serializers.PreviewBody, responses=edit_serializers.Preview, filters=False
    )
    @action(detail=True, methods=["post"], pagination_class=None)
    def preview(self, request: Request, pk: str) -> Response:
        """What an edit would change, and what would follow; nothing is written."""
        constellation, body = self.get_object(), self.body(edit_serializers.PreviewBody)
        found = edit_preview(constellation.pk, body["operations"], seen_version(request, body.get("based_on")))
        return Response(found, headers=etag_header(found["version"]))

    @extend_schema(
        parameters=[EDIT_ID, IF_MATCH],
        request=edit_serializers.UndoBody,
        responses={200: edit_serializers.EditMade, 201: edit_serializers.EditMade}, filters=False,
    )  # fmt: skip
    @action(detail=True, methods=["post"], pagination_class=None, url_path=f"edits/(?P<edit_id>{NAME})/undo")
    def undo(self, request: Request, pk: str, edit_id: str) -> Response:
        """Take an edit back, by an edit of its own; undoing that one is the redo."""
        constellation, body = self.get_object(), self.body(edit_serializers.UndoBody)
        said = {"reason": body.get("reason", ""), "undo_id": body.get("edit_id", ""), "request_id": request_id(request)}
        based_on = seen_version(request, body.get("based_on"))
        edit, changed = edit_undo(constellation.pk, edit_id, actor_name(request), **said, based_on=based_on)
        return edit_response(constellation, edit, changed, said["undo_id"], based_on)


def edit_response(
    constellation: Constellation, edit: Edit | None, changed: bool, edit_id: str, based_on: int | None,
    proposal: Approval | None = None,
) -> Response:  # fmt: skip
    """201 for an edit that was made, 202 for one that is proposed, 200 where there was nothing to do.

    `constellation` was read before.

    The ETag is the version that the author may build on, which is not the newest where others have edited too.
    """
    stands = standing.standing_of(
        constellation.pk, edit, changed, edit_id=edit_id, based_on=based_on, before=constellation.version
    )  # fmt: skip
    row = None if edit is None else edit_serializers.EditRow(history.cut_edit(edit)).data
    waits = None if proposal is None else proposal.pk
    answer: dict[str, Any] = {"edit": row, "changed": changed, "proposal": waits, **asdict(stands)}
    return Response(answer, status=201 if changed else 200 if proposal is None else 202, headers=etag_header(stands.version))


def edit_filters(request: Request) -> dict[str, Any]:
    """Which edits the query string asks for, as `history.edits_of` takes it."""
    author, task_id = text_of(request, "author", AUTHOR_LENGTH), text_of(request, "task_id", MAX_ID)
    return {"author": author, "since": optional_parameter(request, "since", 0, LARGEST), "task_id": task_id}


def text_of(request: Request, key: str, longest: int) -> str | None:
    """Text of the query string, which a database can look for."""
    text = request.query_params.get(key)
    if text is not None and (len(text) > longest or "\x00" in text):
        raise ValidationError({key: f"must be text of at most {longest} characters"})
    return text
