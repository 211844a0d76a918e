"""What a terminal shows of a run."""

import io
import re

import pytest
from django.utils import timezone
from rich.console import Console

from project.demo.demo import Asked, Demo, demo_devices, demo_user, furnish_installation, result_lines
from project.demo.following import Following
from project.demo.progress import Progress, elapsed_text

AT = "2026-11-21T03:04:05.123456Z"
LATER = "2026-11-21T03:04:07.623456Z"


def task(key: int, state: str = "PENDING", **fields) -> dict:
    return {
        "id": key, "task_id": f"task_{key:03}", "name": "", "state": state, "device_id": None, "wanted_device": "laptop",
        "device_type": "", "started_at": None, "ended_at": None, "result": None, **fields,
    }  # fmt: skip


@pytest.fixture
def run() -> Following:
    run = Following(7)
    run.rows = {
        "task": {
            "2": task(2, "RUNNING", name="train", started_at=AT),
            "1": task(1, "COMPLETED", name="fetch_data", started_at=AT, ended_at=LATER, result={"rows": 1797}),
        }
    }
    return run


def text_of(run: Following, width: int, terminal: bool = True) -> str:
    console = Console(file=io.StringIO(), width=width, height=20, force_terminal=terminal, color_system=None)
    progress = Progress(console, clock=lambda: 1795230247.623456)
    progress.show(run)
    progress.close()
    return console.file.getvalue()


class TestLines:
    def test_a_transition_says_what_went_where_and_why(self, run):
        told = {"machine": "task", "id": 2, "from_state": "RUNNING", "to_state": "FAILED", "event": "fail", "reason": "timeout"}
        event = {"seq": 1, "type": "state_changed", "at": AT, "data": told}
        assert list(run.lines(event)) == ["03:04:05.123  train on laptop: RUNNING > FAILED  (timeout)"]

    def test_tasks_skipped_in_one_event_have_a_line_each(self, run):
        told = [
            {
                "machine": "task",
                "id": key,
                "from_state": "PENDING",
                "to_state": "CANCELLED",
                "event": "skip",
                "reason": "skipped",
            }
            for key in (1, 2)
        ]
        lines = list(run.lines({"seq": 1, "type": "tasks_skipped", "at": AT, "data": {"transitions": told}}))
        assert [line[14:] for line in lines] == [
            "fetch_data on laptop: PENDING > CANCELLED  (skipped)",
            "train on laptop: PENDING > CANCELLED  (skipped)",
        ]

    def test_a_machine_without_a_known_row_is_called_by_its_kind(self, run):
        told = {
            "machine": "constellation_agent",
            "id": 9,
            "from_state": "START",
            "to_state": "FAIL",
            "event": "cancel",
            "reason": "",
        }
        assert next(run.lines({"type": "state_changed", "at": AT, "data": told}))[14:] == "constellation agent: START > FAIL"

    def test_an_edit_names_its_author_and_reason(self, run):
        add = {"edit": [{"id": 5, "author": "planner", "reason": "accuracy too low"}]}
        assert list(run.lines({"type": "edited", "at": AT, "data": {"add": add}})) == [
            "03:04:05.123  edit by planner: accuracy too low"
        ]

    def test_a_refused_edit_names_its_rule_and_why(self, run):
        told = {"rule": "stop", "message": "operation 1 (remove_task), task_id: train already runs", "problems": []}
        assert list(run.lines({"type": "edit_refused", "at": AT, "data": told})) == [
            "03:04:05.123  edit of the rule stop refused: operation 1 (remove_task), task_id: train already runs"
        ]


class TestBars:
    def test_tasks_are_in_the_order_in_which_they_came(self, run):
        shown = text_of(run, 100)
        assert shown.index("fetch_data") < shown.index("train")

    def test_a_row_has_state_device_and_time(self, run):
        line = next(line for line in text_of(run, 100).splitlines() if "fetch_data" in line)
        assert line.split()[-4:] == ["COMPLETED", "laptop", "2.5", "s"]

    def test_a_narrow_terminal_shows_name_state_and_time(self, run):
        shown = text_of(run, 40)
        assert "laptop" not in shown
        assert all(len(line) <= 40 for line in shown.splitlines() if "COMPLETED" in line)

    def test_more_tasks_than_lines_show_the_newest(self, run):
        run.rows["task"] = {str(key): task(key) for key in range(1, 101)}
        shown = text_of(run, 80)
        assert "task_100" in shown
        assert "task_001" not in shown

    def test_what_is_no_terminal_gets_no_bars(self, run):
        assert text_of(run, 80, terminal=False) == ""

    def test_names_are_never_taken_for_markup(self, run):
        run.rows["task"] = {"1": task(1, name="[bold]x[/bold]")}
        assert "[bold]x[/bold]" in text_of(run, 100)

    @pytest.mark.parametrize(
        ("fields", "text"),
        [({}, ""), ({"started_at": AT}, "10.0 s"), ({"started_at": AT, "ended_at": LATER}, "2.5 s")],
    )
    def test_time_runs_from_the_start_to_the_end(self, fields, text):
        assert elapsed_text(task(1, **fields), now=1795230255.123456) == text


