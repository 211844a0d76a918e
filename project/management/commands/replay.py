"""`manage.py replay FILE`: a recorded session once more, and the first decision that differs."""

import json
import sys
from dataclasses import asdict
from pathlib import Path

from django.core.management.base import CommandError, CommandParser

from agents.errors import AgentsError
from agents.llm.profiles import FROM_ENVIRONMENT, read_profiles
from agents.masks.doors import MaskedCommand
from agents.services.model_profiles import FIELDS
from project.replay.comparing import Difference, first_difference
from project.replay.recording import Fields, read_recording
from project.replay.throwaway import replay_decisions

OFFLINE = "offline"
DECISION_SHOWN = 2_000
"""Characters of one decision."""


class Command(MaskedCommand):
    help = "Replay a recorded session (model_record): tools answer from the file. Ends with 1 where a decision differs."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="of model_record")
        parser.add_argument(
            "--profile", default=OFFLINE, help="model profile that is really asked; offline: the file's answers (%(default)s)"
        )

    def handle(self, *args, **options) -> None:
        try:
            recording = read_recording(options["file"].read_bytes())
            decisions = replay_decisions(options["file"], _profile_of(options["profile"]))
        except (OSError, AgentsError) as error:
            raise CommandError(str(error)) from error
        before = recording.content["decisions"]
        if (found := first_difference(before, decisions)) is not None:
            self.stdout.write(describe_difference(found))
            sys.exit(1)
        self.stdout.write(f"the same {len(before)} decisions")


def _profile_of(name: str) -> Fields | None:
    """The keys of the profile that is asked; None: nobody is."""
    if name == OFFLINE:
        return None
    known = read_profiles()
    if name not in known or name == FROM_ENVIRONMENT:
        there = ", ".join(sorted(known.keys() - {FROM_ENVIRONMENT})) or "none"
        raise CommandError(f"there is no model profile {name} as a row; there are: {there}")
    return {key: value for key, value in asdict(known[name]).items() if key in FIELDS}


def describe_difference(found: Difference) -> str:
    request, task, agent = found.who
    where = ", ".join(filter(None, (f"agent {agent}" if agent else "", f"task {task}" if task else "", f"request {request}")))
    return f"{where}, step {found.step}:\n  was: {_told(found.was)}\n  is:  {_told(found.now)}"


def _told(decision) -> str:
    if decision is None:
        return "nothing more"
    return f"{decision['kind']} {json.dumps(decision['what'], ensure_ascii=False, sort_keys=True)}"[:DECISION_SHOWN]
