"""What goes in and out over REST, by what it is about. Bodies are strict: an unknown key is an error that names it.

May import: services, reads, llm, access, devices, models, machines, patterns, errors.
Begin at: agents.api.serializers.fields (what bodies are made of), agents.api.serializers.sessions (requests and sessions),
    agents.api.serializers.work (agents at work, approvals, policies).
Called by: the views of agents.api, and constellations.api, which builds on them.
"""
