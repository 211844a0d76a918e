"""An interaction at work in its runner: its graph, its attempts, its rules, and its end.

May import: agents, services, reads, live, editor, prompts, limits, plan, conditions, graph, machines, errors.
Begin at: constellations.runs.handler (registered with the engine), constellations.runs.run (one interaction),
    constellations.runs.attempts.placing (tasks to devices).
Called by: agents.engine, through the handler that constellations.apps registers.
"""
