"""Language models: the one way to ask one, the profiles that say which and how, and what can go wrong.

A profile is a row or comes from the environment. `library/` is the only room that knows pydantic-ai and what lies
under it; it is imported with a process's first call. `scripted/` is a server of prepared answers, for tests and demos.

May import: streams, models, masks, outside, per_loop, errors.
Begin at: agents.llm.port (asking), agents.llm.exchange (what is asked and answered), agents.llm.profiles (which model).
Called by: crews, services, api and admin; constellations.runs.
"""
