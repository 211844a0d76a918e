"""Device agents at work on what is more than one plain call (docs/engine.md, "Crews").

script       the mind of an agent without a language model: the steps of its plan
policies     what tools may do: allow, ask, deny
recovery     what follows from a fault, by its kind
phases       the records of a task's phases
memory       evidence, written as rows and read back into what the rules of `agents.progress` remember
asking       approvals, from the agents' side
member       one agent of a crew: its rows and where it stands
answering    strategies: what an agent knows, and what it does next
permission   strategies: which calls are made
checking     strategies: what a call brought
recovering   strategies: what follows from faults
strategies   the four processing phases as pipes of these, by platform
states       the device agent, a function a state, by platform
crew         the host and the app agents of one attempt
reading      a crew read back from its rows
"""
