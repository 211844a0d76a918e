"""The keys of tasks, steps and dependencies, each said once: what it takes, its default, and how it is described. Pure.

May import: agents, conditions, errors.
Begin at: constellations.plan.keys.fields (keys of tasks and dependencies), constellations.plan.keys.step_keys (kinds of
    steps), constellations.plan.keys.guards (policies and progress).
Called by: the rest of plan, models, the admin's forms, and the entrances that answer with these keys.

What a line of the tables is made of is in kinds and json_schema; what tasks and steps write alike is in calls.
"""
