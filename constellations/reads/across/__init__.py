"""What is read over many sessions at once, of those that the asker may see: the inbox, searches, runs of one plan.

May import: agents, live, models, editor, limits, plan, conditions, machines, analysis.
Begin at: constellations.reads.across.inbox (what waits for a person), constellations.reads.across.search (a text anywhere),
    constellations.reads.across.runs (runs of one plan side by side).
Called by: api, and the pages.
"""
