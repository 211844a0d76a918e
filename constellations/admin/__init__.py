"""The admin of what is to be done: an operator's editor of constellations that run. Every save is an edit.

May import: agents, services, reads, models, editor, plan, machines, analysis, errors.
Begin at: constellations.admin.constellation (its page), constellations.admin.sheets (forms and their one edit),
    constellations.admin.tasks (lists of tasks).
Called by: Django's admin, which finds it by its name.

constellation.py, tasks.py, edits.py   the pages and lists     sheets.py       the forms of a page, and their one edit
editing.py, removing.py                what such pages share   row_forms.py    a row; task_forms.py, dependency_forms.py
commanding.py, confirming.py           pause, cancel, ...      shown.py        the rows that a page showed, at its version
going_on.py                            mend, reopen, fork      picture.py, layering.py, looks.py   the drawing
normal_forms.py                        what plans were read into
"""

from constellations.admin import constellation, edits, normal_forms, tasks  # noqa: F401  register themselves
