"""What a tool server answered, as the outcome of a call: bounded, and where it is binary only measured and digested."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Iterable
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError

from agents.artifacts.keeping import in_own_thread, keep_artifact
from agents.devices.output import TEXT_CHARACTERS
from agents.errors import AgentsError
from agents.progress.digests import canonical_json, text_digest
from agents.tools.calls import Outcome

ERROR = 2_000
"""Characters of an error."""
BLOCKS = 100
"""Parts of one answer."""
KINDS = {types.INVALID_PARAMS: "bad_arguments", types.METHOD_NOT_FOUND: "missing"}
"""Of error, by the code that the protocol has for it."""


Content = tuple[dict[str, Any], bytes]
"""A part of an answer as the result tells it, and what it holds."""


def outcome_of(answer: types.CallToolResult) -> tuple[Outcome, list[Content]]:
    """What a tool answered, and what of that is to be kept beside the result. The result is what the tool says in structure,
    else its one text, read as JSON where it is an object or a list; and its other parts.
    """
    texts = [block.text for block in answer.content if isinstance(block, types.TextContent)]
    text = "\n".join(texts)
    if answer.is_error:
        return Outcome("failed", error=text[:ERROR] or "the tool says that it has failed", text=text[-TEXT_CHARACTERS:]), []
    parts = [_part_of(block) for block in answer.content[:BLOCKS] if not isinstance(block, types.TextContent)]
    result = _result_of(answer.structured_content, texts, [told for told, _ in parts])
    outcome = Outcome("completed", result=result, digest=text_digest(canonical_json(result)), text=text[-TEXT_CHARACTERS:])
    return outcome, [(told, content) for told, content in parts if content is not None]


def _result_of(structured: Any, texts: list[str], parts: list[dict[str, Any]]) -> Any:
    if structured is not None and not parts:
        return structured
    said = structured if structured is not None else _read("\n".join(texts)) if texts else None
    return said if not parts else {"content": parts} | ({} if said is None else {"said": said})


def _read(text: str) -> Any:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return found if isinstance(found, dict | list) else text


def _part_of(block: types.ContentBlock) -> tuple[dict[str, Any], bytes | None]:
    """A picture, a sound, a file or a link: what it is, how large, and what stands for its content; and that content."""
    if isinstance(block, types.ImageContent | types.AudioContent):
        return _measure({"kind": block.type, "says": block.mime_type[:200]}, block.data)
    if isinstance(block, types.ResourceLink):
        return {"kind": "link", "uri": str(block.uri)[:ERROR], "name": block.name[:200]}, None
    if isinstance(block, types.EmbeddedResource):
        held = block.resource
        told = {"kind": "file", "uri": str(held.uri)[:ERROR], "says": (held.mime_type or "")[:200]}
        if isinstance(held, types.TextResourceContents):
            content = held.text.encode("utf-8", "surrogatepass")
            return {**told, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}, content
        return _measure(told, held.blob)
    return {"kind": "unknown"}, None


def _measure(told: dict[str, Any], encoded: str) -> tuple[dict[str, Any], bytes | None]:
    try:
        content = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return {**told, "bytes": 0, "error": "it cannot be decoded"}, None
    return {**told, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}, content


async def keep_contents(outcome: Outcome, contents: Iterable[Content], tool: str) -> None:
    """Keep what an answer holds as artifacts; the parts of the result name them, or say why they are not kept."""
    for number, (told, content) in enumerate(contents, 1):
        name = f"{tool}-{number}"
        try:
            outcome.artifacts.append(await in_own_thread(keep_artifact, content, name=name))
            told["artifact"] = name
        except AgentsError as error:
            told["error"] = str(error)


def refusal_of(error: MCPError) -> Outcome:
    """What the protocol answered in the place of the tool."""
    if error.code == types.CONNECTION_CLOSED:
        return Outcome("lost", error="the tool server's connection ended while it worked")
    if error.code == types.REQUEST_TIMEOUT:
        return Outcome("timeout", error=error.message[:ERROR], error_kind="timeout")
    return Outcome("failed", error=error.message[:ERROR], error_kind=KINDS.get(error.code, ""))


def causes_of(error: BaseException) -> Iterable[BaseException]:
    """What is behind an error, groups taken apart."""
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from causes_of(each)
    else:
        yield error
        if error.__cause__ is not None:
            yield from causes_of(error.__cause__)


def error_text(error: BaseException) -> str:
    """In one line, for a person."""
    first = next(iter(causes_of(error)))
    return (str(first) or type(first).__name__)[:ERROR]
