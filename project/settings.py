"""Django's settings, from the environment (`project.environment`)."""

from csp.constants import NONE, SELF
from django.utils.translation import gettext_lazy as _

from agents.db import data_folder
from agents.web.static_files.version import cache_forever, compute_version, package_folder
from project import environment, services

ENVIRONMENT = environment.load()

BASE_DIR = environment.BASE_DIR
DATA_DIR = ENVIRONMENT.data
data_folder.protect(DATA_DIR)
SECRET_KEY = ENVIRONMENT.load_secret_key()
ENCRYPTION_KEYS = ENVIRONMENT.all_encryption_keys()
EGRESS_ALLOW = environment.split_list(ENVIRONMENT.egress_allow)
# Of its own: any user can add any page of these hosts, but not call any tool.
PAGES_ALLOW = environment.split_list(ENVIRONMENT.pages_allow)
SOURCE_FOLDERS = environment.split_list(ENVIRONMENT.source_folders)
# Load balancers in front, which are trusted about a request's origin.
PROXIES = environment.split_list(ENVIRONMENT.proxies)
DEBUG = ENVIRONMENT.debug

# One list for allowed hosts, CSRF and the socket's origin check.
ORIGINS = ENVIRONMENT.all_origins()
ALLOWED_HOSTS = ENVIRONMENT.all_hosts()
CSRF_TRUSTED_ORIGINS = ORIGINS

INSTALLED_APPS = [
    "project.apps.ConsoleConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "servestatic.runserver_nostatic",
    "django.contrib.staticfiles",
    "channels",
    "csp",
    "django_htmx",
    "template_partials",
    "agents",
    "agents.review",
    "agents.review.experiments",
    "agents.metering.figures",
    "agents.insight.problems",
    "agents.insight.suggestions",
    "agents.insight.alerts",
    "agents.accounts",
    "chat",
]
MIDDLEWARE = [
    # What follows is for pages.
    "project.programs.ProgramMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "agents.web.static_files.middleware.StaticFilesMiddleware",
    "csp.middleware.CSPMiddleware",
    "project.headers.default_headers",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "agents.accounts.users.profiles.ProfileMiddleware",
    "agents.accounts.authentication.sessions.LastSeenMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "agents.web.middleware.audit_context_middleware",
    "agents.web.middleware.UnavailableMiddleware",
]
# Who needs more than a password.
REQUIRE_MFA = ENVIRONMENT.require_mfa
if REQUIRE_MFA != "off":
    position = MIDDLEWARE.index("django.contrib.auth.middleware.AuthenticationMiddleware") + 1
    MIDDLEWARE.insert(position, "agents.web.middleware.RequireMfaMiddleware")
ROOT_URLCONF = "project.urls"
# What programs call, apart from pages: loaded by the first call.
API_URLCONF = "chat.api.urls"
API_PREFIXES = ("/api/v1/", "/v1/", "/a2a/", "/ag-ui/")
ASGI_APPLICATION = "project.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.i18n",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
            # Django looks for template tags in an app's own folder only.
            "libraries": {
                "ashiato": "agents.web.templatetags.ashiato",
                "media": "agents.web.templatetags.media",
                "attached_files": "chat.fragments.templatetags.attached_files",
                "composer": "chat.fragments.templatetags.composer",
                "session_list": "chat.fragments.templatetags.session_list",
            },
        },
    }
]

