"""What a client knows of its calls, over connections that come and go."""

from __future__ import annotations

from agents.devices.protocol.messages import CALLS, PIECE_BYTES, WINDOW, Ack, CallBegun, FilePiece, Output, Result, Update
from tests.agents.devices.client.conftest import Heard


def command(key: int, *argv: str, **more) -> CallBegun:
    return CallBegun(key, key, "command", {"argv": list(argv)}, 30.0, **more)


async def test_a_command_is_told_with_what_it_prints_and_forgotten_when_that_is_stored(heard):
    heard.calls.begin(command(1, "sh", "-c", 'echo "$A"; echo 5', environment={"A": "first"}))
    (result,) = await heard.until(Result)
    assert (result.outcome, result.result, result.exit_code, result.printed) == ("completed", 5, 0, 8)
    assert "".join(each.text for each in heard.said if isinstance(each, Output)) == "first\n5\n"
    assert heard.calls.states() == [{"key": 1, "output": 8, "ended": True}]
    heard.calls.hear_ack(Ack(1, 8))
    assert heard.calls.states()
    heard.calls.hear_ack(Ack(1, None))
    assert heard.calls.states() == []


async def test_no_more_is_under_way_than_the_window_and_the_result_comes_last(heard):
    heard.calls.begin(command(1, "sh", "-c", f"yes | head -c {3 * WINDOW}"))
    for acknowledged in (0, 10 * WINDOW, 2 * WINDOW):  # the second is of more than it was sent
        if acknowledged:
            heard.calls.hear_ack(Ack(1, acknowledged))
        before = sum(len(each.text) for each in heard.said if isinstance(each, Output))
        while (now := sum(len(each.text) for each in heard.said if isinstance(each, Output))) < before + WINDOW:
            await heard.until(Output, len(heard.said) + 1)
        assert now == before + WINDOW
        assert [each for each in heard.calls.next_messages() if isinstance(each, Output)] == []
    assert max(len(each.text) for each in heard.said if isinstance(each, Output)) <= PIECE_BYTES
    heard.calls.resume({1: 3 * WINDOW})
    (result,) = await heard.until(Result)
    assert result is heard.said[-1]
    assert result.printed == 3 * WINDOW
    offsets = [each.offset for each in heard.said[:-1]]
    assert offsets == sorted(offsets)


async def test_after_a_lost_connection_what_the_server_has_not_stored_is_said_again(heard):
    heard.calls.begin(command(1, "sh", "-c", "printf abcdef"))
    await heard.until(Result)
    heard.calls.lose_connection()
    heard.said.clear()
    heard.calls.resume({1: 4})
    (result,) = await heard.until(Result)
    assert [(each.offset, each.text) for each in heard.said if isinstance(each, Output)] == [(4, "ef")]
    assert result.outcome == "completed"


async def test_what_the_server_does_not_want_any_more_is_ended_and_told(heard, place):
    heard.calls.begin(command(1, "sleep", "60"))
    heard.calls.begin(command(2, "sh", "-c", "echo late"))
    await heard.until(Result)
    heard.calls.lose_connection()
    heard.said.clear()
    heard.calls.resume({})
    results = {each.key: each.outcome for each in await heard.until(Result, 2)}
    assert results == {1: "cancelled", 2: "completed"}
    assert not [each for each in heard.said if isinstance(each, Output)]


async def test_the_same_call_told_again_runs_once(heard, place):
    begun = command(1, "sh", "-c", "echo once >>marks; sleep 0.2")
    heard.calls.begin(begun)
    heard.calls.begin(begun)
    await heard.until(Result)
    assert (place.workspace / "marks").read_text() == "once\n"


async def test_a_cancel_ends_all_that_a_command_has_started(heard, place):
    heard.calls.begin(command(1, "sh", "-c", "sleep 60 & setsid sleep 60 & echo ready; wait"))
    await heard.until(Output)
    heard.calls.cancel(1)
    (result,) = await heard.until(Result)
    assert (result.outcome, result.error) == ("cancelled", "interrupted")


async def test_more_calls_than_a_client_takes_are_refused(heard):
    for key in range(1, CALLS + 2):
        heard.calls.begin(CallBegun(key, 1, "nonsense", {}))
    results = await heard.until(Result, CALLS + 1)
    assert [each.key for each in results if "more than" in each.error] == [CALLS + 1]


async def test_a_file_under_way_fails_with_its_connection(heard):
    heard.calls.begin(CallBegun(1, 0, "put_file", {"path": "a", "size": 5, "sha256": "0" * 64}))
    heard.calls.hear_piece(FilePiece(1, 0, "YQ=="))
    await heard.until(Ack)
    heard.calls.lose_connection()
    (result,) = await heard.until(Result)
    assert (result.outcome, result.error_kind) == ("failed", "connection_lost")


async def test_a_command_says_how_far_it_is_until_it_has_ended(place):
    heard = Heard(place, report_s=0.01)
    (place.workspace / "go").unlink(missing_ok=True)
    heard.calls.begin(command(1, "sh", "-c", "printf 'a\n10 %% b\n42.5%%'; until [ -e go ]; do :; done"))
    while (said := (await heard.until(Update, len(heard.said) + 1))[-1]).percent is None:
        pass
    (place.workspace / "go").touch()
    assert (said.key, said.characters, said.lines, said.percent) == (1, 14, 2, 42.5)
    await heard.until(Result)
    assert isinstance(heard.said[-1], Result)
