"""What is to be done: graphs of tasks, the plans they come from, and everything that changes them.

May import: agents.
Begin at: constellations.apps (what it registers below), constellations.urls (its addresses), constellations.models (its
    rows).
Called by: frontend and project; agents calls what has been registered there.

constellations/README.md is the map.
"""
