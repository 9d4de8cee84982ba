"""The console's agent pages: versions, copies, test runs and usage."""

import json

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import Permission
from django.urls import reverse
from django.utils import timezone

from agents import runs
from agents.catalog import agent_versions
from agents.console.agent_admin.agent_templates import AGENT_TEMPLATES
from agents.engine.testing import Says
from agents.models import Agent, Approval, Run, ToolRegistration
from tests.catalog.test_agent_tools import tool_fields
from tests.conftest import as_async_user, as_user, select
from tests.console.forms import agent_form
from tests.sampling import one_in

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]


@pytest.fixture
async def tester(administrator):
    return await as_async_user(administrator)


def page(name, *args):
    return reverse(f"admin:agents_agent_{name}", args=args)


def agent_fields(**changes):
    return agent_form(name="helper", is_default="on") | changes


def test_each_save_that_changes_something_is_a_version_with_its_author_and_note(
    admin_client, agent, administrator
):
    change = page("change", agent.pk)
    admin_client.post(change, agent_fields(instructions="Be brief.", note="Too long-winded."))
    admin_client.post(change, agent_fields(instructions="Be brief.", note="Nothing new."))

    changed, before = agent.versions.all()
    assert (changed.number, changed.author) == (2, administrator)
    assert changed.note == "Too long-winded."
    assert (before.snapshot["instructions"], before.author) == ("", None)


def test_the_history_says_what_changed_word_by_word(admin_client, agent):
    agent_versions.save(agent, None)
    form = agent_fields(instructions="Be very brief.", **tool_fields("search", max_calls="2"))
    admin_client.post(page("change", agent.pk), form)
    admin_client.post(page("change", agent.pk), form | {"instructions": "Be rather brief."})

    listed = admin_client.get(page("history", agent.pk))
    shown = admin_client.get(page("version", agent.pk, 3))
    first = admin_client.get(page("version", agent.pk, 1) + "?now")

    cells = [cell.text(strip=True) for cell in select(listed, "td.words")]
    assert "Instructions" in cells
    assert any(cell.endswith(", Tools") for cell in cells)
    sides = [side.text() for side in select(shown, '.two > [role="group"]')]
    assert sides == ["Be very brief.", "Be rather brief."]
    assert [word.text() for word in select(shown, "del, ins")] == ["very", "rather"]
    assert any(word.text().endswith(" — max calls: 2") for word in select(first, "ins"))


def test_an_agent_without_versions_says_when_there_will_be_one(admin_client, agent):
    html = admin_client.get(page("history", agent.pk)).text

    assert "No versions yet" in html


def test_a_version_is_restored_into_the_draft_by_a_click(admin_client, agent):
    agent_versions.save(agent, None)
    admin_client.post(page("change", agent.pk), agent_fields(instructions="Be brief."))

    answer = admin_client.post(page("restore", agent.pk, 1), follow=True)

    assert "Version 1 is in the draft now." in answer.text
    assert Agent.objects.get().instructions == "Be brief."
    assert agent.draft.values["instructions"] == []


def test_an_agent_is_copied_by_a_click(admin_client, agent):
    answer = admin_client.post(page("clone", agent.pk), follow=True)

    copy = Agent.objects.get(name="helper-copy")
    assert answer.redirect_chain == [(page("change", copy.pk), 302)]
    assert not copy.enabled


@pytest.mark.parametrize("route", ["restore", "clone", "try", "trial_stop"])
def test_get_requests_change_nothing(admin_client, agent, route):
    agent_versions.save(agent, None)
    args = {"restore": [agent.pk, 1], "clone": [agent.pk], "try": [], "trial_stop": [1]}

    assert admin_client.get(page(route, *args[route])).status_code == 405


@pytest.mark.parametrize("route", ["version", "restore", "clone", "history", "trial"])
def test_missing_versions_and_agents_return_404(admin_client, route):
    args = [987_654_321, 1] if route in {"version", "restore"} else [987_654_321]
    ask = admin_client.post if route in {"restore", "clone"} else admin_client.get

    assert ask(page(route, *args)).status_code == 404


