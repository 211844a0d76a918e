"""Who may use a device: its owner, and whom it names."""

import pytest
from django.contrib.auth.models import Group, User

from agents.access.use import may_use, users_of

pytestmark = pytest.mark.django_db


def users_who_may(used_by: list[str], owner: int | None = None) -> frozenset[int] | None:
    return users_of([{"id": 7, "owner_id": owner, "used_by": used_by}])[7]


def test_everybody_is_no_list_of_users(operator, django_assert_num_queries):
    with django_assert_num_queries(0):
        found = users_who_may(["user:operator", "everybody"])
    assert found is None
    assert may_use(found, operator.pk)


def test_users_and_groups_by_name_and_the_owner(operator, viewer, user, admin_user):
    Group.objects.create(name="lab").user_set.add(viewer)
    assert users_who_may(["user:operator"]) == {operator.pk}
    assert users_who_may(["group:lab"], owner=user.pk) == {viewer.pk, user.pk}
    assert users_who_may(["user:nobody", "group:none"]) == frozenset()
    assert not may_use(users_who_may([], owner=user.pk), operator.pk)


def test_a_superuser_is_one_of_the_admins_and_may_use_nothing_by_that_alone(admin_user):
    superuser = User.objects.create_superuser("root")
    assert users_who_may(["group:admin"]) == {admin_user.pk, superuser.pk}
    assert not may_use(users_who_may(["group:lab"]), superuser.pk)
