"""Files that tasks hand to each other: kept from the workspace of one device, placed in that of another."""

from __future__ import annotations

import pytest

from agents.artifacts import workspace as handed
from agents.gates.gate import Gate
from agents.models import Artifact, Evidence
from agents.services import sessions
from agents.services.artifacts import artifact_remove, artifact_upload
from agents.services.devices import device_create
from agents.services.policies import policy_create
from agents.tools.workspaces import device_workspace
from constellations.errors import PlanRejected
from constellations.models import Constellation, Task
from constellations.services import lifecycle

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("verified", "device")]


@pytest.fixture
def second():
    return device_create("second", by="system")


def shell(task_id: str, text: str, **more) -> dict:
    return {"task_id": task_id, "command": text, "shell": True, "device": "laptop", **more}


def ends() -> dict[str, tuple[str, str]]:
    return {task.task_id: (task.state, task.error) for task in Task.objects.all()}


def test_an_output_of_one_device_is_an_input_on_another(engine, second):
    engine.carry_out(
        {
            "tasks": [
                shell("make", "mkdir -p out && printf 1,2 > out/data.csv", outputs=["out/*.csv"]),
                shell("use", "cat in/table.csv", device="second", after=["make"], inputs={"in/table.csv": "make#out/data.csv"}),
            ]
        }
    )
    assert ends() == {"make": ("COMPLETED", ""), "use": ("COMPLETED", "")}
    kept = Artifact.objects.get()
    assert (kept.name, kept.kind, kept.size, kept.media_type) == ("out/data.csv", "file", 3, "text/plain")
    assert kept.attempt_id == kept.call_id == Task.objects.get(task_id="make").attempts.get().pk
    assert (device_workspace("second") / "in" / "table.csv").read_text() == "1,2"


def test_a_list_of_inputs_has_their_own_names(engine, second):
    use = shell("use", "test -s data.csv", device="second", after=["make"], inputs=["make#data.csv"])
    engine.carry_out({"tasks": [shell("make", "echo 1 > data.csv", outputs=["data.csv"]), use]})
    assert ends()["use"] == ("COMPLETED", "")


def test_a_missing_input_is_said_before_anything_runs(engine, second):
    use = shell("use", "touch ran", device="second", after=["make"], inputs={"a": "make#b"})
    engine.carry_out({"tasks": [shell("make", "true", outputs=["b"]), use]})
    assert ends()["use"] == ("FAILED", "its inputs could not be placed: a: the last attempt of make has kept no output b")
    assert not (device_workspace("second") / "ran").exists()


def test_an_input_of_no_task_and_of_one_that_is_not_waited_for_are_refused_before_anything_begins(engine):
    tasks = [
        shell("far", "true", outputs=["b"]), shell("near", "true", after=["far"]),
        shell("use", "true", after=["near"], inputs=["far#b"]), shell("other", "true", inputs=["nobody#b"]),
        shell("self", "true", inputs=["self#b"]), shell("early", "true", inputs=["far#b"]),
    ]  # fmt: skip
    with pytest.raises(PlanRejected) as refused:
        engine.submit({"tasks": tasks})
    assert [(problem["key"], problem["message"]) for problem in refused.value.problems] == [
        ("tasks[3].inputs", "other is to get an output of nobody, and there is no such task"),
        ("tasks[4].inputs", "self is to get an output of self and does not wait for it: make self one of its dependencies"),
        ("tasks[5].inputs", "early is to get an output of far and does not wait for it: make far one of its dependencies"),
    ]


def test_an_input_of_a_task_that_made_no_attempt_is_told(engine):
    tasks = [
        shell("fails", "false"), shell("never", "true", after=["fails"], outputs=["b"]),
        shell("use", "true", inputs=["never#b"]),
    ]  # fmt: skip
    engine.carry_out({"tasks": tasks, "dependencies": [{"from": "never", "to": "use", "type": "UNCONDITIONAL"}]})
    assert "has made no attempt" in ends()["use"][1]


def test_steps_find_inputs_once_and_outputs_are_recorded_as_they_change(engine, second):
    steps = [
        {"command": "cat start >> log; echo x >> start", "shell": True},
        {"command": ["true"]},
        {"command": "cat start >> log; cp log last", "shell": True, "outputs": ["last"]},
    ]
    handed_over = {"after": ["make"], "inputs": ["make#start"], "outputs": ["log"]}
    use = {"task_id": "use", "device": "second", "steps": steps, **handed_over}
    engine.carry_out({"tasks": [shell("make", "echo 1 > start", outputs=["start"]), use]})
    assert ends()["use"] == ("COMPLETED", "")
    attempt = Task.objects.get(task_id="use").attempts.get().pk
    kept = Artifact.objects.filter(attempt_id=attempt).values_list("name", "size")
    assert list(kept) == [("log", 2), ("last", 6), ("log", 6)]
    assert (device_workspace("second") / "last").read_text() == "1\n1\nx\n"


def test_what_a_failed_call_leaves_is_not_kept(engine):
    engine.carry_out({"tasks": [shell("make", "echo 1 > a; exit 3", outputs=["a"])]})
    assert not Artifact.objects.exists()


