"""Contents that attempts leave behind: stored by their digest, recorded as rows, passed on, and removed by policy.

May import: streams, devices, models, masks, faults, clock, ids, errors.
Begin at: agents.artifacts.keeping (how a content is kept), agents.artifacts.store (what a store can do),
    agents.artifacts.recording (rows of what calls have kept).
Called by: tools, links and whoever carries out calls, to keep; crews and runs, to record; reads, services and the API.
"""
