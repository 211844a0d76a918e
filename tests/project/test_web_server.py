"""What the web server does with what comes too late."""

from __future__ import annotations

import pytest

from project.web_server import BoundedSocket


@pytest.mark.parametrize("state", [BoundedSocket.STATE_CLOSING, BoundedSocket.STATE_CLOSED])
@pytest.mark.parametrize("message", [{"type": "websocket.send", "text": "late"}, {"type": "websocket.close"}])
def test_what_is_said_to_a_client_that_is_gone_goes_nowhere(state, message):
    socket = BoundedSocket()
    socket.state, socket.client_addr = state, None
    socket.handle_reply(message)
    assert socket.state == state
