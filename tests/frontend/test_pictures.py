"""The pictures of the README: they are there, they are small, and the one that moves is one that browsers can play."""

import re
import struct
from pathlib import Path

from django.conf import settings

README = (Path(settings.BASE_DIR) / "README.md").read_text()
FOLDER = Path(settings.BASE_DIR) / "docs" / "pictures"
MOST_BYTES = 1_000_000


def chunks_of(webp: bytes) -> list[tuple[bytes, bytes]]:
    """(name, data) of each chunk of the file, which must fill it exactly."""
    kind, length, form = struct.unpack("<4sI4s", webp[:12])
    assert (kind, form, length) == (b"RIFF", b"WEBP", len(webp) - 8)
    at, found = 12, []
    while at < len(webp):
        name, size = struct.unpack("<4sI", webp[at : at + 8])
        found.append((name, webp[at + 8 : at + 8 + size]))
        at += 8 + size + size % 2
    return found


def test_the_readme_shows_each_picture_and_they_are_small():
    shown = set(re.findall(r"!\[[^\]]+\]\(docs/pictures/([\w.]+)\)", README))
    assert shown == {file.name for file in FOLDER.iterdir()}
    assert sum(file.stat().st_size for file in FOLDER.iterdir()) < MOST_BYTES


def test_the_one_that_moves_has_frames_of_its_own_size():
    (name, head), (loop, _), *frames = chunks_of((FOLDER / "run.webp").read_bytes())
    assert (name, loop) == (b"VP8X", b"ANIM")
    assert len(frames) > 5
    for kind, frame in frames:
        assert kind == b"ANMF"
        assert frame[6:12] == head[4:10]  # width and height
        assert frame[16:20] in (b"VP8 ", b"VP8L", b"ALPH")