def test_links_and_too_many_files_are_no_outputs(engine, tmp_path, monkeypatch):
    monkeypatch.setattr(handed, "MOST_OUTPUTS", 2)
    secret = tmp_path / "secret"
    secret.write_text("not yours")
    engine.carry_out(
        {
            "tasks": [
                shell("links", f"ln -s {secret} link; ln -s {tmp_path} folder; touch own", outputs=["link", "folder/*", "o*"]),
                shell("many", "touch 1.x 2.x 3.x", outputs=["*.x"]),
            ]
        }
    )
    assert [kept.name for kept in Artifact.objects.all()] == ["own"]
    assert ends()["many"] == ("FAILED", "its outputs could not be kept: more than 2 files fit *.x; 2 may be kept")


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"outputs": ["../x"]}, "outputs"),
        ({"outputs": ["/etc/passwd"]}, "outputs"),
        ({"outputs": "x"}, "outputs"),
        ({"inputs": {"../x": "a#b"}}, "inputs"),
        ({"inputs": {"x": "b"}}, "names no output"),
        ({"inputs": {"x": "a#/etc/passwd"}}, "inputs"),
        ({"inputs": {"x": "a b#c"}}, "inputs"),
    ],
)
def test_a_plan_with_paths_that_lead_out_is_refused(engine, keys, said):
    with pytest.raises(PlanRejected) as refused:
        engine.carry_out({"tasks": [shell("a", "true", **keys)]})
    assert said in str(refused.value) + str(refused.value.problems)


@pytest.mark.parametrize("decision", ["deny", "ask"])
def test_what_policies_keep_calls_from_writing_is_not_placed(engine, second, decision):
    policy_create(tool="write_file", pattern="^in/", decision=decision, by="system")
    use = shell("use", "true", device="second", after=["make"], inputs={"in/a": "make#a", "b": "make#a"})
    engine.carry_out({"tasks": [shell("make", "echo 1 > a", outputs=["a"]), use]})
    assert ends()["use"][0] == "FAILED"
    assert "in/a: a policy of write_file lets nothing be written there unasked" in ends()["use"][1]


def test_an_approval_holds_the_file_that_will_be_placed_and_not_the_one_that_is_there(engine, device):
    place = device_workspace("laptop")
    place.mkdir(parents=True)
    (place / "run.py").write_text("print('what is there')")
    row = {"id": device.pk, "name": "laptop", "kind": "local", "labels": [], "host": ""}
    gate = Gate(row, list, (), asks=False, is_one_call=False)
    before = gate.describe_call("command", {"argv": ["python3", "run.py"]}, is_chosen=True).action["files"]["run.py"]
    gate.inputs = {"run.py": "a" * 64}
    held = gate.describe_call("command", {"argv": ["python3", "./run.py"]}, is_chosen=True).action["files"]
    assert held == {"./run.py": f"sha256 {'a' * 64}"}
    assert before != held["./run.py"]


def test_an_upload_is_an_input(engine, operator, second):
    session = sessions.session_create(operator, "mine", by="system")
    artifact_upload(session.pk, b"first", name="data.csv", by="system")
    artifact_upload(session.pk, b"second", name="data.csv", by="system")
    engine.carry_out({"tasks": [shell("use", "cat in.csv", inputs={"in.csv": "#data.csv"})]}, session)
    assert ends()["use"] == ("COMPLETED", "")
    assert (device_workspace("laptop") / "in.csv").read_text() == "second"
    engine.carry_out({"tasks": [shell("other", "true", inputs={"in.csv": "#nothing"})]}, session)
    assert "nobody has uploaded nothing to the session" in ends()["other"][1]


def test_what_was_let_go_is_said_where_it_is_wanted(engine):
    made = engine.carry_out({"tasks": [shell("make", "echo 1 > a", outputs=["a"])]})
    artifact_remove(Artifact.objects.get().pk, by="system")
    use = {"task_id": "use", "command": "true", "shell": True, "device": "laptop", "inputs": {"a": "make#a"}}
    lifecycle.constellation_reopen(made.pk, operations=[{"op": "add_task", "parameters": use}], by="system")
    engine.run()
    assert "a: a was removed from the store on" in ends()["use"][1]


def test_a_fork_finds_what_the_old_constellation_has_kept(engine, second):
    use = shell("use", "cat in; exit 1", device="second", after=["make"], inputs={"in": "make#a"})
    made = engine.carry_out({"tasks": [shell("make", "echo 1 > a", outputs=["a"]), use]})
    assert ends()["use"][0] == "FAILED"
    (device_workspace("second") / "in").unlink()
    lifecycle.constellation_fork(made.pk, engine.owner, retry=["use"], by=f"user:{engine.owner.pk}")
    engine.run()
    assert (device_workspace("second") / "in").read_text() == "1\n"
    assert Constellation.objects.count() == 2


def test_a_device_that_takes_no_files_says_so_before_anything_runs(engine, monkeypatch):
    monkeypatch.setattr("agents.tools.handing.FILE_KINDS", set())
    engine.carry_out({"tasks": [shell("make", "touch ran", outputs=["ran"])]})
    assert ends()["make"] == ("FAILED", "a device of the kind local takes no inputs and keeps no outputs")
    assert not (device_workspace("laptop") / "ran").exists()


def test_a_store_that_takes_nothing_fails_the_task_and_nothing_runs_twice(engine, state_dir, monkeypatch):
    monkeypatch.setattr("agents.tools.handing.FIRST_PAUSE_S", 0.0)
    (state_dir / "store").write_text("not a folder")
    engine.carry_out({"tasks": [shell("make", "echo once >> a", outputs=["a"])]})
    state, error = ends()["make"]
    assert state == "FAILED"
    assert error.startswith("its outputs could not be kept: the store")
    assert (device_workspace("laptop") / "a").read_text() == "once\n"


def test_a_result_too_large_for_a_row_is_an_artifact(engine):
    prints = ["python3", "-c", "print('[' + ','.join(['1'] * 50_000) + ']')"]
    engine.carry_out({"tasks": [{"task_id": "a", "device": "laptop", "steps": [{"command": prints}]}]})
    kept = Artifact.objects.get()
    assert (kept.kind, kept.name, kept.media_type, kept.size) == ("result", "result.json", "application/json", 100_001)
    assert Evidence.objects.get(pk=kept.call_id).result is None
