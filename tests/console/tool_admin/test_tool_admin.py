"""Console pages for tools: usage, parameters, and running one by hand."""

import sys
from datetime import timedelta
from pathlib import Path

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import Permission
from django.urls import reverse
from django.utils import timezone

from agents.access import audit
from agents.catalog import mcp_servers
from agents.catalog.agent_factory import CIRCUITS
from agents.console.metering import usage
from agents.console.tool_admin import schema_summary
from agents.console.tool_admin.arguments_form import ArgumentsForm
from agents.engine.tool import ToolResult
from agents.models import AgentStep, AuditEntry, McpServer, Run, ToolRegistration
from agents.tools.http import HttpTool
from tests.conftest import as_staff, as_user, select

pytestmark = pytest.mark.django_db(transaction=True)

PLAIN = str(Path(__file__).parents[2] / "tools" / "mcp_servers" / "plain.py")
SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "Its name", "maxLength": 20},
        "days": {"type": "integer", "minimum": 1, "maximum": 7, "default": 3},
        "rain": {"type": "boolean"},
        "unit": {"enum": ["C", "F", None]},
        "hours": {"type": "array", "items": {"type": "integer"}},
        "where": {"$ref": "#/$defs/Place"},
        "share": {"anyOf": [{"type": "number"}, {"type": "null"}], "default": None},
    },
    "required": ["city", "hours"],
    "$defs": {"Place": {"type": "object", "required": ["lat"]}},
}


@pytest.fixture(autouse=True)
def _fresh():
    usage.usage_cache.forget()
    yield
    usage.usage_cache.forget()


@pytest.fixture
def clerk(person):
    """A user who can change tools and servers, but not start programs."""
    person.is_staff = True
    person.save()
    allowed = Permission.objects.filter(
        content_type__model__in=["mcpserver", "toolregistration"]
    )
    person.user_permissions.set(allowed.exclude(codename="use_stdio_servers"))
    return as_user(person)


@pytest.fixture
def plain(tmp_path, administrator):
    """A real server with its tools, as synced by an administrator."""
    server = McpServer.objects.create(
        name="plain",
        transport="stdio",
        command=sys.executable,
        args=[PLAIN, str(tmp_path / "notes")],
        folders=f"{tmp_path}:rw",
        trusts_annotations=True,
        env={"API_KEY": "hunter2"},
    )
    async_to_sync(mcp_servers.sync)(server, administrator)
    return server


def tool(name, **facts):
    return ToolRegistration.objects.create(name=name, **facts)


def page(name, *args):
    return reverse(f"admin:agents_toolregistration_{name}", args=args)


def step(run, number, status, seconds, ago=timedelta(hours=2), action="calculator"):
    began = timezone.now() - ago
    ended = began + timedelta(seconds=seconds)
    facts = {"kind": "tool", "status": status, "action": action}
    AgentStep.objects.create(run=run, number=number, started_at=began, ended_at=ended, **facts)


def ended_run(topic, began=None, **columns):
    run = Run.objects.create(
        topic=topic, query="6 * 7", agent_name="helper", status="completed", **columns
    )
    Run.objects.filter(pk=run.pk).update(started_at=began or timezone.now())
    return run


def tool_form(**given):
    form = ArgumentsForm(SCHEMA, _settings_fields(**given))
    form.full_clean()
    return form


def _settings_fields(**given):
    names = {parameter.name: f"argument_{n}" for n, parameter in enumerate(_read(), 1)}
    return {names[name]: value for name, value in given.items()}


def _read():
    return schema_summary.parse_parameters(SCHEMA)


def errors(form):
    names = {name: parameter.name for name, parameter in form.parameters.items()}
    return {names.get(name, name): " ".join(said) for name, said in form.errors.items()}


# How they have been


def test_the_list_shows_calls_failures_and_durations(admin_client):
    run = ended_run("a", began=timezone.now() - timedelta(hours=2))
    old = ended_run("b", began=timezone.now() - timedelta(days=8))
    tool("calculator")
    for number, (status, seconds) in enumerate(
        [("done", 0.1), ("done", 0.3), ("failed", 9), ("rejected", 50)]
    ):
        step(run, number, status, seconds)
    step(old, 1, "done", 5, ago=timedelta(days=8))

    html = admin_client.get(page("changelist")).text

    assert "3 (33.3% failed)" in html
    assert "291 ms" in html  # within 5 % of 300
    assert "2 hours ago" in html


