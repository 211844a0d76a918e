"""What calls of models may use: limits of profiles and budgets, held across all processes by one row that everybody locks.

A try reserves what it may use at most before its request leaves, and settles what it used when it ends. What a dead runner
had reserved becomes unknown, and counts as used.

May import: llm, gates, streams, devices, models, masks, clock, per_loop, errors.
Begin at: agents.minds.budgets.desk (what a call asks for), agents.minds.budgets.ledger (the transaction),
    agents.minds.budgets.places (what counts where).
Called by: agents.minds; services, reads.
"""
