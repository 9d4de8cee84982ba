"""Every operation, without a key, without its scope, and with what is another user's."""

import json
import os
import re
import subprocess
import sys

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import Permission, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import AsyncClient
from jsonschema import Draft202012Validator
from ninja import Schema

from agents.models import Agent
from agents.review.experiments.models import Experiment
from agents.review.models import ExampleSet
from chat.api.rest import document
from chat.api.rest.app import api
from tests.access.world import MISSING, create_world
from tests.chat.api.rest.conftest import ALL_SCOPES
from tests.sampling import one_in

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]

OPERATIONS = {
    op.operation_id: (method, path, op) for path, method, op in document.operations(api)
}
# Valid bodies, of operations that have one.
BODIES = {
    "startChat": {"text": "6 * 7"},
    "changeChat": {"title": "Tea"},
    "sendMessage": {"text": "6 * 7"},
    "startRun": {"text": "6 * 7"},
    "rateRun": {"rating": "good"},
    "decide": {"verdict": "approve", "digest": "old"},
    "startWorkflow": {},
    "startExperiment": {"example_set": 1},
}
# Everyone sees the same workflows; only the console has versions of agents.
SAME_FOR_ALL = {"getWorkflow", "startWorkflow", "listAgentVersions", "getAgentVersion"}
WITH_ID = [name for name, (_method, path, _op) in OPERATIONS.items() if "{" in path]


@pytest.fixture
def world(agent, django_user_model):
    """The owner's rows, by the names of path parameters; the agent is only for staff."""
    world = create_world(agent, django_user_model.objects, ())
    owner = User.objects.get(username="owner")
    for name in ("owner", "stranger"):  # whose keys can have every scope but `read_all`
        user = User.objects.get(username=name)
        user.is_staff = True
        user.save()
        user.user_permissions.add(Permission.objects.get(codename="change_agent"))
    ids = world.ids
    example_set = ExampleSet.objects.create(name="Sums")
    experiment = Experiment.objects.create(
        kind="examples", example_set=example_set, target="published", started_by=owner
    )
    closed = Agent.objects.create(name="closed", enabled=False)
    return {
        "chat_id": world.chat.pk,
        "run_id": world.run.pk,
        "file_id": ids["chat/files/<int:pk>"],
        "approval_id": ids["approvals/<int:pk>"],
        "collection_id": ids["library/<int:pk>"],
        "document_id": ids["library/documents/<int:pk>"],
        "workflow_id": ids["workflows/<int:pk>"],
        "agent_id": closed.pk,
        "set_id": example_set.pk,
        "experiment_id": experiment.pk,
    }


def address(path, ids):
    def value(found):
        name = found[1].rpartition(":")[2]
        return {"ending": "json", "number": "1"}.get(name) or str(ids.get(name, MISSING))

    return re.sub(r"\{([^}]+)\}", value, path)


def problem_of(response):
    """Return an error, after checking its form."""
    assert response.headers["Content-Type"] == "application/problem+json", response.content
    problem = response.json()
    assert problem["status"] == response.status_code
    assert problem["title"]
    assert problem["type"] == "about:blank"
    return problem


@pytest.mark.parametrize("name", one_in(3, OPERATIONS))
async def test_without_a_key_it_is_401(name):
    method, path, _operation = OPERATIONS[name]

    response = await getattr(AsyncClient(), method.lower())(f"/api/v1{address(path, {})}")

    assert response.status_code == 401
    assert problem_of(response)["code"] == "invalid_api_key"


@pytest.mark.parametrize("name", one_in(3, OPERATIONS))
async def test_without_its_scope_it_is_403(name, connect):
    method, path, operation = OPERATIONS[name]
    scope = document.scope_of(operation)
    program = await connect(*(each for each in ALL_SCOPES if each != scope))

    response = await program.call(method, address(path, {}), BODIES.get(name))

    if not scope:
        assert response.status_code == 200
    else:
        assert response.status_code == 403
        assert f"“{scope}”" in problem_of(response)["detail"]


@pytest.mark.parametrize("name", one_in(3, WITH_ID))
async def test_what_is_missing_or_anothers_is_404(name, connect, world):
    method, path, _operation = OPERATIONS[name]
    stranger = await connect(user=await User.objects.aget(username="stranger"))
    body = BODIES.get(name)
    upload = {"file": file()} if name == "uploadDocument" else None

    async def request(ids):
        if upload:
            return await stranger.client.post(f"/api/v1{address(path, ids)}", upload)
        return await stranger.call(method, address(path, ids), body)

    missing = await request({})
    anothers = await request(world)

    if name in SAME_FOR_ALL:
        assert missing.status_code in {403, 404}
    else:
        assert missing.status_code == anothers.status_code == 404
        assert problem_of(missing).keys() == problem_of(anothers).keys()


