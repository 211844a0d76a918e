"""The live view of a session: a snapshot, then its events as they are committed, by websocket or server-sent events.

May import: services, reads, access, streams, masks, per_loop, rates, errors.
Begin at: agents.api.live_view.websocket (both ways), agents.api.live_view.sse (one way), agents.api.live_view.frames (messages
    in pieces).
Called by: project.asgi.
"""
