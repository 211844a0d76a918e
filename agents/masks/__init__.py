"""What hides secrets in everything that leaves the installation.

May import: errors.
Begin at: agents.masks.masking (the mask), agents.masks.values (where secrets are), agents.masks.doors (Django's ways out).
Called by: every room with a way out: api, mcp, admin, engine, streams and project.
"""
