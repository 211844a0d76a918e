"""Nudges between the processes of a host."""

import os
import socket

import pytest

from agents.streams import nudges


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(nudges, "listeners_dir", lambda: tmp_path)
    os.utime(tmp_path, (1, 1))  # long before anybody listens, whatever the file system's clock
    return tmp_path


def test_who_has_just_begun_to_listen_is_told_at_once(folder):
    post = nudges.NudgePost()
    post.send_texts(nudges.encode_nudge({1: 1}))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.setblocking(False)
        (folder / f"1-1-{listener.getsockname()[1]}").touch()
        post.send_texts(nudges.encode_nudge({1: 2}))
        assert nudges.decode_nudge(listener.recv(100).decode()) == [(1, 2)]


def test_a_folder_that_is_gone_breaks_no_commit(folder):
    post = nudges.NudgePost()
    post.send_texts(nudges.encode_nudge({1: 1}))
    folder.rmdir()
    post.send_texts(nudges.encode_nudge({1: 2}))


def test_a_nudge_is_about_streams_or_about_what_models_say():
    (text,) = nudges.encode_marks(nudges.DELTAS, [5, 77])
    assert (nudges.decode_nudge(text), nudges.decode_marks(text)) == ([], [("d", 5), ("d", 77)])
    (text,) = nudges.encode_nudge({5: 9})
    assert (nudges.decode_nudge(text), nudges.decode_marks(text)) == ([(5, 9)], [])
