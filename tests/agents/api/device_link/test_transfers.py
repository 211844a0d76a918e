"""Files of a call on a machine that dials in: inputs are there before it, outputs are kept after it."""

from __future__ import annotations

import hashlib

import pytest

from agents.artifacts.keeping import keep_artifact
from agents.artifacts.reading import whole_content
from agents.links.rows import Wishes, write_wishes
from agents.models import Device, DeviceCall, Stream
from agents.services import sessions
from agents.tools.calls import Call
from tests.attacks.web_server import web_server
from tests.reliability.cluster import until
from tests.reliability.fleet import DeviceClient, make_remote

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.live]

LARGE = bytes(range(256)) * 8_000
"""Two megabytes: eight times what may be under way."""


@pytest.fixture
def session(operator) -> int:
    return sessions.session_create(operator, by=f"user:{operator.pk}").pk


@pytest.fixture
def client(transactional_db, state_dir, tmp_path):
    with web_server(state_dir) as server:
        made = DeviceClient(tmp_path, make_remote("far"))
        made.start(f"http://127.0.0.1:{server.port}")
        made.until_connected()
        yield made
        made.kill()


def carry_out(client: DeviceClient, session: int, key: int, command: str, inputs=(), outputs=()) -> dict:
    """The outcome of a command, asked for as a runner does."""
    device = Device.objects.filter(pk=client.device.pk).values().get()
    fence = Stream.objects.values_list("token", flat=True).get(pk=session)
    argv = {"argv": ["sh", "-c", command]}
    call = Call(key, session, "command", argv, device, 30.0, key=key, fence=fence, inputs=inputs, outputs=outputs)
    assert write_wishes(Wishes(calls=[call])) == []
    until(lambda: DeviceCall.objects.filter(pk=key, state="ended").exists(), client.log())
    return DeviceCall.objects.values_list("outcome", flat=True).get(pk=key)


def given(path: str, content: bytes) -> dict:
    kept = keep_artifact(content, name="content")
    return {"path": path, "sha256": kept["sha256"], "size": kept["size"]}


def test_inputs_go_there_and_outputs_come_back_whatever_their_size(client, session):
    inputs = [given("in/large", LARGE), given("in/empty", b"")]
    command = "cat in/large in/large >out.bin && cp in/empty nothing && sha256sum <in/large | cut -c1-64"
    outcome = carry_out(client, session, 1, command, inputs, ["out.*", "nothing"])
    assert outcome["outcome"] == "completed", outcome
    assert hashlib.sha256(LARGE).hexdigest() in outcome["text"]
    kept = {each["name"]: each for each in outcome["artifacts"]}
    assert sorted(kept) == ["nothing", "out.bin"]
    assert b"".join(whole_content(kept["out.bin"]["sha256"])) == LARGE + LARGE
    assert kept["nothing"]["size"] == 0


def test_an_input_that_is_not_there_or_climbs_out_is_a_failure_before_anything_runs(client, session):
    for key, inputs in enumerate(([{"path": "a", "missing": "no such task"}], [given("../out", b"x")]), start=1):
        outcome = carry_out(client, session, key, "touch ran", inputs)
        assert (outcome["outcome"], outcome["error_kind"]) == ("failed", "input"), outcome
    assert not (client.folder / "workspace" / "ran").exists()
    assert not (client.folder / "out").exists()


def test_links_are_no_outputs(client, session):
    outcome = carry_out(client, session, 1, "ln -s /etc/passwd link; echo 1 >file", outputs=["*"])
    assert [each["name"] for each in outcome["artifacts"]] == ["file"]
