"""The MCP server: tools and resources on the SDK's protocol server. Whoever calls is asked for with each request.

The SDK's own MCPServer makes a tool's schema from a function's signature; ours are written, because they have to say what
the editor's readers take (`from` is no name of a parameter in Python). So this is the protocol server underneath it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from channels.db import database_sync_to_async
from django.conf import settings
from mcp.server import Server, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextContent,
    TextResourceContents,
    Tool,
    ToolAnnotations,
)
from rest_framework.exceptions import AuthenticationFailed, ParseError

from agents.api.parsers import check_storable
from agents.errors import AgentsError
from agents.machines import TransitionNotAllowed
from agents.masks.values import mask_json, mask_text, mask_value
from agents.streams import outages
from constellations.mcp import resources
from constellations.mcp.access import Caller
from constellations.mcp.results import Result
from constellations.mcp.tools import REMOVING, TOOLS, McpTool, tools_for
from constellations.plan.plain_text import sentences
from constellations.plan.values import did_you_mean

log = logging.getLogger(__name__)

Context = ServerRequestContext[Any, Any]
Admit = Callable[[Context], Awaitable[Caller]]
"""Who makes a request; raises AuthenticationFailed."""

NAME = "orrery"
PROBLEMS_SHOWN = 20
"""Problems that an error spells out."""
NOT_AUTHENTICATED = -32001
"""JSON-RPC code of a request whose token is not, or no longer, good."""
BROKEN = "something broke on our side; it has been logged"
INSTRUCTIONS = (
    "Orrery runs constellations: graphs of tasks with dependencies. Look with list_devices, start with start_request, follow "
    "with get_session and get_constellation. Change with the editing tools, several at once with apply_edit, which says what "
    "edit_id, based_on and full are; give the version of the last answer as based_on. What has started is no longer changed: "
    "what failed is mended by retry with operations. Where the token may not edit, an edit is proposed and waits for a person. "
    "Where an answer has truncated: true, its cut says how much there is, and where: read_value reads it in pieces."
)


def make_server(admit: Admit) -> Server[Any]:
    """An MCP server whose requests are made by whom `admit` says."""

    async def list_tools(ctx: Context, params: Any) -> ListToolsResult:
        caller = await admit_caller(admit, ctx)
        return ListToolsResult(tools=[describe_tool(tool) for tool in tools_for(caller).values()])

    async def call_tool(ctx: Context, params: CallToolRequestParams) -> CallToolResult:
        caller = await admit_caller(admit, ctx)
        tools = tools_for(caller)
        if params.name not in tools:
            return failed_result(f"there is no tool {params.name[:80]}{did_you_mean(params.name, tools)}")
        return await answer_call(tools[params.name], caller, params.arguments or {})

    async def list_resources(ctx: Context, params: Any) -> ListResourcesResult:
        caller = await admit_caller(admit, ctx)
        found, following = await _asked(resources.newest_resources, caller, params.cursor if params is not None else None)
        shown = [Resource(mime_type=resources.JSON, **each) for each in mask_value(found)]
        return ListResourcesResult(resources=shown, next_cursor=following)

    async def list_templates(ctx: Context, params: Any) -> ListResourceTemplatesResult:
        await admit_caller(admit, ctx)
        return ListResourceTemplatesResult(resource_templates=TEMPLATES)

    async def read_resource(ctx: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        caller = await admit_caller(admit, ctx)
        text, media_type = await _asked(resources.read_resource, caller, params.uri)
        text = mask_json(text.encode()).decode() if media_type == resources.JSON else mask_text(text)
        return ReadResourceResult(contents=[TextResourceContents(uri=params.uri, mime_type=media_type, text=text)])

    return Server(
        NAME, version=settings.VERSION, title="Orrery", instructions=INSTRUCTIONS,
        get_tool_input_schema=lambda name: TOOLS[name].parameters if name in TOOLS else None,
        on_list_tools=list_tools, on_call_tool=call_tool, on_list_resources=list_resources,
        on_list_resource_templates=list_templates, on_read_resource=read_resource,
    )  # fmt: skip


TEMPLATES = [ResourceTemplate(name=template, uri_template=template) for template in resources.ALL]


def describe_tool(tool: McpTool) -> Tool:
    """Without a schema of what it answers: an answer tells its keys, and these would double the list of tools."""
    hints = ToolAnnotations(
        read_only_hint=tool.reads, destructive_hint=None if tool.reads else tool.name in REMOVING,
        idempotent_hint=None if tool.reads else True,
    )  # fmt: skip
    return Tool(name=tool.name, description=tool.description, input_schema=tool.parameters, annotations=hints)


async def admit_caller(admit: Admit, ctx: Context) -> Caller:
    try:
        with outages.translate_outages():
            return await admit(ctx)
    except AuthenticationFailed as error:
        raise MCPError(code=NOT_AUTHENTICATED, message=str(error.detail)) from error
    except AgentsError as error:
        raise MCPError(code=INTERNAL_ERROR, message=mask_text(error_text(error))) from error


async def answer_call(tool: McpTool, caller: Caller, arguments: dict[str, Any]) -> CallToolResult:
    """What a call comes to: never a traceback, and never an error of the protocol."""

    def run_tool() -> Result:
        check_storable(arguments)  # ParseError where something in them is what no database keeps, as over REST
        return tool.run(caller, arguments)

    try:
        with outages.translate_outages():
            result: Result = await database_sync_to_async(run_tool)()
    except (AgentsError, TransitionNotAllowed) as error:
        return failed_result(error_text(error))
    except ParseError as error:
        return failed_result(str(error.detail))
    except Exception:
        log.exception("the MCP tool %s broke", tool.name)
        return failed_result(BROKEN)
    shown = mask_json(result.model_dump_json(by_alias=True).encode())
    content = TextContent(type="text", text=shown.decode())
    return CallToolResult(content=[content], structured_content=mask_value(result.model_dump(mode="json", by_alias=True)))


async def _asked(read: Callable[..., Any], *given: Any) -> Any:
    """What a reader of resources says, or an error of the protocol: reading a resource knows no other."""
    try:
        with outages.translate_outages():
            return await database_sync_to_async(read)(*given)
    except AgentsError as error:
        code = INTERNAL_ERROR if error.status >= 500 else INVALID_PARAMS
        raise MCPError(code=code, message=mask_text(error_text(error))) from error


def failed_result(text: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=mask_text(text))], is_error=True)


def error_text(error: Exception) -> str:
    """The error in a line, and in one of its own each of its problems that this line leaves out."""
    lines = [str(error)]
    if not isinstance(error, AgentsError):
        return lines[0]
    lines += [f"{name}: {value}" for name, value in error.members.items() if not name.startswith("between")]
    lines += [
        f"- {each}"
        for each in sentences.describe_edits(error.members.get("between", ()), error.members.get("between_total", 0))
    ]
    others = [each for each in error.problems if str(each["message"]) not in lines[0]]
    lines += [f"- {problem_line(each)}" for each in others[:PROBLEMS_SHOWN]]
    more = len(others) - PROBLEMS_SHOWN
    return "\n".join(lines + ([f"and {more} more"] if more > 0 else []))


def problem_line(problem: Mapping[str, Any]) -> str:
    """Where, and what: `operation 1 (add_task), device: there is no device gpu`."""
    where: list[str] = []
    if problem.get("operation") is not None:
        where.append(f"operation {problem['operation']}" + (f" ({problem['op']})" if problem.get("op") else ""))
    where += [str(problem[key]) for key in ("field", "key") if problem.get(key)]
    return f"{', '.join(where)}: {problem['message']}" if where else str(problem["message"])
