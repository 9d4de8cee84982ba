"""The admin console: administrators see everything, and their changes apply to the next run."""

from datetime import datetime

import pytest
from asgiref.sync import sync_to_async
from django.contrib import admin
from django.contrib.auth.models import Permission, User
from django.core.exceptions import ValidationError
from django.urls import reverse
from django.utils import translation
from django.utils.formats import date_format

from agents.console.navigation import MENU
from agents.knowledge import default_collection
from agents.models import (
    Agent,
    AgentStep,
    Approval,
    Chunk,
    Document,
    GuardrailPattern,
    InstallationSetting,
    Run,
    RunEvent,
    ToolRegistration,
    Workflow,
)
from chat.models import ChatSession, Invitation, Member, Message
from tests.conftest import as_staff, as_user, run_question, select
from tests.console.forms import agent_form

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]

RECORDS = [Run, RunEvent, AgentStep, Approval, ChatSession, Message, Document, Chunk]
RECORDS += [Member, Invitation]


def page(model, name, *args):
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{name}", args=args)


@pytest.fixture
def rows(administrator):
    """One row of each model, with values that are awkward to display."""
    chat = ChatSession.objects.create(user=administrator, title="<b>Sums</b>")
    run = Run.objects.create(
        user=administrator, topic=chat.topic, query="<script>", answer="x" * 9_000
    )
    Message.objects.create(
        session=chat, author=administrator, run=run, text="<i>", client_id="a"
    )
    now = run.started_at
    link = Invitation.objects.create(session=chat, digest="d", expires_at=now)
    Member.objects.create(session=chat, topic=chat.topic, user=administrator, invitation=link)
    RunEvent.objects.create(run=run, seq=1, type="delta", time=now, data={"content": "<b>"})
    AgentStep.objects.create(run=run, number=1, kind="tool", started_at=now, action="<b>")
    Approval.objects.create(
        run=run, step=1, tool="<b>", arguments="{}", asked_at=run.started_at
    )
    about = {"title": "<u>", "source": "a.md", "collection": default_collection()}
    document = Document.objects.create(**about)
    Chunk.objects.create(document=document, ordinal=1, text="<s>")


def test_every_console_page_opens(admin_client, rows):
    models = [m for m in admin.site._registry if m._meta.app_label in {"agents", "chat"}]
    assert {*RECORDS, Agent, ToolRegistration, GuardrailPattern} <= set(models)

    for model in [m for m in admin.site._registry if m._meta.app_label != "procrastinate"]:
        listed = admin_client.get(page(model, "changelist"))
        assert listed.status_code == 200, model
        if (row := model._default_manager.first()) is not None:
            shown = admin_client.get(page(model, "change", row.pk))
            assert shown.status_code == 200, model
            assert "<b>" not in shown.text.replace("<b></b>", ""), model
        if admin.site._registry[model].has_add_permission(listed.wsgi_request):
            assert admin_client.get(page(model, "add"), follow=True).status_code == 200, model


def test_every_list_can_be_searched(admin_client, rows):
    for model in [Run, ToolRegistration, Message]:
        for query in ["'\"%", "\0", "x " * 50]:
            assert admin_client.get(page(model, "changelist"), {"q": query}).status_code == 200


def test_recorded_rows_are_read_only(admin_client, rows):
    for model in RECORDS:
        row = model.objects.get()
        assert admin_client.get(page(model, "add")).status_code == 403, model
        assert (
            admin_client.post(page(model, "change", row.pk), {"title": "x"}).status_code == 403
        )


BAD = {
    "(unclosed": "missing )",
    "(?=lookahead)": "invalid perl operator",
    "x*": "matches everything",
    "a{1001}": "repetition",
    "": "required",
    "x" * 1001: "up to 1000 characters",
}


def test_an_invalid_pattern_is_rejected_with_the_reason(admin_client):
    before = GuardrailPattern.objects.count()

    for pattern, reason in BAD.items():
        fields = {"name": "Bad", "pattern": pattern, "stage": "both", "action": "block"}
        fields["kind"] = GuardrailPattern.Kind.PATTERN
        answer = admin_client.post(page(GuardrailPattern, "add"), fields)
        assert answer.status_code == 200
        assert reason in answer.text
    assert GuardrailPattern.objects.count() == before


def test_an_agent_with_a_value_out_of_range_is_rejected(admin_client, agent):
    form = admin_client.get(page(Agent, "change", agent.pk)).context["adminform"].form
    fields = {k: v for k, v in form.initial.items() if v is not None}
    del fields["given"]  # the tools have inputs of their own

    for field, value in [("max_steps", "0"), ("max_steps", "51"), ("name", "two words")]:
        answer = admin_client.post(page(Agent, "change", agent.pk), fields | {field: value})
        assert answer.status_code == 200
        assert "errorlist" in answer.text


