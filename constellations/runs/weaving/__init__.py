"""The constellation agent with a model: it makes a constellation of words, and edits it when tasks end.

May import: agents, services, reads, live, editor, prompts, limits, plan, machines, errors.
Begin at: constellations.runs.weaving.creating (words become a plan), constellations.runs.weaving.editing (ends become an edit),
    constellations.runs.weaving.model_calls (what both ask, until an answer can be used).
Called by: constellations.runs.run.
"""
