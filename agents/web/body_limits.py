"""How large a request's body may be, by route and by who sends it.

The only place that decides this: proxies pass on what arrives, as `deploy/nginx.conf` does.
"""

from collections.abc import Callable

from django.conf import settings
from django.http import parse_cookie
from django.urls import Resolver404, resolve

from agents.access import authentication
from agents.access.authentication import SessionStore
from agents.installation import configured

# For everything without a session: sign-in, invitations, passkeys.
ANONYMOUS_BYTES = 64 * 1024
# The other fields of a form with a file, and the lines between its parts.
FORM_BYTES = settings.DATA_UPLOAD_MAX_MEMORY_SIZE + 64 * 1024
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


def allowed_bytes(path: str, cookies: str) -> int:
    """Return the largest body this sender may send there; reads the session."""
    key = parse_cookie(cookies).get(settings.SESSION_COOKIE_NAME)
    if not key or not authentication.session_user(SessionStore(key)).is_authenticated:
        return ANONYMOUS_BYTES
    return FORM_BYTES + file_bytes(path)


def file_bytes(path: str) -> int:
    """Return the size of the files that a route receives, or 0."""
    try:
        name = resolve(path).view_name
    except Resolver404:
        return 0
    return FILE_ROUTES[name]() if name in FILE_ROUTES else 0
