"""`manage.py login_link USERNAME`: prints a one-time login link for the dashboard."""

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError

from frontend.logins.links import LINK_S, make_login_link


class Command(BaseCommand):
    help = f"Prints a link that logs a user in once, within {LINK_S // 60} minutes."

    def add_arguments(self, parser) -> None:
        parser.add_argument("username")
        parser.add_argument("--base-url", default="http://127.0.0.1:8000", help="Scheme, host and port of the dashboard.")
        parser.add_argument("--next", default="", help="Path of the page to show first.")

    def handle(self, *args, **options) -> None:
        user = get_user_model().objects.filter(username=options["username"], is_active=True).first()
        if user is None:
            raise CommandError(f"there is no active user called {options['username']}")
        self.stdout.write(make_login_link(user, options["base_url"], options["next"]))
