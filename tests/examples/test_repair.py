"""A model mends a failing test of a small repository: phases, one approval, a result by its schema; and one that is stuck."""

from pathlib import Path

import pytest

from agents.llm.scripted.script import read_script
from agents.llm.scripted.server import ScriptedModel
from agents.models import Agent, Approval, Evidence, ModelCall, PhaseRecord
from agents.services.approvals import approval_decide
from agents.services.sessions import session_create
from constellations.models import Task
from project.demo.demo import demo_devices
from project.replay.comparing import first_difference
from project.replay.playing import play_recording
from project.replay.recorder import record_session
from project.replay.recording import read_recording, write_recording
from tests.agents.llm.conftest import loopback, served  # noqa: F401  # fixtures
from tests.constellations.runs.test_run import query

pytestmark = [
    pytest.mark.one_database,
    pytest.mark.live,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("verified", "loopback"),
]

REPAIR = Path(__file__).resolve().parents[2] / "examples" / "repair"
HINT = "Read prices.py first"
PLAN = (REPAIR / "plan.yaml").read_text()


@pytest.fixture
def behind_walls(settings):
    """As an installation has them: file tools run unasked only there."""
    settings.CONFINEMENT = "auto"


@pytest.fixture
def model(settings, behind_walls):
    """A function that lets the scripted model of a file be asked for everything."""
    open_servers = []

    def serve(name: str) -> ScriptedModel:
        found = ScriptedModel(read_script((REPAIR / name).read_bytes()))
        server = served(found)
        settings.LLM_MODEL, settings.LLM_BASE_URL = "scripted", f"{server.__enter__()}/v1"
        open_servers.append(server)
        return found

    yield serve
    for server in open_servers:
        server.__exit__(None, None, None)


def waiting() -> bool:
    return bool(query("SELECT count(*) FROM agents_approval WHERE state = 'waiting'"))


def ask_for_repair(engine, admin_user) -> None:
    """By somebody who may say what a model does unasked."""
    demo_devices()
    session = session_create(admin_user, "repair", by=f"user:{admin_user.pk}")
    engine.owner = admin_user
    engine.submit(PLAN, session)


def test_a_model_mends_what_fails_and_a_person_is_asked_for_the_release_only(engine, admin_user, model):
    asked = model("model.yaml")
    ask_for_repair(engine, admin_user)
    engine.run(until=waiting)
    approval = Approval.objects.get()
    assert approval.action["arguments"]["argv"] == ["python", "-B", "release.py"]
    assert not Evidence.objects.filter(target__contains="release.py", ended_at__isnull=False).exists()
    approval_decide(approval.pk, "approve", by=f"user:{admin_user.pk}", digest=approval.digest)
    engine.run()

    task = Task.objects.get(task_id="repair")
    assert (task.state, task.result) == ("COMPLETED", {"mended": ["prices.py"], "passed": 2})
    phases = list(PhaseRecord.objects.order_by("number").values_list("number", "description", "outcome"))
    assert [number for number, _, _ in phases] == [1, 2, 3]
    assert phases[1][1] == "Mend the program"
    tools = list(Evidence.objects.filter(loop__agent__machine="device_agent", kind__in=("tool", "test")).order_by("id"))
    assert [row.tool for row in tools] == ["command", "read_file", "edit_file", "command", "command"]
    assert [row.success for row in tools] == [False, True, True, True, True]
    assert tools[-1].result["version"]
    assert ModelCall.objects.count() == len(asked.asked) == 7
    assert Agent.objects.filter(machine="device_agent", name__contains="repair").get().state == "FINISH"

    recorded = read_recording(write_recording(record_session(task.constellation.session_id)))
    again = play_recording(recorded)
    assert first_difference(recorded.content["decisions"], again["recording"]["decisions"]) is None
    assert len(asked.asked) == 7, "the replay asked nobody"
    assert Approval.objects.filter(state="approved").count() == 2


def test_a_model_that_goes_round_is_steered_then_halted_and_succeeds_after_a_hint(engine, client, admin_user, model):
    asked = model("stuck.yaml")
    ask_for_repair(engine, admin_user)
    engine.run()
    task = Task.objects.get(task_id="repair")
    assert (task.state, task.attempt) == ("FAILED", 1)
    assert "stuck" in task.error + task.reason
    assert Evidence.objects.filter(kind="nudge").count() == 1
    steered = ModelCall.objects.filter(purpose="device_agent", number=4).get()
    assert "You go round in circles: “prices.py” failed 3 times" in str(steered.added)

    agent = Agent.objects.get(machine="device_agent", name__contains="repair")
    client.force_login(admin_user)
    hinted = client.post(f"/api/agents/{agent.pk}/hint/", {"text": HINT}, content_type="application/json")
    assert hinted.status_code == 202, hinted.content
    engine.run()
    task.refresh_from_db()
    assert (task.state, task.attempt, task.result) == ("COMPLETED", 2, {"mended": ["prices.py"], "passed": 2})

    recorded = read_recording(write_recording(record_session(task.constellation.session_id)))
    calls = len(asked.asked)
    again = play_recording(recorded)
    assert first_difference(recorded.content["decisions"], again["recording"]["decisions"]) is None
    assert len(asked.asked) == calls
