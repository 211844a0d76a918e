"""What pages and programs read of sessions and agents; every read is bounded.

May import: engine, crews, devices, models, masks, machines, ids.
Begin at: agents.reads.agents (an agent's work), agents.reads.authors (names of authors), agents.reads.printed (what attempts
    printed).
Called by: api, admin and the pages; constellations reads through it too.
"""
