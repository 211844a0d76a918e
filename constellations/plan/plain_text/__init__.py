"""Plain text becomes a plan, without a language model, and edits become sentences. Pure.

May import: agents, conditions, graph, machines, errors.
Begin at: constellations.plan.plain_text.text (text to a plan), constellations.plan.plain_text.clauses (text to clauses),
    constellations.plan.plain_text.sentences (an edit in words).
Called by: the planner in runs for texts; the admin, mcp and services for sentences.
"""
