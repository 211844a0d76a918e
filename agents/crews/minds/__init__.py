"""The mind of an agent with a language model: what it is asked, what it may want, and what it has said. No turns, no rows
are written here.

May import: minds, gates, llm, tools, streams, masks, errors.
Begin at: agents.crews.minds.mind (in the place of a script), agents.crews.minds.choices (an answer as steps),
    agents.crews.minds.talk (the conversation, within its window).
Called by: agents.crews.think, which asks and does what is wanted; agents.crews.{crew,load}.
"""
