"""The seed's MNIST conversation over HTTP: words, a plan with a condition, a low accuracy, an edit of three actions, an end."""

from pathlib import Path

import pytest

from agents.llm.scripted.script import read_script
from agents.llm.scripted.server import ScriptedModel
from agents.models import Agent, ModelCall, ModelProfile, Transition
from agents.services.model_profiles import model_profile_create, model_profile_delete
from constellations.models import Constellation, Dependency, Edit
from project.demo.demo import demo_devices
from project.demo.scripted import WORDS
from project.replay.comparing import first_difference
from project.replay.playing import play_recording
from project.replay.recorder import record_session
from project.replay.recording import read_recording, write_recording
from tests.agents.llm.conftest import Provider, loopback, protocol, served  # noqa: F401  # fixtures
from tests.constellations.runs.test_run import states

pytestmark = [
    pytest.mark.one_database,
    pytest.mark.live,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("verified"),
]

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "models" / "mnist.yaml"


@pytest.fixture
def mnist(protocol, loopback):  # noqa: F811
    """The scripted model of the example, in the protocol of the test, for creation and editing."""
    model = ScriptedModel(read_script(SCRIPT.read_bytes()))
    with served(model) as address:
        profile = Provider(model, address, protocol).profile
        model_profile_create(
            "mnist", by="system", provider=profile.provider, model=profile.model, base_url=profile.base_url,
            purposes=["creation", "editing"],
        )  # fmt: skip
        yield model


def test_the_conversation_over_http_ends_with_a_model_that_is_good_enough(engine, client, mnist):
    demo_devices(for_model=True)
    client.force_login(engine.owner)
    session = client.post("/api/sessions/", {"title": "mnist"}, content_type="application/json").json()["id"]
    said = client.post(f"/api/sessions/{session}/interactions/", {"request": WORDS}, content_type="application/json")
    assert said.status_code in (201, 202), said.content
    engine.run()

    made = Constellation.objects.get()
    assert states(made) == {
        "task_001": "COMPLETED", "task_002": "COMPLETED", "task_003": "COMPLETED",
        "task_005": "COMPLETED", "task_006": "COMPLETED", "task_007": "COMPLETED",
    }  # fmt: skip
    condition = Dependency.objects.get(downstream__task_id="task_007", type="CONDITIONAL")
    assert condition.condition == "accuracy > 0.95"
    low = made.tasks.get(task_id="task_003").result["accuracy"]
    high = made.tasks.get(task_id="task_006").result["accuracy"]
    assert low <= 0.95 < high
    first, second = Edit.objects.order_by("version")
    assert [operation["op"] for operation in first.operations] == ["add_task", "add_dependency", "remove_task"]
    assert first.reason.startswith(f"Evaluation accuracy ({low:g}) did not meet the deployment threshold (95%).")
    assert len(second.operations) == 3
    assert ModelCall.objects.filter(purpose="creation", status="CONTINUE").count() == 1
    assert ModelCall.objects.filter(status="FINISH").count() == 1
    agent = Agent.objects.get(machine="constellation_agent")
    events = list(Transition.objects.filter(subject_id=agent.pk).order_by("id").values_list("event", flat=True))
    assert (events[0], events[-1]) == ("created", "finished")
    assert not ModelCall.objects.exclude(outcome="answered").exists()

    recorded = read_recording(write_recording(record_session(session)))
    again = play_recording(recorded)
    assert first_difference(recorded.content["decisions"], again["recording"]["decisions"]) is None
    assert len(mnist.asked) == len(recorded.content["questions"]), "the replay asked nobody"

    with served(ScriptedModel(recorded.script)) as address:
        provider = Provider(recorded.script, address, "openai_compatible")
        profile = {"provider": "openai_compatible", "model": "other", "base_url": provider.profile.base_url}
        for row in ModelProfile.objects.all():
            model_profile_delete(row.pk, by="system")
        asked_again = play_recording(recorded, profile)
    assert first_difference(recorded.content["decisions"], asked_again["recording"]["decisions"]) is None
