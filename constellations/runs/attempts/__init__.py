"""Attempts of tasks, from the device they are placed on to what their end means for the task.

May import: agents, services, reads, live, editor, limits, plan, conditions, graph, machines, errors.
Begin at: constellations.runs.attempts.placing (tasks to devices), constellations.runs.attempts.crews (agents that work on
    one), constellations.runs.attempts.ends (how one ends).
Called by: constellations.runs.run, which passes on what they answer; they do not know each other's state.
"""
