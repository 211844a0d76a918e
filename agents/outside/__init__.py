"""Calls to addresses that people wrote: which of them are allowed, and a connection that goes nowhere else.

May import: errors.
Begin at: agents.outside.addresses.is_reachable (whether a host may be called at an address), agents.outside.addresses.Hosts
    (what an installation allows inside), agents.outside.transport.GuardedTransport (the connection).
Called by: llm, for models; toolservers, for tool servers over HTTP.
"""
