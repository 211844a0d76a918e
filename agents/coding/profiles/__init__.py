"""What is particular to each coding agent: how it is started, what it is configured by, what it calls success. Pure.

May import: nothing.
Begin at: agents.coding.profiles.profile (what a profile has), agents.coding.profiles.known (the five of them),
    agents.coding.profiles.ends (how a call of a tool has really ended).
Called by: agents.coding.connection and agents.coding.turns.
"""
