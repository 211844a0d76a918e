"""The agents that work on one attempt of a task which is more than one plain call (docs/engine.md, "Crews").

May import: minds, gates, llm, tools, streams, machines, progress, faults, clock, ids, errors.
Begin at: agents.crews.crew (the crew of an attempt), agents.crews.load (read back), agents.crews.members.member (one agent).
Called by: constellations.runs.attempts.crews.

A module imports only those above it in this list, for its types too; .importlinter holds that.

script       the mind of an agent without a language model: the steps of its plan
platforms    what agents of each platform look with
ways         what follows from a fault, by its kind
evidence     what an agent did, as rows and as what the rules of `agents.progress` remember
minds/       the mind of an agent with one: what it is asked, what it may want, what it has said
errand       the mind of a program that carries out an instruction by itself
members/     one agent: what it was given, its rows, its phases; its gate is `agents.gates.gate`
permit       strategies: which calls are made
answer       strategies: what an agent knows, and what it does next
think        strategies: what an agent with a language model is asked, and what it does of what that wants
check        strategies: what a call brought
look         strategies: what an observation brought
recover      strategies: what follows from faults
follow       strategies: what such a program does, asks leave for, and comes to
strategies   the four processing phases as pipes of these, by platform
states       the device agent, a function a state, by platform
crew         the host and the agents it delegates to; hands calls out, and outcomes and children's ends back in
load         a crew read back from its rows

An agent with a language model has `minds.mind.Mind` in the place of its `script.Script`, and the pipe of `think`.
"""