def test_a_second_default_agent_is_rejected_with_a_message(admin_client, agent):
    answer = admin_client.post(page(Agent, "add"), agent_form(name="second", is_default="on"))

    assert "Another agent is already the default." in answer.text
    assert Agent.objects.count() == 1


async def test_a_disabled_tool_is_missing_from_the_next_run(admin_client):
    before = await run_question("6 * 7")
    tools = [tool async for tool in ToolRegistration.objects.all()]
    switches = {f"form-{at}-id": tool.pk for at, tool in enumerate(tools)}
    for at, tool in enumerate(tools):
        switches[f"initial-form-{at}-enabled"] = "True"
        if tool.name != "calculator":
            switches[f"form-{at}-enabled"] = "on"
    counts = {"form-TOTAL_FORMS": len(tools), "form-INITIAL_FORMS": len(tools)}
    saved = {"_save": "Save", **counts, **switches}
    await sync_to_async(admin_client.post)(page(ToolRegistration, "changelist"), saved)

    after = await run_question("6 * 7")

    assert (before.tool_calls, after.tool_calls) == (1, 0)
    started = await after.events.aget(type="run_started")
    names = [tool["function"]["name"] for tool in started.data["tools"]]
    assert names == ["database", "search"]


async def test_a_new_pattern_blocks_the_next_run(admin_client):
    fields = {"name": "No sums", "pattern": r"\d+ \* \d+", "stage": "input"}
    rule = {
        "kind": "pattern",
        "action": "block",
        "message": "No sums, please.",
        "enabled": "on",
    }
    assert (await run_question("6 * 7")).status == "completed"

    await sync_to_async(admin_client.post)(page(GuardrailPattern, "add"), fields | rule)
    run = await run_question("6 * 7")

    assert (run.status, run.detail) == ("blocked", "No sums, please.")
    assert run.tool_calls == 0


def test_staff_without_permission_see_nothing(person, rows):
    client = as_staff(person)

    for model in admin.site._registry:
        assert client.get(page(model, "changelist")).status_code == 403, model
    assert "agents" not in client.get("/admin/").text.split("<main")[-1].split("</main")[0]


def test_users_who_are_not_staff_cannot_open_the_console(person):
    client = as_user(person)

    assert client.get("/admin/").status_code == 302


@pytest.mark.parametrize("model", ["has space", "openai/"])
def test_an_invalid_model_name_is_rejected(model):
    with pytest.raises(ValidationError, match="provider/model"):
        Agent(name="x", model=model).clean()


# Two administrators at once


@pytest.fixture
def colleague(django_user_model):
    return as_user(django_user_model.objects.create_superuser("mari"))


def form_of(client, row):
    """Return what this row's form would submit unchanged."""
    form = client.get(page(type(row), "change", row.pk)).context["adminform"].form
    shown = {name: form.get_initial_for_field(form.fields[name], name) for name in form.fields}
    seen = client.get(page(type(row), "change", row.pk)).context["seen"]
    return {name: value for name, value in shown.items() if value not in (None, False)} | {
        "_seen": seen
    }


def test_a_stale_form_does_not_overwrite_another_change(admin_client, colleague):
    rule = GuardrailPattern.objects.create(name="names", pattern="Mallory")
    stale, address = form_of(admin_client, rule), page(GuardrailPattern, "change", rule.pk)
    colleague.post(address, form_of(colleague, rule) | {"message": "No names, please."})

    answer = admin_client.post(address, stale | {"pattern": "Mallory|Trudy"})

    assert "mari changed this" in answer.text
    assert "message" in answer.context["adminform"].form.non_field_errors()[0].lower()
    rule.refresh_from_db()
    assert (rule.pattern, rule.message) == ("Mallory", "No names, please.")


def test_saving_again_after_the_conflict_message_overwrites(admin_client, colleague):
    rule = GuardrailPattern.objects.create(name="names", pattern="Mallory")
    stale, address = form_of(admin_client, rule), page(GuardrailPattern, "change", rule.pk)
    colleague.post(address, form_of(colleague, rule) | {"message": "No names, please."})
    answer = admin_client.post(address, stale | {"pattern": "Mallory|Trudy"})

    admin_client.post(
        address, stale | {"pattern": "Mallory|Trudy", "_seen": answer.context["seen"]}
    )

    rule.refresh_from_db()
    assert rule.pattern == "Mallory|Trudy"


