"""The admin's list of sessions says of each how it stands, in the same word as every other page."""

import pytest
from django.urls import reverse

from agents.reads.standings import read_standings, viewer_of
from agents.services import sessions
from tests.agents.conftest import PLAN

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_list_has_the_standing_of_each_by_so_many_queries_as_of_one(
    admin_client, admin_user, operator, django_assert_max_num_queries
):
    made = [sessions.session_create(operator, f"number {number}", by="system") for number in range(12)]
    sessions.request_submit(made[0].pk, "interaction", "", {"plan": PLAN}, by=f"user:{operator.pk}")
    where = reverse("admin:agents_session_changelist")
    admin_client.get(where)
    with django_assert_max_num_queries(14):
        page = admin_client.get(where).content.decode()
    stands = read_standings([session.pk for session in made], viewer_of(admin_user, None))
    assert stands[made[0].pk]["word"] == "Queued"
    for session in made:
        assert f'<span title="{stands[session.pk]["reason"]}">{stands[session.pk]["word"]}</span>' in page
