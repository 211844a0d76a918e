"""`manage.py mcp`: the MCP server on standard input and output, as the user whose token is in ORRERY_TOKEN."""

import asyncio
import os
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from rest_framework.exceptions import AuthenticationFailed

from constellations.mcp.access import caller_of

VARIABLE = "ORRERY_TOKEN"
ADVICE = f"make one with `manage.py token_create USER --scope read --scope edit` and put it into {VARIABLE}"


class Command(BaseCommand):
    help = f"Serve MCP on standard input and output; {VARIABLE} holds the API token of whoever it is for."

    def handle(self, *args: Any, **options: Any) -> None:
        token = os.environ.get(VARIABLE, "").strip()
        if not token:
            raise CommandError(f"{VARIABLE} is not set: {ADVICE}")
        try:
            caller_of(token)
        except AuthenticationFailed as error:
            raise CommandError(f"the token in {VARIABLE} is no good: {error.detail}. To have another, {ADVICE}") from error
        from constellations.mcp.stdio import serve_stdio

        asyncio.run(serve_stdio(token))
