"""Logging in: how often a password may be tried, and links that log in once.

May import: nothing.
Begin at: frontend.logins.limits (attempts), frontend.logins.links (one-time links), frontend.logins.limits.answer_locked_out
    (what one is told).
Called by: Django's login, frontend.views, `manage.py login_link`, and project for `up` and `demo`.
"""
