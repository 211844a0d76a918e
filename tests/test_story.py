"""The story test: the seed's example workflow from the request over REST to the deployed model, nothing stood in for."""

import json
from pathlib import Path

import pytest

from agents.models import Agent, Transition
from agents.streams.verify import verify_database
from constellations.models import Constellation, Edit, Task
from project.demo.demo import demo_devices

PLAN = (Path(__file__).resolve().parent.parent / "examples" / "digits.yaml").read_text()


@pytest.mark.live
@pytest.mark.django_db(transaction=True)
def test_the_first_model_falls_short_and_the_retrained_one_is_deployed(client, engine, operator, state_dir):
    demo_devices()
    client.force_login(operator)
    session = client.post("/api/sessions/", {"title": "digits"}, content_type="application/json").json()["id"]
    accepted = client.post(
        f"/api/sessions/{session}/interactions/", {"plan": PLAN, "client_id": "story"}, content_type="application/json"
    )
    assert accepted.status_code == 202
    engine.run()

    found = Constellation.objects.get(session=session)
    tasks = {task.name: task for task in Task.objects.filter(constellation=found)}
    assert (found.state, found.interaction.outcome) == ("COMPLETED", "completed")
    assert "deploy" not in tasks
    assert tasks["evaluate"].result["accuracy"] <= 0.95 < tasks["evaluate_again"].result["accuracy"]

    edit = Edit.objects.get()
    assert (edit.author, edit.version) == ("planner", 2)
    assert [line["change"] for line in edit.diff].count("removed") >= 1
    assert Transition.objects.filter(subject_id=found.pk, machine="constellation", event="close").count() == 1
    assert set(Agent.objects.values_list("state", flat=True)) == {"FINISH"}

    deployed = Path(tasks["deploy_again"].result["deployed"])
    assert deployed.is_relative_to(state_dir / "workspaces" / "prod_server")
    told = json.loads(deployed.with_suffix(".json").read_text())
    assert told["accuracy"] == tasks["evaluate_again"].result["accuracy"]

    events = client.get(f"/api/sessions/{session}/events/?since=0").json()["events"]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert events[-1]["data"]["to_state"] == "idle"
    assert list(verify_database()) == []
