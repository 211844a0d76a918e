"""What pages and programs read of constellations: overviews, why a task waits, statistics, history, exports.

May import: agents, live, models, editor, limits, plan, conditions, machines, analysis.
Begin at: constellations.reads.excerpts.overview (a page of a graph), constellations.reads.why (why a task does not run),
    constellations.reads.excerpts.history (edits).
Called by: api, mcp, admin, services and runs.
"""
