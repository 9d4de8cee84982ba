"""Drafts of agents: saved as typed, shared by all editors, compared with what is published."""

import json

import pytest
from django.contrib.auth.models import Permission
from django.urls import reverse

from agents.catalog import agent_versions
from agents.console.agent_admin.agent_editor import drafts
from agents.models import Agent, AgentDraft, AgentTool, ToolRegistration
from tests.conftest import as_user, select

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("agent")]


@pytest.fixture
def mika(django_user_model):
    return django_user_model.objects.create_user("mika", is_staff=True, is_superuser=True)


def page(name, *args):
    return reverse(f"admin:agents_agent_{name}", args=args)


def save(client, agent=None, draft=None, base=0, force=False, tab="", **changes):
    sent = {"agent": agent and agent.pk, "draft": draft, "base": base, "force": force}
    sent["tab"] = tab
    sent["changes"] = {name: [v] if isinstance(v, str) else v for name, v in changes.items()}
    return client.post(page("draft_save"), json.dumps(sent), content_type="application/json")


def tool_input(name, setting):
    return f"tool-{ToolRegistration.objects.get(name=name).pk}-{setting}"


def test_typed_text_is_saved_in_the_draft_and_the_agent_stays_as_it_is(admin_client, agent):
    told = save(admin_client, agent, instructions="Be brief.", max_steps="soon").json()

    assert told["changed"] == {"instructions": "empty", "max_steps": "10"}
    assert (told["count"], told["tabs"]) == (2, ["prompt", "limits"])
    assert told["errors"]["max_steps"] == ["Enter a whole number."]
    draft = AgentDraft.objects.get()
    assert draft.values == {"instructions": ["Be brief."], "max_steps": ["soon"]}
    assert Agent.objects.get().instructions == ""


def test_what_is_typed_back_is_no_change(admin_client, agent):
    save(admin_client, agent, max_steps="11", instructions="Be brief.\r\n")
    told = save(admin_client, agent, base=1, max_steps="10", instructions="").json()

    assert (told["count"], told["changed"], told["revision"]) == (0, {}, 2)


def test_a_tool_is_one_change_with_all_its_settings(admin_client, agent):
    changes = {tool_input("search", "timeout"): "5", tool_input("calculator", "is_given"): []}
    told = save(admin_client, agent, **changes).json()

    assert (told["count"], told["tabs"], len(told["tools"])) == (1, ["tools"], 2)
    assert told["changed"][tool_input("calculator", "is_given")] == "on"


def test_two_people_can_edit_different_fields(admin_client, agent, mika):
    save(admin_client, agent, instructions="Be brief.")
    told = save(as_user(mika), agent, max_steps="7").json()

    assert (told["count"], told["other"]) == (2, "root")


def test_the_same_field_edited_by_two_people_is_a_conflict_and_nothing_is_lost(
    admin_client, agent, mika
):
    save(admin_client, agent, instructions="Be brief.")
    clash = save(as_user(mika), agent, instructions="Be kind.")

    assert clash.status_code == 409
    assert clash.json()["conflict"].startswith("root changed this draft meanwhile: Instr")
    assert clash.json()["theirs"] == {"instructions": ["Be brief."]}
    told = save(as_user(mika), agent, instructions="Be kind.", force=True).json()
    assert told["canUndo"]
    admin_client.post(page("draft_undo"), {"agent": agent.pk})
    assert AgentDraft.objects.get().values == {"instructions": ["Be brief."]}


def test_a_closing_page_saves_its_last_words_before_it_hears_of_the_first(admin_client):
    save(admin_client, name="writer", instructions="Never lo", tab="t1")
    save(admin_client, name="writer", instructions="Never lost.", tab="t1")

    assert AgentDraft.objects.get().text("instructions") == "Never lost."


def test_discarding_goes_back_to_the_published_agent_and_can_be_undone(admin_client, agent):
    save(admin_client, agent, instructions="Be brief.")
    admin_client.post(page("draft_discard"), {"agent": agent.pk})
    assert admin_client.get(page("draft_state"), {"agent": agent.pk}).json()["count"] == 0

    admin_client.post(page("draft_undo"), {"agent": agent.pk})

    assert AgentDraft.objects.get().values == {"instructions": ["Be brief."]}


