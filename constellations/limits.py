"""What one interaction may do (docs/machines.md, "2. Constellation agent"), and the keys of its payload. Pure."""

EDITING_SESSIONS = 50
"""Editing sessions of the planner; one more fails the constellation agent."""
RESTARTS = 5
"""Restarts; one more is refused."""
ADDED = 10_000
"""Tasks that edits add, whoever makes them; more are refused, and fail the constellation agent where its planner wants them."""
PLANNING_S = 300.0
"""Seconds of one creation or editing session, whoever plans: pauses and lost runners do not count."""
REOPEN, FORK = "reopen", "fork"
"""Keys of the payload of an interaction about a graph that is there."""
IMPORTED_WORDS = "in_words"
"""Key of the payload of an import that has tasks in words alone; what people submit has no such key."""
MODELS = "models"
"""Key of the payload with names of model profiles, by purpose."""