DATABASES = {"default": services.database(ENVIRONMENT)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
CHANNEL_LAYERS = {"default": services.channel_layer(ENVIRONMENT)}
# Whether workers drive runs, rather than the web process.
WORKERS = ENVIRONMENT.workers
if ENVIRONMENT.database_url and ENVIRONMENT.redis_url:
    INSTALLED_APPS.append("procrastinate.contrib.django")
# Whether monitors can read metrics at /metrics.
METRICS = ENVIRONMENT.metrics or ENVIRONMENT.metrics_token is not None
# Modules whose functions, decorated with `function_tool`, become tools.
TOOL_MODULES = environment.split_list(ENVIRONMENT.tools)
# Limits per user: concurrent runs, messages per minute, tokens per day; None means no limit.
USER_RUNS = ENVIRONMENT.user_runs
USER_MESSAGES = ENVIRONMENT.user_messages
USER_TOKENS = ENVIRONMENT.user_tokens
# Size of a user's uploaded files; 0 means no limit.
USER_FILES_MB = ENVIRONMENT.user_files_mb
# Open sockets per user and process: about one per tab.
USER_SOCKETS = ENVIRONMENT.user_sockets
# How long messages and audit entries are stored; None means forever.
RUN_RETENTION_DAYS = ENVIRONMENT.run_retention_days
AUDIT_RETENTION_DAYS = ENVIRONMENT.audit_retention_days
# Whether users can delete their own accounts.
SELF_ERASURE = ENVIRONMENT.self_erasure
# Whether the model writes the titles of chats; otherwise they are the first question.
GENERATED_TITLES = ENVIRONMENT.generated_titles
# Whether links to chats and runs work without an account.
PUBLIC_LINKS = ENVIRONMENT.public_links
# Size of the files of one chat import.
IMPORT_MB = ENVIRONMENT.import_mb
# Whether the share dialog suggests other users while typing.
SUGGEST_USERS = ENVIRONMENT.suggest_users
SAMPLE_DATABASE = DATA_DIR / "sample.sqlite3"
# SQLite files that administrators can connect.
DATABASE_FILES = ENVIRONMENT.database_files or DATA_DIR / "databases"

# Whether invitations can be sent by email.
SENDS_EMAIL = ENVIRONMENT.email_url is not None
EMAIL_TIMEOUT = 10
if ENVIRONMENT.email_url is not None:
    globals().update(services.email(ENVIRONMENT.email_url.get_secret_value()))
DEFAULT_FROM_EMAIL = ENVIRONMENT.email_from or "Ashiato <ashiato@localhost>"

STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.InMemoryStorage"},  # not used
    # Uploaded files, by their digest.
    "files": services.file_storage(ENVIRONMENT),
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}

CSRF_FAILURE_VIEW = "agents.web.error_pages.csrf_failure"
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "chat:new"
SESSION_ENGINE = "agents.access.authentication"
AUTHENTICATION_BACKENDS = ["agents.access.authentication.AccountBackend"]
PASSWORD_HASHERS = [
    "agents.access.passwords.PasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]

LANGUAGE_CODE = ENVIRONMENT.language
LANGUAGES = [("en", _("English")), ("ja", _("Japanese"))]
LOCALE_PATHS = [BASE_DIR / "locale"]
FORMAT_MODULE_PATH = "project.formats"
TIME_ZONE = ENVIRONMENT.time_zone
USE_TZ = True

STATIC_ROOT = DATA_DIR / "static"
# ninja is no app, so that only programs' first request imports it.
STATICFILES_DIRS = [
    BASE_DIR / "static",
    ("ninja", package_folder("ninja") / "static" / "ninja"),
]
SERVESTATIC_USE_FINDERS = True
SERVESTATIC_AUTOREFRESH = DEBUG
# Each version has its own URLs, which browsers cache for good.
STATIC_URL = "static/" if DEBUG else f"static/{compute_version(BASE_DIR / 'static')}/"
SERVESTATIC_ADD_HEADERS_FUNCTION = None if DEBUG else cache_forever

HTTPS = all(origin.startswith("https://") for origin in ORIGINS)
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
# With this prefix, browsers only accept the cookie from this exact host.
SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = (
    f"{'__Host-' if HTTPS else ''}{name}" for name in ("sessionid", "csrftoken")
)
SECURE_SSL_REDIRECT = False  # the load balancer does that
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "media-src": [SELF],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "object-src": [NONE],
        "frame-ancestors": [NONE],
        "manifest-src": [SELF],
    }
}
DATA_UPLOAD_MAX_MEMORY_SIZE = 1_048_576  # the fields of a form, without its files
# Where files arrive before they are saved: /tmp may be in memory.
FILE_UPLOAD_TEMP_DIR = DATA_DIR
FILE_UPLOAD_HANDLERS = [
    "django.core.files.uploadhandler.MemoryFileUploadHandler",
    "agents.knowledge.files.upload_handler.UnnamedFileUploadHandler",
]

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {
            "()": "project.logs.RedactingFormatter",
            "format": "{asctime} {levelname} {name}: {message}",
            "style": "{",
        }
    },
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": "WARNING"},
    "loggers": {
        "agents": {"level": ENVIRONMENT.log_level},
        "chat": {"level": ENVIRONMENT.log_level},
    },
}
