"""Who is no device, or not that one, or does not keep to the protocol: refused and logged, and nobody else notices."""

from __future__ import annotations

import json
from contextlib import closing

import pytest
from websockets.exceptions import ConnectionClosed

from agents.devices.protocol.frames import FRAME_BYTES
from agents.devices.protocol.messages import Ack, CallBegun, Cancel, Output, Refused, Welcome
from agents.links.rows import Wishes, lose_calls, write_wishes
from agents.models import Device, DeviceCall, DeviceCallMessage, DeviceReading, Event, Stream, Transition
from agents.services import sessions
from agents.services.device_tokens import device_tokens_revoke, enrol, enrolment_create
from agents.streams.verify import verify_database
from agents.tools.calls import Call
from tests.agents.conftest import make_token
from tests.agents.devices.dialling import Dialled
from tests.attacks.web_server import web_server
from tests.reliability.cluster import until
from tests.reliability.fleet import make_remote

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.attack]


@pytest.fixture
def server(transactional_db, state_dir):
    with web_server(state_dir) as running:
        running.log = state_dir / "web.log"
        yield running


@pytest.fixture
def session(transactional_db, operator) -> int:
    return sessions.session_create(operator, by=f"user:{operator.pk}").pk


def token_of(device: Device) -> str:
    return enrol(enrolment_create(device.pk, by="system")[1])


def refused(server, token: str, **said) -> tuple[str, int]:
    """The code of the refusal, and that of the close."""
    with closing(Dialled(server.port, token)) as device:
        answer = device.greet(**said)
        assert isinstance(answer, Refused), answer
        return answer.code, device.code()


def ask(device: Device, session: int, key: int) -> None:
    """Write a call for the device, as a runner does."""
    row = Device.objects.filter(pk=device.pk).values().get()
    token = Stream.objects.values_list("token", flat=True).get(pk=session)
    assert write_wishes(Wishes(calls=[Call(7, session, "command", {"argv": ["true"]}, row, None, key=key, fence=token)])) == []


def ended(key: int) -> dict | None:
    return DeviceCall.objects.values_list("outcome", flat=True).get(pk=key)


def serves(first: Dialled, device: Device, session: int, key: int) -> None:
    """The connection is whole: a call reaches it, and its result counts."""
    ask(device, session, key)
    begun = first.hear()
    assert isinstance(begun, CallBegun)
    assert begun.key == key
    first.answer(key, "done")
    until(lambda: (ended(key) or {}).get("result") == "done", "the result counts")
    first.hear()  # its acknowledgement


def test_only_a_device_s_own_token_opens_its_connection(server, session, django_user_model):
    far, near = make_remote("far"), make_remote("near")
    token = token_of(far)
    user = django_user_model.objects.create_user("somebody", is_superuser=True)
    users = make_token(user, "admin")
    for wrong in ("", "nonsense", "ord_" + "0" * 64, users, token + "0"):
        assert refused(server, wrong) == ("bad_token", 4401), wrong
    with closing(Dialled(server.port, token, Origin="https://elsewhere.example")) as first:
        assert isinstance(first.greet(), Welcome)
        assert refused(server, token, device="near") == ("wrong_device", 4403)
        assert refused(server, token) == ("already_connected", 4409)
        assert refused(server, token, instance="guessed") == ("already_connected", 4409)
        serves(first, far, session, 1)
    assert Device.objects.get(pk=near.pk).state == "disconnected"
    assert "is refused: already_connected" in server.log.read_text()
    assert token not in server.log.read_text()
    assert list(verify_database()) == []


def test_a_one_time_token_is_exchanged_once_and_opens_nothing_else(server):
    far = make_remote("far")
    once = enrolment_create(far.pk, by="system")[1]
    with closing(Dialled(server.port, once)) as device:
        welcome = device.greet()
        assert welcome.token.startswith("ord_")
        assert refused(server, once)[0] == "bad_token"
        assert server.ask(path="/api/devices/", Authorization=f"Bearer {welcome.token}")[0] == 401
    with closing(Dialled(server.port, welcome.token)) as device:
        until(lambda: Transition.objects.filter(stream_id=far.pk, to_state="connected").exists(), "it was connected")


