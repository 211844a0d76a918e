"""One function for each thing that a person or a program asks of sessions, devices, tokens and approvals.

May import: reads, engine, gates, tools, access, streams, devices, models, masks, machines, progress, jobs, patterns, ids,
    clock, errors.
Begin at: agents.services.sessions (sessions, requests, devices, tokens), agents.services.approvals (decisions),
    agents.services.policies (policies).
Called by: api, admin and commands of manage.py; constellations.services, mcp and project.demo.
"""