def test_users_with_view_permission_cannot_change_anything(agent, django_user_model):
    agent_versions.save(agent, None)
    viewer = django_user_model.objects.create_user("viewer", is_staff=True)
    viewer.user_permissions.add(Permission.objects.get(codename="view_agent"))
    client = as_user(viewer)

    assert client.get(page("history", agent.pk)).status_code == 200
    assert client.get(page("version", agent.pk, 1)).status_code == 200
    assert client.post(page("restore", agent.pk, 1)).status_code == 403
    assert client.post(page("clone", agent.pk)).status_code == 403
    assert client.post(page("try"), {"tried": agent.pk}).status_code == 403
    assert client.post(page("try")).status_code == 403
    assert Agent.objects.count() == 1


@pytest.mark.parametrize("starter", one_in(4, AGENT_TEMPLATES), ids=lambda starter: starter.key)
def test_every_agent_template_can_be_saved_unchanged(admin_client, starter):
    choice = admin_client.get(page("add")).text
    form = admin_client.get(page("add"), {"start": starter.key}).context["adminform"].form

    assert f"?start={starter.key}" in choice
    admin_client.post(page("add"), as_posted(form))
    made = Agent.objects.exclude(name="helper").get()
    assert {*starter.tools} == {*made.tools.values_list("name", flat=True)}
    assert made.description == str(starter.description)
    assert made.handoffs.exists() == starter.asks_others


def as_posted(form):
    """Return what a browser would submit of an untouched form."""
    sent = {}
    for field in form:
        if field.name == "given":
            for row in field.value():
                values = {each.html_name: each.value() for each in row}
                sent |= {name: value for name, value in values.items() if value}
        elif field.name in {"handoffs", "groups"}:
            sent[field.name] = list(field.value() or ())
        elif field.value() not in (None, False):
            sent[field.name] = field.value()
    return sent


def test_a_second_agent_from_a_template_gets_another_name(admin_client):
    Agent.objects.create(name="planner")

    form = admin_client.get(page("add"), {"start": "planner"}).context["adminform"].form

    assert form["name"].value() == "planner-2"


def test_the_list_shows_recent_usage(admin_client, agent, administrator):
    agent_versions.save(agent, administrator)
    for at, status in enumerate(["completed", "failed", "completed", "completed"]):
        Run.objects.create(agent_name="helper", query="?", status=status, topic=f"chat.{at}")
    old = Run.objects.create(agent_name="helper", query="?", status="failed", topic="chat.9")
    Run.objects.filter(pk=old.pk).update(started_at=timezone.now() - timezone.timedelta(8))
    Agent.objects.create(name="shy")

    html = admin_client.get(page("changelist")).text
    helper, shy = html.split('class="field-named"')[1:]

    assert ">4</a></td>" in helper
    assert ">25.0%<" in helper
    assert "root · <time" in helper
    assert (">unused<" in shy, ">—<" in shy) == (True, True)


def test_the_list_has_a_constant_number_of_queries(
    admin_client, agent, django_assert_max_num_queries
):
    for number in range(20):
        agent_versions.save(Agent.objects.create(name=f"a-{number}"), None)

    with django_assert_max_num_queries(29):
        html = admin_client.get(page("changelist")).text

    assert html.count("a-1") >= 11


def test_an_agent_page_lists_its_guardrails(admin_client, agent):
    html = admin_client.get(page("change", agent.pk)).text

    assert ">Private keys</a> · Block" in html


async def post_draft(tester, form, question="6 * 7"):
    return await tester.post(page("try"), form | {"question": question})


async def finished_run(answer):
    run = await Run.objects.select_related("agent").aget(
        pk=answer.json()["page"].split("/")[-2]
    )
    await runs.wait(run)
    await run.arefresh_from_db()
    return run


