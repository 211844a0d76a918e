"""What bodies print, while it is being written."""

import asyncio

import pytest

from agents.engine.bodies.outputs import Outputs
from agents.engine.journal import Journal
from agents.models import Output

pytestmark = pytest.mark.django_db(transaction=True)


class Busy(Journal):
    """A journal whose database somebody else writes to at first: others on the loop get their turn."""

    def __init__(self, meanwhile):
        super().__init__()
        self.meanwhile = meanwhile

    async def _begin(self, own_cursor):
        self.meanwhile()
        await super()._begin(own_cursor)


def test_what_is_printed_last_while_the_rest_is_written_is_written_too():
    last = [lambda: outputs.add(7, "cd", 0), lambda: outputs.end(7)]
    journal = Busy(lambda: [last.pop(0)() for _ in list(last)])
    outputs = Outputs(journal)

    async def run() -> None:
        outputs.add(7, "ab", 0)
        await outputs.flush()
        await outputs.flush()

    try:
        asyncio.run(run())
    finally:
        journal.close()
    assert "".join(Output.objects.order_by("offset").values_list("text", flat=True)) == "abcd"
    assert not outputs
