"""One session in the memory of the runner that owns it: what it was asked, its actor, the work in hand.

May import: gates, tools, streams, models, machines, clock, ids, errors.
Begin at: agents.engine.drives.drive (the whole, in turns), agents.engine.drives.actor (commands, the order of interactions),
    agents.engine.drives.work (what drives an interaction, and what it is told of its session).
Called by: the other modules of agents.engine; constellations.runs implements the work.

known        what was read of the session
ended        ends of calls, until what follows from them is durable
numbers      row numbers kept ahead
pending      what is decided and not yet written
work         what drives an interaction: constellations register theirs
actor        commands, the order of interactions, inactivity
drive        one session, made of these
"""
