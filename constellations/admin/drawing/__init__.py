"""The picture of a graph in the admin: where its boxes lie, and how states look.

May import: agents, services, reads, models, editor, plan, machines, analysis, errors.
Begin at: constellations.admin.drawing.picture (the drawing), constellations.admin.drawing.layering (places of boxes),
    constellations.admin.drawing.looks (words and shapes of states).
Called by: the page of a constellation; looks also by the forms of tasks.
"""
