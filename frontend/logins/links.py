"""One-time login links: a signed address that logs one user in, once, within LINK_S seconds.

The signature covers the user's last login, as Django's password reset does, so using a link (or logging in otherwise)
voids it, in every process and without a table of used links.
"""

from django.contrib.auth import get_user_model
from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.urls import reverse
from django.utils import timezone
from django.utils.http import base36_to_int, urlencode

LINK_S = 15 * 60
"""Seconds from making a link to its end."""


class LoginLinkGenerator(PasswordResetTokenGenerator):
    """Signs (user, password, last login to the microsecond, time of making)."""

    key_salt = "frontend.logins.links.LoginLinkGenerator"

    def _make_hash_value(self, user, timestamp: int) -> str:
        last_login = "" if user.last_login is None else user.last_login.isoformat()
        return f"{user.pk} {user.password} {user.is_active} {last_login} {timestamp}"

    def check_token(self, user, token: str | None) -> bool:
        """Whether `token` was made for `user` as they are now, at most LINK_S ago."""
        if not super().check_token(user, token):
            return False
        made_at = base36_to_int(str(token).partition("-")[0])
        return self._num_seconds(self._now()) - made_at <= LINK_S


LINKS = LoginLinkGenerator()


def make_login_link(user, base_url: str, next_path: str = "") -> str:
    """An address under `base_url` (scheme, host and port) that logs `user` in once and leads to `next_path`."""
    path = reverse("frontend:login-link", args=[f"{user.pk}.{LINKS.make_token(user)}"])
    query = f"?{urlencode({'next': next_path})}" if next_path else ""
    return f"{base_url.rstrip('/')}{path}{query}"


def redeem_link(token: str):
    """The user whom `token` logs in, None where it is no good any more. Of two who come at once, one succeeds."""
    key, _, signature = token.partition(".")
    users = get_user_model()._default_manager.filter(is_active=True)
    user = users.filter(pk=int(key)).first() if key.isascii() and key.isdigit() and len(key) < 19 else None
    if user is None or not LINKS.check_token(user, signature):
        return None
    used = (
        users.filter(pk=user.pk, last_login=user.last_login) if user.last_login else users.filter(pk=user.pk, last_login=None)
    )
    user.last_login = timezone.now()
    return user if used.update(last_login=user.last_login) == 1 else None
