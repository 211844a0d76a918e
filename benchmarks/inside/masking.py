"""What the mask costs: bytes a second of texts, and of a stream's events as they are read for clients."""

import os
import secrets
import time
from statistics import median
from unittest import mock

from agents.masks.masking import Masker
from agents.models import Session
from agents.streams import tail
from benchmarks.inside import graphs

KNOWN = 100
"""Values that are known besides the installation's own."""
READS = 5
KEY = b'"ghp_0123456789abcdefghij0123456789"'


def measure(tasks: int) -> dict[str, float]:
    """MB/s of events without a secret, one by one and with a key in each, and of reading them with and without the mask."""
    graphs.layered(tasks)
    values = [secrets.token_urlsafe(24) for _ in range(KNOWN)]
    begun = time.process_time()
    masker = Masker(values)
    made = time.process_time() - begun
    stream = Session.objects.latest("pk").pk
    texts = [event.json for event in _read(stream)]
    planted = [text.replace(b'"at"', b'"k":' + KEY + b',"at"', 1) for text in texts]
    whole = b"[" + b",".join(texts) + b"]"
    os.environ.update({f"ORRERY_SECRET_BENCHMARK_{number}": value for number, value in enumerate(values)})
    masker.json(whole)  # the search makes itself ready as it goes
    masked, plain = [], []
    for _ in range(READS):  # in turn, so that both meet the same machine
        masked.append(_seconds(lambda: _read(stream)))
        with mock.patch.object(tail, "mask_jsons", lambda texts: texts):
            plain.append(_seconds(lambda: _read(stream)))
    size = len(whole) / 1e6
    return {
        "made": made, "events": len(texts), "bytes": len(whole),
        "clean": size / _seconds(lambda: masker.json(whole)),
        "each": size / _seconds(lambda: [masker.json(text) for text in texts]),
        "planted": sum(map(len, planted)) / 1e6 / _seconds(lambda: [masker.json(text) for text in planted]),
        "masked": len(texts) / median(masked), "plain": len(texts) / median(plain),
    }  # fmt: skip


def _read(stream: int) -> list[tail.EncodedEvent]:
    return tail.read_events(stream, 0, events=1_000_000, size=1 << 40)


def _seconds(work) -> float:
    """Of the processor: nothing of it waits."""
    begun = time.process_time()
    work()
    return time.process_time() - begun
