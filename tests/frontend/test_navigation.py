"""The bar of pages: what stands in it, what in its menus, and who sees what."""

import re

import pytest
from django.contrib.auth.models import User

from frontend.navigation import PAGES

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]


def bar(client, user, address="/") -> str:
    client.force_login(user)
    return re.search(r"<nav class=\"pages\".*?</nav>", client.get(address).content.decode(), re.DOTALL)[0]


def test_work_stands_in_the_bar_and_the_rest_in_two_menus(client, operator):
    found = bar(client, operator)
    assert re.findall(r"<summary>(.*?)</summary>", found) == ["Fleet", "Reference"]
    alone = re.sub(r"<details.*?</details>", "", found, flags=re.DOTALL)
    assert re.findall(r"<a [^>]*>(\w+)", alone) == ["Sessions", "Inbox", "Runs", "Search"]


def test_every_page_is_there_for_an_admin_and_answers(client):
    root = User.objects.create_superuser("root", password="root-secret")
    links = re.findall(r'<a href="([^"]+)"', bar(client, root))
    assert len(links) == len(PAGES)
    assert {client.get(link).status_code for link in links} == {200}


@pytest.mark.parametrize(("address", "menu"), [("/devices/", "Fleet"), ("/machines/task/", "Reference")])
def test_the_menu_of_the_page_where_one_is_says_so(client, operator, address, menu):
    here = re.findall(r"data-here><summary>(\w+)", bar(client, operator, address))
    assert here == [menu]
    assert bar(client, operator, address).count('aria-current="page"') == 1
