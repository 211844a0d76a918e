"""System checks: combinations of settings that would lose work or speed, each with what to do instead."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from math import ceil
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.cache import caches
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.utils.module_loading import import_string

from agents.artifacts.store import BUCKET_SECRETS
from agents.llm.addresses import base_url_flaw
from agents.masks.masking import why_unmaskable
from agents.masks.values import FILES, OWN_MODEL_KEY, SecretMissing, read_secret_file, secret_value
from constellations.assignment.strategies import STRATEGIES, StrategyUnknown, find_strategy
from project.up.open_servers import open_postgresql, open_redis

LOOPBACK = {"localhost", "127.0.0.1", "[::1]", "::1", "testserver"}
SECRET_LENGTH = 32
"""Characters of a SECRET_KEY at least."""
BUSY_S = 5
"""Seconds a process waits for SQLite's write lock at least."""


@register(Tags.database)
def check_databases(app_configs: Any = None, **kwargs: Any) -> list[CheckMessage]:
    database = settings.DATABASES["default"]
    engine, options = database["ENGINE"], database.get("OPTIONS", {})
    found: list[CheckMessage] = []
    if options.get("pool"):
        hint = "Remove `pool` from OPTIONS: worker processes that share a pool stop taking jobs."
        found.append(Error("the database has a connection pool", hint=hint, id="orrery.E002"))
    if database.get("CONN_MAX_AGE", 0) is not None:
        hint = "Set it to None: a new connection for each job halves throughput."
        found.append(Error("CONN_MAX_AGE is not None", hint=hint, id="orrery.E003"))
    if database.get("ATOMIC_REQUESTS"):
        hint = "Set it to False: each request, reads too, would hold the write lock."
        found.append(Error("ATOMIC_REQUESTS is on", hint=hint, id="orrery.E004"))
    if engine.endswith("sqlite3"):
        found += _sqlite(str(database["NAME"]), options)
    elif not engine.endswith("postgresql"):
        found.append(
            Error(f"{engine} is not supported", hint="Set DATABASE_URL to sqlite:/// or postgresql://.", id="orrery.E001")
        )
    return found


def _sqlite(name: str, options: dict[str, Any]) -> Iterator[CheckMessage]:
    if name in ("", ":memory:") or "mode=memory" in name:
        hint = "Set DATABASE_URL to a file, e.g. sqlite:////var/lib/orrery/orrery.sqlite3."
        yield Error("web and runners are several processes and cannot share a database in memory", hint=hint, id="orrery.E005")
    if options.get("transaction_mode") != "IMMEDIATE":
        hint = "Set OPTIONS['transaction_mode'] to 'IMMEDIATE'."
        yield Error("SQLite transactions begin as readers and fail when they write", hint=hint, id="orrery.E006")
    if "journal_mode=wal" not in options.get("init_command", "").replace(" ", "").lower():
        hint = "Put 'PRAGMA journal_mode=WAL;' into OPTIONS['init_command'], and the file on a local disk."
        yield Error("SQLite is not in WAL mode: readers and writers block each other", hint=hint, id="orrery.E007")
    if options.get("timeout", 0) < BUSY_S:
        hint = f"Set OPTIONS['timeout'] to {BUSY_S} or more seconds."
        yield Error("SQLite gives up on the write lock too early", hint=hint, id="orrery.E008")


