"""What attempts printed, as it is shown: masked, in pieces by offset in characters.

A piece may begin or end in the middle of a secret, which rows part as well: so more is read around it than is shown, and
what hides a character does not depend on where a piece begins.
"""

from __future__ import annotations

from django.db.models import Subquery
from django.db.models.functions import Coalesce

from agents.masks.values import mask_text
from agents.models import Output

AROUND = 16_384
"""Characters before and after a piece that are looked at with it: more than the longest key that has a known form."""
ROWS_AT_ONCE = 20


def printed_piece(attempt: int, start: int, end: int) -> str:
    """The characters from `start` to `end`, as far as there are any."""
    begin, stop = max(0, start - AROUND), end + AROUND
    rows = Output.objects.filter(attempt_id=attempt)
    begins = Coalesce(Subquery(rows.filter(offset__lte=begin).order_by("-offset").values("offset")[:1]), 0)
    # one statement reads all of it, so what is printed meanwhile changes nothing that has been
    onward = rows.filter(offset__gte=begins, offset__lt=stop).order_by("offset").values_list("offset", "text")
    pieces = (text[max(0, begin - offset) : stop - offset] for offset, text in onward.iterator(chunk_size=ROWS_AT_ONCE))
    return mask_text("".join(pieces))[start - begin : end - begin]


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