class TestResult:
    def test_the_result_lists_outcome_summary_results_and_edits(self, run):
        run.rows["edit"] = {"5": {"id": 5, "author": "planner", "reason": "accuracy too low"}}
        request = {
            "state": "done",
            "outcome": "completed",
            "result": {"summary": "all done", "completed": 2, "results": {"a": 1}},
        }
        assert result_lines(run, request)[1:-1] == [
            "Outcome: completed",
            "  summary all done, completed 2",
            "  fetch_data: rows 1797",
            "Edit by planner: accuracy too low",
        ]


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("roles")
class TestDemo:
    def test_user_and_devices_are_made_once(self):
        from agents.models import Device

        users = {demo_user().pk, demo_user().pk}
        demo_devices()
        demo_devices()
        assert len(users) == 1
        assert not demo_user().has_usable_password()
        assert set(demo_user().groups.values_list("name", flat=True)) == {"operator", "admin"}
        assert set(Device.objects.values_list("name", flat=True)) == {"laptop", "gpu_server", "test_server", "prod_server"}

    def test_only_the_demonstration_of_a_model_lets_one_run_commands_unasked(self):
        from agents.models import Device

        demo_devices()
        assert not any(Device.objects.values_list("unasked", flat=True))
        demo_devices(for_model=True)
        let = {
            name: {" ".join(words[:3]) for words in unasked["commands"]}
            for name, unasked in Device.objects.values_list("name", "unasked")
        }
        assert let == {
            "laptop": {"python -m examples.digits.fetch"}, "gpu_server": {"python -m examples.digits.train"},
            "test_server": {"python -m examples.digits.evaluate"}, "prod_server": {"python -m examples.digits.deploy"},
        }  # fmt: skip

    def test_nothing_is_submitted_before_everything_is_ready(self, settings, client):
        from agents.models import Session

        console = Console(file=io.StringIO(), width=400)
        ready: list[bool] = []
        demo_devices()
        plan = (settings.BASE_DIR / "examples" / "digits.yaml").read_text()
        demo = Demo(Asked("digits", {"plan": plan}), "http://127.0.0.1:1/", Progress(console), lambda: bool(ready), stays=False)
        assert demo.step() is None
        assert not Session.objects.exists()
        ready.append(True)
        assert demo.step() is None
        session = Session.objects.get()
        assert session.title == "digits"
        link = re.search(r"http://127\.0\.0\.1:1(/login/link/\S+)", console.file.getvalue())[1]
        assert client.get(link)["Location"] == f"/sessions/{session.pk}/"
        assert client.get(f"/sessions/{session.pk}/").status_code == 200


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("roles")
class TestFirstStart:
    def test_a_new_installation_gets_devices_and_somebody_to_log_in(self):
        from agents.models import Device

        newcomer = furnish_installation()
        assert newcomer is not None
        assert newcomer.username == "demo"
        assert set(Device.objects.values_list("name", flat=True)) == {"laptop", "gpu_server", "test_server", "prod_server"}

    def test_only_the_demonstration_of_a_model_lets_one_run_commands_unasked(self):
        from agents.models import Device

        demo_devices()
        assert not any(Device.objects.values_list("unasked", flat=True))
        demo_devices(for_model=True)
        let = {
            name: {" ".join(words[:3]) for words in unasked["commands"]}
            for name, unasked in Device.objects.values_list("name", "unasked")
        }
        assert let == {
            "laptop": {"python -m examples.digits.fetch"}, "gpu_server": {"python -m examples.digits.train"},
            "test_server": {"python -m examples.digits.evaluate"}, "prod_server": {"python -m examples.digits.deploy"},
        }  # fmt: skip

    def test_one_that_has_devices_and_people_is_left_as_it_is(self, operator):
        from agents.models import Device
        from agents.services.devices import device_create

        device_create("mine", by="system")
        operator.last_login = timezone.now()
        operator.save()
        assert furnish_installation() is None
        assert list(Device.objects.values_list("name", flat=True)) == ["mine"]
