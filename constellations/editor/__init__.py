"""The editor: operations on a snapshot of a graph become a checked set of changes, or are refused. Pure.

May import: plan, conditions, graph, errors.
Begin at: constellations.editor.editor (the whole edit), constellations.editor.apply (each operation),
    constellations.editor.commuting (may it be rebased).
Called by: live, to change a graph in memory, and services.

editor       the whole edit, and what is wrong with it as a whole
apply        each of the seven operations, and what it refuses by itself
draft        the graph while it is changed, and refusals that operations share: a task that runs, one that is not there
replacing    tasks in the place of those that ended badly
inverse      the operations that take an edit back
commuting    what an edit reads and writes, for rebasing
"""
