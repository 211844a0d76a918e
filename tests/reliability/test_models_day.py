"""A model's day over MCP: the SDK's client alone, over HTTP, against a real server and a real runner."""

from __future__ import annotations

import json

import pytest

from agents.services.devices import device_create
from agents.streams.verify import verify_database
from tests.agents.conftest import make_token
from tests.constellations.mcp.test_http import Web
from tests.reliability.cluster import until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.live]
SCRIPT = "import json; print(json.dumps({'rows': ['row %d' % n for n in range(5000)]}))"
RESULT = {"rows": [f"row {number}" for number in range(5_000)]}
PLAN = {
    "name": "digits",
    "tasks": [
        {"task_id": "fetch", "device": "laptop", "command": ["python3", "-c", SCRIPT]},
        {"task_id": "train", "command": ["sh", "-c", "echo no such file: digits.csv >&2; exit 2"], "after": ["fetch"]},
        {"task_id": "deploy", "command": ["echo", "deployed"], "after": ["train"]},
    ],
}  # fmt: skip
FAILING = {"task_id": "step-0777", "command": ["sh", "-c", "echo no space left >&2; exit 1"]}
LARGE = {"tasks": [FAILING if n == 777 else {"task_id": f"step-{n:04}", "tool": "noop"} for n in range(1_200)]}
GATED = {"tasks": [{"task_id": "look", "tool": "noop", "confirm": True}, {"task_id": "act", "tool": "noop", "after": ["look"]}]}


class Model:
    """Knows what the tools answer, and nothing else."""

    def __init__(self, web: Web, token: str):
        self._web, self._token = web, token

    def __call__(self, name: str, /, **arguments) -> dict:
        found = self._asked(name, arguments)
        assert not found.is_error, found.content[0].text
        return found.structured_content

    def refused(self, name: str, /, **arguments) -> str:
        found = self._asked(name, arguments)
        assert found.is_error, found.structured_content
        return found.content[0].text

    def _asked(self, name: str, arguments: dict):
        return self._web.ask(self._token, lambda client: client.call_tool(name, arguments))

    def follow(self, started: dict) -> dict:
        """Look at a request again and again until it has ended: what its session says of it then."""
        seen: dict = {}

        def has_ended() -> bool:
            shown = self("get_session", session=started["session"])["interactions"]
            seen.update(next(each for each in shown if each["id"] == started["interaction"]))
            return seen["state"] == "done"

        until(has_ended, f"interaction {started['interaction']} ends")
        return seen


@pytest.fixture
def model(clusters, state_dir, operator):
    device_create("laptop", by="system")
    clusters(runners=1).start()
    token = make_token(operator, "read", "operate", "edit", "approve", name="claude")[1]
    web = Web(state_dir)
    try:
        yield Model(web, token)
        assert "Traceback" not in web.log()
    finally:
        web.kill()


def test_a_models_day(model):
    (laptop,) = model("list_devices")["devices"]
    assert (laptop["name"], model("list_devices")["runners"]) == ("laptop", 1)

    # It starts a request, and again because the answer was lost, and watches it.
    started = model("start_request", plan=json.dumps(PLAN), title="digits", client_id="day-1")
    again = model("start_request", plan=json.dumps(PLAN), title="digits", client_id="day-1")
    assert (again["session"], again["interaction"], again["created"]) == (started["session"], started["interaction"], False)
    ended = model.follow(started)
    assert ended["outcome"] == "partially_failed"
    (graph,) = ended["constellations"]

    # It reads a result of 50 kB in pieces.
    tasks = {task["task_id"]: task for task in model("get_constellation", constellation_id=graph)["tasks"]}
    (cut,) = tasks["fetch"]["cut"]
    assert (tasks["fetch"]["result"], tasks["fetch"]["truncated"], cut["key"], cut["shown"]) == (None, True, "result", 0)
    text, offset = "", 0
    while offset is not None:
        piece = model("read_value", address=cut["more"], offset=offset)
        text, offset = text + piece["text"], piece["next"]
    assert (json.loads(text), len(text)) == (RESULT, cut["total"])
    assert cut["total"] > 50_000

    # It learns what failed and why, mends the task, and retries it in the same step.
    assert model("why", constellation_id=graph, task_id="train")["kind"] == "ended"
    assert model("get_output", constellation_id=graph, task_id="train", offset=-200)["text"] == "no such file: digits.csv\n"
    assert "needs train completed" in model("why", constellation_id=graph, task_id="deploy")["text"]
    mend = {"op": "update_task", "parameters": {"task_id": "train", "command": ["echo", '{"accuracy": 0.97}']}}
    retried = model("retry", constellation_id=graph, tasks=["train"], operations=[mend], reason="the file has moved")
    ended = model.follow({"session": started["session"], "interaction": retried["interaction"]})
    assert ended["outcome"] == "completed"
    found = model("get_constellation", constellation_id=graph)
    assert (found["state"], found["counts"]) == ("COMPLETED", {"COMPLETED": 3})

    # It edits what waits, sees what follows, and takes the edit back; what it started it does not approve itself.
    gated = model("start_request", plan=json.dumps(GATED))
    until(lambda: model("list_approvals", session=gated["session"])["approvals"], "somebody is asked")
    (waiting,) = model("get_session", session=gated["session"])["interactions"][0]["constellations"]
    made = model("add_task", constellation_id=waiting, task_id="lint", tool="noop", after=["act"], edit_id="e1")
    assert (made["changed"], made["consequences"]["critical_path_after"]) == (True, ["look", "act", "lint"])
    assert "there is no task lnit; did you mean lint?" in model.refused("remove_task", constellation_id=waiting, task_id="lnit")
    undone = model("undo_edit", constellation_id=waiting, edit_id="e1", based_on=made["version"])
    assert (undone["changed"], undone["consequences"]["critical_path_after"]) == (True, ["look", "act"])
    assert len(model("list_edits", constellation_id=waiting)["edits"]) == 2
    (asked,) = model("list_approvals", session=gated["session"])["approvals"]
    decide = {"approval_id": asked["id"], "decision": "approve", "digest": asked["digest"]}
    assert "a person decides it" in model.refused("decide_approval", **decide)
    assert model("cancel_task", constellation_id=waiting, task_id="act", reason="not today")["changed"] is True
    assert model("cancel", constellation_id=waiting, reason="enough")["changed"] is True
    assert model.follow(gated)["outcome"] == "cancelled"

    # It finds the one failed task among 1,200.
    many = model.follow(model("start_request", plan=json.dumps(LARGE)))
    assert many["outcome"] == "partially_failed"
    failed = model("get_constellation", constellation_id=many["constellations"][0], state="FAILED")
    assert (failed["counts"], failed["matching"]) == ({"COMPLETED": 1_199, "FAILED": 1}, 1)
    assert [task["task_id"] for task in failed["tasks"]] == ["step-0777"]
    assert "no space left" in failed["tasks"][0]["error"]
    assert list(verify_database()) == []