def test_a_tool_that_was_used_this_minute_says_now(admin_client):
    run = ended_run("a")
    tool("calculator")
    step(run, 1, "done", 1.5, ago=timedelta(seconds=5))

    html = admin_client.get(page("changelist")).text
    admin_client.cookies["django_language"] = "ja"
    japanese = admin_client.get(page("changelist")).text

    assert ">now</time>" in html
    assert ">今</time>" in japanese


def test_an_unused_tool_says_so(admin_client):
    row = tool("calculator")

    assert "not in the last 7 days" in admin_client.get(page("change", row.pk)).text


def test_replayed_steps_are_counted_once():
    first = ended_run("a")
    again = ended_run("b", origin=first, origin_step=2)
    for run, number in [(first, 1), (again, 1), (again, 2)]:
        step(run, number, "done", 1)

    assert usage.load_usage()["calculator"].totals["tool_calls"] == 2


def test_results_from_a_cache_are_calls_that_take_no_time():
    run = ended_run("a")
    step(run, 1, "done", 8)
    step(run, 2, "done", 0)
    AgentStep.objects.filter(number=2).update(attempts=0)

    totals = usage.load_usage()["calculator"].totals
    assert totals["tool_calls"] == 2
    assert totals.seconds_per_call == 8.0


def test_usage_is_cached_for_a_minute(admin_client, django_assert_num_queries):
    first = usage.usage_cache()

    with django_assert_num_queries(0):
        assert usage.usage_cache() is first


def test_a_tool_of_a_failing_server_says_so(admin_client):
    server = McpServer.objects.create(name="files", state="failed")
    definition = {"name": "read"}
    tool("files__read", source="mcp", server=server, definition=definition)

    assert "server failing" in admin_client.get(page("changelist")).text


def test_a_tool_page_shows_its_parameters_and_agents(admin_client, agent):
    row = ToolRegistration.objects.get(name="calculator")

    html = admin_client.get(page("change", row.pk)).text

    assert "<code>expression</code>" in html
    assert "required" in html
    assert f'{reverse("admin:agents_agent_change", args=[agent.pk])}">helper</a>' in html


@pytest.mark.parametrize("has_both", [True, False])
def test_the_form_names_agents_that_lack_the_fallback(admin_client, agent, has_both):
    tool = ToolRegistration.objects.get(name="database")
    tool.fallback = ToolRegistration.objects.get(name="calculator")
    tool.save()
    agent.tools.set([tool, tool.fallback] if has_both else [tool])

    page = admin_client.get(reverse("admin:agents_toolregistration_change", args=[tool.pk]))
    told = page.context["adminform"].form.fields["fallback"].help_text

    assert ("Agents without calculator never use it: helper." in told) is not has_both
    [row] = select(admin_client.get(agent_page(agent)), f'[data-tool="{tool.pk}"]')
    assert ("Its fallback calculator is never used" in row.text()) is not has_both


def agent_page(agent):
    return reverse("admin:agents_agent_change", args=[agent.pk])


def test_a_schema_is_described_in_prose():
    told = {parameter.name: parameter for parameter in _read()}

    assert [name for name, parameter in told.items() if parameter.is_required] == [
        "city",
        "hours",
    ]
    assert told["hours"].kind == "list (whole number)"
    assert told["days"].limits == ["min 1", "max 7", "default: 3"]
    assert told["unit"].limits == ["one of: C, F, null"]


def test_invisible_characters_in_a_description_are_made_visible():
    schema = {"properties": {"a": {"description": "Harmless\u200b"}}}

    assert schema_summary.parse_parameters(schema)[0].description == "Harmless⟨U+200B⟩"


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object"},
        {"properties": []},
        {"properties": {"a": True, "b": {"type": 7}, "c": {"type": ["x", "y"]}}},
        {"properties": {"a": {"$ref": "#/nowhere"}, "b": {"$ref": "https://a.example/"}}},
        {"properties": {"a": {"enum": 3, "default": {}, "minimum": "x", "items": 4}}},
    ],
)
def test_an_invalid_schema_is_ignored(schema):
    form = ArgumentsForm(schema, {})

    form.is_valid()
    assert all(parameter.kind for parameter in schema_summary.parse_parameters(schema))


# The form


def test_the_form_has_fields_for_the_schema():
    form = tool_form(
        city="Oslo", days="5", rain="false", unit='"F"', hours="[1, 2]", share="0.5"
    )

    assert errors(form) == {}
    assert form.arguments == {
        "city": "Oslo",
        "days": 5,
        "rain": False,
        "unit": "F",
        "hours": [1, 2],
        "share": 0.5,
    }


