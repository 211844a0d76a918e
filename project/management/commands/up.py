"""`manage.py up`: the web server and the clusters together, watched, until Ctrl-C."""

from argparse import ArgumentParser
from collections.abc import Callable
from contextlib import suppress

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from agents.devices.confinement import NONE, ConfinementMissing
from agents.masks.values import literal_secrets
from agents.models import Device
from agents.tools import confining
from frontend.logins.links import make_login_link
from project.demo.demo import furnish_installation
from project.up.instance import AlreadyUp
from project.up.supervisor import ChildBroken, PortTaken, Supervisor, make_supervisor

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8000


class Command(BaseCommand):
    help = "Run the web server, the jobs and the runners, watch them, and stop them all on one Ctrl-C."

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_serving_arguments(parser)
        parser.add_argument("--replace", action="store_true", help="end the `up` that serves this database already")

    def handle(self, *args, **options) -> None:
        refuse_missing_migrations()
        if kept := literal_secrets(Device.objects.values_list("name", "limits")):
            self._say(f"Secrets are kept as text in the environment of devices ({', '.join(kept)}): see docs/secrets.md.")
        say_walls(self._say)
        try:
            with make_supervisor(
                options["host"], options["port"], options["runners"], self._say, replace=options["replace"]
            ) as up:
                self._say(f"Orrery starts at {up.address} (output in {settings.STATE_DIR / 'logs'})")
                up.run(Greeting(up, furnish_installation(), self._say).each)
        except (AlreadyUp, PortTaken, ChildBroken, TimeoutError) as error:
            raise CommandError(str(error)) from error

    def _say(self, line: str) -> None:
        with suppress(OSError):  # what it is written to may have no room; that ends nothing
            self.stdout.write(line)
            self.stdout.flush()


class Greeting:
    """Says once that everything works."""

    def __init__(self, up: Supervisor, newcomer: User | None, say):
        self._up, self._newcomer, self._say, self._said = up, newcomer, say, False

    def each(self) -> None:
        if not self._said and self._up.is_ready:
            self._said = True
            self._say(f"Orrery is up: {self._up.address}  Ctrl-C stops it.")
            if self._newcomer is not None:
                self._say(f"Nobody has logged in yet. One-time login: {make_login_link(self._newcomer, self._up.address)}")


def add_serving_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--host", default=DEFAULT_HOST, help="address to listen on (%(default)s)")
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help="port to listen on (%(default)s)")
    parser.add_argument("--runners", type=int, default=settings.RUNNERS, help="processes that drive sessions (%(default)s)")


def say_walls(say: Callable[[str], None]) -> None:
    """Once, that commands are not confined here. Raises CommandError where the walls that are asked for do not hold."""
    try:
        found = confining.current_confinement()
    except ConfinementMissing as error:
        raise CommandError(str(error)) from error
    if found.mechanism == NONE:
        say(f"Commands are not confined: {'; '.join(found.reasons)}.")
        if not settings.UNCONFINED_COMMANDS:
            say(f"Only admins may run them. {confining.HOW_TO_CONFINE}")


def refuse_missing_migrations() -> None:
    """Raises CommandError where the database is older than the code."""
    executor = MigrationExecutor(connection)
    missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if missing:
        raise CommandError(f"the database lacks {len(missing)} migrations; run: python manage.py migrate")
