"""Who looks at a page. It is asked for every frame and every request, and so the short way.

The rows are Django's own, and so is everything that is decided about them.
"""

from django.contrib.auth import get_user_model
from django.contrib.auth.backends import ModelBackend
from django.contrib.sessions.backends import db
from django.contrib.sessions.models import Session
from django.utils import timezone

from agents.models.prepared import prepared


class Accounts(ModelBackend):
    """For AUTHENTICATION_BACKENDS."""

    def get_user(self, user_id):
        for user in _people(user_id):
            return user if self.user_can_authenticate(user) else None
        return None


class SessionStore(db.SessionStore):
    """For SESSION_ENGINE, which takes it from here by its name."""

    def _get_session_from_db(self):
        for session in _sessions(self.session_key):
            if session.expire_date > timezone.now():
                return session
        self._session_key = None
        return None


@prepared
def _people(pk):
    return get_user_model()._default_manager.filter(pk=pk)


@prepared
def _sessions(key):
    return Session.objects.filter(session_key=key)
