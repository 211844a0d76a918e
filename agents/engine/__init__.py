"""Runners own sessions by leases, drive their machines in one loop, and record in groups.

May import: gates, tools, streams, devices, models, masks, machines, faults, clock, ids, errors.
Begin at: agents.engine.runner (the loop), agents.engine.sessions (all sessions of a runner), agents.engine.drives.drive (one
    session in memory).
Called by: agents.jobs, which the queue runs; services and entrances wake it; constellations.runs registers the work.

drives/      one session in a runner's memory: what it has read, decides and waits for
bodies/      what calls under way print, and how they end, until it is recorded
threads/     what takes its time, beside the loop: rows and plans that are read, hooks
runner       the loop, its leases, its end
sessions     all sessions of a runner: turns, commits, what breaks
shares       whose turn is next
timers       sessions that have nothing to decide now
environment  devices, how hard these are pressed, and policies
journal      group commit
leases       who owns which session; who is dead
outlasting   waiting while the database is away
requests     what a command means for an actor, before it is written
summon       asking the queue for a runner
broker       the queue of django-q2, which outlasts an outage
"""
