"""Whether an agent is stuck: rules over what it did, and what they remember.

May import: patterns, errors.
Begin at: agents.progress.tracker (what goes in and comes out), agents.progress.rules.order (all rules),
    agents.progress.state (what is remembered).
Called by: agents.crews after each action, and `manage.py stuck_eval`.
"""
