"""Lists of tasks are narrowed down by names in their lists, exactly as they are written."""

import pytest

from agents.services import sessions
from constellations.models import Task
from constellations.plan.keys.fields import STORED
from constellations.reads.excerpts.narrowing import having
from tests.constellations.api.test_api import add_constellation

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("gpu", ["t0", "t2"]),
        ("GPU", []),
        ("gp", []),
        ("g_u", []),
        ("g%", []),
        ("big.gpu", ["t1"]),
        ('gpu", "fast', []),
        ("", []),
    ],
)
def test_a_name_is_found_as_a_whole(operator, name, found):
    _, nodes = add_constellation(sessions.session_create(operator, by="system"), 4)
    for node, names in zip(nodes, (["gpu", "fast"], ["big.gpu"], ["gpu"], []), strict=True):
        Task.objects.filter(pk=node).update(capabilities=names)
    tasks = having(Task.objects.order_by("id"), STORED["capabilities"], name)
    assert [task.task_id for task in tasks] == found