async def test_a_draft_is_tested_without_saving_it(tester, agent, scripted):
    model = scripted(Says.call("calculator", expression="6 * 7"), Says(answer="42"))
    form = agent_fields(tried=agent.pk, instructions="Be a pirate.")
    form |= await sync_to_async(tool_fields)("calculator")

    run = await finished_run(await post_draft(tester, form))

    assert (run.status, run.answer, run.is_draft_run) == ("completed", "42", True)
    assert (run.agent_id, run.agent_version) == (agent.pk, None)
    assert model.requests[0]["messages"][0]["content"].startswith("Be a pirate.")
    assert [tool["function"]["name"] for tool in model.requests[0]["tools"]] == ["calculator"]
    assert (await Agent.objects.aget()).instructions == ""
    assert await agent.tools.acount() == 3


async def test_an_unsaved_agent_can_be_tested(tester, agent, scripted):
    scripted(Says.call("ask_helper", task="6 * 7"), Says(answer="42"), Says(answer="It is 42."))

    run = await finished_run(await post_draft(tester, agent_form(handoffs=[agent.pk])))

    assert (run.agent_id, run.agent_name, run.answer) == (None, "writer", "It is 42.")
    assert not await Agent.objects.filter(name="writer").aexists()


async def test_a_draft_calls_only_tools_that_its_tester_can_run(agent, person):
    """*Run tool* has the same rule."""
    rights = Permission.objects.filter(codename__in=["change_agent", "view_agent"])
    await sync_to_async(person.user_permissions.set)(rights)
    person.is_staff = True
    await person.asave()
    tester = await as_async_user(person)
    form = agent_fields(tried=agent.pk)
    tool = await ToolRegistration.objects.aget(name="calculator")

    run_page = await tester.get(reverse("admin:agents_toolregistration_run", args=[tool.pk]))
    fields = await sync_to_async(tool_fields)("calculator")
    answer = await post_draft(tester, form | fields)

    assert (run_page.status_code, answer.status_code) == (403, 422)
    assert "calculator" in answer.json()["errors"]["question"][0]
    assert not await Run.objects.aexists()
    assert (await post_draft(tester, form)).status_code == 200


async def test_a_draft_run_asks_the_tester_for_approval(tester, agent, scripted):
    scripted(Says.call("calculator", expression="6 * 7"), Says(answer="42"))
    form = agent_form() | await sync_to_async(tool_fields)("calculator", approval="always")
    run = await finished_run(await post_draft(tester, form))
    assert run.status == Run.Status.WAITING

    asked = await Approval.objects.aget()
    word = {"verdict": "approve", f"digest-{asked.pk}": asked.digest}
    await tester.post(reverse("runs:decide", args=[asked.pk]), word)
    await runs.wait(run)

    assert (await Run.objects.aget()).answer == "42"


async def test_a_sub_agent_of_a_draft_can_hand_off_to_the_draft(tester, agent, scripted):
    other = await Agent.objects.acreate(name="other")
    await other.handoffs.aadd(agent)
    scripted(
        Says.call("ask_other", task="6 * 7"),
        Says.call("ask_renamed", task="6 * 7"),
        *[Says(answer="42")] * 3,
    )

    form = agent_form(name="renamed", tried=agent.pk, handoffs=[other.pk])
    run = await finished_run(await post_draft(tester, form))

    assert (run.status, run.answer) == ("completed", "42")


async def test_draft_errors_are_shown_at_their_fields(tester, agent):
    form = agent_form(name="", max_steps="99") | await sync_to_async(tool_fields)(
        "search", timeout="9999"
    )
    answer = await post_draft(tester, form, question=" \0")

    row = next(iter(await sync_to_async(tool_fields)("search"))).removesuffix("is_given")
    assert answer.status_code == 422
    assert answer.json()["errors"].keys() == {
        *("name", "max_steps", "given", "question", f"{row}timeout")
    }
    assert not await Run.objects.aexists()


