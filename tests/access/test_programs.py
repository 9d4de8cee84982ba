"""Every address that programs call, with every scope: which keys it lets in.

A new route or operation without a row fails. The operations of the REST API are tried without
their scope in `tests/chat/api/rest/test_operations.py`, and the requests of MCP in
`tests/chat/api/mcp/test_endpoint.py`.
"""

import pytest
from django.conf import settings
from django.test import AsyncClient
from django.urls import URLResolver, get_resolver

from agents.access import api_keys
from agents.db import database
from agents.models import ApiKey
from chat.api.mcp.server import SCOPES as MCP_SCOPES
from chat.api.mcp.server import _server as mcp_server
from chat.api.rest import document
from chat.api.rest.app import api
from project.asgi import PROGRAM_SOCKETS

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]

ANY = ""
SCOPES = tuple(ApiKey.Scope.values)
QUESTION = {"model": "nobody", "messages": [{"role": "user", "content": "Hello"}]}
INPUT = {"model": "nobody", "input": "Hello"}
LETTER = {"message": {"messageId": "1", "role": "ROLE_USER", "parts": [{"text": "Hello"}]}}
RUN_INPUT = {
    "threadId": "1",
    "runId": "1",
    "state": {},
    "messages": [{"id": "1", "role": "user", "content": "Hello"}],
    "tools": [],
    "context": [],
    "forwardedProps": {},
}
# By route: requests with their body, and the scope that they need.
PROTOCOL_ROUTES = {
    "v1/models": [("get", "v1/models", None, "ask")],
    "v1/models/<path:name>": [("get", "v1/models/helper", None, "ask")],
    "v1/chat/completions": [("post", "v1/chat/completions", QUESTION, "ask")],
    "v1/embeddings": [("post", "v1/embeddings", {"input": "tea"}, "ask")],
    "v1/responses": [("post", "v1/responses", INPUT, "ask")],
    "v1/responses/compact": [("post", "v1/responses/compact", INPUT, "ask")],
    "v1/responses/<str:id>": [
        ("get", "v1/responses/resp_1", None, "ask"),
        ("delete", "v1/responses/resp_1", None, "ask"),
    ],
    "v1/responses/<str:id>/cancel": [("post", "v1/responses/resp_1/cancel", {}, "ask")],
    "v1/responses/<str:id>/input_items": [
        ("get", "v1/responses/resp_1/input_items", None, "ask")
    ],
    "a2a/<slug:agent>/.well-known/agent-card.json": [
        ("get", "a2a/helper/.well-known/agent-card.json", None, ANY)
    ],
    "a2a/": [
        ("post", "a2a/helper/message:send", LETTER, "ask"),
        ("post", "a2a/helper/message:stream", LETTER, "ask"),
        ("get", "a2a/helper/tasks", None, "read"),
        ("get", "a2a/helper/tasks/1", None, "read"),
    ],
    "ag-ui/<slug:agent>": [("post", "ag-ui/helper", RUN_INPUT, "ask")],
}
REST_OPERATIONS = {
    "listChats": "read",
    "startChat": "ask",
    "getChat": "read",
    "changeChat": "ask",
    "deleteChat": "ask",
    "restoreChat": "ask",
    "listMessages": "read",
    "sendMessage": "ask",
    "exportChat": "read",
    "uploadFile": "ask",
    "getFile": "read",
    "deleteFile": "ask",
    "downloadFile": "read",
    "listRuns": "read",
    "startRun": "ask",
    "getRun": "read",
    "waitForRun": "read",
    "stopRun": "ask",
    "listSteps": "read",
    "listEvents": "read",
    "rateRun": "ask",
    "deleteRating": "ask",
    "exportTrace": "read",
    "exportTraces": "read",
    "listApprovals": "approve",
    "getApproval": "approve",
    "decide": "approve",
    "listAgents": "ask",
    "getAgent": "ask",
    "listAgentVersions": "configure",
    "getAgentVersion": "configure",
    "listWorkflows": "ask",
    "getWorkflow": "ask",
    "startWorkflow": "ask",
    "listCollections": "read",
    "getCollection": "read",
    "listDocuments": "read",
    "uploadDocument": "configure",
    "searchDocuments": "read",
    "getDocument": "read",
    "deleteDocument": "configure",
    "downloadDocument": "read",
    "listExampleSets": "read",
    "getExampleSet": "read",
    "listExamples": "read",
    "listExperiments": "read",
    "startExperiment": "configure",
    "getExperiment": "read",
    "listResults": "read",
    "cancelExperiment": "configure",
    "getMe": ANY,
}
# Requests of MCP that need no scope: what they return depends on the scopes.
MCP_WITHOUT_SCOPE = {
    "initialize",
    "ping",
    "server/discover",
    "tools/list",
    "resources/templates/list",
}
ROWS = [row for rows in PROTOCOL_ROUTES.values() for row in rows]


@pytest.fixture
def request_row(administrator):
    """Send a row's request with a key of these scopes; without one, with none."""

    async def send(row, *scopes):
        method, path, body, _scope = row
        headers = {"A2A-Version": "1.0"}
        if scopes:
            made = await database.run(api_keys.create, administrator, "CI", scopes)
            headers["Authorization"] = f"Bearer {made[1]}"
        options = {} if body is None else {"data": body, "content_type": "application/json"}
        response = await getattr(AsyncClient(), method)(f"/{path}", headers=headers, **options)
        if response.streaming:
            await anext(aiter(response.streaming_content), None)
        return response

    return send


def test_every_route_of_programs_has_a_row():
    prefixes = tuple(prefix.lstrip("/") for prefix in settings.API_PREFIXES)
    routes = {
        f"{resolver.pattern}{pattern.pattern}"
        for resolver in get_resolver(settings.API_URLCONF).url_patterns
        if isinstance(resolver, URLResolver) and str(resolver.pattern).startswith(prefixes)
        for pattern in resolver.url_patterns
    }

    # The REST API has a document, and its operations.
    assert routes - {"api/v1/openapi.json", "api/v1/"} == set(PROTOCOL_ROUTES)
    assert {path.lstrip("/") for path in PROGRAM_SOCKETS} <= set(PROTOCOL_ROUTES)


def test_every_operation_needs_the_scope_of_its_row():
    scopes = {op.operation_id: document.scope_of(op) for _p, _m, op in document.operations(api)}

    assert scopes == REST_OPERATIONS


def test_every_request_of_mcp_has_a_scope_or_needs_none():
    handled = set(mcp_server._request_handlers)

    assert handled <= {*MCP_SCOPES} | MCP_WITHOUT_SCOPE
    assert {*MCP_SCOPES} <= handled


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]} {row[1]}")
async def test_a_key_gets_in_with_the_scope_of_the_row_alone(row, request_row):
    *_request, scope = row

    assert (await request_row(row)).status_code == 401
    with_scope = await request_row(row, scope or SCOPES[0])
    assert with_scope.status_code not in {401, 403, 405}, with_scope.content
    if scope:
        without = await request_row(row, *(other for other in SCOPES if other != scope))
        assert without.status_code == 403
        assert f'scope="{scope}"' in without.headers["WWW-Authenticate"]
