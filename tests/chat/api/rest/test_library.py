"""Agents, workflows, documents and experiments over REST."""

import asyncio

import pytest
from django.contrib.auth.models import Permission, User
from django.core.files.uploadedfile import SimpleUploadedFile

from agents.catalog import agent_versions
from agents.db import database
from agents.knowledge import ingest_text, ingestion
from agents.models import Agent, Collection, Workflow, WorkflowVersion
from agents.review.experiments import service
from agents.review.experiments.models import Experiment
from agents.review.models import Example, ExampleSet
from tests.access.world import WORKFLOW
from tests.chat.api.rest.conftest import body_of, finished

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]

PARAMETERS = """\
name: sums
parameters:
  number: 6
steps:
  - name: sum
    tool: calculator
    arguments: {expression: "${parameters.number} * 7"}
"""


@pytest.fixture
def staff(stranger):
    """A member of staff who can configure agents, and see and run examples."""
    stranger.is_staff = True
    stranger.save()
    names = ("view_exampleset", "view_example", "add_experiment", "view_agent", "change_agent")
    stranger.user_permissions.add(*Permission.objects.filter(codename__in=names))
    return User.objects.get(pk=stranger.pk)


@pytest.fixture
def uploader(person):
    """A user whose keys can have the scope `configure`."""
    person.is_staff = True
    person.save()
    person.user_permissions.add(Permission.objects.get(codename="change_agent"))
    return User.objects.get(pk=person.pk)


async def test_the_agents_that_the_user_can_ask(program, agent):
    await Agent.objects.acreate(name="closed", enabled=False)

    listed = (await program.get("/agents")).json()["items"]
    read = (await program.get(f"/agents/{agent.pk}")).json()

    assert "closed" not in {item["name"] for item in listed}
    assert read["name"] == agent.name
    assert read["is_default"] is True


async def test_versions_are_for_viewers_of_the_console(uploader, connect, staff, agent):
    await database.run(agent_versions.save, agent, None, "First.")
    viewer = await connect("configure", user=staff)
    path = f"/agents/{agent.pk}/versions"

    refused = await (await connect("configure", user=uploader)).get(path)
    [version] = (await viewer.get(path)).json()["items"]
    details = (await viewer.get(f"{path}/{version['number']}")).json()

    assert refused.status_code == 403
    assert version["note"] == "First."
    assert details["settings"]


async def test_a_workflow_is_started_with_parameters(program):
    workflow = await Workflow.objects.acreate(name="sums")
    await WorkflowVersion.objects.acreate(workflow=workflow, number=1, text=WORKFLOW)
    await WorkflowVersion.objects.acreate(workflow=workflow, number=2, text=PARAMETERS)

    [listed] = (await program.get("/workflows")).json()["items"]
    started = await program.post(
        f"/workflows/{workflow.pk}/start", {"parameters": {"number": 5}}
    )
    unknown = await program.post(f"/workflows/{workflow.pk}/start", {"parameters": {"x": 5}})
    assert started.status_code == 201, started.content
    run = await finished(program, started.json()["message"]["run"]["id"])

    assert listed["parameters"] == {"number": 6}
    assert started.status_code == 201
    assert run["parameters"] == {"number": 5}
    assert run["workflow"] == workflow.pk
    assert unknown.status_code == 422
    assert unknown.json()["code"] == "workflow_not_started"


async def test_a_document_is_uploaded_found_and_deleted(connect, uploader):
    person = uploader
    program = await connect(user=uploader)
    collection = await Collection.objects.acreate(name="Tea", owner=person)
    path = f"/collections/{collection.pk}"
    upload = {"file": SimpleUploadedFile("tea.md", b"# Tea\n\nSencha is a green tea of Japan.")}

    added = await program.client.post(f"/api/v1{path}/documents", upload)
    await asyncio.to_thread(ingestion.process_waiting)
    document = (await program.get(f"/documents/{added.json()['id']}")).json()
    found = (await program.get("/documents/search?q=sencha")).json()
    elsewhere = await program.get("/documents/search?q=sencha&collection=999999")
    listed = (await program.get(f"{path}/documents")).json()["items"]
    content = await program.get(f"/documents/{document['id']}/content")
    deleted = await program.call("delete", f"/documents/{document['id']}")

    assert added.status_code == 201, added.content
    assert document["status"] == "ready"
    assert [item["id"] for item in listed] == [document["id"]]
    assert found["passages"][0]["document"] == document["id"]
    assert "Sencha" in found["passages"][0]["text"]
    assert elsewhere.status_code == 404
    assert await body_of(content) == b"# Tea\n\nSencha is a green tea of Japan."
    assert deleted.status_code == 204
    assert (await program.get(f"{path}/documents")).json()["items"] == []


async def test_a_shared_collection_can_be_only_to_read(uploader, stranger, connect):
    person = uploader
    program = await connect(user=uploader)
    collection = await Collection.objects.acreate(name="Tea", owner=stranger)
    await collection.shares.acreate(user=person)
    await database.run(
        ingest_text, "Green tea", source="tea", title="Tea", collection=collection
    )
    document = await collection.documents.aget()
    upload = {"file": SimpleUploadedFile("tea.md", b"# Tea")}

    read = (await program.get(f"/collections/{collection.pk}")).json()
    added = await program.client.post(f"/api/v1/collections/{collection.pk}/documents", upload)
    deleted = await program.call("delete", f"/documents/{document.pk}")

    assert read["may_edit"] is False
    assert added.status_code == deleted.status_code == 403


async def test_an_example_set_is_run(connect, staff, uploader, agent):
    example_set = await ExampleSet.objects.acreate(name="Sums", agent=agent)
    await Example.objects.acreate(
        name="6 * 7", question="What is 6 * 7?", expected="42", example_set=example_set
    )
    runner = await connect("read", "configure", user=staff)

    sets = (await runner.get("/example-sets")).json()["items"]
    [example] = (await runner.get(f"/example-sets/{example_set.pk}/examples")).json()["items"]
    refused = await (await connect(user=uploader)).post("/experiments", {"example_set": 1})
    body = {"example_set": example_set.pk, "is_live": True}
    started = await runner.post("/experiments", body, idempotency_key="one")
    again = await runner.post("/experiments", body, idempotency_key="one")
    experiment = started.json()
    async with asyncio.timeout(30):
        while experiment["state"] == "running":
            await service.advance(experiment["id"])
            await asyncio.sleep(0.1)
            experiment = (await runner.get(f"/experiments/{experiment['id']}")).json()
    results = (await runner.get(f"/experiments/{experiment['id']}/results")).json()["items"]

    assert sets[0]["name"] == "Sums"
    assert example["expected"] == "42"
    assert refused.status_code == 404
    assert started.status_code == 201, experiment
    assert again.json()["id"] == experiment["id"]
    assert experiment["state"] == "done"
    assert [result["name"] for result in results] == ["6 * 7"]
    assert await Experiment.objects.acount() == 1


async def test_an_experiment_is_cancelled(connect, staff, uploader):
    experiment = await Experiment.objects.acreate(
        kind="examples", target="published", started_by=staff
    )
    runner = await connect("read", "configure", user=staff)

    other = await connect(user=uploader)
    refused = await other.post(f"/experiments/{experiment.pk}/cancel")
    cancelled = await runner.post(f"/experiments/{experiment.pk}/cancel")

    assert refused.status_code == 404
    assert cancelled.json()["state"] == "cancelled"
