"""The parts of a document in another dialect as parts of a plan: tasks, lines, command lines, and edits. Pure.

May import: agents, conditions, graph, machines, errors.
Begin at: constellations.plan.dialects.parts.constellation (a whole graph), constellations.plan.dialects.parts.answers (an
    edit), constellations.plan.dialects.parts.translation (what all parts share).
Called by: the readers and writers of constellations.plan.dialects.
"""
