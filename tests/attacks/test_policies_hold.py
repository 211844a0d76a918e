"""Ways around a policy, tried on the engine at work: none of them does what the policy denies without a person's word."""

import os

import pytest

from agents.devices.workspace import files as file_access
from agents.models import Approval, Evidence
from agents.services import policies
from agents.services.approvals import approval_decide
from agents.services.devices import device_change
from agents.streams import statements
from agents.tools.workspaces import device_workspace
from constellations.models import Task

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("verified")]


@pytest.fixture
def files(device):
    """The workspace of the laptop, with a secret and ways to it."""
    place = device_workspace("laptop")
    (place / "sub").mkdir(parents=True)
    (place / "secret.txt").write_text("s3cret")
    (place / "open.txt").write_text("open")
    (place / "link").symlink_to("secret.txt")
    (place / "sub" / "up").symlink_to("..")
    os.link(place / "secret.txt", place / "hard")
    return place


def deny(**fields):
    policies.policy_create(by="system", **{"decision": "deny", **fields})


def rows(table: str, where: str) -> int:
    """How many there are, asked from inside the engine's loop."""
    cursor = statements.raw_cursor()
    cursor.execute(f"SELECT count(*) FROM {table} WHERE {where}")
    return cursor.fetchone()[0]


def waiting(kind: str = "tool") -> int:
    return rows("agents_approval", f"state = 'waiting' AND kind = '{kind}'")


def carried_out(engine, **task) -> Task:
    """The task, at its end or as soon as a person is asked."""
    engine.submit({"tasks": [{"task_id": "work", "device": "laptop", **task}]})
    engine.run(lambda: waiting() or waiting("task") or rows("agents_inboxitem", "state = 'done'"))
    return Task.objects.get()


def read(path: str) -> dict:
    return {"tool": "read_file", "arguments": {"path": path}}


def test_a_file_is_denied_by_whatever_path_and_others_are_read_as_before(engine, files):
    deny(tool="read_file", pattern=r"^secret\.txt$")
    paths = [
        "secret.txt",
        "./secret.txt",
        ".//secret.txt",
        "link",
        "sub/up/secret.txt",
        "sub/up/link",
        "./open.txt",
        "sub/up/open.txt",
    ]
    engine.submit({"tasks": [{"task_id": f"t{at}", "device": "laptop", **read(path)} for at, path in enumerate(paths)]})
    engine.run()
    ends = {task.arguments["path"]: (task.reason, task.result) for task in Task.objects.all()}
    assert {path for path in paths if ends[path] == ("denied", None)} == set(paths[:6])
    assert [ends[path][1]["content"] for path in paths[6:]] == ["open", "open"]


def test_a_file_of_several_names_is_asked_about(engine, files):
    deny(tool="read_file", pattern=r"^secret\.txt$")
    carried_out(engine, **read("hard"))
    assert "hard links" in Approval.objects.get(state="waiting").title


def test_what_is_allowed_by_its_path_has_to_lead_there(engine, files):
    policies.policy_create(by="system", decision="allow", tool="read_file", pattern=r"^link$", order=1)
    deny(tool="read_file")
    assert carried_out(engine, **read("link")).reason == "denied"


@pytest.mark.parametrize("steps", [False, True])
def test_a_link_that_is_turned_while_a_person_decides_is_no_way(engine, files, operator, steps):
    policies.policy_create(by="system", decision="ask", tool="read_file", pattern="open")
    (files / "shown").symlink_to("open.txt")
    carried_out(engine, **({"steps": [read("shown")]} if steps else read("shown")))
    asked = Approval.objects.get(state="waiting")
    assert asked.action["leads_to"] == "open.txt"
    (files / "shown").unlink()
    (files / "shown").symlink_to("secret.txt")
    approval_decide(asked.pk, "approve", by=f"user:{operator.pk}", digest=asked.digest)
    engine.run()
    task = Task.objects.get()
    assert (task.state, task.result) == ("FAILED", None)
    assert "secret.txt now" in task.error


