"""Whether the servers that an installation uses let anybody in: a command whose network is the host's reaches them.

Each is really asked, without any password: neither those of the settings nor those of this user's files or environment.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import psycopg

PATIENCE_S = 2
"""Of one try; the least that libpq knows."""
HERE = "127.0.0.1"
NO_FILE = f"{os.devnull}/none"
"""For nothing libpq would look for passwords of this user."""


def open_postgresql(database: Mapping[str, Any]) -> str:
    """`host:port` where the server of Django's description `database` takes its user without a password, else nothing.

    Of one that is spoken to by a socket in a folder it is asked whether it listens on 127.0.0.1, too.
    """
    if not database["ENGINE"].endswith("postgresql"):
        return ""
    given = str(database.get("HOST") or "")
    host = HERE if not given or given.startswith(("/", "@")) else given
    port = str(database.get("PORT") or "") or "5432"
    try:
        psycopg.connect(
            host=host, port=port, user=database.get("USER") or None, dbname=database["NAME"], password="", passfile=NO_FILE,
            sslmode=database.get("OPTIONS", {}).get("sslmode", "prefer"), connect_timeout=PATIENCE_S,
        ).close()  # fmt: skip
    except psycopg.Error:
        return ""
    return f"{host}:{port}"


def open_redis(url: str) -> str:
    """`host:port` where the Redis at `url` answers whoever names no password, else nothing."""
    if urlsplit(url).scheme not in ("redis", "rediss"):
        return ""
    from redis import ConnectionPool, Redis  # 10 MB that nobody needs who has no Redis
    from redis.exceptions import RedisError

    try:
        pool = ConnectionPool.from_url(url, socket_connect_timeout=PATIENCE_S, socket_timeout=PATIENCE_S)
        pool.connection_kwargs.update(username=None, password=None)
        with Redis(connection_pool=pool) as client:
            client.ping()
        pool.disconnect()
    except (RedisError, OSError, ValueError):
        return ""
    return f"{pool.connection_kwargs.get('host', 'localhost')}:{pool.connection_kwargs.get('port', 6379)}"
