"""Authentication of requests and frames, cached because every frame needs it.

The rows are Django's own, and so are the decisions about them.
"""

from typing import Any

from django.conf import settings
from django.contrib.auth import get_user, get_user_model
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import AnonymousUser, Permission, User
from django.contrib.sessions.backends import db
from django.contrib.sessions.backends.base import SessionBase
from django.contrib.sessions.models import Session
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone

from agents.db.compiled_queries import compiled_query
from agents.models.types import AnyUser

MFA_SESSION_KEY = "proved_twice"  # in a session: the user passed multi-factor authentication


def session_user(session: "SessionStore") -> AnyUser:
    """Return the session's user, or an anonymous one if it has ended or proves too little."""
    request = HttpRequest()
    request.session = session
    user = get_user(request)
    is_enough = user.is_authenticated and has_required_mfa(session, user)
    return user if is_enough else AnonymousUser()


def has_required_mfa(session: SessionBase, user: AnyUser) -> bool:
    """Whether the session meets the sign-in requirements for this user."""
    return not requires_mfa(user) or bool(session.get(MFA_SESSION_KEY))


def requires_mfa(user: AnyUser) -> bool:
    """Whether a password alone isn't enough for this user."""
    demanded = settings.REQUIRE_MFA
    return demanded == "all" or (demanded == "staff" and is_privileged(user))


def is_privileged(user: AnyUser) -> bool:
    """Whether the user is an administrator or reviewer, who see more than their own data."""
    return user.is_staff or user.has_perm("agents.review_runs")


class AccountBackend(ModelBackend):
    """For AUTHENTICATION_BACKENDS."""

    def get_user(self, user_id: int) -> User | None:
        for user in _users_by_pk(user_id):
            return user if self.user_can_authenticate(user) else None
        return None

    def get_all_permissions(self, user_obj: Any, obj: Any = None) -> set[str]:
        """Return a user's permissions with one compiled query, instead of Django's two."""
        is_usual = user_obj.is_active and not user_obj.is_superuser and obj is None
        if not is_usual or user_obj.is_anonymous:
            return super().get_all_permissions(user_obj, obj)
        if not hasattr(user_obj, "_perm_cache"):
            names = _permissions_of(user_obj.pk)
            user_obj._perm_cache = {f"{app}.{codename}" for app, codename in names}
        return user_obj._perm_cache


class SessionStore(db.SessionStore):
    """For SESSION_ENGINE, which imports it by name."""

    def _get_session_from_db(self) -> Session | None:
        for session in _sessions_by_key(self.session_key):
            if session.expire_date > timezone.now():
                return session
        self._session_key = None
        return None


@compiled_query
def _users_by_pk(pk: int) -> QuerySet[User]:
    return get_user_model()._default_manager.filter(pk=pk).select_related("profile")


@compiled_query
def _permissions_of(user: int) -> QuerySet[Permission, tuple[str, str]]:
    granted = Permission.objects.filter(Q(user=user) | Q(group__user=user))
    return granted.order_by().values_list("content_type__app_label", "codename")


@compiled_query
def _sessions_by_key(key: str | None) -> QuerySet[Session]:
    return Session.objects.filter(session_key=key)
