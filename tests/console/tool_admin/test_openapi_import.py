"""The page that creates HTTP tools from an OpenAPI document, and imports it again."""

import base64
import copy
import json
from html import unescape

import pytest
from django.contrib.auth.models import Permission
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from agents.catalog.tools import openapi_import, tool_factory
from agents.console.system.config_files.exporter import ExportSelection, export
from agents.console.system.config_files.importer import ImportState, apply_file, preview_file
from agents.console.tool_admin import tool_tester
from agents.models import AuditEntry, ToolRegistration
from tests.conftest import as_staff, as_user, select
from tests.sampling import one_in
from tests.tools.openapi_documents import PETS, SHOP, YAML
from tests.tools.shop_server import KEY, shop_server
from tests.wire import closed_port

pytestmark = pytest.mark.django_db(transaction=True)

BASE = "https://eu.shop.example/v1"


def page():
    return reverse("admin:agents_toolregistration_openapi")


def listed(client, document=SHOP, **more):
    return client.post(page(), {"text": json.dumps(document), **more})


def imported(client, document=SHOP, keys=None, base_url=None, **more):
    """List the operations, then import those that are selected or given."""
    seen = listed(client, document)
    picked = [view.item.operation.key for view in seen.context["views"] if view.is_picked]
    sent = {
        "document": seen.context["packed"],
        "base_url": seen.context["plan"].base_url if base_url is None else base_url,
        "pick": picked if keys is None else keys,
        "import": "1",
    }
    return client.post(page(), {**sent, **more}, follow=True)


def page_messages(response):
    return [unescape(str(message)) for message in response.context["messages"]]


def html(response):
    return unescape(response.text)


def states(response):
    return {view.item.operation.key: str(view.item.state) for view in response.context["views"]}


def changed():
    """Return the document with an operation changed, one added and one gone."""
    document = copy.deepcopy(SHOP)
    document["paths"]["/orders"]["get"]["summary"] = "List all orders"
    document["paths"]["/refunds"] = {"get": {"operationId": "listRefunds"}}
    del document["paths"]["/orders/{order-id}"]
    return document


def test_the_preview_creates_nothing_and_selects_read_only_operations(admin_client):
    response = listed(admin_client)
    picked = [v.item.operation.key for v in response.context["views"] if v.is_picked]

    assert picked == ["GET /orders", "GET /orders/{order-id}"]
    assert f'value="{BASE}"' in html(response)
    assert "API key (header X-Api-Key)" in html(response)
    assert "HEAD requests aren't supported." in html(response)
    assert "Skipped the parameter 'session' (cookie)." in html(response)
    assert not ToolRegistration.objects.filter(source="http").exists()


def test_selected_operations_become_tools(admin_client):
    response = imported(
        admin_client,
        keys=["GET /orders", "POST /orders", "GET /orders/{order-id}"],
        **{"secret-0": "k3y"},
    )
    rows = {row.name: row for row in ToolRegistration.objects.filter(source="http")}
    create, one = rows["orders_create"], rows["get_orders_order-id"]
    tools = {tool.name: tool for tool in tool_factory.build_tools(rows.values())}

    assert "3 tools created: listOrders, orders_create, get_orders_order-id" in (
        page_messages(response)
    )
    assert (create.method, create.endpoint) == ("POST", f"{BASE}/orders")
    assert create.headers.reveal() == {"X-Api-Key": "k3y"}
    assert one.headers.reveal() == {}  # it needs no sign-in
    assert {name: (t.effect, t.needs_approval) for name, t in tools.items()} == {
        "listOrders": ("read", False),
        "orders_create": ("at_most_once", True),
        "get_orders_order-id": ("read", False),
    }
    assert AuditEntry.objects.filter(action="console.added").count() == 3
    assert "k3y" not in str(AuditEntry.objects.values())