def test_a_link_that_is_turned_behind_a_gate_is_no_way(engine, files, operator):
    policies.policy_create(by="system", decision="ask", tool="read_file")
    (files / "shown").symlink_to("open.txt")
    carried_out(engine, confirm=True, **read("shown"))
    asked = Approval.objects.get(state="waiting")
    assert (asked.kind, asked.action["leads_to"]) == ("task", "open.txt")
    (files / "shown").unlink()
    (files / "shown").symlink_to("secret.txt")
    approval_decide(asked.pk, "approve", by=f"user:{operator.pk}", digest=asked.digest)
    engine.run(waiting)
    assert Approval.objects.get(state="waiting").action["leads_to"] == "secret.txt"


def test_a_link_that_is_turned_between_judging_and_running_is_no_way(engine, files, monkeypatch):
    deny(tool="read_file", pattern=r"^secret\.txt$")
    (files / "shown").symlink_to("open.txt")
    really = file_access._resolved

    def turned(place, path):
        (files / "shown").unlink()
        (files / "shown").symlink_to("secret.txt")
        return really(place, path)

    monkeypatch.setattr(file_access, "_resolved", turned)
    task = carried_out(engine, steps=[{**read("shown"), "on_failure": "continue", "tries": 1}, {"say": "done"}])
    assert "leads elsewhere now" in Evidence.objects.get(tool="read_file").raw_error
    assert "s3cret" not in str(Evidence.objects.values_list("result", flat=True)) + str(task.result)


def test_a_long_target_hides_nothing(engine, device):
    deny(tool="command", pattern="forbidden")
    long, longer = ["echo", "x" * 19_000, "x" * 19_000, "forbidden"], ["sh", "-c", f"echo {'x' * 19_900}; echo forbidden"]
    commands = enumerate((long, longer))
    engine.submit({"tasks": [{"task_id": f"t{at}", "device": "laptop", "command": argv} for at, argv in commands]})
    engine.run()
    assert set(Task.objects.values_list("reason", flat=True)) == {"denied"}


def test_a_look_is_judged_too(engine, files):
    deny(tool="observe")
    task = carried_out(engine, steps=[{"observe": True, "save": "seen"}])
    assert (task.state, task.result) == ("FAILED", None)
    assert "denied by policy: observe" in task.error


def test_a_look_that_is_asked_about_is_taken_once_it_is_allowed(engine, files, operator):
    policies.policy_create(by="system", decision="ask", tool="observe")
    carried_out(engine, steps=[{"observe": True, "save": "seen"}])
    asked = Approval.objects.get(state="waiting")
    assert asked.action == {"tool": "observe", "arguments": {}}
    approval_decide(asked.pk, "approve", by=f"user:{operator.pk}", digest=asked.digest)
    engine.run()
    assert {file["path"] for file in Task.objects.get().result["seen"]["files"]} == {"secret.txt", "open.txt", "hard"}


def test_who_is_asked_at_a_gate_sees_nothing_that_may_not_be_looked_at(engine, files):
    deny(tool="observe")
    carried_out(engine, confirm=True, tool="noop")
    assert Approval.objects.get(state="waiting").observed is None


@pytest.mark.parametrize("decision", ["deny", "ask"])
def test_app_agents_are_judged_like_their_host(engine, files, decision):
    policies.policy_create(by="system", decision=decision, tool="read_file", pattern="secret")
    task = carried_out(engine, steps=[{"delegate": {"name": "other", "steps": [read("./secret.txt")]}}])
    assert waiting() if decision == "ask" else "denied by policy" in task.error


def test_a_label_counts_and_a_name_does_not(engine, device):
    deny(label="prod", tool="command")
    assert carried_out(engine, command=["true"]).state == "COMPLETED"
    device_change(device.pk, labels=["prod"], by="system")
    engine.submit({"tasks": [{"task_id": "work", "device": "laptop", "command": ["true"]}]})
    engine.run()
    assert Task.objects.latest("id").reason == "denied"


# what shells run

