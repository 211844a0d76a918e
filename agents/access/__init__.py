"""Who asks, what they may do, and which token descends from which.

May import: streams, models, machines, per_loop, ids, errors.
Begin at: agents.access.permissions (roles and scopes), agents.access.authentication (tokens and logins),
    agents.access.ancestry (what a token starts, and so may not approve).
Called by: every entrance: api, mcp, admin, websockets and the services behind them.
"""
