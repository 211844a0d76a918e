"""Runners own sessions by leases, drive their machines in one loop, and record in groups.

May import: gates, tools, streams, devices, models, masks, machines, faults, clock, ids, errors.
Begin at: agents.engine.runner (the loop), agents.engine.drive (one session in memory), agents.engine.work (what drives an
    interaction).
Called by: agents.jobs, which the queue runs; constellations.runs registers the work.
"""