DENIED = [
    "rm -f v", "r''m -f v", "\\rm -f v", '"rm" -f v', "/bin/rm -f v", "true && rm -f v", "(rm -f v)", "{ rm -f v; }",
    'echo "$(rm -f v)"', "echo `rm -f v`", "case x in x) rm -f v;; esac", "f() { rm -f v; }; f", "if rm -f v; then :; fi",
    "A=1 rm -f v", "> log rm -f v", "echo v | xargs rm -f", "cat <<E\n$(rm -f v)\nE\n", "nohup rm -f v", "sh -c 'rm -f v'",
    "sh -c -e 'rm -f v'", "env -i /bin/sh -ec 'rm -f v'", "time rm -f v", "rm \\\n -f v", "find . -name v -exec rm -f {} +",
    "find . -name v -exec rm {} +", "echo v | xargs rm", "find . -name v -exec sh -c 'rm -f \"$1\"' x {} ';'",
    "zsh -c 'rm -f v'",
]  # fmt: skip
ASKED = [
    "X=rm; $X -f v", "$(echo rm) -f v", "eval 'r''m -f v'", "echo cm0gLWYgdg== | base64 -d | sh",
    "cat <<E | sh\nrm -f v\nE\n", "printf 'rm -f v' > c.sh; . ./c.sh", "printf 'rm -f v' > c.sh; sh c.sh", "sh < v",
    "/bin/r? -f v", "trap 'rm -f v' EXIT", "alias x=rm\nx -f v", 'set -- rm -f v; "$@"', "$'rm' -f v",
    "python3 -c 'import os; os.remove(\"v\")'", "perl -e 'unlink \"v\"'", "awk 'BEGIN { system(\"rm -f v\") }'",
    "bash -s <<< 'rm -f v'", "r\\\nm -f v", "{rm,-f,v}", "if", "env -S 'rm -f v'",
]  # fmt: skip
FREE = ["echo hello", "ls > l; cat l", 'echo "$HOME" | wc -c', "for i in 1 2; do echo $i; done", "echo 'rm -f v'", "# rm -f v"]


def lines(*wanted: str) -> dict:
    commands = (["sh", "-c", line] for line in wanted)
    return {"tasks": [{"task_id": f"t{at}", "device": "laptop", "command": argv} for at, argv in enumerate(commands)]}


def test_no_line_of_a_shell_does_what_is_denied(engine, files):
    (files / "v").write_text("v")
    deny(tool="command", pattern="^rm ")
    engine.submit(lines(*DENIED, *ASKED))
    engine.run(lambda: rows("constellations_task", "state = 'FAILED'") + waiting() == len(DENIED) + len(ASKED))
    assert set(Task.objects.filter(state="FAILED").values_list("reason", flat=True)) == {"denied"}
    assert Task.objects.filter(state="FAILED").count() == len(DENIED)
    assert (files / "v").exists()


def test_what_is_known_to_be_harmless_just_runs(engine, files):
    deny(tool="command", pattern="^rm ")
    engine.submit(lines(*FREE))
    engine.run()
    assert set(Task.objects.values_list("state", flat=True)) == {"COMPLETED"}


@pytest.mark.parametrize(
    "argv",
    [["cat", "a b"], ["cat", "sub/a b"], ["dd", "if=link"], ["grep", "--file=link", "x"], ["sh", "-c", "cat 'a b'"]],
    ids=" ".join,
)
def test_a_word_of_a_command_is_denied_by_where_it_leads(engine, files, argv):
    """Also one with a blank, and one behind the name of an option."""
    (files / "a b").symlink_to("secret.txt")
    (files / "sub" / "a b").symlink_to("../secret.txt")
    deny(tool="command", pattern=r"secret\.txt")
    task = carried_out(engine, command=argv)
    assert (task.state, task.reason) == ("FAILED", "denied")


def test_a_command_with_a_file_of_several_names_is_asked_about(engine, files):
    deny(tool="command", pattern=r"secret\.txt")
    carried_out(engine, command=["cat", "hard"])
    assert Approval.objects.get().title.endswith("2 names (hard links), and only one of them is known")


def test_a_file_of_several_names_is_nothing_to_a_policy_about_programs(engine, files):
    deny(tool="command", pattern="^rm ")
    assert carried_out(engine, command=["cat", "hard"]).state == "COMPLETED"
