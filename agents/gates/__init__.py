"""Which calls are allowed, asked about or denied, and the rows that ask.

May import: tools, streams, devices, patterns, progress, clock.
Begin at: agents.gates.policies (the rules), agents.gates.judging (a call as rules see it), agents.gates.approvals (the rows
    that wait).
Called by: agents.crews before each call, the engine, and agents.services when somebody decides.

policies     what the rules of the installation and of a task say of a call; pure
judging      a call as rules judge it, with what its paths lead to on its device
unasked      which calls a model may make without asking, as levels write and merge it; pure
chosen       what is done about a call that a model chose; pure
gate         one attempt's rules, and what a person has let through
approvals    rows that wait for a decision: asked for, used once, expired, withdrawn; who may decide is in agents.services
"""
