"""A chat is exported as Markdown, as JSON and as a page to print."""

import io
import json
import zipfile

import pytest

from agents.access import audit
from agents.models import AgentStep, AuditEntry, Run
from chat.models import ChatSession
from chat.sharing import members
from chat.transfer.exports import chat_export, export_pages
from chat.transfer.imports import export_ids
from tests.access.audit.rows import create_question
from tests.conftest import as_async_user, as_user, select

pytestmark = pytest.mark.django_db


@pytest.fixture
def chat(person):
    """Two questions, of which the second has two branches."""
    chat = ChatSession.objects.create(user=person, title="Sums: 6*7 & <b>more</b>")
    run = create_question(chat, person, "6 * 7?")
    AgentStep.objects.create(
        run=run,
        number=2,
        kind="tool",
        status="done",
        action="calculator",
        action_input={"expression": "6 * 7"},
        observation="42",
        started_at=run.started_at,
        ended_at=run.started_at,
    )
    first = run.message
    for text in ("An earlier attempt", "And *twice* that?"):
        branch = create_question(chat, person, text).message
        branch.parent = first
        branch.save()
    Run.objects.filter(query="And *twice* that?").update(answer="```python\nprint(84)")
    return chat


def markdown(chat, user, **about):
    return "".join(chat_export.as_markdown(chat, user, **about))


def test_markdown_has_the_branch_on_the_page(chat, person):
    text = markdown(chat, person)

    assert text.startswith("# Sums: 6\\*7 & \\<b\\>more\\</b\\>\n")
    assert "> 6 * 7?" in text
    assert "\n\nAnswer to 6 * 7?\n" in text
    assert "> And *twice* that?" in text
    assert "earlier attempt" not in text
    assert "calculator" not in text
    assert text.count("```") == 2  # the open code block is closed


def test_markdown_has_collapsed_steps_if_requested(chat, person):
    text = markdown(chat, person, has_steps=True)

    assert "<details>\n<summary>2 steps</summary>" in text
    assert "calculator" in text
    assert "```\n42\n```" in text


def test_only_reviewers_export_which_rule_matched(chat, person, administrator):
    step = AgentStep.objects.get(number=2)
    step.kind = "guardrail"
    judged = {"verdict": "violation", "reason": "Falcon is secret."}
    step.action_input = {"rule": "Project Falcon", "id": 7, "judge": judged}
    step.save()

    own = "".join(chat_export.as_json(chat, person))
    reviewed = "".join(chat_export.as_json(chat, administrator))

    assert "violation" in own
    assert "Falcon" not in own
    assert reviewed.count("Falcon") == 2


def test_json_has_the_whole_tree_with_answers_and_steps(chat, person):
    document = json.loads("".join(chat_export.as_json(chat, person)))

    first, earlier, last = document["messages"]
    assert document["schema"] == "ashiato.chat/1"
    assert document["chat"]["current"] == last["id"]
    assert (first["parent"], earlier["parent"], last["parent"]) == (
        None,
        first["id"],
        first["id"],
    )
    assert first["author"] == "ada"
    assert first["run"]["answer"] == "Answer to 6 * 7?"
    step = first["run"]["steps"][1]
    assert (step["action"], step["action_input"]) == ("calculator", {"expression": "6 * 7"})


def test_an_export_id_belongs_to_its_installation(chat, settings):
    name = export_ids.export_id(chat.pk)

    assert export_ids.parse_export_id(name) == chat.pk
    assert export_ids.parse_export_id(f"{chat.pk + 1}{name[name.index('.') :]}") is None
    settings.SECRET_KEY = "another installation"
    assert export_ids.parse_export_id(name) is None


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Sums: 6*7!", "sums-6-7-{}.md"),
        ("日本語", "{}.md"),
        ('x"\r\nSet-Cookie: a/../b', "x-set-cookie-a-b-{}.md"),
    ],
)
def test_a_file_name_is_safe(chat, title, name):
    chat.title = title

    assert chat_export.file_name(chat, "md") == name.format(chat.pk)


def test_the_print_page_has_only_the_whole_branch(chat, person):
    client = as_user(person)
    page = client.get(f"/chat/{chat.pk}/print/").text
    with_steps = client.get(f"/chat/{chat.pk}/print/?steps=1").text

    assert "Sums: 6*7 &amp; &lt;b&gt;more&lt;/b&gt;" in page
    assert "Answer to 6 * 7?" in page
    assert "earlier attempt" not in page
    assert 'id="sidebar"' not in page
    assert "calculator:" not in page
    assert "calculator:" in with_steps


def test_sources_are_listed_with_their_numbers(chat, person):
    found = {"number": 2, "id": "a", "title": "Guide", "document": 1, "chunk": 1}
    text = "[1] Other (b.md #0)\nElse\n\n[2] Guide (a.md #0)\nStop it with Esc."
    AgentStep.objects.filter(action="calculator").update(observation=text, sources=[found])
    Run.objects.filter(query="6 * 7?").update(answer="Press Esc [2].")
    client = as_user(person)

    sources = "**Sources**\n\n- \\[2\\] Guide · “Stop it with Esc.”\n"
    assert f"Press Esc [2].\n\n{sources}" in markdown(chat, person)
    listed = select(client.get(f"/chat/{chat.pk}/print/"), "li")
    assert any(item.text(strip=True).startswith("[2] Guide") for item in listed)


def test_a_truncated_long_chat_says_so(chat, person, monkeypatch):
    monkeypatch.setattr(export_pages, "MAX_PRINTED", 1)
    client = as_user(person)

    page = client.get(f"/chat/{chat.pk}/print/").text

    assert "Only the first 1 message is on this page." in page
    assert "twice" not in page


def test_members_export_what_they_see_and_it_is_audited(chat, stranger):
    client = as_user(stranger)
    assert client.get(f"/chat/{chat.pk}/print/").status_code == 404
    members.add_member(chat, "eve", "read")

    assert client.get(f"/chat/{chat.pk}/print/").status_code == 200
    entry = AuditEntry.objects.get(action=audit.SESSION_EXPORTED)
    assert entry.detail == {"form": "print"}


async def download(client, method, address, *data):
    answer = await getattr(client, method)(address, *data)
    if answer.status_code != 200:
        return answer, b""
    return answer, b"".join([piece async for piece in answer.streaming_content])


@pytest.mark.django_db(transaction=True)
async def test_chats_are_downloaded_alone_and_as_a_zip(chat, person, stranger):
    theirs = await ChatSession.objects.acreate(user=stranger, title="Not mine")
    client = await as_async_user(person)

    answer, text = await download(client, "get", f"/chat/{chat.pk}/export/md/")
    assert f'filename="sums-6-7-b-more-b-{chat.pk}.md"' in answer.headers["Content-Disposition"]
    assert b"6 * 7?" in text
    several = {"ids": [chat.pk, theirs.pk, "x", "9" * 30], "format": "json"}
    _answer, packed = await download(client, "post", "/chat/export/", several)
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        [name] = archive.namelist()
        assert json.loads(archive.read(name))["chat"]["title"] == chat.title
    for address in (f"/chat/{theirs.pk}/export/json/", f"/chat/{chat.pk}/export/exe/"):
        assert (await download(client, "get", address))[0].status_code == 404
    nothing = await download(client, "post", "/chat/export/", {"ids": [theirs.pk]})
    assert nothing[0].status_code == 404
