"""The forms of the admin's pages: rows as an operator edits them, and the one edit that a save makes.

May import: agents, services, reads, models, editor, plan, machines, analysis, errors.
Begin at: constellations.admin.forms.sheets (the forms of a page and their edit), constellations.admin.forms.row_forms (what
    rows have in common), constellations.admin.forms.fields (keys of plans as form fields).
Called by: the pages of constellations.admin.
"""
