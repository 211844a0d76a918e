"""A server of prepared answers that speaks the protocols of providers: for tests, examples and demos, never a default.

May import: streams, models, masks, per_loop, errors.
Begin at: agents.llm.scripted.script (the file), agents.llm.scripted.server (serving it),
    agents.llm.scripted.chat_completions (one of the protocols).
Called by: commands of manage.py, and tests.
"""