def test_what_would_change_is_listed_field_by_field(admin_client, agent):
    save(
        admin_client,
        agent,
        instructions="Be very brief.",
        **{tool_input("search", "timeout"): "5"},
    )
    answer = admin_client.get(page("draft_changes"), {"agent": agent.pk})

    headings = [heading.text(strip=True) for heading in select(answer, ".change h3")]
    added = [words.text() for words in select(answer, ".change ins")]
    assert "Instructions" in headings
    assert "Be very brief." in added
    assert any("timeout (seconds): 5" in words for words in added)


def test_what_would_change_says_what_is_wrong(admin_client, agent):
    save(admin_client, agent, max_steps="99", name="")
    answer = admin_client.get(page("draft_changes"), {"agent": agent.pk})

    wrong = {
        link.attributes["data-open-field"]: link.text(strip=True)
        for link in select(answer, ".cannot-publish [data-open-field]")
    }
    assert wrong == {"name": "Name", "max_steps": "Max steps"}
    assert "99" in [words.text() for words in select(answer, ".change ins")]


def test_a_new_agent_has_a_draft_before_it_is_published(admin_client):
    told = save(admin_client, name="writer", instructions="Write.").json()
    again = save(admin_client, draft=told["draft"], base=1, max_steps="x").json()

    assert (again["draft"], again["isNew"]) == (told["draft"], True)
    assert AgentDraft.objects.get().text("instructions") == "Write."
    assert [str(draft) for draft in drafts.unpublished()] == ["writer"]


def test_a_change_published_meanwhile_stays_when_the_draft_is_about_something_else(
    agent, admin_client
):
    save(admin_client, agent, instructions="Be brief.")
    Agent.objects.filter(pk=agent.pk).update(max_steps=7)

    edited = drafts.open_draft(Agent.objects.get())

    assert (edited.values["max_steps"], [*edited.changes]) == (["7"], ["instructions"])


def test_an_old_version_is_restored_into_the_draft_with_its_tools(admin_client, agent):
    AgentTool.objects.filter(tool__name="search").update(max_calls=3, retries=0)
    agent_versions.save(agent, None)
    agent.tools.clear()
    Agent.objects.filter(pk=agent.pk).update(instructions="Be brief.")

    values, missing = drafts.of_version(agent.versions.select_related("agent").get())

    assert missing == []
    assert (values["instructions"], values[tool_input("search", "max_calls")]) == ([], ["3"])
    assert values[tool_input("search", "retries")] == ["0"]
    assert values[tool_input("calculator", "is_given")] == ["on"]


def test_users_with_view_permission_see_the_draft_and_cannot_change_it(
    agent, admin_client, django_user_model
):
    save(admin_client, agent, instructions="Be brief.")
    viewer = django_user_model.objects.create_user("viewer", is_staff=True)
    viewer.user_permissions.add(Permission.objects.get(codename="view_agent"))
    client = as_user(viewer)

    assert client.get(page("draft_changes"), {"agent": agent.pk}).status_code == 200
    assert client.get(page("draft_state"), {"agent": agent.pk}).json()["count"] == 1
    assert save(client, agent, instructions="Mine.").status_code == 403
    assert save(client, name="new").status_code == 403
    assert client.post(page("draft_discard"), {"agent": agent.pk}).status_code == 403


@pytest.mark.parametrize(
    "body", ["", "[]", '{"agent": "x"}', '{"changes": {"name": [1, {}]}}', '{"agent": -1}']
)
def test_an_unreadable_draft_is_refused(admin_client, body):
    answer = admin_client.post(page("draft_save"), body, content_type="application/json")

    assert answer.status_code == 400


def test_a_draft_doesnt_grow_with_every_request(admin_client, agent, monkeypatch):
    monkeypatch.setattr(drafts, "MAX_INPUTS", 3)
    assert save(admin_client, agent, a="1", b="2").status_code == 200

    assert save(admin_client, agent, c="3", d="4").status_code == 413
    admin_client.post(page("draft_discard"), {"agent": agent.pk})
    save(admin_client, agent, c="3", d="4")

    assert len(AgentDraft.objects.get().marks) == 3


def test_numbers_without_end_are_no_ids(admin_client, agent):
    assert admin_client.get(page("draft_state"), {"agent": "9" * 5_000}).status_code == 404
    save(admin_client, agent, instructions="Be brief.")
    sent = {"name": agent.name, "_revision": "²"}
    assert admin_client.post(page("change", agent.pk), sent).status_code < 500
