"""`manage.py token_create USER`: a token for a program, printed once."""

from datetime import timedelta

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError, CommandParser

from agents.api.serializers.tokens import TOKEN_DAYS
from agents.errors import NoSuchSession
from agents.models.access import SCOPES
from agents.services.tokens import token_create


class Command(BaseCommand):
    help = "Create an API token and print it; it cannot be shown again."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")
        parser.add_argument("--name", default="", help="what it is for")
        parser.add_argument("--scope", action="append", choices=SCOPES, help="may be given several times; default: read")
        parser.add_argument("--days", type=int, default=90, help=f"until it expires, at most {TOKEN_DAYS}")

        parser.add_argument("--session", type=int, help="it is for who works inside this session, and ends with it")

    def handle(self, *args, **options) -> str:
        user = get_user_model().objects.filter(username=options["username"]).first()
        if user is None:
            raise CommandError(f"there is no user {options['username']}")
        if not 1 <= options["days"] <= TOKEN_DAYS:
            raise CommandError(f"--days must be from 1 to {TOKEN_DAYS}")
        scopes = sorted(set(options["scope"] or ["read"]))
        lifetime = timedelta(days=options["days"])
        try:
            _, text = token_create(
                user, options["name"], scopes, lifetime, by="system", session=options["session"]
            )  # fmt: skip
        except NoSuchSession as error:
            raise CommandError(str(error)) from error
        return text
