"""The rules, one module a kind of standstill: each is pure, and says what it found or nothing.

May import: patterns, errors.
Begin at: agents.progress.rules.order (all rules), agents.progress.rules.hits (what a rule finds),
    agents.progress.rules.standstill (the rule that adds up what all actions say).
Called by: agents.progress.tracker.
"""
