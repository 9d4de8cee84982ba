"""How much a request may send, by route and by who sends it."""

from functools import partial

import pytest
from channels.testing import HttpCommunicator
from django.conf import settings
from django.urls import reverse

from agents.console.system.config_files import parser
from agents.review.experiments.sources import set_files
from agents.tools.openapi import document
from agents.web import error_pages
from agents.web.asgi import body_limits, request_body
from project.asgi import QuietHandler

pytestmark = pytest.mark.django_db


def allowed(path, key):
    cookies = f"a=b; {settings.SESSION_COOKIE_NAME}={key}"
    return body_limits.find_sender(path, cookies).max_bytes


def test_without_a_valid_session_every_route_takes_little(client, person):
    client.force_login(person)
    key = client.session.session_key
    client.logout()

    for invalid in (key, "", "x" * 32, '"', "ünknown"):
        assert allowed("/chats/import/", invalid) == body_limits.ANONYMOUS_BYTES


def test_with_a_session_files_are_taken_where_they_belong(person_client, configure):
    configure(attachment_mb=7)
    key = person_client.session.session_key

    assert allowed("/chat/", key) == allowed("/no/such/page/", key) == body_limits.FORM_BYTES
    assert allowed("/chat/files/", key) == body_limits.FORM_BYTES + 7_000_000
    assert allowed("/chats/import/", key) > 500 * 1024**2


@pytest.mark.parametrize("name", body_limits.FILE_ROUTES)
def test_every_route_with_files_exists(name):
    path = reverse(name, args=[1] if name in {"library:upload"} or "exampleset" in name else [])

    assert body_limits.file_bytes(path) == body_limits.FILE_ROUTES[name]()


def test_the_files_of_the_console_fit():
    sizes = (parser.MAX_FILE_BYTES, set_files.MAX_BYTES, document.MAX_DOCUMENT_BYTES)

    assert max(sizes) <= body_limits.CONSOLE_FILE_MB * body_limits.MEGABYTE


async def test_a_refused_request_gets_the_page_that_says_why():
    handler = HttpCommunicator(
        QuietHandler(), "POST", "/chat/files/", headers=[(b"host", b"testserver")]
    )
    refusal = partial(error_pages.too_large, limit=65_536)
    handler.scope["extensions"] = {request_body.REFUSAL: refusal}
    answer = await handler.get_response(10)
    await handler.wait(10)

    assert answer["status"] == 413
    assert "64.0\xa0KB" in answer["body"].decode()
