"""`manage.py models`: the model profiles; `manage.py models check NAME` makes one real call."""

import asyncio
from typing import Any

from django.core.management.base import CommandError, CommandParser

from agents.llm.conversation import Message, Text
from agents.llm.exchange import Ended, ModelRequest, Patience, Reply
from agents.llm.faults import ModelFault
from agents.llm.port import stream_answer
from agents.llm.profiles import Profile, key_place, read_profiles
from agents.masks.doors import MaskedCommand

QUESTION = "Answer with the one word: ready"
CHECK_S = 60.0
"""That a check takes at most."""


class Command(MaskedCommand):
    help = "List the model profiles, or ask the model of one of them a short question."

    def add_arguments(self, parser: CommandParser) -> None:
        does = parser.add_subparsers(dest="does")
        check = does.add_parser("check", help="make one real call, which costs what a short question costs")
        check.add_argument("name", help="of the profile")

    def handle(self, *args: Any, **options: Any) -> None:
        profiles = read_profiles()
        if options["does"] == "check":
            self._check(profiles, options["name"])
        elif not profiles:
            self.stdout.write("No model profile yet: docs/models.md says how to make one.")
        for profile in profiles.values() if options["does"] is None else ():
            self.stdout.write(describe(profile))

    def _check(self, profiles: dict[str, Profile], name: str) -> None:
        if name not in profiles:
            raise CommandError(f"there is no model profile {name}; there are: {', '.join(profiles) or 'none'}")
        try:
            reply = asyncio.run(ask(profiles[name]))
        except ModelFault as fault:
            facts = [f"status {fault.http_status}"] if fault.http_status else []
            facts += [f"try again after {fault.retry_after_s:g} s"] if fault.retry_after_s is not None else []
            raise CommandError(f"{fault.code}: {'; '.join([str(fault), *facts])}") from fault
        usage = reply.usage
        self.stdout.write(
            f"{name}: {reply.model} answered {reply.text.strip()!r} in {reply.call_s:.1f} s "
            f"({usage.input_tokens} tokens in, {usage.output_tokens} out)"
        )


def describe(profile: Profile) -> str:
    """A profile in one line: what is asked where, with which key, and for what."""
    key = f"key {key_place(profile)}" if profile.key else "no key"
    serves = ", ".join(profile.purposes) or "no purpose"
    return f"{profile.name}: {profile.model} by {profile.provider} at {profile.base_url} ({key}; {serves})"


async def ask(profile: Profile) -> Reply:
    """The answer to the question of a check; raises ModelFault."""
    request = ModelRequest((Message("user", (Text(QUESTION),)),), max_tokens=1_000, patience=Patience(call_s=CHECK_S))
    async for event in stream_answer(profile, request):
        if isinstance(event, Ended):
            return event.reply
    raise AssertionError("an answer without an end is a fault")
