"""What one interaction may do (docs/machines.md, "2. Constellation agent"). Pure."""

EDITING_SESSIONS = 50
"""Editing sessions of the planner; one more fails the constellation agent."""
RESTARTS = 5
"""Restarts; one more is refused."""
ADDED = 10_000
"""Tasks that edits add, whoever makes them; more are refused, and fail the constellation agent where its planner wants them."""
