"""Who acts: sessions and their actors, agents, devices, tools, and the engine that drives them all.

May import: nothing of the other apps.
Begin at: agents.jobs (what the queue runs), agents.urls (its addresses), agents.models (its rows).
Called by: constellations, which registers itself as what an interaction is worked on by; frontend and project.

agents/README.md is the map.
"""
