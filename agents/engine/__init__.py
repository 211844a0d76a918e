"""Runners own sessions by leases, drive their machines in one loop, and record in groups.

May import: gates, tools, streams, devices, models, masks, machines, faults, clock, ids, errors.
Begin at: agents.engine.runner (the loop), agents.engine.drive (one session in memory), agents.engine.work (what drives an
    interaction).
Called by: agents.jobs, which the queue runs; constellations.runs registers the work.

requests     what a command means for an actor, before it is written
work         what drives an interaction, and what it is told of its session
summon       asking the queue for a runner
leases       who owns which session; who is dead
outcomes     the file that survives a killed runner
journal      group commit
known        what was read of a session
ended        ends of calls, until what follows from them is durable
numbers      row numbers kept ahead
pending      what is decided and not yet written
actor        commands, the order of interactions
drive        one session in a runner's memory, of the five before
readings     what is read in threads, beside the loop
sessions     all sessions of a runner: turns, commits, bodies
runner       the loop, its leases, its end
"""
