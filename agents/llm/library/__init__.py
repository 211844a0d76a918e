"""All that knows pydantic-ai, its direct interface only, and the clients of providers under it.

Whoever imports it waits for seconds: `agents.llm.port` does, in a thread, and nobody else.

May import: streams, models, masks, per_loop, errors.
Begin at: agents.llm.library.calling (one call), agents.llm.library.clients (models and connections),
    agents.llm.library.causes (faults).
Called by: agents.llm.port.
"""
