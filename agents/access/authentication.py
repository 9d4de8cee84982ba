"""Who looks at a page. It is asked for every frame and every request, and so the short way.

The rows are Django's own, and so is everything that is decided about them.
"""

from typing import Any

from django.conf import settings
from django.contrib.auth import get_user, get_user_model
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import AnonymousUser
from django.contrib.sessions.backends import db
from django.contrib.sessions.models import Session
from django.http import HttpRequest
from django.utils import timezone

from agents.db.compiled_queries import compiled_query

MFA_SESSION_KEY = "proved_twice"  # in a session: more than one thing showed who it is


def session_user(session: "SessionStore") -> Any:
    """Whose session it is, or nobody: one that has ended, or that proves too little."""
    request = HttpRequest()
    request.session = session
    user = get_user(request)
    is_enough = user.is_authenticated and has_required_mfa(session, user)
    return user if is_enough else AnonymousUser()


def has_required_mfa(session: "SessionStore", user: Any) -> bool:
    """Whether they have shown who they are as well as this installation demands of them."""
    return not requires_mfa(user) or bool(session.get(MFA_SESSION_KEY))


def requires_mfa(user: Any) -> bool:
    """Whether a password alone is too little for this person."""
    demanded = settings.REQUIRE_MFA
    return demanded == "all" or (demanded == "staff" and is_privileged(user))


def is_privileged(user: Any) -> bool:
    """Administrators and reviewers: whoever has their account sees more than their own."""
    return user.is_staff or user.has_perm("agents.review_runs")


class AccountBackend(ModelBackend):
    """For AUTHENTICATION_BACKENDS."""

    def get_user(self, user_id):
        for user in _users_by_pk(user_id):
            return user if self.user_can_authenticate(user) else None
        return None


class SessionStore(db.SessionStore):
    """For SESSION_ENGINE, which takes it from here by its name."""

    def _get_session_from_db(self):
        for session in _sessions_by_key(self.session_key):
            if session.expire_date > timezone.now():
                return session
        self._session_key = None
        return None


@compiled_query
def _users_by_pk(pk):
    return get_user_model()._default_manager.filter(pk=pk)


@compiled_query
def _sessions_by_key(key):
    return Session.objects.filter(session_key=key)
