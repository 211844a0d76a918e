"""A constellation's graph in memory: which tasks are ready or skipped, and what an edit or an end changes.

May import: agents, editor, limits, plan, conditions, graph, machines, errors.
Begin at: constellations.live.live (the graph at work), constellations.live.rows (its rows), constellations.live.kept (a graph
    kept for the next edit).
Called by: runs in the runner, services under the stream's lock, and reads.
"""