@pytest.mark.parametrize(
    ("scheme", "secret", "headers", "query"),
    one_in(
        3,
        [
            ("basic", "me:pass", {"Authorization": "Basic bWU6cGFzcw=="}, None),
            ("oauth", "Bearer t0ken", {"Authorization": "Bearer t0ken"}, None),
            ("query", "k3y", {"api_key": "k3y"}, ["api_key"]),
        ],
    ),
)
def test_every_authentication_scheme_is_imported(admin_client, scheme, secret, headers, query):
    document = {**SHOP, "security": [{scheme: []}]}
    number = [*SHOP["components"]["securitySchemes"]].index(scheme)
    shown = html(listed(admin_client, document))
    imported(admin_client, document, ["GET /orders"], **{f"secret-{number}": secret})
    row = ToolRegistration.objects.get(name="listOrders")

    assert row.headers.reveal() == headers
    assert row.definition["http"].get("query_secrets") == query
    assert ("Get an access token there and paste it." in shown) == (scheme == "oauth")
    assert base64.b64encode(b"me:pass").decode() == "bWU6cGFzcw=="


def test_a_secret_is_not_sent_to_another_host(admin_client):
    document = copy.deepcopy(SHOP)
    document["paths"]["/orders"]["servers"] = [{"url": "https://elsewhere.example"}]
    shown = html(listed(admin_client, document))
    imported(admin_client, document, ["GET /orders", "POST /login"], **{"secret-0": "k3y"})
    there = ToolRegistration.objects.get(name="listOrders")

    assert "Some operations are on other hosts (elsewhere.example)." in shown
    assert there.endpoint == "https://elsewhere.example/orders"
    assert there.headers.reveal() == {}
    assert ToolRegistration.objects.get(name="login").headers.reveal() == {"X-Api-Key": "k3y"}


def test_a_file_is_read(admin_client):
    file = SimpleUploadedFile("notes.yaml", YAML.encode())
    response = admin_client.post(page(), {"file": file})

    assert states(response) == {"GET /notes/{id}": "new"}
    assert response.context["plan"].base_url == ""


@pytest.fixture
def shop():
    with shop_server() as server:
        yield server


def test_a_document_is_fetched_through_the_egress_policy(admin_client, shop, settings):
    refused = html(admin_client.post(page(), {"url": shop.url}))
    settings.EGRESS_ALLOW = [shop.place]
    response = admin_client.post(page(), {"url": shop.url})
    missing = html(admin_client.post(page(), {"url": f"{shop.url}x"}))

    assert "127.0.0.1 is blocked because its address is" in refused
    assert response.context["plan"].base_url == f"http://{shop.place}/v1"
    assert "127.0.0.1 returned HTTP 404." in missing


def test_tools_of_a_document_call_the_real_api(admin_client, administrator, shop, settings):
    settings.EGRESS_ALLOW = [shop.place]
    seen = admin_client.post(page(), {"url": shop.url})
    keys = ["GET /orders", "POST /orders", "POST /login", "DELETE /orders/{order-id}"]
    sent = {"document": seen.context["packed"], "base_url": seen.context["plan"].base_url}
    admin_client.post(page(), {**sent, "pick": keys, "secret-0": KEY, "import": "1"})

    def run(name, arguments):
        row = ToolRegistration.objects.get(name=name)
        result = tool_tester.run_tool(row, arguments, administrator)
        assert not result.is_error, result.observation
        return shop.requests[-1]

    assert run("listOrders", {"status": ["open", "new"], "X-Trace": "t"}) == {
        "method": "GET",
        "path": "/v1/orders",
        "query": [("status[]", "open"), ("status[]", "new")],
        "trace": "t",
        "type": None,
        "body": "",
    }
    assert run("orders_create", {"body": {"items": [{"price": 2}]}})["body"] == (
        '{"items": [{"price": 2}]}'
    )
    assert run("login", {"body": {"user": "ada"}})["body"] == "user=ada"
    assert run("deleteOrder", {"order-id": "a b"})["path"] == "/v1/orders/a%20b"


def test_an_unreachable_document_says_why(admin_client, settings):
    port = closed_port()
    settings.EGRESS_ALLOW = [f"127.0.0.1:{port}"]

    assert "Couldn't connect to 127.0.0.1" in html(
        admin_client.post(page(), {"url": f"http://127.0.0.1:{port}/x"})
    )