async def test_a_draft_question_with_unusual_characters_works(tester, scripted):
    scripted(Says(answer="ok"))

    run = await finished_run(await post_draft(tester, agent_form(), " a\0b\r\nc "))

    assert run.query == "ab\nc"


async def test_the_number_of_concurrent_draft_runs_is_limited(tester, administrator):
    for number in range(5):
        await Run.objects.acreate(query="?", topic=f"trial.{number}", user=administrator)

    answer = await post_draft(tester, agent_form())

    assert answer.status_code == 422
    assert "test runs in progress" in answer.json()["errors"]["question"][0]


async def test_another_administrators_draft_run_returns_404(
    tester, django_user_model, administrator
):
    other = await django_user_model.objects.acreate(username="other", is_superuser=True)
    run = await Run.objects.acreate(query="?", topic="trial.1", user=other)
    mine = await Run.objects.acreate(query="?", topic="trial.2", user=administrator)

    assert (await tester.get(page("trial", run.pk))).status_code == 404
    assert (await tester.post(page("trial_stop", run.pk))).status_code == 404
    own = await tester.get(page("trial", mine.pk))
    assert own.status_code == 200
    assert own.headers["X-Frame-Options"] == "SAMEORIGIN"
    assert "frame-ancestors 'self'" in own.headers["Content-Security-Policy"]


@pytest.mark.parametrize("place", ["admin:agents_agent_trial_stop", "trace:stop"])
async def test_a_draft_run_can_be_stopped(tester, agent, scripted, place):
    scripted(Says.call("calculator", expression="6 * 7"))
    form = agent_form() | await sync_to_async(tool_fields)("calculator", approval="always")
    run = await finished_run(await post_draft(tester, form))

    shown = (await tester.get(reverse("trace:run", args=[run.pk]))).text
    await tester.post(reverse(place, args=[run.pk]))

    assert reverse("trace:stop", args=[run.pk]) in shown
    assert (await Run.objects.aget()).status == Run.Status.STOPPED


async def test_a_draft_run_is_marked_in_the_trace_list(tester, administrator):
    await Run.objects.acreate(
        query="?", topic="trial.1", user=administrator, status="completed"
    )
    await Run.objects.acreate(query="!", topic="chat.1", user=administrator, status="completed")

    both = (await tester.get(reverse("trace:list"))).text
    one = (await tester.get(reverse("trace:list"), {"q": "has:trial"})).text

    assert both.count("draft test run") == 1
    assert one.count('class="ask-cell"') == 1


async def test_a_run_shows_its_agent_version_and_can_be_filtered_by_it(tester, agent, scripted):
    await sync_to_async(agent_versions.save)(agent, None)
    run = await Run.objects.acreate(
        query="?", agent=agent, agent_name="helper", agent_version=1, status="completed"
    )

    shown = await tester.get(reverse("trace:run", args=[run.pk]))
    found = (await tester.get(reverse("trace:list"), {"q": "version:v1"})).text
    none = (await tester.get(reverse("trace:list"), {"q": "version:v2"})).text
    told = await tester.get(reverse("trace:export_json", args=[run.pk]))
    exported = json.loads(b"".join([part async for part in told.streaming_content]))

    [link] = select(shown, f'a[href="{page("version", agent.pk, 1)}"]')
    assert link.text(strip=True) == "helper, version 1"
    assert ('class="ask-cell"' in found, 'class="ask-cell"' in none) == (True, False)
    assert exported["run"]["agent_version"] == 1


def test_the_delete_confirmation_lists_no_link_rows(admin_client, agent):
    other = Agent.objects.create(name="other")
    other.handoffs.add(agent)

    shown = admin_client.get(f"/admin/agents/agent/{agent.pk}/delete/").text

    assert f'Agent: <a href="/admin/agents/agent/{agent.pk}/change/">helper</a>' in shown
    assert "relationship" not in shown
    assert "object (" not in shown
