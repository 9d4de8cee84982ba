"""The database, channel layer and file storage: for this process alone, or for many."""

import sys
from typing import Any
from urllib.parse import unquote, urlsplit

from project.environment import Environment

CONNECT_TIMEOUT_SECONDS = 5


def database(environment: Environment) -> dict[str, Any]:
    if environment.database_url is None:
        return {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": environment.data / "ashiato.sqlite3",
            "CONN_MAX_AGE": None,
            "OPTIONS": {
                "transaction_mode": "IMMEDIATE",
                "timeout": 20,
                # Deleted data is overwritten, so that erased users aren't in free pages either.
                "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; "
                "PRAGMA secure_delete=ON;",
            },
            # A file, because the writer's and the pages' threads have their own connections.
            "TEST": {"NAME": environment.data / "test.sqlite3"},
        }
    try:
        from psycopg import ProgrammingError
        from psycopg.conninfo import conninfo_to_dict
    except ImportError:
        sys.exit(
            "ASHIATO_DATABASE_URL needs additional packages. Install them with: make scale"
        )
    try:
        values = conninfo_to_dict(environment.database_url.get_secret_value())
    except ProgrammingError:
        sys.exit("ASHIATO_DATABASE_URL isn't a valid PostgreSQL URL.")
    return {
        "ENGINE": "project.postgresql",
        "NAME": values.pop("dbname", ""),
        "USER": values.pop("user", ""),
        "PASSWORD": values.pop("password", ""),
        "HOST": values.pop("host", ""),
        "PORT": values.pop("port", ""),
        # Each thread keeps its own. In a pool, those of aborted requests would be lost forever:
        # the thread is gone, and nothing returns them.
        "CONN_MAX_AGE": None,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {"connect_timeout": CONNECT_TIMEOUT_SECONDS, **values},
    }


def channel_layer(environment: Environment) -> dict[str, Any]:
    if environment.redis_url is None:
        return {
            "BACKEND": "channels.layers.InMemoryChannelLayer",
            "CONFIG": {"capacity": 1000},
        }
    # Without a read timeout: redis-py's own would disconnect idle listeners.
    host = {
        "address": environment.redis_url.get_secret_value(),
        "socket_connect_timeout": CONNECT_TIMEOUT_SECONDS,
        "socket_timeout": None,
        "health_check_interval": 15,
    }
    return {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [host], "prefix": "ashiato"},
    }


def file_storage(environment: Environment) -> dict[str, Any]:
    """Return where uploaded files are: the data folder, or a bucket."""
    if environment.s3_bucket:
        secret = environment.s3_secret
        bucket_options = {
            "bucket_name": environment.s3_bucket,
            "endpoint_url": environment.s3_endpoint or None,
            "region_name": environment.s3_region or None,
            "location": environment.s3_prefix,
            # Without a key, boto3 finds the machine's own role.
            "access_key": environment.s3_key_id or None,
            "secret_key": secret.get_secret_value() if secret else None,
            "default_acl": "private",
            "file_overwrite": True,
        }
        return {
            "BACKEND": "agents.knowledge.files.bucket.BucketStorage",
            "OPTIONS": bucket_options,
        }
    options = {
        "location": environment.data / "files",
        "base_url": None,
        "file_permissions_mode": 0o600,
        "directory_permissions_mode": 0o700,
    }
    return {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": options}


def email(url: str) -> dict[str, Any]:
    """Return Django's settings for a mail server: STARTTLS with smtp, TLS with smtps."""
    address = urlsplit(url)
    is_tls = address.scheme == "smtps"
    return {
        "EMAIL_BACKEND": "django.core.mail.backends.smtp.EmailBackend",
        "EMAIL_HOST": address.hostname or "localhost",
        "EMAIL_PORT": address.port or (465 if is_tls else 587),
        "EMAIL_HOST_USER": unquote(address.username or ""),
        "EMAIL_HOST_PASSWORD": unquote(address.password or ""),
        "EMAIL_USE_SSL": is_tls,
        "EMAIL_USE_TLS": not is_tls and address.hostname not in {"localhost", "127.0.0.1"},
    }
