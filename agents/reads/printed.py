"""What attempts printed, as it is shown: masked, in pieces by offset in characters.

A piece may begin or end in the middle of a secret, which rows part as well: so more is read around it than is shown, and
what hides a character does not depend on where a piece begins. Of a long output that has ended rows have the beginning and the
end; all of it is an artifact (agents.services.outputs), masked, with as many characters.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator

from django.db.models import Subquery
from django.db.models.functions import Coalesce

from agents.artifacts.reading import whole_content
from agents.artifacts.store import ContentMissing
from agents.masks.values import mask_text
from agents.models import Artifact, Output

AROUND = 16_384
"""Characters before and after a piece that are looked at with it: more than the longest key that has a known form."""
ROWS_AT_ONCE = 20
PIECE_CHARACTERS = 256_000
"""Of a piece of all that was printed."""
REMOVED = "[these characters are not kept any more]"


class RowsMissing(Exception):
    """Rows do not have all of what is wanted: it is in the store."""


def printed_piece(attempt: int, start: int, end: int) -> str:
    """The characters from `start` to `end`, as far as there are any."""
    try:
        return _from_rows(attempt, start, end)
    except RowsMissing:
        return _part(kept_pieces(attempt), start, end)


def _from_rows(attempt: int, start: int, end: int) -> str:
    begin, stop = max(0, start - AROUND), end + AROUND
    rows = Output.objects.filter(attempt_id=attempt)
    begins = Coalesce(Subquery(rows.filter(offset__lte=begin).order_by("-offset").values("offset")[:1]), 0)
    # one statement reads all of it, so what is printed meanwhile changes nothing that has been
    onward = rows.filter(offset__gte=begins, offset__lt=stop).order_by("offset").values_list("offset", "text")
    pieces: list[str] = []
    at = None
    for offset, text in onward.iterator(chunk_size=ROWS_AT_ONCE):
        if at not in (None, offset):
            raise RowsMissing
        at = offset + len(text)
        pieces.append(text[max(0, begin - offset) : stop - offset])
    if at is not None and at < stop and rows.filter(offset__gt=at).exists():
        raise RowsMissing
    return mask_text("".join(pieces))[start - begin : end - begin]


def printed_pieces(attempt: int) -> Iterator[tuple[int, str]]:
    """All that the attempt has printed so far, (offset, text) one after the other, read once."""
    if whole_output(attempt) is not None:
        yield from kept_pieces(attempt)
        return
    at, end = 0, printed_characters(attempt)
    while at < end and (text := printed_piece(attempt, at, min(at + PIECE_CHARACTERS, end))):
        yield at, text
        at += len(text)


def whole_output(attempt: int) -> Artifact | None:
    """The artifact that has all of what an attempt printed, if that was more than rows keep."""
    return Artifact.objects.filter(attempt_id=attempt, kind="output").order_by("-id").first()


def kept_pieces(attempt: int) -> Iterator[tuple[int, str]]:
    """The same out of the store; where that has it no more, the middle says so in as many characters."""
    artifact = whole_output(attempt)
    if artifact is not None and artifact.removed_at is None:
        try:
            yield from _decoded(whole_content(artifact.sha256))
        except ContentMissing:
            pass
        else:
            return
    yield from _with_gaps(attempt)


def _decoded(content: Iterator[bytes]) -> Iterator[tuple[int, str]]:
    decoder, at = codecs.getincrementaldecoder("utf-8")("replace"), 0
    for piece in content:
        if text := decoder.decode(piece):
            yield at, text
            at += len(text)


def _with_gaps(attempt: int) -> Iterator[tuple[int, str]]:
    at = 0
    rows = Output.objects.filter(attempt_id=attempt).order_by("offset").values_list("offset", "text")
    for offset, text in rows.iterator(chunk_size=ROWS_AT_ONCE):
        if offset > at:
            yield at, REMOVED.ljust(offset - at)[: offset - at]
        yield offset, mask_text(text)
        at = offset + len(text)


def _part(pieces: Iterator[tuple[int, str]], start: int, end: int) -> str:
    found: list[str] = []
    for offset, text in pieces:
        if offset >= end:
            break
        found.append(text[max(0, start - offset) : end - offset])
    return "".join(found)


def printed_tail(attempt: int, characters: int) -> tuple[int, str]:
    """(offset, text) of the last characters, which are looked at with what stands before them."""
    pieces: list[str] = []
    end, size = 0, 0
    rows = Output.objects.filter(attempt_id=attempt).order_by("-offset").values_list("offset", "text")
    for offset, text in rows.iterator(chunk_size=ROWS_AT_ONCE):
        end = end or offset + len(text)
        pieces.append(text)
        size += len(text)
        if size >= characters + AROUND:
            break
    text = mask_text("".join(reversed(pieces))[-characters - AROUND :])[-characters:]
    return end - len(text), text


def printed_characters(attempt: int) -> int:
    """How many the attempt has printed so far."""
    last = Output.objects.filter(attempt_id=attempt).order_by("-offset").values_list("offset", "text").first()
    return 0 if last is None else last[0] + len(last[1])
