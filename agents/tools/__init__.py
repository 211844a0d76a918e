"""What a call of a task can be, what each tool takes, and the calls under way.

May import: access, devices, models, masks, per_loop, faults, progress, errors.
Begin at: agents.tools.calls (registers and runs tools), agents.tools.command (runs a program), agents.tools.catalogue (what
    each takes).
Called by: the engine and crews to run calls; constellations.plan to check them.
"""
