"""The demonstration's scripted model: served while it is wanted, by a profile that nobody is given who does not name it."""

import pytest
from asgiref.sync import async_to_sync

from agents.llm.profiles import NoModelProfile, choose_profiles, read_profiles
from agents.models import ModelProfile
from project.demo.scripted import PROFILE, scripted_profile
from tests.agents.llm.conftest import asking, loopback, reply_to  # noqa: F401  # a fixture

pytestmark = [
    pytest.mark.one_database,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("loopback", "verified"),
]


def test_it_answers_while_it_is_served_and_keeps_one_profile(tmp_path):
    script = tmp_path / "script.yaml"
    script.write_text("answers: [{say: hello}]\n")
    addresses = []
    for _ in range(2):
        with scripted_profile(script) as models:
            assert models == dict.fromkeys(("creation", "editing", "device_agent"), PROFILE)
            profile = read_profiles()[PROFILE]
            assert async_to_sync(reply_to)(profile, asking("Go.")).text == "hello"
            addresses.append(profile.base_url)
    assert ModelProfile.objects.get().purposes == []
    assert addresses[1] == ModelProfile.objects.get().base_url
    with pytest.raises(NoModelProfile):
        choose_profiles(read_profiles(), "creation")
