"""The admin's read-only, searchable view of every row of `agents`. Django finds it by its name.

May import: api, services, reads, llm, access, models, masks, machines, ids.
Begin at: agents.admin.rows (pages of rows), agents.admin.work (agents at work), agents.admin.readonly (what they share).
Called by: Django's admin; constellations.admin builds on `readonly`.
"""

from agents.admin import artifacts, budgets, devices, model_profiles, queue, rows, work

__all__ = ["artifacts", "budgets", "devices", "model_profiles", "queue", "rows", "work"]