def test_what_is_not_the_protocol_is_refused_at_the_handshake_and_leaves_the_device(server):
    far = make_remote("far")
    token = token_of(far)
    assert refused(server, token, protocol=99) == ("bad_version", 4400)
    for text in ("nonsense", "[]", json.dumps({"type": "bye", "reason": ""}), json.dumps({"type": "hello"}), "a" * FRAME_BYTES):
        with closing(Dialled(server.port, token)) as device:
            device.say_text(text)
            assert device.hear().code == "malformed"
            assert device.code() == 4400
    with closing(Dialled(server.port, token)) as device:
        device.socket.send(b"\x00\x01")
        assert device.hear().code == "malformed"
    device = Dialled(server.port, token)
    with closing(device):
        device.socket.send("a" * (FRAME_BYTES + 1))
        with pytest.raises(ConnectionClosed):
            device.hear()
    far.refresh_from_db()
    assert far.state == "disconnected"
    assert "version 99" in far.reason
    with closing(Dialled(server.port, token)) as device:
        assert isinstance(device.greet(), Welcome)


def test_a_device_that_breaks_the_protocol_has_failed_and_the_others_notice_nothing(server, session):
    bad, good = make_remote("bad"), make_remote("good")
    with closing(Dialled(server.port, token_of(good))) as first, closing(Dialled(server.port, token_of(bad))) as second:
        assert isinstance(first.greet(), Welcome)
        assert isinstance(second.greet(), Welcome)
        second.say_text('{"type": "output", "key": 1, "offset": 0, "text": "\\u0000"}')
        assert second.code() == 4400
        until(lambda: Device.objects.get(pk=bad.pk).state == "failed", "it has failed")
        assert "protocol" in Device.objects.get(pk=bad.pk).reason
        serves(first, good, session, 1)
    assert list(verify_database()) == []


def test_how_a_device_was_is_kept_by_the_process_that_holds_it(server):
    far = make_remote("far")
    with closing(Dialled(server.port, token_of(far))) as device:
        assert isinstance(device.greet(), Welcome)
        until(lambda: DeviceReading.objects.filter(device=far.pk).exists(), "a reading is kept")


def test_results_of_calls_that_are_not_a_device_s_own_change_nothing(server, session):
    far, near = make_remote("far"), make_remote("near")
    with closing(Dialled(server.port, token_of(far))) as first, closing(Dialled(server.port, token_of(near))) as second:
        assert isinstance(first.greet(), Welcome)
        assert isinstance(second.greet(), Welcome)
        ask(far, session, 1)
        assert first.hear().key == 1
        second.answer(1, "stolen")
        second.answer(12345, "made up")
        told = [second.hear(), second.hear()]
        assert [(each.code, each.key) for each in told] == [("foreign_call", 1), ("foreign_call", 12345)]
        assert ended(1) is None
        lose_calls(far.pk, "its attempt was lost")
        first.answer(1, "late")
        until(lambda: Event.objects.filter(stream_id=far.pk, type="late_result").exists(), "the history says so")
        assert ended(1)["outcome"] == "lost"
        assert first.hear() == Ack(1, None)
        second.say(Output(1, 0, "made up"))
        assert second.hear() == Ack(1, 7)
        assert not DeviceCallMessage.objects.exists()
        serves(first, far, session, 2)
        serves(second, near, session, 3)
    assert "is not its own" in server.log.read_text()


def test_a_revoked_token_ends_the_connection_and_its_calls(server, session):
    far = make_remote("far")
    token = token_of(far)
    with closing(Dialled(server.port, token)) as first:
        assert isinstance(first.greet(), Welcome)
        ask(far, session, 1)
        assert first.hear().key == 1
        device_tokens_revoke(far.pk, by="user:1")
        told = first.hear()
        while isinstance(told, Cancel):
            told = first.hear()
        assert told.end_calls
        assert first.code() == 1000
    assert ended(1)["outcome"] == "lost"
    assert refused(server, token) == ("bad_token", 4401)
