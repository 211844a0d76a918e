"""As much of a graph and its edits as one answer holds, and where the rest of it is read.

May import: agents, live, models, editor, limits, plan, conditions, machines, analysis.
Begin at: constellations.reads.excerpts.overview (a page of a graph), constellations.reads.excerpts.history (edits),
    constellations.reads.excerpts.addresses (what is said of a cut).
Called by: api, mcp, admin and services.
"""
