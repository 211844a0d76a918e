"""Settings. Everything an installation may want to change is an environment variable, listed in docs/settings.md."""

import json
import os
import secrets
from datetime import timedelta
from pathlib import Path

import dj_database_url
from django.core.exceptions import ImproperlyConfigured

from constellations import guard_forms
from constellations.values import Misfit, key_text

BASE_DIR = Path(__file__).resolve().parent.parent
VERSION = "4.0"
"""Of Orrery: what the OpenAPI document and MCP clients are told."""
STATE_DIR = Path(os.environ.get("ORRERY_STATE_DIR", BASE_DIR / "var")).resolve()
"""Everything an installation writes: database, workspaces, runtime files, collected static files."""
STATE_DIR.mkdir(parents=True, exist_ok=True)


def _secret_key() -> str:
    """ORRERY_SECRET_KEY, else a key made once and kept readable by this user only."""
    if key := os.environ.get("ORRERY_SECRET_KEY"):
        return key
    path = STATE_DIR / "secret_key"
    if not path.exists():
        fresh = STATE_DIR / f"secret_key.{os.getpid()}"
        fresh.touch(mode=0o600)
        fresh.write_text(secrets.token_urlsafe(48))
        try:
            os.link(fresh, path)  # the first of several processes wins
        except FileExistsError:
            pass
        fresh.unlink()
    return path.read_text().strip()


SECRET_KEY = _secret_key()
DEBUG = os.environ.get("ORRERY_DEBUG") == "1"
ALLOWED_HOSTS = os.environ.get("ORRERY_ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]").split(",")
CSRF_TRUSTED_ORIGINS = [origin for origin in os.environ.get("ORRERY_TRUSTED_ORIGINS", "").split(",") if origin]

INSTALLED_APPS = [
    "daphne",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "channels",
    "rest_framework",
    "django_filters",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "knox",
    "django_q",
    "agents",
    "constellations",
    "frontend",
    "project",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "frontend.security.ContentSecurityPolicy",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "frontend.outages.DatabaseOutage",
]

ROOT_URLCONF = "project.urls"
ASGI_APPLICATION = "project.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]


def _seconds(name: str, default: float) -> float:
    """A span of time from the environment."""
    text = os.environ.get(name, "") or str(default)
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < LONGEST_S:
        raise ImproperlyConfigured(f"{name} must be a number of seconds above 0, such as {default:g}, not {text!r}")
    return seconds


def _progress(text: str) -> dict:
    """What an installation's agents have instead of the defaults of `agents.progress.settings`, as tasks have it in plans."""
    try:
        return guard_forms.progress(json.loads(text or "{}"))
    except json.JSONDecodeError as error:
        flaw = str(error)
    except Misfit as error:
        key = key_text(error.path)
        flaw = str(error) if str(error).startswith(key) else f"{key}: {error}"
    raise ImproperlyConfigured(f'ORRERY_PROGRESS must be JSON such as {{"stuck_threshold": 5}}: {flaw}')


LONGEST_S = 10 * 365 * 86_400.0
IDLE_S = _seconds("ORRERY_IDLE_S", 600)
"""Inactivity after which an idle actor completes."""
PAUSED_S = _seconds("ORRERY_PAUSED_S", 24 * 3600)
"""The same for a paused one."""
PROGRESS = _progress(os.environ.get("ORRERY_PROGRESS", ""))
"""Settings of progress and of being stuck; a task's own come first."""

DATABASE_URL = os.environ.get("DATABASE_URL", f"sqlite:///{STATE_DIR / 'orrery.sqlite3'}")
POWER_SAFE = os.environ.get("ORRERY_POWER_SAFE") == "1"
"""Commits survive a loss of power, not only a killed process."""
IDLE_IN_TRANSACTION_S = 10
"""PostgreSQL ends the session of a process that has stopped in the middle of a transaction, so that its locks come free."""


