"""What kind of thing a call is, read from its tool's name and its command line.

May import: patterns, errors.
Begin at: agents.progress.kinds.tools (the table of names), agents.progress.kinds.commands (what a command line runs),
    agents.progress.kinds.tools.kind_of_name (the question asked of both).
Called by: agents.progress.calls.
"""
