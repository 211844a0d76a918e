"""Prompters: what a model is shown to make or edit a constellation, and how its answer is read. Nothing here asks one.

A weaving mode is one module of `modes` that registers itself, and its files of `templates`.

May import: agents, editor, plan, conditions, graph, machines, errors.
Begin at: constellations.prompts.scene (what a prompt shows), constellations.prompts.prompter (who renders it),
    constellations.prompts.answers (what comes back).
Called by: runs, services.
"""
