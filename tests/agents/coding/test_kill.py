"""The runners are killed in the middle of a coding agent's work; and what an agent can reach from behind its walls."""

from __future__ import annotations

import pytest

from agents.crews.recover import AGAIN
from agents.devices.host import instance_name
from agents.devices.processes import attempts_at_work
from agents.models import Approval, Evidence, Lease, Output
from agents.services.approvals import approval_decide
from constellations.machines.task import ENDED
from constellations.models import Attempt, Task
from tests.agents.coding.conftest import carry_out, errand
from tests.reliability.cluster import until
from tests.reliability.conftest import begin_apart, clusters  # noqa: F401  # fixtures


@pytest.mark.kill
@pytest.mark.django_db(transaction=True)
def test_when_its_runners_are_killed_nothing_of_it_is_left_and_it_begins_again(engine, coder, clusters, state_dir):  # noqa: F811
    place = state_dir / "workspaces" / "coder"
    engine.submit({"tasks": [errand({"say": "I begin."}, {"until": "go"}, {"say": "Done."}, on_lost="retry")]})
    cluster = clusters(runners=1)
    cluster.start()
    until(lambda: Output.objects.exists(), "the agent says something")
    cluster.kill()
    until(lambda: not attempts_at_work(instance_name()), "the agent has ended with its runner")
    (place / "go").touch()
    cluster.start()
    until(lambda: Task.objects.get().state == "COMPLETED", "the task is carried out")
    tries = Evidence.objects.filter(tool="instruction").order_by("id")
    assert [row.error_kind for row in tries] == ["lost", ""]


@pytest.mark.kill
@pytest.mark.django_db(transaction=True)
def test_whoever_takes_a_session_over_follows_a_program_that_another_runner_holds(coder, begin_apart, state_dir):  # noqa: F811
    steps = [{"think": "Hm."}, {"say": "I begin."}, {"until": "go"}, {"run": ["touch", "made"]}, {"say": "Done."}]
    _, driver = begin_apart({"tasks": [errand(*steps, on_lost="fail")]})
    until(Output.objects.exists, "the agent says something")
    driver.kill()
    until(lambda: Lease.objects.filter(runner__isnull=False).exclude(runner=driver.pk).exists(), "another one has the session")
    (state_dir / "workspaces" / "coder" / "go").touch()
    until(lambda: Approval.objects.filter(state="waiting").exists(), "it asks whoever follows it now")
    assert not (state_dir / "workspaces" / "coder" / "made").exists()
    approval_decide(Approval.objects.get().pk, "approve", by="user:1")
    until(lambda: Task.objects.get().state in ENDED, "the task ends")
    assert Task.objects.get().state == "COMPLETED"
    assert [row.error_kind for row in Evidence.objects.filter(tool="instruction")] == [""]
    assert "".join(Output.objects.order_by("offset").values_list("text", flat=True)) == "I begin.\nDone.\n"
    assert Attempt.objects.count() == 1


@pytest.mark.kill
@pytest.mark.django_db(transaction=True)
def test_leave_that_was_asked_of_a_runner_that_died_is_given_by_its_successor(coder, begin_apart, state_dir):  # noqa: F811
    steps = [{"run": ["touch", "made"]}, {"say": "Done."}]
    _, driver = begin_apart({"tasks": [errand(*steps, on_lost="fail")]})
    until(lambda: Approval.objects.filter(state="waiting").exists(), "it asks")
    driver.kill()
    approval_decide(Approval.objects.get().pk, "approve", by="user:1")
    until(lambda: Task.objects.get().state in ENDED, "the task ends")
    assert Task.objects.get().state == "COMPLETED"
    assert (state_dir / "workspaces" / "coder" / "made").exists()
    assert Approval.objects.count() == 1


@pytest.mark.kill
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("on_lost", ["retry", "fail", "ask"])
def test_with_its_holder_a_program_dies_and_the_task_says_what_follows(coder, begin_apart, state_dir, on_lost):  # noqa: F811
    steps = [{"say": "I begin."}, {"until": "go"}, {"say": "Done."}]
    holder, _ = begin_apart({"tasks": [errand(*steps, on_lost=on_lost)]})
    until(Output.objects.exists, "the agent says something")
    holder.kill()
    until(lambda: not attempts_at_work(instance_name()), "the agent has ended with its holder")
    (state_dir / "workspaces" / "coder" / "go").touch()
    answer_if_asked(on_lost)
    until(lambda: Task.objects.get().state in ENDED, "the task ends")
    assert Task.objects.get().state == ("FAILED" if on_lost == "fail" else "COMPLETED")
    tries = Evidence.objects.filter(tool="instruction").order_by("id")
    assert [row.error_kind for row in tries] == (["lost"] if on_lost == "fail" else ["lost", ""])


def answer_if_asked(on_lost: str) -> None:
    """Say that it is to be tried again, where a person is asked what becomes of a lost call."""
    if on_lost == "ask":
        until(lambda: Approval.objects.filter(state="waiting").exists(), "somebody is asked")
        row = Approval.objects.get()
        approval_decide(row.pk, "approve", by="user:1", **({"answer": AGAIN} if row.kind == "question" else {}))


@pytest.mark.django_db(transaction=True)
def test_behind_walls_it_reads_nothing_of_the_installation_and_writes_its_workspace_alone(engine, coder, settings, state_dir):
    settings.CONFINEMENT = "auto"
    (state_dir / "secret_key").write_text("nobody's business")
    tries = [
        {"run": ["cat", str(state_dir / "secret_key")], "id": "a"}, {"run": ["touch", str(state_dir / "mine")], "id": "b"},
        {"run": ["touch", "here"], "id": "c"}, {"run": ["cat", "opencode.json"], "id": "d"},
    ]  # fmt: skip
    place = state_dir / "workspaces" / "coder"
    place.mkdir(parents=True)
    (place / "opencode.json").write_text("orders")
    carry_out(engine, *tries, unasked={"commands": [step["run"] for step in tries]})
    ran = {row.target: (row.exit_code, row.success) for row in Evidence.objects.filter(tool="command")}
    assert sorted(code for code, _ in ran.values()) == [0, 0, 1, 1]
    assert (place / "here").exists()
    assert not (state_dir / "mine").exists()
    assert "orders" not in "".join(Evidence.objects.values_list("raw_error", flat=True))


@pytest.mark.django_db(transaction=True)
def test_orders_that_are_a_link_are_not_covered_and_so_nothing_is_started(engine, coder, state_dir):
    place = state_dir / "workspaces" / "coder"
    place.mkdir(parents=True)
    (place / "orders").write_text("{}")
    (place / "opencode.json").symlink_to("orders")
    task = carry_out(engine, {"say": "never"})
    assert (task.state, Output.objects.count()) == ("FAILED", 0)
    assert "the workspace holds opencode.json, which an agent would follow" in task.error
