"""The MCP server: tools and resources by which other programs start, follow, edit and command work.

May import: agents, services, reads, live, models, editor, plan, machines, errors.
Begin at: constellations.mcp.tools (the list), constellations.mcp.server (a call and its answer), constellations.mcp.http
    (over HTTP).
Called by: project.asgi at `/mcp`, and `manage.py mcp`.
"""
