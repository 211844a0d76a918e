"""Coding agents as devices: programs that speak the Agent Client Protocol, each in namespaces of its own.

May import: services, links, gates, tools, streams, devices, models, masks, per_loop, faults, errors.
Begin at: agents.coding.connection (the device and its calls), agents.coding.turns (one attempt's conversation),
    agents.coding.profiles.profile (what is known of each agent).
Called by: a runner that holds such a device, by way of agents.links.kinds; agents.apps registers it (opening).

frames       what goes over the agent's standard input and output: bounded, in order, with nothing hidden in it
tool_calls   the agent's calls of tools, put together from its updates
starting     the agent's process behind walls, and its end
permits      what the agent asks leave for, until somebody has answered
grants       the token by which it may propose edits of its own constellation
turns        a conversation: prompts, updates, leave, the end
opening      registers the kind
connection   a device of kind `acp`, as links know it
profiles/    what is particular to each agent: its command line, its configuration, what it calls success
"""
