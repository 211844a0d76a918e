"""A program with a token that speaks MCP to the server in memory, through the SDK's own client."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, get_type_hints

import jsonschema
from asgiref.sync import async_to_sync
from mcp import Client
from mcp.shared.exceptions import MCPError

from agents.models import Token
from constellations.mcp.results import Result
from constellations.mcp.stdio import server_of
from constellations.mcp.tools import TOOLS
from tests.agents.conftest import make_token

SCOPES = ("read", "edit", "operate", "approve")


def answer_of(name: str) -> type[Result]:
    """What a tool answers, by the annotation of the function that runs it."""
    run = TOOLS[name].run
    return get_type_hints(getattr(run, "func", run))["return"]


class Program:
    """A client with a token; each call is a connection of its own."""

    def __init__(self, made: tuple[Token, str], mode: str = "auto"):
        (row, self.token), self.mode = made, mode
        self.by = f"token:{row.token_key}"

    def __call__(self, name: str, /, **arguments):
        """What the tool answers, as structured content of its type; its words where it is an error."""
        found = self.ask(lambda client: client.call_tool(name, arguments))
        if found.is_error:
            return found.content[0].text
        jsonschema.validate(found.structured_content, answer_of(name).model_json_schema(mode="serialization"))
        assert json.loads(found.content[0].text) == found.structured_content
        for part in parts_that_may_be_cut(found.structured_content):
            assert part["truncated"] is bool(part["cut"] or (part.get("piece") or {}).get("truncated"))
        return found.structured_content

    def ask(self, what):
        """What `what(client)` comes to; an error of the protocol is raised when the connection is closed."""

        async def talk():
            async with Client(server_of(self.token), mode=self.mode) as client:
                try:
                    return await what(client), None
                except MCPError as error:
                    return None, error

        found, error = async_to_sync(talk)()
        if error is not None:
            raise error
        return found

    def whole(self, address: str, **more) -> str:
        """A value that was cut, read piece by piece."""
        pieces, offset, seen = [], 0, None
        while offset is not None:
            piece = self("read_value", address=address, offset=offset, **({"seen": seen} if seen else {}), **more)
            pieces.append(piece["text"])
            offset, seen = piece["next"], piece["seen"]
        return "".join(pieces)


def parts_that_may_be_cut(value: Any) -> Iterator[dict[str, Any]]:
    """Everything in an answer that says whether it is whole."""
    if isinstance(value, dict):
        if {"truncated", "cut"} <= value.keys():
            yield value
        value = list(value.values())
    for inner in value if isinstance(value, list) else ():
        yield from parts_that_may_be_cut(inner)


def with_scopes(user, *scopes) -> Program:
    return Program(make_token(user, *scopes, name="claude"))
