"""One function for each thing that a person or a program asks of sessions, devices, tokens and approvals.

May import: reads, crews, engine, gates, links, llm, tools, access, streams, devices, models, masks, machines, progress,
    patterns, ids, clock, errors.
Begin at: agents.services.sessions (sessions and requests), agents.services.devices (devices),
    agents.services.approvals (decisions).
Called by: api, admin and commands of manage.py; constellations.services, mcp and project.demo.
"""