@pytest.mark.parametrize("name", one_in(3, sorted(set(WITH_ID) - SAME_FOR_ALL)))
async def test_the_owner_finds_it(name, connect, world):
    """Or the test above would prove nothing."""
    method, path, _operation = OPERATIONS[name]
    if name in {"getAgent", "restoreChat", "getExampleSet", "listExamples"}:
        pytest.skip("it is disabled, not deleted, or for reviewers")
    owner = await connect(user=await User.objects.aget(username="owner"))

    response = await owner.call(method, address(path, world), BODIES.get(name))

    assert response.status_code != 404, response.content


def file():
    return SimpleUploadedFile("tea.txt", b"Green tea")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nothing", 404),
        ("GET", "/", 404),
        ("GET", "/chats/", 404),
        ("POST", "/chats/", 404),
        ("GET", "/chats/one", 404),
        ("PUT", "/chats", 405),
        ("PATCH", "/runs/1/wait", 405),
        ("GET", "/runs?limit=101", 422),
        ("GET", "/runs?cursor=x", 422),
        ("GET", "/runs?filter=cost:abc", 422),
        ("GET", "/runs/1/wait?seconds=61", 422),
        ("GET", f"/runs/{10**30}", 404),
    ],
)
async def test_errors_are_problems(program, method, path, status):
    response = await program.call(method, path)

    assert response.status_code == status
    problem_of(response)
    assert ("Allow" in response.headers) == (status == 405)


@pytest.mark.parametrize(
    ("body", "type", "status", "code"),
    [
        ("{", "application/json", 400, "invalid_json"),
        ('{"text": NaN}', "application/json", 400, "invalid_json"),
        ("text=6", "application/x-www-form-urlencoded", 415, "unsupported_media_type"),
        ("{}", "application/json", 422, "invalid_request"),
        ('{"text": 6}', "application/json", 422, "invalid_request"),
        ('{"text": "6", "txt": ""}', "application/json", 422, "invalid_request"),
        ('{"text": " "}', "application/json", 422, "message_rejected"),
        ('{"text": "6", "agent": "nobody"}', "application/json", 422, "message_rejected"),
        ('{"text": "\\ud800\\u0000"}', "application/json", 422, ""),
    ],
)
async def test_bad_bodies_are_said_to_be_so(program, body, type, status, code):
    response = await program.client.post("/api/v1/runs", body, content_type=type)

    if code:
        assert problem_of(response)["code"] == code
        assert response.status_code == status
    else:
        assert response.status_code < 500


async def test_an_invalid_field_is_named(program):
    response = await program.post("/runs", {"text": "6", "options": {"temperature": "hot"}})

    [error] = problem_of(response)["errors"]
    assert error["location"] == "body"
    assert error["field"] == "options.temperature"
    assert error["field"] in problem_of(response)["detail"]


async def test_an_error_is_in_the_language_of_the_client(program):
    response = await program.get("/runs/1", accept_language="ja")

    assert problem_of(response)["status"] == 404


async def test_the_document_is_public_and_complete():
    response = await AsyncClient().get("/api/v1/openapi.json")
    text = await sync_to_async(lambda: response.content.decode())()
    schema = json.loads(text)

    assert response.status_code == 200
    assert schema["openapi"].startswith("3.1")
    assert len(OPERATIONS) == sum(len(methods) for methods in schema["paths"].values())
    for methods in schema["paths"].values():
        for details in methods.values():
            assert details["summary"]
            assert details["tags"]
            assert {"401", "429", "default"} <= details["responses"].keys()
            _method, _path, operation = OPERATIONS[details["operationId"]]
            scope = document.scope_of(operation)
            assert details["security"][0] == {"key": [scope] if scope else []}
    components = schema["components"]["schemas"]
    for reference in set(re.findall(r'"#/components/schemas/([^"]+)"', text)):
        assert reference in components


def test_every_schema_of_the_document_is_valid():
    schema = json.loads(json.dumps(api.get_openapi_schema()))

    for component in schema["components"]["schemas"].values():
        Draft202012Validator.check_schema(component)
    for methods in schema["paths"].values():
        for details in methods.values():
            for parameter in details["parameters"]:
                Draft202012Validator.check_schema(parameter["schema"])


def test_no_two_schemas_have_the_same_name():
    """Or one would replace the other in the document."""
    names = [
        each.__name__
        for each in _subclasses(Schema)
        if each.__module__.startswith("chat.api.rest") and "[" not in each.__name__
    ]

    assert len(names) == len(set(names)) > 40


def _subclasses(schema):
    for each in schema.__subclasses__():
        yield each
        yield from _subclasses(each)


def test_pages_start_without_ninja():
    code = (
        "import django, sys; django.setup(); from django.urls import resolve; resolve('/');"
        "sys.exit('ninja' in sys.modules)"
    )
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "project.settings"}
    done = subprocess.run([sys.executable, "-c", code], env=environment)

    assert done.returncode == 0


async def test_the_reference_is_a_page_of_the_product(person_async_client):
    page = await person_async_client.get("/api/docs/")
    anonymous = await AsyncClient().get("/api/docs/")

    assert page.status_code == 200
    assert "/api/v1/openapi.json" in page.content.decode()
    assert "cdn" not in page.content.decode()
    assert anonymous.status_code == 302