@register
def check_assignment(app_configs: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """An installation's own way of choosing devices is there."""
    try:
        find_strategy(settings.ASSIGNMENT)
    except StrategyUnknown as error:
        hint = f"Set ORRERY_ASSIGNMENT to one of {', '.join(STRATEGIES)}, or to the dotted path of a function."
        return [Error(f"there is no such way of assignment: {error}", hint=hint, id="orrery.E030")]
    return []


@register
def check_queues(app_configs: Any = None, **kwargs: Any) -> list[CheckMessage]:
    main: dict[str, Any] = {key: value for key, value in settings.Q_CLUSTER.items() if key != "ALT_CLUSTERS"}
    clusters: dict[str, dict[str, Any]] = {main.get("cluster_name", main.get("name", "default")): main}
    others: dict[str, Any] = settings.Q_CLUSTER.get("ALT_CLUSTERS", {})  # type: ignore[assignment]
    clusters |= {name: {**main, **own} for name, own in others.items()}
    found: list[CheckMessage] = []
    for name, cluster in clusters.items():
        workers, limit, timeout, retry = (cluster.get(key) for key in ("workers", "queue_limit", "timeout", "retry"))
        if not workers or limit != workers:
            hint = f"Set queue_limit to {workers}: what is fetched and waits counts as being tried."
            message = f"cluster {name}: queue_limit is {limit} with {workers} workers"
            found.append(Error(message, hint=hint, id="orrery.E009"))
        elif not timeout or not retry or retry <= longest_wait(timeout, limit, workers):
            above = longest_wait(timeout, limit, workers) if timeout else "timeout x (1 + ceil((queue_limit + 1) / workers))"
            hint = f"Set retry above {above} seconds: its clock starts when a job is fetched, not when it starts."
            message = f"cluster {name}: a job that only waits would run twice (retry {retry})"
            found.append(Error(message, hint=hint, id="orrery.E010"))
    return found + list(_schedules(main))


def _schedules(main: dict[str, Any]) -> Iterator[CheckMessage]:
    """The schedule that brings runners back names no cluster, so it needs one that takes such schedules."""
    name, cluster_name = main.get("name", "default"), main.get("cluster_name")
    if cluster_name not in (None, name):
        hint = f"Remove cluster_name, or set it to {name}."
        yield Error(f"no cluster carries out schedules: Q_CLUSTER has the name {name} and the cluster_name {cluster_name}",
                    hint=hint, id="orrery.E014")  # fmt: skip
    if main.get("scheduler", True) is False:
        yield Error(f"cluster {name}: its scheduler is off", hint="Remove scheduler: it brings runners back.", id="orrery.E015")


def longest_wait(timeout: float, queue_limit: int, workers: int) -> float:
    """Seconds from a job's fetch to its end when all before it take as long as they may."""
    return timeout * (1 + ceil((queue_limit + 1) / workers))


@register(Tags.security)
def check_exposure(app_configs: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """What only matters where others than this machine can reach it."""
    exposed = [host for host in settings.ALLOWED_HOSTS if host not in LOOPBACK]
    found: list[CheckMessage] = []
    if exposed and settings.DEBUG:
        hint = "Unset ORRERY_DEBUG, or ORRERY_ALLOWED_HOSTS."
        found.append(Error(f"DEBUG is on and the host is exposed as {exposed[0]}", hint=hint, id="orrery.E011"))
    if exposed and is_insecure(settings.SECRET_KEY):
        hint = "Set ORRERY_SECRET_KEY to 50 random characters, or unset it: one is then made and kept."
        found.append(Error(f"SECRET_KEY can be guessed and the host is exposed as {exposed[0]}", hint=hint, id="orrery.E012"))
    if "*" in settings.ALLOWED_HOSTS:
        hint = "Name the hosts in ORRERY_ALLOWED_HOSTS: the websocket's origin check goes by it."
        found.append(Warning("ALLOWED_HOSTS allows every host", hint=hint, id="orrery.W013"))
    return found


def is_insecure(key: str) -> bool:
    return len(key) < SECRET_LENGTH or len(set(key)) < 10 or key.startswith("django-insecure-")


@register(Tags.caches)
def check_redis(app_configs: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """Redis is optional, so one that is gone is only a warning; an address that is none is a mistake."""
    if not settings.REDIS_URL:
        return []
    from redis.exceptions import RedisError

    place = urlsplit(settings.REDIS_URL)
    try:
        caches["default"].has_key("check")
    except ValueError as error:
        hint = "Set REDIS_URL to an address such as redis://127.0.0.1:6379/0, or unset it."
        return [Error(f"REDIS_URL is no address of a Redis: {error}", hint=hint, id="orrery.E021")]
    except RedisError as error:
        hint = "Start Redis there, or unset REDIS_URL: until then wrong tokens are not counted."
        return [Warning(f"the Redis at {place.hostname} does not answer: {error}", hint=hint, id="orrery.W022")]
    return []


SAYING = {"check", "demo", "up"}
"""Commands of `manage.py` by which somebody looks after an installation."""


@register(Tags.security)
def check_open_servers(app_configs: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """A command with the network reaches what this host reaches: tried and said by those of SAYING, not by every other."""
    if not settings.COMMANDS_NETWORK or not SAYING & set(sys.argv[1:2]):
        return []
    told = "takes connections without a password, and commands reach it"
    hint = 'Give it a password (docs/confinement.md, "What each does not hold"), or set ORRERY_COMMANDS_NETWORK=0.'
    found: list[CheckMessage] = []
    if place := open_postgresql(settings.DATABASES["default"]):
        found.append(Warning(f"the PostgreSQL at {place} {told}", hint=hint, id="orrery.W026"))
    if place := open_redis(settings.REDIS_URL):
        found.append(Warning(f"the Redis at {place} {told}", hint=hint, id="orrery.W027"))
    return found


@register(Tags.security)
def check_secrets(app_configs: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """A secret that cannot be used is told at once, not only to the first task that needs it."""
    folder = settings.SECRETS_DIR
    if folder is None:
        return []
    if not folder.is_dir():
        hint = "Make it (mkdir -m 700), or unset ORRERY_SECRETS_DIR."
        return [Error(f"ORRERY_SECRETS_DIR is no folder: {folder}", hint=hint, id="orrery.E023")]
    found: list[CheckMessage] = []
    paths = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    if len(paths) > FILES:
        hint = f"Keep what belongs together in one file, or elsewhere: of more than {FILES} not all are masked."
        found.append(Error(f"ORRERY_SECRETS_DIR has {len(paths)} files", hint=hint, id="orrery.E025"))
    for path in paths:
        try:
            if flaw := why_unmaskable(read_secret_file(path)):
                found.append(Warning(f"the secret {path.name} cannot be used: {flaw}", hint=LONGER, id="orrery.W024"))
        except SecretMissing as error:
            found.append(Warning(str(error), hint="Nothing can use it, and it is not masked.", id="orrery.W024"))
    return found


@register(Tags.security)
def check_store(app_configs: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """What keeps artifacts can be opened, and an upload can be kept."""
    found: list[CheckMessage] = []
    if settings.ARTIFACTS_S3 is not None:
        for name in BUCKET_SECRETS:
            try:
                secret_value(name)
            except SecretMissing as error:
                hint = "Set both secrets, or unset ORRERY_ARTIFACTS_S3: until then nothing is kept."
                found.append(Error(f"the bucket of ORRERY_ARTIFACTS_S3 cannot be opened: {error}", hint=hint, id="orrery.E032"))
    if settings.UPLOAD_BYTES > settings.ARTIFACT_BYTES:
        hint = "Raise ORRERY_ARTIFACT_BYTES: a larger upload is refused when all of it has come."
        found.append(Warning("ORRERY_UPLOAD_BYTES is more than ORRERY_ARTIFACT_BYTES", hint=hint, id="orrery.W033"))
    return found


@register(Tags.security)
def check_models(app_configs: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """The model profile that the environment makes; those in rows are looked at when they are written and called."""
    found: list[CheckMessage] = []
    if bool(settings.LLM_MODEL) != bool(settings.LLM_BASE_URL):
        hint = "Set both, or neither; LLM_BASE_URL is an address such as http://127.0.0.1:11434/v1."
        found.append(Error("LLM_MODEL and LLM_BASE_URL make a model profile together", hint=hint, id="orrery.E028"))
    elif settings.LLM_MODEL and (flaw := base_url_flaw(settings.LLM_BASE_URL, "openai_compatible")):
        found.append(Error(f"LLM_BASE_URL {flaw}", hint="Set an address of the form https://HOST/v1.", id="orrery.E028"))
    if (key := os.environ.get(OWN_MODEL_KEY)) and (flaw := why_unmaskable(key)):
        found.append(Warning(f"{OWN_MODEL_KEY} cannot be used: {flaw}", hint="Set the key itself.", id="orrery.W029"))
    return found


LONGER = "Make it longer, or take it out of the folder: it is not masked."


@register()
def check_hooks(app_configs: Any = None, **kwargs: Any) -> list[CheckMessage]:
    found: list[CheckMessage] = []
    for name, path in {**settings.HOOKS, "stuck_arbiter": settings.STUCK_ARBITER}.items():
        try:
            fits = not path or callable(import_string(path))
        except ImportError:
            fits = False
        if not fits:
            hint = f"Set ORRERY_{name.upper()} to the dotted path of a function as docs/settings.md says, or leave it out."
            found.append(Error(f"the hook {name} is no function: {path}", hint=hint, id="orrery.E020"))
    return found
