"""The editor's page: publishing, what it displays, and who can change it."""

import json

import pytest
from django.contrib.auth.models import Permission
from django.urls import reverse

from agents import runs
from agents.engine.testing import Says
from agents.engine.tool import specification
from agents.engine.tool_selection import evaluation
from agents.models import Agent, AgentDraft, AuditEntry, Run
from tests.conftest import as_async_user, as_user, select
from tests.console.agent_admin.test_agent_drafts import page, save
from tests.console.forms import agent_form
from tests.language_models import make_model

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]


def posted(**changes):
    return agent_form(name="helper", is_default="on") | changes


def test_publishing_makes_a_version_with_a_note_and_ends_the_draft(admin_client, agent):
    save(admin_client, agent, instructions="Be brief.")
    told = admin_client.post(
        page("change", agent.pk), posted(instructions="Be brief.", note="Shorter."), follow=True
    )

    assert "Published. Version 2 of helper is live." in told.text
    assert agent.versions.first().note == "Shorter."
    assert not AgentDraft.objects.exists()
    changed = AuditEntry.objects.latest("pk").detail["changes"]
    assert changed["instructions"] == ["", "Be brief."]


def test_what_cannot_be_published_stays_in_the_draft_with_its_errors(admin_client, agent):
    answer = admin_client.post(
        page("change", agent.pk), posted(instructions="Mine.", max_steps="99")
    )

    assert select(answer, '.errornote[role="alert"]')
    [wrong] = select(answer, '[role="tab"][data-wrong]')
    assert wrong.attributes["data-tab"] == "limits"
    assert AgentDraft.objects.get().values["instructions"] == ["Mine."]
    assert Agent.objects.get().instructions == ""


def test_a_draft_changed_by_somebody_else_is_reviewed_before_it_is_published(
    admin_client, agent, django_user_model
):
    save(admin_client, agent, instructions="Be brief.")
    mika = django_user_model.objects.create_superuser("mika")
    save(as_user(mika), agent, base=1, max_steps="7")

    answer = admin_client.post(
        page("change", agent.pk), posted(instructions="Be brief.", _revision="1")
    )

    assert "mika changed this draft meanwhile." in answer.text
    assert answer.context["form"]["max_steps"].value() == "7"
    assert not agent.versions.exists()


def test_a_new_agent_is_listed_as_a_draft_until_it_is_published(admin_client):
    draft = save(admin_client, name="writer", instructions="Write.").json()["draft"]
    listed = admin_client.get(page("changelist")).text
    opened = admin_client.get(page("add"), {"draft": draft})
    admin_client.post(page("add"), agent_form(_draft=draft, instructions="Write."))

    assert f'?draft={draft}">writer</a>' in listed
    assert opened.context["form"]["instructions"].value() == "Write."
    assert Agent.objects.get(name="writer").instructions == "Write."
    assert not AgentDraft.objects.exists()


def test_the_list_marks_agents_with_unpublished_changes(admin_client, agent):
    save(admin_client, agent, instructions="Be brief.")
    row = admin_client.get(page("changelist")).text.split('class="field-state')[1]

    assert ">Draft</span>" in row.split("</td>")[0]


def test_a_discarded_new_agent_can_be_restored(admin_client):
    draft = save(admin_client, name="writer").json()["draft"]
    admin_client.post(page("draft_discard"), {"draft": draft})
    restore = f"{reverse('admin:restore_deleted')}?items=agents.AgentDraft:{draft}"
    assert restore in admin_client.get(page("changelist")).text
    [item] = admin_client.get(reverse("admin:recently_deleted")).context["items"]
    assert item.title == "writer"

    admin_client.post(restore)

    assert AgentDraft.objects.get().text("name") == "writer"


def test_the_page_shows_the_draft_and_users_get_the_published_agent(admin_client, agent):
    save(admin_client, agent, instructions="Be brief.")
    shown = admin_client.get(page("change", agent.pk))

    assert shown.context["form"]["instructions"].value() == "Be brief."
    assert shown.context["state"]["changed"] == {"instructions": "empty"}
    assert Agent.objects.get().instructions == ""


def test_the_controls_of_a_tool_name_it_and_its_defaults(admin_client, agent):
    html = admin_client.get(page("change", agent.pk)).text

    assert 'aria-label="calculator: Timeout (seconds)"' in html
    assert "Default (read-only)" in html


