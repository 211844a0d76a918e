"""What takes its time and must not hold a runner's loop: rows and plans that are read, and an installation's hooks.

May import: streams, masks, faults, errors.
Begin at: agents.engine.threads.readings (rows of sessions), agents.engine.threads.plan_readers (plans, short ones first),
    agents.engine.threads.hooks (code of the installation).
Called by: agents.engine.sessions.
"""
