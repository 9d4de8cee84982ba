"""The console pages of web_search and read_page."""

import json

import pytest
from django.urls import reverse

from agents.catalog.tools import tool_factory
from agents.models import ToolRegistration
from agents.tools.web import web_search
from tests.wire import Reply, serve_in_thread

pytestmark = pytest.mark.django_db(transaction=True)

RESULTS = {"results": [{"title": "Kyoto", "url": "https://k.example/", "content": "A city."}]}
JSON = {"Content-Type": "application/json"}


@pytest.fixture(autouse=True)
def _nothing_saved():
    web_search.RECENT.clear()


@pytest.fixture
def search_row(db):
    return ToolRegistration.objects.create(name="web_search")


def form_values(form):
    """Return what a browser sends for a form as it is displayed."""
    shown = {bound.name: bound.value() for bound in form}
    sent = {name: value for name, value in shown.items() if value not in (None, False)}
    return {name: "on" if value is True else value for name, value in sent.items()}


def page(row):
    return reverse("admin:agents_toolregistration_change", args=[row.pk])


def save(client, row, **values):
    response = client.get(page(row))
    data = form_values(response.context["adminform"].form) | values
    answer = client.post(page(row), data)
    row.refresh_from_db()
    return answer


def build(row):
    return next(iter(tool_factory.build_tools([row])), None)


def test_without_a_service_agents_do_not_have_it(admin_client, search_row):
    assert build(search_row) is None
    assert b"not configured" in admin_client.get(page(search_row)).content


def test_a_service_and_its_key_are_all_that_it_needs(admin_client, search_row):
    save(admin_client, search_row, search_service="brave", api_key="sentinel-key")

    assert build(search_row).service.key == "sentinel-key"
    assert b"sentinel-key" not in admin_client.get(page(search_row)).content
    assert "sentinel-key" not in search_row.headers.token


def test_a_saved_key_stays_and_is_never_sent_to_another_service(admin_client, search_row):
    save(admin_client, search_row, search_service="brave", api_key="sentinel-key")

    save(admin_client, search_row, top_k="8")
    assert build(search_row).service.key == "sentinel-key"

    response = save(admin_client, search_row, search_service="tavily")
    assert response.context["adminform"].form.errors.keys() == {"api_key"}

    save(admin_client, search_row, search_service="searxng", endpoint="https://search.example/")
    assert build(search_row).service.key == ""


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"search_service": "searxng"}, "endpoint"),
        ({"search_service": "searxng", "endpoint": "ftp://x.example"}, "endpoint"),
        ({"search_service": "tavily"}, "api_key"),
    ],
)
def test_what_is_missing_is_said_at_its_field(admin_client, search_row, values, field):
    response = save(admin_client, search_row, **values)

    assert field in response.context["adminform"].form.errors


def test_a_service_is_tried_before_it_is_saved(admin_client, search_row, settings):
    settings.EGRESS_ALLOW = ["127.0.0.1"]
    reply = Reply(parts=(json.dumps(RESULTS).encode(),), headers=JSON)
    with serve_in_thread(pages={"/search": reply}) as server:
        form = admin_client.get(page(search_row)).context["adminform"].form
        values = form_values(form) | {
            "search_service": "searxng",
            "endpoint": f"http://127.0.0.1:{server.port}",
            "arguments": '{"query": "Kyoto"}',
        }
        url = reverse("admin:agents_toolregistration_try", args=[search_row.pk])
        response = admin_client.post(url, values)

    assert "[1] Kyoto (https://k.example/)" in response.context["outcome"].observation
    search_row.refresh_from_db()
    assert search_row.search_service == ""


def test_an_unconfigured_search_cannot_be_run(admin_client, search_row):
    url = reverse("admin:agents_toolregistration_run", args=[search_row.pk])

    assert admin_client.post(url, {"query": "x"}).context["why_not"]


def test_pages_that_nobody_named_are_a_setting(admin_client):
    row = ToolRegistration.objects.create(name="read_page")
    assert not build(row).any_page

    save(admin_client, row, any_page="on")

    assert build(row).any_page
