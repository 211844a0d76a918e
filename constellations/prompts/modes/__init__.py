"""The weaving modes: a module each, which registers its prompter.

May import: agents, editor, plan, conditions, graph, machines, errors.
Begin at: constellations.prompts.modes.creation, constellations.prompts.modes.editing, constellations.prompts.modes.shared.
Called by: constellations.prompts.prompter, which imports every module that is here.
"""
