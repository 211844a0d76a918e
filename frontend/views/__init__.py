"""The shells of the pages: what a page needs to begin; the rest comes over REST and websocket.

May import: constellations, agents, diagram, examples, logins, words.
Begin at: frontend.views.sessions (the dashboard), frontend.views.inbox (what waits), frontend.views.machines (the tables).
Called by: frontend.urls.
"""
