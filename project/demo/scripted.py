"""A scripted model for the demonstration: served by this process on a port of its own, and the profile that leads to it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agents.llm.scripted.script import read_script
from agents.llm.scripted.server import HOST, ScriptedModel, make_server
from agents.models import ModelProfile
from agents.services.model_profiles import model_profile_change, model_profile_create

WORDS = (
    "Download MNIST dataset on laptop, train CNN on GPU server, evaluate on test server, deploy to production if accuracy > 95%"
)
"""What is asked, where nothing else is."""
PROFILE = "demo"
"""The profile's name; it has no purpose, so that it is asked only where it is named."""
PURPOSES = ("creation", "editing", "device_agent")
START_S = 30.0
PORT_LOOK_S = 0.02


@contextmanager
def scripted_profile(script: Path) -> Iterator[dict[str, str]]:
    """Serve the script; gives what a session's `models` say, by purpose. Raises ScriptRejected, TimeoutError.

    This machine's own address must be among those where models may be asked (ORRERY_MODEL_HOSTS).
    """
    server = make_server(ScriptedModel(read_script(script.read_bytes())), 0)
    thread = threading.Thread(target=server.run, name="scripted model", daemon=True)
    thread.start()
    patience = time.monotonic() + START_S
    while not server.started:
        if time.monotonic() > patience or not thread.is_alive():
            raise TimeoutError(f"the scripted model did not start within {START_S:g} s")
        time.sleep(PORT_LOOK_S)
    try:
        _keep_profile(f"http://{HOST}:{server.servers[0].sockets[0].getsockname()[1]}/v1")
        yield dict.fromkeys(PURPOSES, PROFILE)
    finally:
        server.should_exit = True
        thread.join(START_S)


def _keep_profile(base_url: str) -> None:
    known = ModelProfile.objects.filter(name=PROFILE).first()
    if known is None:
        model_profile_create(PROFILE, provider="openai_compatible", model="scripted", base_url=base_url, by="system")
    else:
        model_profile_change(known.pk, base_url=base_url, by="system")
