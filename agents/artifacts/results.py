"""Results that are too large for a row: kept as artifacts, with their beginning in the row."""

from __future__ import annotations

from typing import Any

import orjson

from agents.artifacts.keeping import Reference, in_own_thread, keep_artifact
from agents.artifacts.media_types import JSON

KEPT_BYTES = 64_000
"""A larger result, as JSON, is kept as an artifact too: evidence has none so large."""
ROW_BYTES = 256 * 1024
"""Of a larger one rows have the beginning only."""
BEGINNING = 4_000
"""Characters of it."""
NAME = "result.json"


async def fit_result(result: Any) -> tuple[Any, Reference | None]:
    """What a row has of a result, and what refers to all of it where that is kept. Raises what `keep_artifact` raises.

    A result that is no JSON stays as it is: whoever stores it refuses it.
    """
    try:
        encoded = b"" if result is None else orjson.dumps(result)
    except TypeError:
        return result, None
    if len(encoded) <= KEPT_BYTES:
        return result, None
    kept: Reference = await in_own_thread(keep_artifact, encoded, name=NAME, kind="result", media_type=JSON)
    if len(encoded) <= ROW_BYTES:
        return result, kept
    beginning = encoded[: BEGINNING * 4].decode("utf-8", "ignore")[:BEGINNING]
    return {"artifact": NAME, "sha256": kept["sha256"], "size": kept["size"], "beginning": beginning}, kept
