"""What people and programs do with artifacts: upload one for a session, keep one, or let one go."""

from __future__ import annotations

from typing import Any

from django.conf import settings

from agents import ids
from agents.artifacts.keeping import Content, keep_artifact
from agents.artifacts.recording import record_artifacts
from agents.errors import AgentsError
from agents.models import Artifact
from agents.streams.door import door


class NoSuchArtifact(AgentsError):
    """There is no artifact {id}."""

    code = "no_such_artifact"
    status = 404


class ArtifactRemoved(AgentsError):
    """Its content was removed."""

    code = "artifact_removed"
    status = 410


def artifact_upload(
    session: int, content: Content, *, name: str, sha256: str = "", by: str, request_id: str = ""
) -> Artifact:  # fmt: skip
    """Keep what somebody gives a session; its tasks find it as the input `#name`. Raises what `keep_artifact` raises."""
    kept = keep_artifact(content, name=name, kind="upload", most=settings.UPLOAD_BYTES, sha256=sha256)
    with door(session, by, request_id) as opened:
        rows = record_artifacts(opened.turn, session, [kept], attempt=None, call=None)
    return Artifact.objects.get(pk=rows[0]["id"])


def artifact_change(artifact: int, *, is_kept: bool, by: str, request_id: str = "") -> Artifact:
    """Say that it is not removed for its age or to make room, or that it may be again. Raises as `artifact_remove`."""
    _set(artifact, "artifact_changed", by, request_id, is_kept=is_kept)
    return Artifact.objects.get(pk=artifact)


def artifact_remove(artifact: int, *, by: str, request_id: str = "") -> None:
    """Let its content go, which is there until nobody refers to it. Raises NoSuchArtifact, ArtifactRemoved."""
    _set(artifact, "artifact_removed", by, request_id, remove=True)


def _set(artifact: int, event: str, by: str, request_id: str, *, remove: bool = False, **fields: Any) -> None:
    """Set fields of a row whose content is there, under its session's lock."""
    if not Artifact.objects.filter(pk=artifact).exists():
        raise NoSuchArtifact(f"there is no artifact {artifact}")
    with door(ids.stream_of(artifact), by, request_id) as opened:
        row = Artifact.objects.get(pk=artifact)
        if row.removed_at is not None:
            raise ArtifactRemoved(f"{row.name} was removed from the store on {row.removed_at:%Y-%m-%d}")
        changed = {"removed_at": opened.turn.at} if remove else fields
        opened.turn.record(event, artifact_id=artifact, name=row.name, set={"artifact": {str(artifact): changed}})
