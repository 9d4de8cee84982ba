"""Frames for untrusted content, and the pages that can have them."""

import pytest
from django.test import Client

from agents.models import Run
from tests.conftest import as_user


@pytest.mark.parametrize("kind", ["diagram", "preview"])
def test_a_frame_has_no_origin_and_loads_nothing_even_if_opened_directly(kind, db):
    answer = Client().get(f"/sandbox/{kind}/")
    policy = dict(
        part.strip().partition(" ")[::2]
        for part in answer["Content-Security-Policy"].split(";")
    )

    assert answer.status_code == 200
    assert policy["sandbox"] == "allow-scripts"
    assert policy["default-src"] == policy["connect-src"] == policy["form-action"] == "'none'"
    assert policy["img-src"] == "data:"
    assert policy["frame-ancestors"] == "'self'"
    assert "http" not in answer["Content-Security-Policy"]
    assert "X-Frame-Options" not in answer
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert "camera=()" in answer["Permissions-Policy"]
    assert answer["Referrer-Policy"] == "no-referrer"
    assert not answer.cookies


def test_a_previewed_page_can_load_no_script(db):
    policy = Client().get("/sandbox/preview/")["Content-Security-Policy"]

    assert "script-src 'unsafe-inline';" in policy
    assert "'self'" not in policy.replace("frame-ancestors 'self'", "")


def test_a_diagram_can_bring_no_script_of_its_own(db):
    assert "script-src 'self';" in Client().get("/sandbox/diagram/")["Content-Security-Policy"]


@pytest.mark.django_db
def test_only_pages_with_answers_can_have_frames(person):
    client = as_user(person)
    run = Run.objects.create(topic="chat.1", user=person, query="?", status="completed")
    policies = {
        path: "frame-src 'self'" in client.get(path)["Content-Security-Policy"]
        for path in ("/", f"/traces/{run.pk}/", "/traces/", "/account/")
    }

    assert policies == {
        "/": True,
        f"/traces/{run.pk}/": True,
        "/traces/": False,
        "/account/": False,
    }