def _database(url: str) -> dict:
    """Django's description of `url`, with what each database needs when several processes write."""
    database: dict = {**dj_database_url.parse(url)}
    if database["ENGINE"].endswith("sqlite3"):
        synchronous = "FULL" if POWER_SAFE else "NORMAL"
        database["OPTIONS"] = {
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": f"PRAGMA journal_mode=WAL; PRAGMA synchronous={synchronous};",
        }
        # A test database in a file, so that other processes and threads of a test see it too.
        database["TEST"] = {"NAME": str(STATE_DIR / "test.sqlite3")}
    else:
        synchronous = "on" if POWER_SAFE else "off"
        idle = f"-c idle_in_transaction_session_timeout={IDLE_IN_TRANSACTION_S}s"
        database["OPTIONS"] = {"options": f"-c synchronous_commit={synchronous} {idle}"}
    database["CONN_MAX_AGE"] = None
    return database


DATABASES = {"default": _database(DATABASE_URL)}
REDIS_URL = os.environ.get("REDIS_URL", "")
"""Optional: the cache, which several web servers then share. Without it each has its own, in memory."""
REDIS_PATIENCE_S = 1
"""Nobody waits longer for Redis."""
CACHES: dict = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
if REDIS_URL:
    CACHES["default"] = {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": REDIS_URL,
        "KEY_PREFIX": "orrery",
        "OPTIONS": {"socket_connect_timeout": REDIS_PATIENCE_S, "socket_timeout": REDIS_PATIENCE_S},
    }

DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
AUTH_PASSWORD_VALIDATORS = [{"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"}]
LOGIN_URL = "/login/"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/login/"
LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"

DATA_UPLOAD_MAX_NUMBER_FIELDS = 5_000
"""The page of a constellation in the admin has 50 tasks and 100 dependencies in one form, and takes four times as many."""

STATIC_URL = "/static/"
STATIC_ROOT = STATE_DIR / "static"

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "agents.authentication.TokenAuthentication",
        "agents.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["agents.permissions.RoleAndScope"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_PAGINATION_CLASS": "agents.pagination.ById",
    "DEFAULT_FILTER_BACKENDS": ["django_filters.rest_framework.DjangoFilterBackend"],
    "EXCEPTION_HANDLER": "agents.problems.handler",
    "PAGE_SIZE": 100,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Orrery",
    "DESCRIPTION": "A control plane for fleets of LLM agents.",
    "VERSION": VERSION,
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "ENUM_NAME_OVERRIDES": {
        "ApprovalKindEnum": "agents.models.working.Approval.KINDS",
        "ApprovalStateEnum": "agents.models.working.Approval.STATES",
        "PolicyDecisionEnum": "agents.models.working.Policy.DECISIONS",
    },
}
KNOX_TOKEN_MODEL = "agents.Token"
MIGRATION_MODULES = {"knox": None}
"""Our token stands in for knox's; its own migrations would make a table that nobody uses."""
REST_KNOX = {
    "TOKEN_MODEL": "agents.Token",
    "TOKEN_PREFIX": "orr_",
    "TOKEN_TTL": timedelta(days=90),
    "AUTH_HEADER_PREFIX": "Bearer",
}

CHANNEL_LAYERS: dict = {}
"""None, with Redis too: the live view reads its streams, see agents.tail."""

HOOKS = {name: os.environ.get(f"ORRERY_{name.upper()}", "") for name in ("on_state_change", "on_stuck", "on_progress")}
"""Dotted paths of functions that are told, after the commit, of changes of state, of being stuck, of progress."""
RUNNERS = int(os.environ.get("ORRERY_RUNNERS", "2"))
JOB_TIMEOUT_S = 60
JOB_WORKERS = 1
Q_CLUSTER = {
    # django-q2 carries out a schedule that names no cluster only where the cluster's name is this one.
    "name": "jobs",
    "orm": "default",
    "workers": JOB_WORKERS,
    "queue_limit": JOB_WORKERS,
    "timeout": JOB_TIMEOUT_S,
    # The retry clock starts when a job is fetched, not when it starts.
    "retry": JOB_TIMEOUT_S * 4,
    "poll": 0.1,
    "save_limit": 0,
    "ack_failures": True,
    "max_attempts": 1,
    "log_level": "WARNING",
    "ALT_CLUSTERS": {
        "runners": {
            "workers": RUNNERS,
            "queue_limit": RUNNERS,
            "timeout": JOB_TIMEOUT_S,
            "retry": JOB_TIMEOUT_S * 4,
            "poll": 0.05,
            "guard_cycle": 0.1,
            "scheduler": False,
            "ack_failures": True,
            "max_attempts": 1,
        }
    },
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": os.environ.get("ORRERY_LOG_LEVEL", "WARNING")},
}
