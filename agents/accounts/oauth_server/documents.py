"""Client ID metadata documents: apps whose client ID is the URL where they describe themselves.

Only fetched for a user who is signed in and opens the consent page.
"""

import asyncio
import json
import re
from datetime import timedelta
from urllib.parse import urlsplit

import httpx2
from django.conf import settings
from django.utils import timezone

from agents.engine.errors import AgentError
from agents.models import OAuthApp
from agents.tools.addresses import AllowList
from agents.tools.egress import Egress, create_client

from .apps import URI_PATTERN, AppMetadata, described_columns

MAX_BYTES = 16 * 1024
TIMEOUT_SECONDS = 6.0
MAX_URL_CHARS = 500
# How long a document is used before it is fetched again, and if that fails.
FRESH_FOR = timedelta(minutes=15)
USABLE_FOR = timedelta(days=1)
DOT_SEGMENT = re.compile(r"/\.{1,2}(/|$)")


class UnusableDocument(Exception):
    """Raised if an app has no valid document at its client ID."""


def is_document_url(client_id: str) -> bool:
    """Whether a client ID is the URL of a document, in the form that the draft demands."""
    if not client_id.startswith("https://") or not URI_PATTERN.fullmatch(client_id):
        return False
    try:
        parts = urlsplit(client_id)
        is_plain = parts.username is None and parts.port != 0
    except ValueError:
        return False
    has_path = parts.path not in {"", "/"} and not DOT_SEGMENT.search(parts.path)
    return is_plain and has_path and "#" not in client_id and len(client_id) <= MAX_URL_CHARS


def refresh(client_id: str) -> None:
    """Save what the app says about itself now, unless it was asked a moment ago.

    Raises UnusableDocument.
    """
    app = OAuthApp.objects.filter(client_id=client_id).first()
    age = timezone.now() - app.fetched_at if app and app.fetched_at else USABLE_FOR
    if age < FRESH_FOR:
        return
    try:
        metadata = _fetch(client_id)
    except (AgentError, ValueError, RecursionError) as error:
        if age < USABLE_FOR:
            return
        raise UnusableDocument from error
    OAuthApp.objects.update_or_create(
        client_id=client_id,
        defaults={
            **described_columns(metadata),
            "source": OAuthApp.Source.DOCUMENT,
            "fetched_at": timezone.now(),
        },
    )


def _fetch(client_id: str) -> AppMetadata:
    """Return a valid document; raise AgentError or ValueError."""
    try:
        status, content = asyncio.run(_get(client_id))
    except (TimeoutError, httpx2.HTTPError) as error:
        raise ValueError("The document can't be fetched.") from error
    if status != 200:
        raise ValueError("There is no document.")
    document = json.loads(content)
    if not isinstance(document, dict) or document.get("client_id") != client_id:
        raise ValueError("The document is of another client ID.")
    if "client_secret" in document:
        raise ValueError("Everybody could read the secret.")
    # Without a secret there is nothing to authenticate with; the redirect URI identifies it.
    metadata = AppMetadata.model_validate(document | {"token_endpoint_auth_method": "none"})
    if metadata.token_endpoint_auth_method != document.get(
        "token_endpoint_auth_method", "none"
    ):
        raise ValueError("The app wants to authenticate in a way that isn't supported.")
    return metadata


async def _get(url: str) -> tuple[int, bytes]:
    """Fetch it once: a document that moved is none."""
    allow = AllowList.read(tuple(settings.EGRESS_ALLOW))
    policy = Egress(allow=allow, timeout=TIMEOUT_SECONDS, most_bytes=MAX_BYTES)
    async with asyncio.timeout(TIMEOUT_SECONDS), create_client(policy) as client:
        response = await client.get(url, headers={"Accept": "application/json"})
        return response.status_code, response.content
