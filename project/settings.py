"""Settings. Everything an installation may want to change is an environment variable, listed in docs/settings.md."""

import os
import secrets
from datetime import timedelta
from pathlib import Path

import dj_database_url
from django.core.exceptions import ImproperlyConfigured

from agents.devices.confinement import MECHANISMS, NONE
from agents.devices.profiles.ceilings import SESSION_SLOTS
from agents.llm.choices import STARTS
from project.environment import (
    assignment_of,
    bucket_of,
    ceilings_of,
    choice_of,
    hosts_of,
    networks_of,
    paths_of,
    ports_of,
    progress_of,
    seconds_of,
    tool_seconds_of,
    unasked_of,
    whole_of,
    whole_or_none_of,
)

BASE_DIR = Path(__file__).resolve().parent.parent
VERSION = "6.0"
"""Of Orrery: what the OpenAPI document and MCP clients are told."""
STATE_DIR = Path(os.environ.get("ORRERY_STATE_DIR", BASE_DIR / "var")).resolve()
"""Everything an installation writes: database, workspaces, runtime files, collected static files."""
os.umask(0o077)  # what this process and all that it starts will write is nobody else's to read


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


try:
    STATE_DIR.mkdir(parents=True, exist_ok=True)
    SECRET_KEY = _secret_key()
except OSError as error:
    raise ImproperlyConfigured(f"the state folder {STATE_DIR} (ORRERY_STATE_DIR) cannot be used: {error.strerror}") from error
SECRET_PREFIXES = [prefix for prefix in os.environ.get("ORRERY_SECRET_PREFIXES", "").split(",") if prefix] or [
    "ORRERY_SECRET_", "ORRERY_KEY_",
]  # fmt: skip
"""Variables of the server's environment that begin so hold secrets, by the rest of their names."""
SECRETS_DIR = Path(os.environ["ORRERY_SECRETS_DIR"]).absolute() if os.environ.get("ORRERY_SECRETS_DIR") else None
"""A folder with a file for each further secret; each readable by this user only."""
DEBUG = os.environ.get("ORRERY_DEBUG") == "1"
ALLOWED_HOSTS = os.environ.get("ORRERY_ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]").split(",")
CSRF_TRUSTED_ORIGINS = [origin for origin in os.environ.get("ORRERY_TRUSTED_ORIGINS", "").split(",") if origin]

INSTALLED_APPS = [
    "daphne",
    "frontend",  # before the admin, some of whose templates it has in a version of its own
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
    "axes",
    "agents",
    "constellations",
    "project",
]
if "Q_CLUSTER_NAME" in os.environ:  # no pages: what these two import takes a third of a cluster's start
    INSTALLED_APPS.remove("daphne")
    INSTALLED_APPS[INSTALLED_APPS.index("django.contrib.admin")] = "django.contrib.admin.apps.SimpleAdminConfig"

MIDDLEWARE = [
    "agents.masks.doors.MaskedAnswers",
    "django.middleware.security.SecurityMiddleware",
    "frontend.security.ContentSecurityPolicy",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "frontend.outages.DatabaseOutage",
    "axes.middleware.AxesMiddleware",
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
                "frontend.navigation.list_pages",
            ],
            "libraries": {"modules": "frontend.modules"},
        },
    },
]


BODY_BYTES = whole_of("ORRERY_BODY_BYTES", 2_000_000)
IMPORT_BODY_BYTES = whole_of("ORRERY_IMPORT_BODY_BYTES", 20_000_000)
"""Of a request's body over REST and MCP, and of one that holds a document: as text in JSON it has many quotes to escape."""
CONNECTIONS_PER_ADDRESS = whole_of("ORRERY_CONNECTIONS_PER_ADDRESS", 200)
LIVE_VIEWS_PER_USER = whole_of("ORRERY_LIVE_VIEWS_PER_USER", 100)
"""Websockets and event streams that one user has at once, at one web server."""
TRUSTED_PROXIES = networks_of("ORRERY_TRUSTED_PROXIES")
"""Proxies whose X-Forwarded-For counts; nobody else's does."""


ARTIFACT_BYTES = whole_of("ORRERY_ARTIFACT_BYTES", 1_000_000_000)
"""Of one artifact (docs/artifacts.md)."""
ARTIFACT_DAYS = whole_or_none_of("ORRERY_ARTIFACT_DAYS", 90)
ARTIFACT_SESSION_BYTES = whole_or_none_of("ORRERY_ARTIFACT_SESSION_BYTES", 5_000_000_000)
ARTIFACT_TOTAL_BYTES = whole_or_none_of("ORRERY_ARTIFACT_TOTAL_BYTES", 50_000_000_000)
"""How long artifacts are kept, and how much of them; 0 is for ever, and as much as there is."""
OUTPUT_ROWS = whole_of("ORRERY_OUTPUT_ROWS", 1_000_000)
"""Characters of an attempt's output that rows keep when it has ended; all of a longer one becomes an artifact."""
UPLOAD_BYTES = whole_of("ORRERY_UPLOAD_BYTES", 100_000_000)
"""Of an artifact that somebody uploads."""
ARTIFACTS_S3 = bucket_of("ORRERY_ARTIFACTS_S3")
"""The bucket that keeps the contents of artifacts; None: the folder `store` of the state folder does."""


