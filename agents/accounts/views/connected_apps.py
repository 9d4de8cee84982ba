"""Apps that a user has connected, on the page of their API keys."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.contrib import messages
from django.contrib.auth.models import User
from django.db import transaction
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from agents.access import audit
from agents.access.requests import UserRequest
from agents.accounts.oauth_server import grants
from agents.accounts.users.api_keys import scope_labels
from agents.models import ApiKey, OAuthApp


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectedApp:
    """An app, with all that a user has granted to it."""

    app: OAuthApp
    scope_labels: tuple[str, ...]
    connected_at: datetime
    last_used_at: datetime | None


def connected_apps(user: User) -> list[ConnectedApp]:
    """Return the apps that can act for a user, the latest first."""
    keys_by_app: dict[OAuthApp, list[ApiKey]] = {}
    for key in grants.active_keys(user):
        if key.app is not None:
            keys_by_app.setdefault(key.app, []).append(key)
    return [_connected_app(app, keys) for app, keys in keys_by_app.items()]


def _connected_app(app: OAuthApp, keys: Iterable[ApiKey]) -> ConnectedApp:
    labels = dict.fromkeys(label for key in keys for label in scope_labels(key))
    used = [key.last_used_at for key in keys if key.last_used_at is not None]
    return ConnectedApp(
        app=app,
        scope_labels=tuple(labels),
        connected_at=min(key.created_at for key in keys),
        last_used_at=max(used, default=None),
    )


@require_POST
def disconnect(request: UserRequest, pk: int) -> HttpResponse:
    """End an app's access at once."""
    app = get_object_or_404(OAuthApp, pk=pk)
    with transaction.atomic():
        if not grants.disconnect(request.user, app):
            raise Http404
        audit.record(request.user, audit.APP_REVOKED, app, name=app.name)
    done = _("%(name)s is disconnected. Its access has ended.")
    messages.success(request, done % {"name": app.name})
    return redirect("people:api_keys")
