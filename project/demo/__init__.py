"""`manage.py demo`: the example from an empty database to its outcome.

May import: agents, frontend.
Begin at: project.demo.demo (the whole of it), project.demo.following (the stream as lines), project.demo.scripted (a model for
    it).
Called by: `manage.py demo`; `up` furnishes a first installation by it.
"""