@pytest.mark.parametrize(
    ("sent", "sentence"),
    [
        ({}, "Choose a file, enter a URL or paste the document."),
        ({"text": "{"}, "Invalid JSON: Expecting property name"),
        ({"text": "openapi: 3.0.0\npaths: {}"}, "The document has no operations."),
        ({"url": "ftp://x"}, "The URL must start with http:// or https://."),
        ({"document": "forged"}, "This page has expired. Choose the document again."),
    ],
)
def test_an_unreadable_document_has_a_reason(admin_client, sent, sentence):
    assert sentence in html(admin_client.post(page(), sent, follow=True))


@pytest.mark.parametrize(
    ("base_url", "sentence"),
    one_in(
        4,
        [
            ("", "Enter the API's base URL"),
            ("ftp://x", "The URL must start with http:// or https://."),
            ("https://me:pass@x.example", "The URL can't contain a user name or a password."),
            ("https://x.example/?a=b", "Enter the API's base URL"),
        ],
    ),
)
def test_an_unusable_base_url_has_a_reason(admin_client, base_url, sentence):
    assert sentence in html(imported(admin_client, base_url=base_url))
    assert not ToolRegistration.objects.filter(source="http").exists()


def test_without_a_selection_nothing_is_imported(admin_client):
    assert page_messages(imported(admin_client, keys=[])) == ["Select at least one operation."]


def test_an_operation_that_fails_its_last_check_does_not_stop_the_others(
    admin_client, monkeypatch
):
    check = openapi_import._problem

    def problem(draft):
        is_whole = draft.definition["parameters"]["properties"].get("body", {})
        return "Too large." if draft.name == "login" and is_whole else check(draft)

    monkeypatch.setattr(openapi_import, "_problem", problem)
    response = imported(admin_client, keys=["GET /orders", "POST /login"])

    assert page_messages(response)[:2] == ["1 tool created: listOrders", "login: Too large."]


def test_names_are_unique(admin_client):
    ToolRegistration.objects.create(name="listOrders")
    imported(admin_client, keys=["GET /orders"])

    assert ToolRegistration.objects.get(source="http").name == "shop_listOrders"


def test_another_import_shows_what_changed_and_changes_only_what_is_selected(admin_client):
    keys = ["GET /orders", "POST /orders", "GET /orders/{order-id}"]
    imported(admin_client, keys=keys, **{"secret-0": "k3y"})
    response = listed(admin_client, changed())
    gone = ToolRegistration.objects.get(name="get_orders_order-id")

    assert {k: v for k, v in states(response).items() if v != "refused"} == {
        "GET /orders": "changed",
        "POST /orders": "same",
        "POST /login": "new",
        "GET /refunds": "new",
    }
    assert [words.text() for words in select(response, "ins")] == ["all "]
    assert f"Disable {gone.name}" in html(response)

    response = imported(
        admin_client, changed(), ["GET /orders", "GET /refunds"], disable=[gone.pk]
    )
    gone.refresh_from_db()

    assert page_messages(response) == [
        "1 tool created: listRefunds",
        "1 tool updated: listOrders",
        "1 tool disabled: get_orders_order-id",
        'To use the new tools, add them to <a href="/admin/agents/agent/">an agent</a>.',
    ]
    row = ToolRegistration.objects.get(name="listOrders")
    assert row.definition["description"] == "List all orders"
    assert row.headers.reveal() == {"X-Api-Key": "k3y"}
    assert not gone.enabled
    entry = AuditEntry.objects.get(
        action="console.changed", subject=f"toolregistration:{row.pk}"
    )
    assert entry.detail["changes"] == {"description": ["List orders", "List all orders"]}
    assert states(listed(admin_client, changed()))["GET /orders"] == "same"


