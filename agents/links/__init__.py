"""How calls reach devices: who holds a device's connection, and calls as rows where another process does.

May import: tools, streams, devices, models, machines, masks, per_loop, faults, clock, errors, ids.
Begin at: agents.links.kinds (what a kind of device provides), agents.links.away (a call seen by the session's runner),
    agents.links.serving (the same call seen by whoever holds the device).
Called by: the engine, for calls and for the devices of its host; the API, for devices that dial in; services.
"""
