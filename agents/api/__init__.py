"""REST, websockets and server-sent events of those who act.

May import: services, reads, engine, llm, access, streams, devices, models, masks, machines, rates, patterns, ids, errors.
Begin at: agents.api.views (sessions, devices, tokens), agents.api.problems (every error), agents.api.live_view.websocket (the
    live view).
Called by: agents.urls and project.asgi; constellations.api builds on it.
"""
