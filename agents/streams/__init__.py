"""The one write path: rows and the events that tell of them, and reading them back.

May import: devices, models, masks, per_loop, clock, machines, ids, errors.
Begin at: agents.streams.turn (what one decision records), agents.streams.door (how it is written), agents.streams.fold (how
    it is read back).
Called by: services and the engine to write; reads, api and mcp to follow.
"""
