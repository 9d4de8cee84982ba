"""Error pages keep the navigation, say what to do, and work without a database."""

import sqlite3

import pytest
from django.db import OperationalError
from django.test import RequestFactory

from agents.access.authentication import SessionStore
from agents.web import error_pages
from tests.conftest import as_user, select


@pytest.mark.django_db
def test_a_missing_page_keeps_the_navigation(person_client):
    page = person_client.get("/nowhere/")

    assert page.status_code == 404
    for there in ("/traces/", "/workflows/", "/approvals/", "/account/profile/"):
        assert f'href="{there}"' in page.text
    assert 'href="/admin/"' not in page.text
    assert 'name="theme"' in page.text


@pytest.mark.django_db
def test_a_console_error_page_links_to_the_console(admin_client):
    for missing in ("/chat/999999/", "/nowhere/"):
        assert 'href="/admin/"' in admin_client.get(missing).text


@pytest.mark.django_db
def test_an_anonymous_error_page_links_to_sign_in(client):
    page = client.get("/s/nothing/nowhere/")

    assert page.status_code == 404
    assert 'href="/traces/"' not in page.text
    assert 'href="/login/"' in page.text


@pytest.mark.django_db
def test_an_expired_form_keeps_the_navigation(person):
    client = as_user(person, enforce_csrf_checks=True)
    page = client.post("/chat/", {"text": "Hi"})

    assert page.status_code == 403
    assert "This page has expired" in page.text
    assert 'href="/traces/"' in page.text


def test_an_unreachable_database_is_reported(django_db_blocker):
    request = RequestFactory().get("/traces/")
    request.COOKIES["sessionid"] = "x"
    with django_db_blocker.block():
        try:
            raise OperationalError("connection refused")
        except OperationalError:
            page = error_pages.server_error(request)

    assert (page.status_code, page["Retry-After"]) == (503, "30")
    assert "The database isn’t responding" in page.text
    assert 'href="/traces/"' in page.text


@pytest.mark.django_db
def test_a_full_disk_is_the_reason_that_sign_in_gives(client, monkeypatch, django_user_model):
    django_user_model.objects.create_user("ada", password="a long walk on the beach")

    def save(*args, **kwargs):
        full = sqlite3.OperationalError("database or disk is full")
        full.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise OperationalError("database or disk is full") from full

    monkeypatch.setattr(SessionStore, "save", save)
    client.raise_request_exception = False
    form = {"username": "ada", "password": "a long walk on the beach"}
    page = client.post("/login/", form)

    assert page.status_code == 507


def test_a_failure_has_its_time_and_needs_no_database():
    page = error_pages.server_error(RequestFactory().get("/"))

    assert page.status_code == 500
    assert "Time of the error" in page.text
    assert "Try again" in page.text


def test_too_much_text_is_refused_with_the_limit_and_the_navigation(person_client):
    page = person_client.post("/account/profile/", {"about_me": "x" * 2_000_000})

    assert page.status_code == 413
    assert "at most 1.0" in page.text
    assert 'href="/traces/"' in page.text


def test_a_missing_page_of_the_console_leads_back_to_it(admin_client, client):
    [console] = select(admin_client.get("/admin/nowhere/"), ".error-actions .primary")
    [sign_in] = select(client.get("/nowhere/"), ".error-actions .primary")

    assert console.attributes["href"] == "/admin/"
    assert sign_in.attributes["href"] == "/login/"
