"""The kinds of being stuck, each in several variants. A variant acts one round of its loop and yields, for ever.

A loop is clear to a person who reads the run: nothing but what only looks new comes back, and each round is as the last.
"""

from tests.agents.progress.generated.loops import calls, failures, rounds, words

LOOPS = (*calls.LOOPS, *failures.LOOPS, *rounds.LOOPS, *words.LOOPS)
