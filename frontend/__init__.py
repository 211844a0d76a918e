"""What a person sees: the dashboard's pages, their scripts and styles, and logging in.

May import: constellations, agents.
Begin at: frontend.urls (the pages), frontend.views (their shells), frontend.words (machines in words).
Called by: project, which includes its addresses.
"""
