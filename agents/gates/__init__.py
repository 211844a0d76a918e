"""What a call may do, and who is asked about it (docs/plans.md, "Policies"; docs/engine.md, "Approvals").

It may import tools, devices, streams, the machines and `progress`; nothing of crews and of the engine. Its entry points are
`gate.Gate` for the agents of an attempt, `policies.judge` for whoever asks what a call would be allowed, and `approvals.new`
for whatever waits for a person. Crews call it, and the services, reads and runs of constellations.

policies     what the rules of the installation and of a task say of a call; pure
judging      a call as rules judge it, with what its paths lead to on its device
gate         one attempt's rules, and what a person has let through
approvals    rows that wait for a decision: asked for, used once, expired, withdrawn
"""
