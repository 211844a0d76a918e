"""docs/device-protocol.md is what the types of messages say."""

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command

from agents.devices.protocol.messages import TYPES, Hello
from project.device_docs import message_section, protocol_document

pytestmark = pytest.mark.one_database


def test_the_page_is_current():
    page = (settings.BASE_DIR / "docs" / "device-protocol.md").read_text()
    assert page == protocol_document(), "docs/device-protocol.md is not current: run `manage.py device_docs`"


def test_every_message_and_field_is_on_the_page():
    page = protocol_document()
    assert all(f"## `{message.type}`, " in page for message in TYPES)
    assert "| `instance` | text, at most 64 characters |" in message_section(Hello)
    assert "may be left out" in message_section(Hello)


def test_the_command_writes_the_page_and_says_when_it_is_not_current(tmp_path, capsys):
    path = tmp_path / "page.md"
    with pytest.raises(CommandError, match=r"run `manage\.py device_docs`"):
        call_command("device_docs", path=path, check=True)
    call_command("device_docs", path=path)
    call_command("device_docs", path=path, check=True)
    assert path.read_text() == protocol_document()
