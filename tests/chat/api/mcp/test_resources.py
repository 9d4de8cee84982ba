"""Documents, traces and prompts of the MCP server: only what the key's user may read."""

import json

import pytest
from mcp import MCPError

from agents.models import Collection, Document, Run
from agents.models.knowledge.documents import DocumentPart
from chat.api.mcp import resources
from chat.models import Prompt
from tests.chat.api.mcp.conftest import ERAS
from tests.conftest import run_question

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]


@pytest.fixture
async def documents(person, stranger):
    """A document of the user, and one of someone else."""
    from django.utils import timezone

    rows = []
    for owner in (person, stranger):
        collection = await Collection.objects.acreate(name="Notes", owner=owner)
        row = await Document.objects.acreate(
            collection=collection,
            title=f"Of {owner}",
            source="notes.md",
            status=Document.Status.READY,
            indexed_at=timezone.now(),
        )
        await DocumentPart.objects.acreate(
            document=row, number=1, kind="text", text=f"Secrets of {owner}"
        )
        rows.append(row)
    return rows


@pytest.mark.parametrize("era", ERAS)
async def test_documents_and_own_runs_are_listed_and_read(
    era, connect, documents, person, stranger
):
    own = await run_question("6 * 7", user=person)
    foreign = await run_question("8 * 8", user=stranger, topic="chat.2")
    async with connect(era) as client:
        listed = {str(resource.uri) for resource in await client.list_resources()}
        [document] = await client.read_resource(f"ashiato://documents/{documents[0].pk}")
        [markdown] = await client.read_resource(f"ashiato://runs/{own.pk}.md")
        [trace] = await client.read_resource(f"ashiato://runs/{own.pk}.json")
        templates = await client.list_resource_templates()
        for uri in (
            f"ashiato://documents/{documents[1].pk}",
            f"ashiato://runs/{foreign.pk}.md",
            f"ashiato://runs/{foreign.pk}.json",
            "ashiato://runs/9999.md",
            "ashiato://runs/1.exe",
            "file:///etc/passwd",
        ):
            with pytest.raises(MCPError):
                await client.read_resource(uri)

    assert listed == {f"ashiato://documents/{documents[0].pk}", f"ashiato://runs/{own.pk}.md"}
    assert "Secrets of ada" in document.text
    assert "6 * 7" in markdown.text
    assert json.loads(trace.text)["schema"] == "ashiato.trace/1"
    assert len(templates) == 3


async def test_a_list_has_pages(connect, person, monkeypatch):
    monkeypatch.setattr(resources, "PAGE_SIZE", 2)
    for number in range(5):
        await Run.objects.acreate(
            user=person, query=str(number), topic=f"api.{number}", status="completed"
        )
    async with connect() as client:
        assert len(await client.list_resources()) == 5
        with pytest.raises(MCPError):
            await client.list_resources_mcp(cursor="runs-x")


async def test_reading_needs_its_scope(connect, documents):
    async with connect("auto", "ask") as client:
        with pytest.raises(MCPError):
            await client.list_resources()
        with pytest.raises(MCPError):
            await client.read_resource(f"ashiato://documents/{documents[0].pk}")
        with pytest.raises(MCPError):
            await client.list_prompts()


async def test_a_reviewer_reads_others_runs_masked_and_audited(connect, administrator, person):
    from agents.models import AuditEntry

    foreign = await run_question("Mail ada@example.com", user=person)
    async with connect("auto", "read", "read_all", user=administrator) as client:
        [trace] = await client.read_resource(f"ashiato://runs/{foreign.pk}.md")

    assert "ada@example.com" not in trace.text
    actions = {entry.action async for entry in AuditEntry.objects.by(administrator)}
    assert {"run.viewed", "run.exported"} <= actions


async def test_prompts_have_their_variables_as_arguments(connect, person, stranger):
    text = "Write to {{who}} in {{language: English | Japanese}}."
    await Prompt.objects.acreate(user=person, name="letter", title="A letter", text=text)
    await Prompt.objects.acreate(user=stranger, name="private", title="Private", text="Mine")
    async with connect() as client:
        [prompt] = await client.list_prompts()
        filled = await client.get_prompt("letter", {"who": "Bob"})
        with pytest.raises(MCPError):
            await client.get_prompt("letter", {})
        with pytest.raises(MCPError):
            await client.get_prompt("private", {})

    assert [(a.name, a.required) for a in prompt.arguments] == [
        ("who", True),
        ("language", False),
    ]
    assert filled.messages[0].content.text == "Write to Bob in English."
