"""What calls under way print and how they end, kept safe until it is recorded: a killed runner loses none of it.

May import: tools, streams, devices, models, masks, faults, errors.
Begin at: agents.engine.bodies.reports (what bodies tell the loop), agents.engine.bodies.outcomes (the file of ends),
    agents.engine.bodies.outputs (what is printed).
Called by: agents.engine.sessions and agents.engine.threads.
"""