def test_empty_fields_are_left_out_but_empty_lists_are_sent():
    form = tool_form(city="Oslo", days="", rain="", unit="", hours="[]", where="", share="")

    assert form.arguments == {"city": "Oslo", "hours": []}


@pytest.mark.parametrize(
    ("given", "field", "sentence"),
    [
        ({"city": ""}, "city", "required"),
        ({"city": "x" * 21}, "city", "at most 20"),
        ({"city": "a\x00b"}, "city", "Null characters"),
        ({"days": "8"}, "days", "less than or equal to 7"),
        ({"days": "many"}, "days", "whole number"),
        ({"days": "9" * 5000}, "days", ""),
        ({"share": "inf"}, "share", "number"),
        ({"unit": '"K"'}, "unit", "not one of the available"),
        ({"unit": "{"}, "unit", "not one of the available"),
        ({"hours": "[1, "}, "hours", "Invalid JSON at line 1"),
        ({"hours": '["\\ud800"]'}, "hours", "be stored as JSON"),
        ({"hours": '["one"]'}, "hours", "is not of type 'integer'"),
        ({"where": "{}"}, "where", "'lat' is a required property"),
    ],
)
def test_invalid_arguments_are_errors_at_their_field(given, field, sentence):
    form = tool_form(**{"city": "Oslo", "hours": "[]"} | given)

    assert sentence in errors(form)[field]
    assert set(errors(form)) == {field}


def test_a_tool_that_takes_anything_takes_an_object():
    schema = {"type": "object", "additionalProperties": {"type": "integer"}}

    fits, fails = (
        ArgumentsForm(schema, {"whole": given}) for given in ('{"a": 1}', '{"a": ""}')
    )

    assert fits.is_valid()
    assert fits.arguments == {"a": 1}
    assert "a: '' is not of type 'integer'" in errors(fails)["__all__"]


# Running one


def test_a_tool_is_run_and_its_result_and_time_are_shown(admin_client, agent):
    row = ToolRegistration.objects.get(name="calculator")

    answer = admin_client.post(page("run", row.pk), {"argument_1": "6 * 7"})

    [summary] = select(answer, "#outcome > p")
    assert summary.text(strip=True).startswith("The call succeeded.")
    assert summary.text(strip=True).endswith(" ms")
    assert [text.text() for text in select(answer, "#outcome pre")][1:] == ["42"]


def test_a_tool_run_is_audited_without_argument_values(admin_client, administrator, agent):
    row = ToolRegistration.objects.get(name="calculator")
    admin_client.post(page("run", row.pk), {"argument_1": "6 * 7"})

    entry = AuditEntry.objects.get(action="tool.run")
    assert str(entry.person) == administrator.get_username()
    assert entry.subject == f"toolregistration:{row.pk}"
    assert entry.detail == {"name": "calculator", "arguments": ["expression"]}


def test_opening_the_form_runs_nothing(admin_client, agent):
    row = ToolRegistration.objects.get(name="calculator")

    html = admin_client.get(page("run", row.pk), {"argument_1": "6 * 7"}).text

    assert "The call succeeded." not in html
    assert not AuditEntry.objects.filter(action="tool.run").exists()


def test_a_failure_shows_its_message_and_opens_no_circuit(admin_client, agent):
    row = ToolRegistration.objects.get(name="calculator")

    html = admin_client.post(page("run", row.pk), {"argument_1": "6 *"}).text

    assert "The call failed." in html
    assert not [state for state in CIRCUITS.state() if state.key == "tool:calculator"]


def test_a_successful_run_closes_the_circuit(admin_client, agent):
    row = ToolRegistration.objects.get(name="calculator")
    for _ in range(9):
        with CIRCUITS.of("tool:calculator").attempt() as attempt:
            attempt.record_failure("down")
        if CIRCUITS.of("tool:calculator").is_refusing:
            break

    admin_client.post(page("run", row.pk), {"argument_1": "6 * 7"})

    assert not CIRCUITS.of("tool:calculator").is_refusing


def test_a_tool_with_side_effects_runs_only_when_confirmed(admin_client, plain, tmp_path):
    row = ToolRegistration.objects.get(name="plain__count")

    first = admin_client.post(page("run", row.pk), {"argument_1": "one"}).text
    before = (tmp_path / "notes").read_text()
    second = admin_client.post(page("run", row.pk), {"argument_1": "two", "confirmed": "on"})

    assert "This field is required." in first
    assert "one" not in before
    assert ">noted</pre>" in second.text
    assert "two" in (tmp_path / "notes").read_text()


