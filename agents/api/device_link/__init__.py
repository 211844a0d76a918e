"""The connections of devices that dial in, held by the web process that they have reached (docs/device-protocol.md).

May import: services, links, tools, access, artifacts, streams, devices, models, masks, per_loop, rates, errors.
Begin at: agents.api.device_link.entrance (a connection from its first message to its end),
    agents.api.device_link.connection (calls over it), agents.api.device_link.hub (all of one process).
Called by: project.asgi.
"""
