"""Who is signed in, and who no longer is."""

from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.utils import timezone

pytestmark = pytest.mark.django_db


def is_let_in(client):
    return client.get("/").status_code == 200


def test_whoever_signed_in_is_known(client, person):
    client.force_login(person)

    assert is_let_in(client)


def test_a_session_that_is_over_is_none(client, person):
    client.force_login(person)
    Session.objects.update(expire_date=timezone.now() - timedelta(seconds=1))

    assert not is_let_in(client)


def test_an_account_that_was_switched_off_is_let_in_no_more(client, person):
    client.force_login(person)
    type(person).objects.update(is_active=False)

    assert not is_let_in(client)


def test_a_new_password_ends_what_was_begun_with_the_old_one(client, person):
    client.force_login(person)
    person.set_password("another one")
    person.save()

    assert not is_let_in(client)


def test_a_session_that_nobody_has_begun_is_none(client):
    client.cookies["sessionid"] = "x" * 32

    assert not is_let_in(client)
