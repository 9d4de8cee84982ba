"""Who is signed in, and who no longer is."""

from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.utils import timezone

pytestmark = pytest.mark.django_db


def is_authenticated(client):
    return client.get("/").status_code == 200


def test_a_signed_in_user_is_authenticated(person_client):
    assert is_authenticated(person_client)


def test_an_expired_session_is_not_authenticated(person_client):
    Session.objects.update(expire_date=timezone.now() - timedelta(seconds=1))

    assert not is_authenticated(person_client)


def test_a_disabled_account_is_not_authenticated(person_client, person):
    type(person).objects.update(is_active=False)

    assert not is_authenticated(person_client)


def test_a_new_password_ends_old_sessions(person_client, person):
    person.set_password("another one")
    person.save()

    assert not is_authenticated(person_client)


def test_an_unknown_session_is_not_authenticated(client):
    client.cookies["sessionid"] = "x" * 32

    assert not is_authenticated(client)
