"""The editor: operations on a snapshot of a graph become a checked set of changes, or are refused. Pure.

May import: plan, conditions, graph, errors.
Begin at: constellations.editor.editor (the whole edit), constellations.editor.apply (each operation),
    constellations.editor.commuting (may it be rebased).
Called by: live, to change a graph in memory, and services.
"""
