"""How large a request's body may be, by route and by who sends it.

The only place that decides this: proxies pass on what arrives, as `deploy/nginx.conf` does.
"""

from collections.abc import Callable
from dataclasses import dataclass

from django.conf import settings
from django.http import parse_cookie
from django.urls import Resolver404, resolve

from agents.access import api_keys, authentication
from agents.access.authentication import SessionStore
from agents.db.installation import configured

from ..api_errors import is_api
from ..error_pages import HOOK_PREFIX

# For everything without a session: sign-in, invitations, passkeys.
ANONYMOUS_BYTES = 64 * 1024
# Other services call triggers, which say themselves that a body is too large.
HOOK_BYTES = 320 * 1024
# The other fields of a form with a file, and the lines between its parts.
FORM_BYTES = settings.DATA_UPLOAD_MAX_MEMORY_SIZE + 64 * 1024
# Of larger bodies, a user sends these at once; others wait. Each is on the disk, perhaps twice,
# until it is answered, and only then counts towards what the user has stored.
MAX_CONCURRENT_FILES = 2
MEGABYTE = 1_000_000
CONSOLE_FILE_MB = 5

# Routes that receive files, by their names, with the size of the files.
FILE_ROUTES: dict[str, Callable[[], int]] = {
    "chat:uploads": lambda: configured.ATTACHMENT_MB.value * MEGABYTE,
    "chat:import": lambda: configured.IMPORT_MB.value * 1024**2,
    "library:upload": lambda: configured.DOCUMENT_MB.value * MEGABYTE,
    "admin:agents_configuration_difference": lambda: CONSOLE_FILE_MB * MEGABYTE,
    "admin:agents_toolregistration_openapi": lambda: CONSOLE_FILE_MB * MEGABYTE,
    "admin:review_exampleset_import": lambda: CONSOLE_FILE_MB * MEGABYTE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """Who sends a request, and how large its body may be."""

    user: int | None
    max_bytes: int


def find_sender(path: str, cookies: str, authorization: str = "") -> Sender:
    """Return who sends something to this path; reads the session, or a program's key."""
    if is_api(path):
        api_key = api_keys.find(authorization)
        if api_key is None:
            return Sender(user=None, max_bytes=ANONYMOUS_BYTES)
        # Programs send files in messages, too.
        file_size = max(configured.ATTACHMENT_MB.value, configured.DOCUMENT_MB.value)
        return Sender(user=api_key.user_id, max_bytes=FORM_BYTES + file_size * MEGABYTE)
    if path.startswith(HOOK_PREFIX):
        return Sender(user=None, max_bytes=HOOK_BYTES)
    key = parse_cookie(cookies).get(settings.SESSION_COOKIE_NAME)
    user = authentication.session_user(SessionStore(key)) if key else None
    if user is None or not user.is_authenticated:
        return Sender(user=None, max_bytes=ANONYMOUS_BYTES)
    return Sender(user=user.pk, max_bytes=FORM_BYTES + file_bytes(path))


def file_bytes(path: str) -> int:
    """Return the size of the files that a route receives, or 0."""
    try:
        name = resolve(path).view_name
    except Resolver404:
        return 0
    return FILE_ROUTES[name]() if name in FILE_ROUTES else 0
