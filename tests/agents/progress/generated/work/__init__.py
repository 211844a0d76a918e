"""The kinds of honest work, each in several variants: what looks like a loop at first sight and gets somewhere.

A variant acts until its piece of work is done, and yields where something else may come between.
"""

from tests.agents.progress.generated.work import changing, checking, leading, reading, waiting

WORK = (*reading.WORK, *changing.WORK, *checking.WORK, *waiting.WORK, *leading.WORK)