def test_administrators_settings_survive_another_import(admin_client):
    imported(admin_client, keys=["POST /orders"])
    ToolRegistration.objects.filter(name="orders_create").update(
        name="order", description="Mine.", approval="never", enabled=False
    )
    document = copy.deepcopy(SHOP)
    document["paths"]["/orders"]["post"]["description"] = "Theirs."
    imported(admin_client, document, ["POST /orders"])
    row = ToolRegistration.objects.get(source="http")

    assert (row.name, row.description, row.approval, row.enabled) == (
        *("order", "Mine.", "never"),
        False,
    )
    assert row.definition["description"] == "Theirs."


def test_saved_headers_do_not_move_to_another_host(admin_client):
    imported(admin_client, keys=["GET /orders"], **{"secret-0": "k3y"})
    response = imported(admin_client, keys=["GET /orders"], base_url="https://new.example")
    row = ToolRegistration.objects.get(name="listOrders")

    assert row.endpoint == "https://new.example/orders"
    assert row.headers.reveal() == {}
    assert any("the headers of listOrders were removed" in m for m in page_messages(response))


def test_a_private_address_has_a_warning(admin_client):
    response = imported(admin_client, keys=["GET /orders"], base_url="http://localhost:9/v1")

    assert any("localhost:9 to ASHIATO_EGRESS_ALLOW" in m for m in page_messages(response))


def test_created_tools_are_exported_and_imported(admin_client, administrator):
    imported(admin_client, keys=["GET /orders", "POST /login"])
    text = export(
        administrator, ExportSelection(kinds=["tools"], names=["listOrders", "login"])
    )
    before = ToolRegistration.objects.get(name="listOrders").definition
    ToolRegistration.objects.filter(source="http").delete()
    found = preview_file(text, administrator, remove=False)
    done = apply_file(text, administrator, remove=False, seal=found.seal)

    assert done.is_done, [thing.problems for thing in found.items]
    assert len(done.of(ImportState.NEW)) == 2
    assert ToolRegistration.objects.get(name="listOrders").definition == before


def test_an_imported_tool_can_be_edited(admin_client):
    imported(admin_client, keys=["GET /orders"])
    row = ToolRegistration.objects.get(name="listOrders")
    fields = {"name": row.name, "description": "", "enabled": "on", "endpoint": row.endpoint}
    more = {"method": "GET", "headers": "", "definition": json.dumps(row.definition)}
    rest = {
        "approval": "tool",
        "always_allow": "never",
        "effect": "",
        "timeout": "45",
        "fallback": "",
    }
    edit = reverse("admin:agents_toolregistration_change", args=[row.pk])
    response = admin_client.post(edit, {**fields, **more, **rest})

    assert response.status_code == 302, html(response)
    row.refresh_from_db()
    assert row.timeout == 45


def test_swagger_20_becomes_tools_too(admin_client):
    imported(admin_client, PETS, ["GET /pets", "POST /pets/{id}"])

    assert {
        *ToolRegistration.objects.filter(source="http").values_list("endpoint", flat=True)
    } == {
        "https://pets.example/v2/pets",
        "https://pets.example/v2/pets/{id}",
    }


def test_importing_needs_the_permission_to_add_tools(person):
    clerk = as_staff(person)
    refused = clerk.get(page()).status_code, listed(clerk).status_code
    add = Permission.objects.get(codename="add_toolregistration")
    view = Permission.objects.get(codename="view_toolregistration")
    person.user_permissions.set([add, view])
    clerk = as_user(person)
    imported(clerk, keys=["GET /orders"])
    update = imported(clerk, changed(), ["GET /orders"])

    assert refused == (403, 403)
    assert ToolRegistration.objects.filter(name="listOrders").exists()
    assert update.status_code == 403
    assert Client().get(page()).status_code == 302


@pytest.mark.parametrize("host", ["[", "[::1", "a]b"])
def test_a_document_with_an_invalid_host_is_listed_with_reasons(admin_client, host):
    document = {"swagger": "2.0", "host": host, "paths": {"/a": {"get": {}}}}

    assert states(listed(admin_client, document)) == {"GET /a": "refused"}
