"""The words of plans and edits: what may be written, its normal form, and what is said when it is wrong.

May import: agents, conditions, graph, machines, errors.
Begin at: constellations.plan.plan (a whole plan), constellations.plan.tasks (a task's keys), constellations.plan.operations
    (an edit's operations).
Called by: editor, services, runs, and every entrance that takes a plan or an edit.
"""
