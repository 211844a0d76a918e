"""Devices of kind `mcp`: tool servers over stdio or HTTP, their tools by namespace, and calls of these (docs/toolservers.md).

The `mcp` library takes 0.9 s to import, so only `server`, `wires` and `outcomes` know it, and they are imported when a device
of this kind is opened.

May import: links, tools, artifacts, devices, outside, masks, progress, errors.
Begin at: agents.toolservers.opening (how such a device is connected), agents.toolservers.server (one connection),
    agents.toolservers.offers (what a server offers, and whether it still is what was accepted).
Called by: the engine, through agents.links.kinds; services, for connections and for tools that have changed.
"""
