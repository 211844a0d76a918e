"""`manage.py demo`: everything started, the example run, its progress shown."""

import json
import os
import sys
import time
from argparse import ArgumentParser
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from rich.console import Console

from agents.errors import AgentsError
from project.demo.demo import INTERRUPTED, Asked, Demo, demo_devices
from project.demo.progress import Progress
from project.demo.scripted import WORDS, scripted_profile
from project.management.commands.up import add_serving_arguments, refuse_missing_migrations, say_walls
from project.up.instance import AlreadyUp
from project.up.supervisor import TICK_S, ChildBroken, PortTaken, make_supervisor

DIGITS = settings.BASE_DIR / "examples" / "digits.yaml"


class Command(BaseCommand):
    help = "Run the example and watch it. Serves on until Ctrl-C on a terminal; ends with the run elsewhere, or with ONCE=1."

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_serving_arguments(parser)
        parser.add_argument(
            "--once", action="store_true", default=os.environ.get("ONCE") == "1", help="end with the run (ONCE=1)"
        )
        parser.add_argument("--plan", type=Path, help="plan file to run, if not examples/digits.yaml")
        parser.add_argument("--script", type=Path, help="a scripted model (docs/models.md) answers from this file")
        parser.add_argument("--words", default=WORDS, help="with --script and no --plan: what is asked")

    def handle(self, *args, **options) -> None:
        refuse_missing_migrations()
        say_walls(self.stdout.write)
        script: Path | None = options["script"]
        demo_devices(for_model=script is not None)  # before the runners start, so that they know them from the first
        progress = Progress(Console())
        stays = not options["once"] and sys.stdout.isatty()
        served: AbstractContextManager[dict[str, str]] = nullcontext({}) if script is None else scripted_profile(script)
        try:
            with served as models:
                code = self._run(_what_is_asked(options, models), options, progress, stays)
        except (PortTaken, ChildBroken, TimeoutError, AgentsError) as error:
            raise CommandError(str(error)) from error
        finally:
            progress.close()
        sys.exit(code)

    def _run(self, asked: Asked, options, progress: Progress, stays: bool) -> int:
        try:
            with make_supervisor(options["host"], options["port"], options["runners"], progress.say) as up:
                progress.say(f"Orrery starts at {up.address}")
                demo = Demo(asked, up.address, progress, lambda: up.is_ready, stays)
                up.run(demo.step)
                return INTERRUPTED if demo.code is None else demo.code
        except AlreadyUp as running:
            progress.say(f"Orrery is up already at {running.address}")
            return self._follow(Demo(asked, running.address, progress, lambda: True, stays=False))

    def _follow(self, demo: Demo) -> int:
        """Another `up` serves; Ctrl-C ends only the watching."""
        try:
            while (code := demo.step()) is None:
                time.sleep(TICK_S)
        except KeyboardInterrupt:
            return INTERRUPTED
        return code


def _what_is_asked(options, models: dict[str, str]) -> Asked:
    """A plan; or words, where there is a model and no plan."""
    plan: Path | None = options["plan"] or (None if models else DIGITS)
    if plan is None:
        return Asked(options["script"].stem, {"request": options["words"], "models": models})
    works = {purpose: name for purpose, name in models.items() if purpose == "device_agent"}  # its rules replan, and no model
    chosen = f"\nmodels: {json.dumps(works)}\n" if models else ""  # a plan with tasks in words names its model itself
    return Asked(plan.stem, {"plan": plan.read_text() + chosen})