def test_a_list_saves_only_the_switches_that_were_changed(admin_client, colleague):
    """The other switch was changed by someone else since the list was rendered."""
    about = {"source": "http", "method": "GET", "endpoint": "https://a.example/"}
    mine = ToolRegistration.objects.create(name="a", **about)
    theirs = ToolRegistration.objects.create(name="b", enabled=False, **about)
    sent = {"_save": "Save", "form-TOTAL_FORMS": 2, "form-INITIAL_FORMS": 2}
    for at, row in enumerate([mine, theirs]):
        sent |= {f"form-{at}-id": row.pk, f"initial-form-{at}-enabled": "True"}
    sent["form-1-enabled"] = "on"

    admin_client.post(page(ToolRegistration, "changelist"), sent)

    mine.refresh_from_db()
    theirs.refresh_from_db()
    assert (mine.enabled, theirs.enabled) == (False, False)


# The menu


def test_every_page_is_reached_from_the_menu(admin_client):
    entries = admin_client.get(reverse("admin:index")).context["app_list"]
    addresses = [tab["admin_url"] for entry in entries for tab in entry["models"]]

    raw = admin_client.get(reverse("admin:raw_data")).context["tables"]
    addresses += [entry["admin_url"] for entry in raw]
    # Settings have a page of their own.
    models = {*admin.site._registry} - {InstallationSetting}
    listed = {page(model, "changelist") for model in models}
    assert listed | {reverse("admin:agents_health")} <= set(addresses)
    assert len(addresses) == len(set(addresses))
    assert len(entries) == 14


def test_the_menu_marks_one_page_as_the_one_that_is_open(admin_client):
    hits = reverse("admin:agents_guardrail_hits")
    for opened, marked in (
        (hits, hits),
        (page(GuardrailPattern, "add"), page(GuardrailPattern, "changelist")),
    ):
        [entry] = select(admin_client.get(opened), '[aria-current="page"]')
        assert entry.attributes["href"] == marked


def test_pages_that_belong_together_are_tabs_of_one_entry(admin_client):
    shown = admin_client.get("/admin/alerts/alertchannel/")

    [tab] = select(shown, '[aria-current="page"]')
    assert tab.attributes["href"] == "/admin/alerts/alertchannel/"
    [entry] = select(shown, '.console-menu [aria-current="true"]')
    assert entry.attributes["href"] == "/admin/alerts/alertrule/"
    assert entry.text(strip=True) == "Alerts"
    # The description of another tab.
    assert "Alerts that were sent to you" not in shown.text


def test_every_tab_is_in_the_palette(admin_client):
    text = admin_client.get("/admin/").text

    for path in ("/admin/alerts/delivery/", "/admin/auth/group/", "/notifications/"):
        assert f'data-href="{path}"' in text


def test_a_group_with_one_page_that_the_user_can_open_is_that_page(admin_client, client):
    admin_client.logout()
    reader = User.objects.create_user("reader", is_staff=True)
    reader.user_permissions.add(Permission.objects.get(codename="view_alertchannel"))
    client.force_login(reader)

    shown = client.get("/admin/alerts/alertchannel/")

    assert "page_tabs" not in shown.context
    [entry] = select(shown, '.console-menu [aria-current="page"]')
    assert entry.attributes["href"] == "/admin/alerts/alertchannel/"


def test_empty_lists_and_empty_searches_have_an_empty_state(admin_client):
    empty = admin_client.get(page(Workflow, "changelist")).text
    searched = admin_client.get(page(Workflow, "changelist"), {"q": "nothing"}).text

    assert "Nothing here yet." in empty
    assert empty.count(page(Workflow, "add")) == 2  # above the list and in it
    assert "changelist-filter" not in empty
    assert "No results." in searched


def test_the_menu_lists_only_registered_models():
    """A misspelled label would be missing under its heading."""
    registered = {model._meta.label for model in admin.site._registry}

    pages = {tab.page for entry in MENU for tab in entry.tabs}
    assert {page for page in pages if "." in page} <= registered


def test_titles_and_counts_have_no_spaces_around_japanese_names(admin_client, agent):
    admin_client.cookies["django_language"] = "ja"

    shown = admin_client.get(f"/admin/agents/agent/{agent.pk}/change/").text
    listed = admin_client.get("/admin/agents/agent/").text

    assert f"<span data-editor-name>{agent.name}</span>" in shown
    assert "選択したエージェントを削除" in listed
    assert "エージェント：1件" in listed


@pytest.mark.parametrize("language", ["en", "ja"])
def test_dates_are_written_as_in_the_traces(language):
    moment = datetime(2026, 11, 16, 22, 3)

    with translation.override(language):
        assert date_format(moment, "DATETIME_FORMAT") == "2026-11-16 22:03"
        assert date_format(moment, "DATE_FORMAT") == "2026-11-16"