def test_a_tool_of_a_real_server_runs_with_its_timeout_and_masked_secrets(admin_client, plain):
    never = ToolRegistration.objects.get(name="plain__never")
    ToolRegistration.objects.filter(pk=never.pk).update(timeout=1)
    dies = ToolRegistration.objects.get(name="plain__die")

    late = admin_client.post(page("run", never.pk)).text
    dead = admin_client.post(page("run", dies.pk)).text

    assert "respond within 1 s" in late
    assert "Out of cheese" in dead
    assert "hunter2" not in dead


def test_a_changed_or_removed_tool_is_not_run(admin_client, plain):
    changed = ToolRegistration.objects.get(name="plain__add")
    ToolRegistration.objects.filter(pk=changed.pk).update(pending=changed.definition)
    gone = ToolRegistration.objects.get(name="plain__set")
    ToolRegistration.objects.filter(pk=gone.pk).update(is_gone=True)

    answers = [
        admin_client.post(page("run", row.pk), {"confirmed": "on"}) for row in (changed, gone)
    ]

    assert "Accept the change first." in answers[0].text
    assert "The server no longer provides this tool." in answers[1].text
    assert not AuditEntry.objects.filter(action="tool.run").exists()


def test_an_http_tool_follows_the_egress_policy(admin_client):
    row = tool(
        "inside",
        source="http",
        method="GET",
        endpoint="http://127.0.0.1:9/",
        description="Looks inside.",
        headers={"X-Key": "hunter2"},
    )

    html = admin_client.post(page("run", row.pk)).text

    assert "The call failed." in html
    assert "ASHIATO_EGRESS_ALLOW" in html
    assert "hunter2" not in html


def test_nothing_runs_if_the_audit_log_fails(admin_client, agent, monkeypatch):
    def record(*args, **kwargs):
        raise audit.NotRecorded("Storage is full.")

    row = ToolRegistration.objects.get(name="calculator")
    monkeypatch.setattr(audit, "record", record)
    answer = admin_client.post(page("run", row.pk), {"argument_1": "6 * 7"})

    assert answer.status_code == 503


def test_a_program_tool_needs_the_permission_to_start_programs(clerk, plain):
    row = ToolRegistration.objects.get(name="plain__add")

    answers = [clerk.get(page("run", row.pk)), clerk.post(page("run", row.pk))]

    assert [answer.status_code for answer in answers] == [403, 403]
    assert page("run", row.pk) not in clerk.get(page("change", row.pk)).text


def test_users_with_view_permission_cannot_run_tools(person, agent):
    client = as_staff(person, "view_toolregistration")
    row = ToolRegistration.objects.get(name="calculator")

    assert client.post(page("run", row.pk), {"argument_1": "1"}).status_code == 403
    assert page("run", row.pk) not in client.get(page("change", row.pk)).text


def test_the_ask_person_tool_cannot_be_run_here(admin_client, agent):
    row = ToolRegistration.objects.get(name="ask_person")

    assert "run it here" in admin_client.get(page("run", row.pk)).text


def test_an_http_tool_is_called_without_saving_it(client, administrator, monkeypatch):
    calls = []

    async def answer(self, input):
        calls.append((self.name, input))
        return ToolResult("sunny")

    monkeypatch.setattr(HttpTool, "execute", answer)
    client.force_login(administrator)
    tool = {"name": "weather", "description": "The weather.", "timeout": 5, "method": "GET"}
    tool |= {"endpoint": "https://example.com/w", "approval": "tool", "always_allow": "never"}

    page = client.post(
        "/admin/agents/toolregistration/try/", {**tool, "arguments": '{"city": "Oslo"}'}
    ).text

    assert "sunny" in page
    assert calls == [("weather", {"city": "Oslo"})]
    assert not ToolRegistration.objects.filter(name="weather").exists()


def test_a_test_call_with_side_effects_is_confirmed_first(admin_client):
    tool = {"name": "send", "description": "Sends.", "timeout": 5, "method": "POST"}
    tool |= {"endpoint": "https://example.com/w", "approval": "tool", "always_allow": "never"}

    page = admin_client.post("/admin/agents/toolregistration/try/", tool).text

    assert "Confirm that you want to run this tool for real." in page
