"""What an operator does with a constellation or a task as a whole: pause, cancel, retry, mend, reopen, fork.

May import: agents, services, reads, models, editor, plan, machines, analysis, errors.
Begin at: constellations.admin.lifecycle.commanding (actions at once), constellations.admin.lifecycle.going_on (mend, reopen,
    fork), constellations.admin.lifecycle.confirming (the page that asks before).
Called by: the pages and lists of constellations.admin.
"""
