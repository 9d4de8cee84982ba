"""Settings from the environment, and their defaults."""

import os
import re
import secrets
import sys
from importlib.util import find_spec
from ipaddress import ip_network
from pathlib import Path
from typing import ClassVar, Literal
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from pydantic import (
    AliasChoices,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic_settings import BaseSettings, SettingsConfigDict

from agents.engine.privacy import mask_secrets
from project import folders

BASE_DIR = folders.BASE_DIR
WILDCARD_HOSTS = {"0.0.0.0", "[::]"}
LOOPBACK = ["127.0.0.1", "localhost", "[::1]"]
# What several processes must share to work together.
WORKER_SETTINGS = ("secret_key", "database_url", "redis_url")
SECRET_NAMES = {
    *("ASHIATO_DATABASE_URL", "ASHIATO_REDIS_URL", "ASHIATO_EMAIL_URL"),
    *(
        "ASHIATO_OTLP_HEADERS",
        "ASHIATO_METRICS_TOKEN",
        "ASHIATO_EMBEDDING_KEY",
        "ASHIATO_S3_SECRET",
    ),
}
MIN_TOKEN_CHARS = 16
HEADER_PATTERN = re.compile(r"[\w-]+\s*=[ -~]*", re.ASCII)
SCOPE_PATTERN = re.compile(r"[!#-\[\]-~]+")  # RFC 6749
LANGUAGE_PATTERN = re.compile(r"[a-z]{2,3}")
EMAIL_PATTERN = re.compile(r"[^\s:@]+@[^\s:@]+")
EXPECTED_VALUES = {
    "bool_parsing": '"true" or "false"',
    "int_parsing": "a whole number",
    "float_parsing": "a number",
    "literal_error": "{expected}",
    "greater_than_equal": "at least {ge}",
    "less_than_equal": "at most {le}",
    "value_error": "{error}",
}


class Environment(BaseSettings):
    model_config = SettingsConfigDict(
        env_prefix="ASHIATO_", env_ignore_empty=True, extra="ignore"
    )

    # Django's settings look for this in every value that is read from them. Where a model of
    # pydantic doesn't have it, each `settings.ENVIRONMENT` takes ten times as long.
    _mask_wrapped: ClassVar[bool] = True

    host: str = Field(
        default="127.0.0.1", validation_alias=AliasChoices("HOST", "ASHIATO_HOST")
    )
    port: int = Field(
        default=8000, ge=1, le=65535, validation_alias=AliasChoices("PORT", "ASHIATO_PORT")
    )
    data: Path = Field(default_factory=folders.data_folder)
    debug: bool = False
    secret_key: SecretStr | None = None
    database_url: SecretStr | None = None
    database_files: Path | None = None
    redis_url: SecretStr | None = None
    workers: bool = False
    worker_runs: int = Field(default=50, ge=1, le=1000)
    encryption_keys: SecretStr | None = None
    egress_allow: str = ""
    pages_allow: str = ""
    source_folders: str = ""
    mcp_sandbox: Literal["auto", "require", "off"] = "auto"
    origins: str = ""
    proxies: str = ""
    require_mfa: Literal["off", "staff", "all"] = "off"
    oidc_issuer: str = ""
    oidc_client_id: str = Field(default="", validate_default=True)
    oidc_client_secret: SecretStr | None = None
    oidc_name: str = "Single sign-on"
    oidc_scopes: str = ""
    oidc_groups_claim: str = ""
    oidc_administrators: str = "administrator"
    oidc_reviewers: str = "reviewer"
    oidc_create: bool = True
    oidc_acr: str = ""
    email_url: SecretStr | None = None
    email_from: str = ""
    language: Literal["en", "ja"] = "en"
    time_zone: str = "UTC"
    admin_name: str = "demo"
    admin_password: SecretStr | None = None
    model: str = ""
    model_url: str = ""
    model_key: SecretStr | None = None
    model_route: Literal["auto", "direct", "litellm"] = "auto"
    model_discovery: bool = True
    transcription_model: str = ""
    transcription_url: str = ""
    transcription_key: SecretStr | None = None
    transcription_language: str = ""
    transcription_seconds: float = Field(default=300, ge=1, le=86_400)
    whisper_model: Path | None = None
    speech_model: str = ""
    speech_url: str = ""
    speech_key: SecretStr | None = None
    speech_voice: str = "alloy"
    image_model: str = ""
    image_url: str = ""
    image_key: SecretStr | None = None
    vision_model: str = ""
    vision_url: str = ""
    vision_key: SecretStr | None = None
    tools: str = ""
    embedding_model: str = "local"
    embedding_url: str = ""
    embedding_key: SecretStr | None = None
    pgvector: bool = False
    search_min_score: float = Field(default=0.04, ge=0, le=1)
    model_retries: int = Field(default=2, ge=0, le=10)
    model_first_seconds: float = Field(default=60, ge=0.1, le=86_400)
    model_between_seconds: float = Field(default=30, ge=0.1, le=86_400)
    model_whole_seconds: float = Field(default=600, ge=0.1, le=86_400)
    model_slow_seconds: float = Field(default=10, ge=0.1, le=86_400)
    grace: float = Field(default=5, ge=0, le=600)
    demo_delay: float = Field(default=0.02, ge=0, le=1)
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    otlp_endpoint: str = ""
    otlp_headers: SecretStr | None = None
    otlp_content: bool = False
    otlp_personal: bool = False
    # OpenTelemetry's standard variables; its exporter reads the others itself.
    otel_endpoint: str = Field(
        default="",
        validation_alias=AliasChoices(
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"
        ),
    )
    otel_disabled: str = Field(default="", validation_alias="OTEL_SDK_DISABLED")
    otel_traces_exporter: str = Field(default="otlp", validation_alias="OTEL_TRACES_EXPORTER")
    metrics: bool = False
    metrics_token: SecretStr | None = None
    metrics_port: int = Field(default=0, ge=0, le=65535)
    trace_console: Literal["off", "error", "warning", "info", "debug"] = "off"
    trace_file: Path | None = None
    trace_file_level: Literal["error", "warning", "info", "debug"] = "info"
    user_runs: int | None = Field(default=None, ge=1, le=10_000)
    user_messages: int | None = Field(default=None, ge=1, le=10_000)
    user_tokens: int | None = Field(default=None, ge=1, le=10**12)
    user_files_mb: int = Field(default=2_000, ge=0, le=10**9)
    user_sockets: int = Field(default=20, ge=1, le=100_000)
    run_retention_days: int | None = Field(default=None, ge=1, le=36_500)
    audit_retention_days: int | None = Field(default=None, ge=1, le=36_500)
    self_erasure: bool = False
    public_links: bool = True
    import_mb: int = Field(default=500, ge=1, le=10_000)
    generated_titles: bool = True
    suggest_users: bool = False
    contact: str = ""
    s3_bucket: str = ""
    s3_endpoint: str = ""
    s3_region: str = ""
    s3_prefix: str = "files"
    s3_key_id: str = ""
    s3_secret: SecretStr | None = None

    @field_validator("database_url")
    @classmethod
    def _check_database_url(cls, value: SecretStr | None) -> SecretStr | None:
        return _check_url(
            value, "postgresql://user:password@host/name", "postgresql", "postgres"
        )

    @field_validator("redis_url")
    @classmethod
    def _check_redis_url(cls, value: SecretStr | None) -> SecretStr | None:
        return _check_url(value, "redis://host:6379/0", "redis", "rediss", "unix")

    @field_validator("email_url")
    @classmethod
    def _check_email_url(cls, value: SecretStr | None) -> SecretStr | None:
        example = "smtp://user:password@mail.example.org:587"
        return _check_url(value, example, "smtp", "smtps")

    @field_validator("workers")
    @classmethod
    def _check_workers(cls, value: bool, info: ValidationInfo) -> bool:
        missing = [
            f"ASHIATO_{name.upper()}" for name in WORKER_SETTINGS if not info.data.get(name)
        ]
        if value and missing:
            raise ValueError(f"false unless {' and '.join(missing)} is set for all processes")
        return value

    @field_validator("origins")
    @classmethod
    def _check_origins(cls, value: str) -> str:
        for origin in split_list(value):
            url = urlsplit(origin)
            if url.scheme not in {"http", "https"} or not url.netloc or url.path:
                raise ValueError("full origins such as https://chat.example.org")
        return value

    @field_validator("proxies")
    @classmethod
    def _check_proxies(cls, value: str) -> str:
        try:
            [ip_network(network) for network in split_list(value)]
        except ValueError:
            raise ValueError("IP addresses or networks such as 10.0.0.0/8, 192.0.2.7") from None
        return value

    @field_validator("oidc_issuer")
    @classmethod
    def _check_oidc_issuer(cls, value: str) -> str:
        url = urlsplit(value)
        is_near = url.scheme == "http" and parse_host(value) in LOOPBACK
        if value and not (url.netloc and (url.scheme == "https" or is_near)):
            raise ValueError("a full URL such as https://id.example.org")
        return value

    @field_validator("oidc_client_id")
    @classmethod
    def _check_oidc_client_id(cls, value: str, info: ValidationInfo) -> str:
        if info.data.get("oidc_issuer") and not value:
            raise ValueError("set together with ASHIATO_OIDC_ISSUER")
        return value

    @field_validator("oidc_scopes")
    @classmethod
    def _check_oidc_scopes(cls, value: str) -> str:
        scopes = _split_scopes(value)
        if scopes and not ("openid" in scopes and all(map(SCOPE_PATTERN.fullmatch, scopes))):
            raise ValueError("a list of scopes with openid, such as openid profile email")
        return value

    @field_validator("time_zone")
    @classmethod
    def _check_time_zone(cls, value: str) -> str:
        try:
            ZoneInfo(value)
        except (KeyError, ValueError, OSError):
            raise ValueError("a time zone such as Asia/Tokyo") from None
        return value

    @field_validator("transcription_language")
    @classmethod
    def _check_language_code(cls, value: str) -> str:
        if value and not LANGUAGE_PATTERN.fullmatch(value):
            raise ValueError("a language code such as ja or en")
        return value

    @field_validator("contact")
    @classmethod
    def _check_contact(cls, value: str) -> str:
        is_page = value.startswith("https://") and urlsplit(value).netloc
        if value and not (is_page or EMAIL_PATTERN.fullmatch(value)):
            raise ValueError("an email address or a link that starts with https://")
        return value

    @field_validator("whisper_model")
    @classmethod
    def _check_whisper_model(cls, value: Path | None) -> Path | None:
        if value is not None and not value.is_dir():
            raise ValueError("a folder with a faster-whisper model")
        return value

    @field_validator("model_url", "transcription_url", "speech_url", "image_url", "vision_url")
    @classmethod
    def _check_model_url(cls, value: str) -> str:
        url = urlsplit(value)
        if value and (url.scheme not in {"http", "https"} or not url.netloc):
            raise ValueError("a full URL such as http://127.0.0.1:11434/v1")
        return value

    @field_validator("otlp_endpoint")
    @classmethod
    def _check_otlp_endpoint(cls, value: str) -> str:
        url = urlsplit(value)
        if value and (url.scheme not in {"http", "https"} or not url.netloc):
            raise ValueError("a full URL such as http://127.0.0.1:4318")
        if value and not can_send_spans():
            raise ValueError("empty until OpenTelemetry is installed (make otlp)")
        return value

    @field_validator("s3_bucket")
    @classmethod
    def _check_s3_bucket(cls, value: str) -> str:
        if value and find_spec("storages") is None:
            raise ValueError("empty until django-storages is installed (make s3)")
        return value

    @field_validator("otlp_headers")
    @classmethod
    def _check_otlp_headers(cls, value: SecretStr | None) -> SecretStr | None:
        headers = split_list(value.get_secret_value()) if value else []
        if not all(map(HEADER_PATTERN.fullmatch, headers)):
            raise ValueError("a list of name=value pairs, separated by commas")
        return value

    @field_validator("trace_file")
    @classmethod
    def _check_trace_file(cls, value: Path | None) -> Path | None:
        if value is None:
            return None
        try:
            value.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ValueError(f"a writable file ({error.strerror})") from None
        if value.is_dir() or not os.access(value.parent, os.W_OK):
            raise ValueError("a writable file")
        return value

    @field_validator("metrics_token")
    @classmethod
    def _check_metrics_token(cls, value: SecretStr | None) -> SecretStr | None:
        if value and not (value.get_secret_value().isascii() and len(value) >= MIN_TOKEN_CHARS):
            raise ValueError(f"at least {MIN_TOKEN_CHARS} ASCII characters")
        return value

    @field_validator("data")
    @classmethod
    def _check_data(cls, value: Path) -> Path:
        try:
            value.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ValueError(f"a writable folder ({error.strerror})") from None
        return value

    def all_origins(self) -> list[str]:
        """Return the origins of pages: as configured, or this machine."""
        host = f"[{self.host}]" if ":" in self.host and "[" not in self.host else self.host
        hosts = LOOPBACK if host in {*WILDCARD_HOSTS, *LOOPBACK} else [host, *LOOPBACK]
        return split_list(self.origins) or [f"http://{host}:{self.port}" for host in hosts]

    def all_hosts(self) -> list[str]:
        """Return the hosts of the origins."""
        return list(map(parse_host, self.all_origins()))

    def all_encryption_keys(self) -> list[str]:
        """Return the encryption keys: the first encrypts, the others still decrypt."""
        keys = self.encryption_keys
        return split_list(keys.get_secret_value()) if keys else [self.load_secret_key()]

    def all_oidc_scopes(self) -> tuple[str, ...]:
        """Return the scopes to request; none means the default ones."""
        return _split_scopes(self.oidc_scopes)

    @property
    def sends_spans(self) -> bool:
        """Whether an OpenTelemetry receiver is configured, by our variables or by its own."""
        is_disabled = self.otel_disabled.lower() == "true"
        is_wanted = not is_disabled and self.otel_traces_exporter == "otlp"
        return bool(self.otlp_endpoint or (self.otel_endpoint and is_wanted))

    @property
    def exports_events(self) -> bool:
        """Whether events of runs go to the console, a file or a receiver."""
        writes_lines = self.trace_console != "off" or self.trace_file is not None
        return writes_lines or self.sends_spans

    def all_otlp_headers(self) -> dict[str, str]:
        """Return the headers for the monitor, such as its key."""
        headers = split_list(self.otlp_headers.get_secret_value()) if self.otlp_headers else []
        pairs = (header.partition("=") for header in headers)
        return {name.strip(): value.strip() for name, _, value in pairs}

    def load_secret_key(self) -> str:
        """Return the secret key, created once and saved in the data folder."""
        if self.secret_key is not None:
            return self.secret_key.get_secret_value()
        path = self.data / "secret_key"
        if not path.exists() or not path.stat().st_size:
            self.data.mkdir(parents=True, exist_ok=True)
            draft = path.with_name(f"secret_key.{os.getpid()}")
            draft.touch(mode=0o600)
            draft.write_text(secrets.token_urlsafe(50))
            draft.replace(path)
        return path.read_text().strip()


def _check_url(value: SecretStr | None, example: str, *schemes: str) -> SecretStr | None:
    if value is None or not value.get_secret_value():
        return None
    if urlsplit(value.get_secret_value()).scheme not in schemes:
        raise ValueError(f"a URL such as {example}")
    return value


def load() -> Environment:
    try:
        return Environment()
    except ValidationError as error:
        messages = []
        for problem in error.errors():
            name = str(problem["loc"][-1]).upper()
            if name not in {"HOST", "PORT"} and not name.startswith(("ASHIATO_", "OTEL_")):
                name = f"ASHIATO_{name}"
            context = problem.get("ctx", {})
            expected = EXPECTED_VALUES.get(problem["type"], problem["msg"]).format_map(context)
            # A URL may contain a password.
            is_secret = name in SECRET_NAMES
            value_note = "" if is_secret else f", not {mask_secrets(repr(problem['input']))}"
            messages.append(f"{name} must be {expected}{value_note}.")
        sys.exit("\n".join(messages))


def parse_host(origin: str) -> str:
    """The host as Django compares it: without its port, an IPv6 address in brackets."""
    name = urlsplit(origin).hostname or ""
    return f"[{name}]" if ":" in name else name


def can_send_spans() -> bool:
    """Whether the extra `otlp` is installed."""
    try:
        return find_spec("opentelemetry.exporter.otlp.proto.http") is not None
    except ModuleNotFoundError:
        return False


def _split_scopes(value: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value.replace(",", " ").split()))


def split_list(value: str) -> list[str]:
    return [item.strip() for item in value.split(",") if item.strip()]
