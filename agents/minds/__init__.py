"""What agents ask language models, and what becomes of the answers: questions, their rows, and the call as a body.

Who has a mind is a crew's agent or the constellation agent; both ask by the same question, record the same row, and wait for
the answer as for a tool's outcome. So a call outlives its runner, and an answer that has come is never asked for again.

May import: llm, tools, streams, models, masks, clock, errors.
Begin at: agents.minds.question (what is asked), agents.minds.calls (its row and its call), agents.minds.asking (the body).
Called by: crews, engine, services; constellations.runs.
"""
