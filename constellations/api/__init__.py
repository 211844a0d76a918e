"""REST of what is to be done: constellations, tasks, edits, commands, imports and exports.

May import: agents, services, reads, models, editor, plan, machines, errors.
Begin at: constellations.api.views (constellations and tasks), constellations.api.edit_views (edits),
    constellations.api.lifecycle_views (commands).
Called by: constellations.urls.
"""
