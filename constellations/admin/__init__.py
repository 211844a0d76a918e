"""The admin of what is to be done: an operator's editor of constellations that run. Every save is an edit.

May import: agents, services, reads, models, editor, plan, machines, analysis, errors.
Begin at: constellations.admin.constellation (its page), constellations.admin.forms.sheets (forms and their one edit),
    constellations.admin.tasks (lists of tasks).
Called by: Django's admin, which finds it by its name.

constellation.py, tasks.py, edits.py   the pages and lists
editing.py, removing.py                what such pages share
shown.py                               the rows that a page showed, at its version
forms/                                 the forms of a page, and the one edit of a save
lifecycle/                             pause, cancel, retry; mend, reopen, fork
picture.py                             the rows of the graph that the page's script draws
normal_forms.py                        what plans were read into
"""

from constellations.admin import constellation, edits, normal_forms, tasks  # noqa: F401  register themselves