def test_users_with_view_permission_see_every_field_disabled(agent, django_user_model):
    viewer = django_user_model.objects.create_user("viewer", is_staff=True)
    viewer.user_permissions.add(Permission.objects.get(codename="view_agent"))
    client = as_user(viewer)
    html = client.get(page("change", agent.pk)).text

    assert '<fieldset class="all-fields" disabled>' in html
    assert ("View only" in html, "data-publish-now" in html) == (True, False)
    assert client.post(page("change", agent.pk), posted()).status_code == 403


def test_the_effective_prompt_has_the_defaults_and_what_the_engine_adds(admin_client, agent):
    save(admin_client, agent, personal_data="hidden", dialect="react")
    html = admin_client.get(page("draft_prompt"), {"agent": agent.pk}).text

    assert "You are helper, an assistant" in html
    assert "Default instructions" in html
    assert "- calculator:" in html  # in the format of ReAct
    assert "If the user has custom instructions" in html


def test_the_effective_prompt_says_which_of_many_tools_are_sent(admin_client, agent):
    for tool in evaluation.read_tools()[:40]:
        about = {"name": tool.name, "source": "http", "endpoint": "https://example.com"}
        about |= {"description": tool.description, "definition": specification(tool)}
        agent.tools.create(**about)

    html = admin_client.get(page("draft_prompt"), {"agent": agent.pk}).text

    assert "up to 25 are sent" in html
    assert "<h3>find_tools" in html
    assert "<h3>calculator" in html  # built-in tools are always sent
    assert "<h3>github__create_issue" not in html
    assert "github__create_issue\n" in html


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ('{"type": }', {"line": 1, "at": 9}),
        ('{"type": "nothing"}', {"problem": "nothing"}),
        ('{"properties": {"price": {"type": "number"}}}', {"fields": "price"}),
    ],
)
def test_a_schema_is_checked_as_it_is_typed(admin_client, schema, told):
    answer = admin_client.post(page("draft_schema"), {"schema": schema}).json()

    for name, value in told.items():
        found = answer[name]
        assert value == found if isinstance(value, int) else value in json.dumps(found)


@pytest.mark.parametrize(
    ("sample", "fits"), [('{"price": 3}', True), ('{"price": "x"}', False)]
)
def test_a_pasted_answer_is_tried_against_the_schema(admin_client, sample, fits):
    schema = '{"type": "object", "properties": {"price": {"type": "number"}}}'
    answer = admin_client.post(
        page("draft_schema"), {"schema": schema, "sample": sample}
    ).json()

    assert answer["fits"] is fits


def test_the_models_have_price_window_and_abilities(admin_client, agent):
    make_model(label="swift", provider="anthropic", model="anthropic/claude-sonnet-4-5")

    swift, *_others, demo = admin_client.get(page("change", agent.pk)).context["models"]

    assert (swift["name"], demo["name"]) == ("swift", "demo")
    assert "$3 / $15 per million tokens · 200,000-token context" in swift["about"]
    assert swift["abilities"][:2] == ["tools", "images"]
    assert "API key" in swift["problem"]


async def test_a_test_chat_has_several_turns(administrator, agent, scripted):
    client = await as_async_user(administrator)
    model = scripted(Says(answer="42"), Says(answer="43"))
    told = {"conversation": ""}
    for question in ("6 * 7?", "And one more?"):
        form = agent_form(question=question, conversation=told["conversation"])
        told = (await client.post(page("try"), form)).json()
        run = await Run.objects.aget(pk=told["page"].split("/")[-2])
        await runs.wait(run)

    html = (await client.get(told["page"])).text
    sent = [message["content"] for message in model.requests[-1]["messages"]]
    assert sent[-3:] == ["6 * 7?", "42", "And one more?"]
    assert html.count('class="trial-turn"') == 2
    strange = agent_form(question="?", conversation="chat.1")
    assert (await client.post(page("try"), strange)).json()["conversation"] != "chat.1"


def test_the_trial_frame_is_allowed_on_the_page(admin_client, agent):
    answer = admin_client.get(reverse("admin:agents_agent_change", args=[agent.pk]))

    assert "frame-src 'self'" in answer.headers["Content-Security-Policy"]