HOST_NAME = os.environ.get("ORRERY_HOST", "")
"""What local devices know this host by; empty: a name made once for STATE_DIR (agents.devices.host)."""
CHROMIUM = os.environ.get("ORRERY_CHROMIUM", "")
"""The program that browsers are; empty: the chromium on the PATH (docs/browsers.md)."""
OWN_PORTS = ports_of("ORRERY_OWN_PORTS")
"""Where this installation listens on this host, beside its `up`: browsers do not go there."""
CONFINEMENT = choice_of("ORRERY_CONFINEMENT", ("auto", *MECHANISMS, NONE))
"""The walls around commands (docs/confinement.md); auto is the best that this machine has."""
UNCONFINED_COMMANDS = os.environ.get("ORRERY_UNCONFINED_COMMANDS") == "1"
"""Where there are no walls: whether others than admins may run commands."""
UNASKED = unasked_of("ORRERY_UNASKED")
"""Which calls models make without asking (docs/security.md); devices and tasks narrow it or widen it."""
COMMANDS_NETWORK = os.environ.get("ORRERY_COMMANDS_NETWORK", "1") != "0"
READABLE, WRITABLE = paths_of("ORRERY_READABLE"), paths_of("ORRERY_WRITABLE")
"""What commands may read and write besides."""
UNISOLATED_AGENTS = os.environ.get("ORRERY_UNISOLATED_AGENTS") == "1"
"""Where there are neither walls nor namespaces: whether coding agents may run all the same."""
MCP_URL = os.environ.get("ORRERY_MCP_URL", "")
"""Where coding agents reach this installation's MCP server; empty: they are handed none."""


LLM_BASE_URL = os.environ.get("LLM_BASE_URL", "")
LLM_MODEL = os.environ.get("LLM_MODEL", "")
LLM_SEES = os.environ.get("LLM_SEES") == "1"
"""A model profile without a row (docs/models.md); its key is in LLM_API_KEY, and no setting holds it."""
MODEL_HOSTS = hosts_of("ORRERY_MODEL_HOSTS", LLM_BASE_URL)
"""Hosts and networks inside at which models may be asked."""
TOOL_SERVERS = hosts_of("ORRERY_TOOL_SERVERS", "")
"""Hosts and networks inside at which there may be tool servers."""
START = choice_of("ORRERY_START", STARTS)
"""review: what a model plans waits for a person to start it, in the whole installation."""


IDLE_S = seconds_of("ORRERY_IDLE_S", 600)
"""Inactivity after which an idle actor completes."""
PAUSED_S = seconds_of("ORRERY_PAUSED_S", 24 * 3600)
"""The same for a paused one."""
PROGRESS = progress_of("ORRERY_PROGRESS")
"""Settings of progress and of being stuck; a task's own come first."""
DEVICE_CEILINGS = ceilings_of("ORRERY_DEVICE_CEILINGS")
"""Limits of devices beyond which only admins go."""

SESSION_CONCURRENT = whole_of("ORRERY_SESSION_CONCURRENT", SESSION_SLOTS, SESSION_SLOTS)
"""Attempts of one session that may have slots at one time, where the session says nothing."""
ASSIGNMENT = assignment_of("ORRERY_ASSIGNMENT")
"""How tasks get devices, where the plan says nothing: the name of a strategy, or the dotted path of a function."""
TOOL_SECONDS = tool_seconds_of("ORRERY_TOOL_SECONDS")
"""Time-outs of tools by name, where a task or a step says none; `default` is for all that are not named."""

DATABASE_URL = os.environ.get("DATABASE_URL", f"sqlite:///{STATE_DIR / 'orrery.sqlite3'}")
POWER_SAFE = os.environ.get("ORRERY_POWER_SAFE") == "1"
"""Commits survive a loss of power, not only a killed process."""
IDLE_IN_TRANSACTION_S = 10
"""PostgreSQL ends the session of a process that has stopped in the middle of a transaction, so that its locks come free."""
POSTGRES_PATIENCE = {
    "connect_timeout": 5, "keepalives_idle": 5, "keepalives_interval": 1, "keepalives_count": 3, "tcp_user_timeout": 5_000,
}  # fmt: skip
"""A server that is gone without a word is noticed within seconds (tcp_user_timeout: milliseconds). DATABASE_URL comes first."""


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
        given = database.get("OPTIONS", {})
        options = f"{given.get('options', '')} -c synchronous_commit={synchronous} {idle}".strip()
        database["OPTIONS"] = {**POSTGRES_PATIENCE, **given, "options": options}
        database["CONN_HEALTH_CHECKS"] = True
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
        "OPTIONS": {
            "serializer": "django.core.signing.JSONSerializer",  # Django's own would unpickle whatever somebody has put there
            "socket_connect_timeout": REDIS_PATIENCE_S,
            "socket_timeout": REDIS_PATIENCE_S,
        },
    }

DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
AUTH_PASSWORD_VALIDATORS = [{"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"}]
AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "django.contrib.auth.backends.ModelBackend"]
AXES_HANDLER = "frontend.logins.limits.LoginAttempts"
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_FAILURE_LIMIT = 10
AXES_COOLOFF_TIME = timedelta(minutes=15)
"""Since the last wrong password that was looked at; what comes while somebody is locked out does not prolong it."""
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_RESET_ON_SUCCESS = True
AXES_USERNAME_CALLABLE = "frontend.logins.limits.tried_name"
AXES_LOCKOUT_CALLABLE = "frontend.logins.limits.answer_locked_out"
AXES_ENABLE_ADMIN = False
AXES_VERBOSE = False
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
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "frontend.static_files.ReleasedFiles"},
}
FILE_UPLOAD_PERMISSIONS = 0o600
"""Of collected static files, too: this server alone reads them."""
MESSAGE_STORAGE = "django.contrib.messages.storage.session.SessionStorage"
"""Not in a cookie: what the admin says of a row is masked when a page shows it."""

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "agents.access.authentication.TokenAuthentication",
        "agents.access.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["agents.access.permissions.RoleAndScope"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_METADATA_CLASS": "agents.api.options.Address",
    "DEFAULT_PAGINATION_CLASS": "agents.api.pagination.ById",
    "DEFAULT_FILTER_BACKENDS": ["django_filters.rest_framework.DjangoFilterBackend"],
    "EXCEPTION_HANDLER": "agents.api.problems.handle_exception",
    "PAGE_SIZE": 100,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Orrery",
    "DESCRIPTION": "A control plane for fleets of LLM agents.",
    "VERSION": VERSION,
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    # Its links to an operation stand inside buttons; its colours of code can hardly be read.
    "SWAGGER_UI_SETTINGS": {"deepLinking": False, "syntaxHighlight": False},
    "ENUM_NAME_OVERRIDES": {
        "ApprovalKindEnum": "agents.models.loops.Approval.KINDS",
        "ApprovalStateEnum": "agents.models.loops.Approval.STATES",
        "DeviceStateEnum": "agents.machines.device.DEVICE.states",
        "DeviceKindEnum": "agents.models.devices.Device.KINDS",
        "DeviceStatusEnum": "agents.api.serializers.devices.STATUSES",
        "DeviceTokenPurposeEnum": "agents.models.devices.DeviceToken.PURPOSES",
        "ModelPurposeEnum": "agents.models.model_calls.PURPOSES",
        "ModelCallOutcomeEnum": "agents.models.model_calls.OUTCOMES",
        "PlanStatusEnum": "agents.models.sessions.Agent.PLAN_STATUSES",
        "PolicyDecisionEnum": "agents.decisions.DECISIONS",
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
"""None, with Redis too: the live view reads its streams, see agents.streams.tail."""

HOOKS = {name: os.environ.get(f"ORRERY_{name.upper()}", "") for name in ("on_state_change", "on_stuck", "on_progress")}
"""Dotted paths of functions that are told, after the commit, of changes of state, of being stuck, of progress."""
ARBITERS = {"model": "agents.services.model_arbiter.rule_by_model"}
STUCK_ARBITER = ARBITERS.get(named := os.environ.get("ORRERY_STUCK_ARBITER", ""), named)
"""Dotted path of the function that is asked whether an agent is stuck, when rules suspect it; empty: nobody is asked."""
HOOKS["on_suspicion"] = "agents.services.arbiters.on_suspicion" if STUCK_ARBITER else ""
RUNNERS = int(os.environ.get("ORRERY_RUNNERS", "2"))
JOB_TIMEOUT_S = 60
JOB_WORKERS = 1
Q_CLUSTER = {
    # django-q2 carries out a schedule that names no cluster only where the cluster's name is this one.
    "name": "jobs",
    "orm": "default",
    "broker_class": "agents.engine.broker.PatientBroker",
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
    "filters": {"masked": {"()": "agents.masks.doors.MaskedLogs"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["masked"]}},
    "root": {"handlers": ["stderr"], "level": os.environ.get("ORRERY_LOG_LEVEL", "WARNING")},
}
