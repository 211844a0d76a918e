"""The words of plans and edits: what may be written, its normal form, and what is said when it is wrong.

May import: agents, conditions, graph, machines, errors.
Begin at: constellations.plan.plan (a whole plan), constellations.plan.tasks (a task's keys), constellations.plan.operations
    (an edit's operations).
Called by: editor, services, runs, and every entrance that takes a plan or an edit.

The tables of keys and of their words, such as the types of dependencies, are in keys. What is said of a wrong value is in
values; of parts that do not go together in tasks, steps and operations. Other ways to write a plan are in dialects and
plain_text.
"""
