"""How often somebody may try to log in. The cache counts: Redis, where there is one, and then for all web servers."""

from __future__ import annotations

import hashlib
import logging

from django.contrib.admin.forms import AdminAuthenticationForm
from django.contrib.auth.forms import AuthenticationForm
from django.core.cache import cache
from django.core.exceptions import ValidationError

ATTEMPTS = 20
"""Of one name from one address, good ones too, within..."""
WITHIN_S = 300
"""...so many seconds from the first of them."""

log = logging.getLogger(__name__)


def attempts_of(name: str, address: str) -> int:
    """How many there have been with this one. Where Redis does not answer nobody is kept from logging in: it is optional."""
    key = f"logins:{hashlib.sha256(f'{address} {name.lower()}'.encode()).hexdigest()}"
    try:
        return 1 if cache.add(key, 1, WITHIN_S) else cache.incr(key)
    except ValueError:  # it was forgotten between the two
        return 1
    except Exception as error:
        from redis.exceptions import RedisError  # 10 MB that nobody needs who has no Redis

        if not isinstance(error, RedisError):
            raise
        log.warning("attempts to log in are not counted: %s", error)
        return 0


class LoginForm(AuthenticationForm):
    """Of the dashboard. It looks at the number of attempts before it looks at the password."""

    def clean(self):
        address = self.request.META.get("REMOTE_ADDR", "") if self.request is not None else ""
        if attempts_of(self.cleaned_data.get("username", ""), address) > ATTEMPTS:
            raise ValidationError(
                f"There were more than {ATTEMPTS} attempts to log in with this name; "
                f"wait {WITHIN_S // 60} minutes and try again."
            )
        return super().clean()


class AdminLoginForm(LoginForm, AdminAuthenticationForm):
    """Of the admin."""
