"""What a runner's connection to PostgreSQL does with its plans."""

import pytest
from django.db import connection

from agents.engine.journal import Journal


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor != "postgresql", reason="about PostgreSQL's plans")
def test_a_plan_that_is_kept_finds_rows_by_their_keys_however_few_there_were_when_it_was_made():
    journal = Journal()
    try:
        raw = connection.connection
        raw.execute("PREPARE by_keys (bigint[]) AS UPDATE agents_agent SET reason = 'x' WHERE id = ANY($1)")
        plans = ["\n".join(line for (line,) in raw.execute("EXPLAIN EXECUTE by_keys ('{1,2}')")) for _ in range(2)]
        assert all("Seq Scan" not in plan and "$1" in plan for plan in plans), plans
    finally:
        journal.close()
