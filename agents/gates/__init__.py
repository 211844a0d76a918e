"""Which calls are allowed, asked about or denied, and the rows that ask.

May import: tools, streams, devices, patterns, progress, clock.
Begin at: agents.gates.policies (the rules), agents.gates.judging (a call as rules see it), agents.gates.approvals (the rows
    that wait).
Called by: agents.crews before each call, the engine, and agents.services when somebody decides.
"""
