"""One function for each thing that a person or a program asks of a constellation, whether a runner lives or not.

May import: agents, reads, live, models, editor, limits, plan, machines, analysis, errors.
Begin at: constellations.services.edits (an edit), constellations.services.lifecycle (pause, cancel, retry, fork),
    constellations.services.dispatcher (an editor's tools).
Called by: api, mcp, admin and commands of manage.py; runs for the edits of its rules.
"""
