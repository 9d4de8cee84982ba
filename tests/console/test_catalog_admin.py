"""Console pages for tools, agents and circuits: valid input is saved, invalid is explained."""

import json
from html import unescape
from math import inf

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import Permission
from django.urls import reverse

from agents.catalog.agent_factory import CIRCUITS
from agents.catalog.tools import tool_factory
from agents.console.tool_admin.tool_form import EXAMPLE_DEFINITION
from agents.engine.loop.handoff import Handoff
from agents.engine.testing import Says
from agents.models import Agent, Approval, McpServer, Run, ToolRegistration
from tests.conftest import as_staff, run_question
from tests.console.forms import agent_form
from tests.sampling import one_in
from tests.wire import WireServer

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]

PARAMETERS = EXAMPLE_DEFINITION["function"]["parameters"]


@pytest.fixture(autouse=True)
def _forgotten():
    yield
    for state in CIRCUITS.state():
        CIRCUITS.close(state.key)


@pytest.fixture
def remote():
    server = McpServer.objects.create(name="files", url="https://files.example/mcp")
    definition = {"name": "read", "description": "Reads a\u200b file.", "annotations": {}}
    return server.tools.create(name="files__read", source="mcp", definition=definition)


def page(name, *args, of="toolregistration"):
    return reverse(f"admin:agents_{of}_{name}", args=args)


def tool_fields(*, headers=None, **changes):
    """What the page sends: rows for what is given of the headers."""
    usual = {"name": "weather", "description": "", "enabled": "on", "method": "GET"}
    place = {"endpoint": "https://weather.example/{city}"}
    if headers is not None:
        place |= {"headers-name": [*headers, ""], "headers-value": [*headers.values(), ""]}
    use = {
        "approval": "tool",
        "always_allow": "never",
        "effect": "",
        "timeout": "30",
        "fallback": "",
    }
    return {**usual, **place, **use, "definition": json.dumps(EXAMPLE_DEFINITION), **changes}


def over_http(**changes):
    about = {"endpoint": "https://weather.example/{city}", "definition": EXAMPLE_DEFINITION}
    return ToolRegistration.objects.create(
        **{"name": "weather", "source": "http", "method": "GET", **about, **changes}
    )


def own(name):
    return ToolRegistration.objects.get(name=name)


def errors(response):
    return {k: " ".join(v) for k, v in response.context["adminform"].form.errors.items()}


def fail(key, error="Nobody answered.", times=CIRCUITS.policy.failures):
    for _ in range(times):
        with CIRCUITS.of(key).attempt() as attempt:
            attempt.record_failure(error)


def test_an_http_tool_is_added(admin_client):
    admin_client.post(page("add"), tool_fields(headers={"X-Key": "hunter2"}))

    row = own("weather")
    assert (row.source, row.endpoint) == ("http", "https://weather.example/{city}")
    assert row.headers.reveal() == {"X-Key": "hunter2"}
    assert tool_factory.http_tool(row).effect == "read"


@pytest.mark.parametrize(
    "definition", [EXAMPLE_DEFINITION, EXAMPLE_DEFINITION["function"], PARAMETERS]
)
def test_a_definition_can_be_complete_or_only_the_function(admin_client, definition):
    described = {"description": "Tells the weather.", "definition": json.dumps(definition)}
    admin_client.post(page("add"), tool_fields(**described))

    assert tool_factory.http_tool(own("weather")).parameters["required"] == ["city"]


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    one_in(
        4,
        [
            ({"endpoint": ""}, "endpoint", "required"),
            ({"endpoint": "ftp://weather.example/"}, "endpoint", "start with https://"),
            ({"endpoint": "javascript:alert(1)"}, "endpoint", "start with https://"),
            (
                {"endpoint": "https://weather.example/{town}"},
                "endpoint",
                "'town', which isn't a parameter",
            ),
            ({"endpoint": "https://a:b@weather.example/"}, "endpoint", "password"),
            ({"definition": '{\n"name": }'}, "definition", "line 2, column 9"),
            ({"definition": "[]"}, "definition", "a JSON object"),
            ({"definition": '{"function": "x"}'}, "definition", "“function” must be"),
            (
                {"definition": '{"input_schema": {}}'},
                "definition",
                "Unknown fields: input_schema",
            ),
            (
                {"definition": '{"parameters": {"type": "array"}}'},
                "definition",
                "of type object",
            ),
            (
                {"definition": '{"type": "array"}'},
                "definition",
                "Parameters must be a JSON Schema",
            ),
            (
                {"definition": '{"type": "array", "items": {}}'},
                "definition",
                "Parameters must be a JSON Schema",
            ),
            (
                {"definition": '{"properties": {}}'},
                "definition",
                "Parameters must be a JSON Schema",
            ),
            ({"definition": '{"description": NaN}'}, "definition", "be stored as JSON"),
            ({"definition": '{"description": "\\ud800"}'}, "definition", "be stored as JSON"),
            ({"definition": "[" * 100_000}, "definition", "be stored as JSON"),
            ({"definition": json.dumps(PARAMETERS)}, "description", "Enter a description"),
            ({"headers": {"X": ""}}, "headers", "Enter a value for X."),
            ({"headers": {"Host": "x"}}, "headers", "'Host' is set automatically"),
            ({"name": "two words"}, "name", "letters, numbers"),
            ({"timeout": "0"}, "timeout", "greater than or equal to 1"),
        ],
    ),
)
def test_an_invalid_tool_is_not_saved(admin_client, changes, field, words):
    response = admin_client.post(page("add"), tool_fields(**changes))

    assert errors(response).keys() == {field}
    assert words in errors(response)[field]
    assert not ToolRegistration.objects.filter(source="http").exists()


def test_all_errors_of_a_tool_form_are_shown(admin_client):
    response = admin_client.post(
        page("add"), tool_fields(endpoint="weather.example", definition="{")
    )

    assert errors(response).keys() == {"endpoint", "definition"}
    assert ">\n{</textarea>" in response.text


@pytest.mark.parametrize(
    ("endpoint", "place"),
    one_in(
        3,
        [
            ("http://10.0.0.7/{city}", "10.0.0.7:80"),
            ("https://localhost/{city}", "localhost:443"),
            ("http://[::1]:8080/{city}", "[::1]:8080"),
        ],
    ),
)
def test_a_private_endpoint_is_saved_with_a_warning(admin_client, settings, endpoint, place):
    refused = admin_client.post(page("add"), tool_fields(endpoint=endpoint), follow=True)
    settings.EGRESS_ALLOW = [place]
    there = page("change", own("weather").pk)
    allowed = admin_client.post(there, tool_fields(endpoint=endpoint), follow=True)

    assert f"until you add {place} to ASHIATO_EGRESS_ALLOW" in refused.text
    assert "The URL is on a private network" not in allowed.text


@pytest.mark.parametrize("host", ["93.184.215.14", "intranet.example"])
def test_the_endpoint_warning_does_no_dns_lookup(admin_client, host):
    html = admin_client.post(
        page("add"), tool_fields(endpoint=f"https://{host}/{{city}}"), follow=True
    ).text

    assert own("weather").endpoint == f"https://{host}/{{city}}"
    assert "The URL is on a private network" not in html


def test_saved_headers_are_never_shown(admin_client):
    row = over_http(headers={"X-Key": "hunter2"})
    html = admin_client.get(page("change", row.pk)).text
    kept = tool_fields(description="Tells the weather.", headers={"X-Key": ""})
    admin_client.post(page("change", row.pk), kept)

    row.refresh_from_db()
    assert "hunter2" not in html
    assert "X-Key" in html
    assert row.description == "Tells the weather."
    assert row.headers.reveal() == {"X-Key": "hunter2"}


def test_users_with_view_permission_see_no_secret(person):
    row = over_http(headers={"X-Key": "hunter2"})
    client = as_staff(person, "view_toolregistration")

    html = client.get(page("change", row.pk)).text
    assert "https://weather.example/{city}" in html
    assert "hunter2" not in html
    assert client.post(page("change", row.pk), tool_fields()).status_code == 403


def test_headers_are_not_sent_to_a_changed_host(admin_client):
    row = over_http(headers={"X-Key": "hunter2"})
    elsewhere = {"endpoint": "https://elsewhere.example/{city}"}

    for headers in (None, {"X-Key": ""}, {"X-Key": "", "Y": "new"}):
        moved = tool_fields(**elsewhere, headers=headers)
        refused = admin_client.post(page("change", row.pk), moved)
        assert "different endpoint" in errors(refused)["headers"]
    admin_client.post(page("change", row.pk), tool_fields(**elsewhere, headers={}))

    row.refresh_from_db()
    assert row.endpoint == "https://elsewhere.example/{city}"
    assert row.headers.reveal() == {}


def test_headers_encrypted_with_a_lost_key_must_be_entered_again(admin_client, settings):
    row = over_http(headers={"X-Key": "hunter2"})
    settings.ENCRYPTION_KEYS = ["another"]

    listed = admin_client.get(page("changelist")).text
    refused = admin_client.post(page("change", row.pk), tool_fields())

    assert "unavailable" in listed
    assert "Enter it again" in errors(refused)["headers"]


async def test_an_http_tool_is_used_by_the_next_run(admin_client, agent, scripted, settings):
    settings.EGRESS_ALLOW = ["127.0.0.1"]
    model = scripted(Says.call("weather", city="Kyoto"), Says(answer="It is clear in Kyoto."))
    async with WireServer(pages={"/of/Kyoto": {"sky": "clear"}}) as server:
        endpoint = f"http://127.0.0.1:{server.port}/of/{{city}}"
        new = tool_fields(endpoint=endpoint, headers={"X-Key": "hunter2"})
        await sync_to_async(admin_client.post)(page("add"), new)
        await agent.tools.aadd(await ToolRegistration.objects.aget(name="weather"))
        run = await run_question("How is the weather in Kyoto?")

    step = await run.steps.aget(kind="tool")
    assert (step.action, step.status) == ("weather", "done")
    assert '"sky": "clear"' in step.observation
    assert server.requests[0].headers["x-key"] == "hunter2"
    model.assert_used_up()


@pytest.mark.parametrize("name", ["calculator", "files__read"])
def test_only_usage_settings_of_an_mcp_tool_can_be_changed(admin_client, remote, name):
    row = own(name)
    fields = admin_client.get(page("change", row.pk)).context["adminform"].form.fields
    admin_client.post(
        page("change", row.pk),
        tool_fields(
            name="other", description="Mine.", approval="always", endpoint="https://x.example"
        ),
    )

    row.refresh_from_db()
    use = ["approval", "always_allow", "effect", "timeout", "max_retries", "fallback", "groups"]
    cache = ["result_cache", "result_cache_seconds"] if name == "files__read" else []
    assert [*fields] == ["description", "enabled", *use, *cache]
    assert (row.name, row.description, row.approval) == (name, "Mine.", "always")
    assert row.endpoint == ""


def test_an_mcp_tool_shows_the_accepted_and_the_pending_definition(admin_client, remote):
    calm = admin_client.get(page("change", remote.pk)).text
    remote.pending = remote.definition | {"description": "Sends it."}
    remote.save()
    held = admin_client.get(page("change", remote.pk)).text

    there = f"{page('change', remote.server_id, of='mcpserver')}#tool-{remote.pk}"
    assert "Reads a⟨U+200B⟩ file." in calm
    assert "Not verified." in calm
    assert there not in calm
    assert there in held
    assert "blocked (definition changed)" in admin_client.get(page("changelist")).text


def test_the_tool_list_shows_usage_and_state(admin_client, remote):
    over_http(method="POST", name="order")
    fail("tool:order")

    listed = admin_client.get(page("changelist")).context["cl"].model_admin
    rows = {row.name: row for row in ToolRegistration.objects.all()}
    said = {
        name: [str(column(row)) for column in (listed.asks_first, listed.what_it_does)]
        for name, row in rows.items()
    }
    assert said["calculator"] == ["never", "read-only"]
    assert said["files__read"] == ["always", "irreversible"]
    assert said["order"][1] == "irreversible"
    assert listed.state(rows["calculator"]) == "healthy"
    assert str(listed.state(rows["order"])).startswith("failing, retries in ")


@pytest.mark.parametrize(
    ("tool", "stand_in", "words"),
    one_in(
        4,
        [
            ({"effect": "at_most_once"}, {}, "irreversible"),
            ({"method": "POST"}, {}, "irreversible"),
            ({}, {"effect": "idempotent"}, "has more side effects than weather"),
            ({}, {"approval": "always"}, "requires approval"),
            ({}, {"fallback": "search"}, "already has a fallback"),
        ],
    ),
)
def test_an_unusable_fallback_tool_is_rejected(admin_client, tool, stand_in, words):
    if "fallback" in stand_in:
        stand_in = {"fallback": own("search")}
    ToolRegistration.objects.filter(name="calculator").update(**stand_in)

    fallback = own("calculator").pk
    response = admin_client.post(page("add"), tool_fields(fallback=fallback, **tool))

    assert words in errors(response)["fallback"]


def test_a_fallback_tool_cannot_have_a_fallback(admin_client):
    over_http(fallback=own("calculator"))

    changes = tool_fields(fallback=own("search").pk)
    response = admin_client.post(page("change", own("calculator").pk), changes)

    assert "calculator is already the fallback for weather" in errors(response)["fallback"]


def test_a_tool_cannot_be_its_own_fallback(admin_client):
    row = over_http()
    response = admin_client.post(page("change", row.pk), tool_fields(fallback=row.pk))

    assert "fallback" in errors(response)


def test_a_valid_fallback_tool_is_saved(admin_client):
    admin_client.post(page("add"), tool_fields(fallback=own("calculator").pk))

    assert own("weather").fallback == own("calculator")


def test_saving_a_tool_closes_its_circuit(admin_client):
    row = over_http()
    fail("tool:weather")
    admin_client.post(
        page("change", row.pk), tool_fields(endpoint="https://better.example/{city}")
    )

    assert CIRCUITS.state() == []


def test_built_in_tools_cannot_be_deleted(admin_client):
    mine, made = own("calculator"), over_http()
    chosen = {
        "action": "delete_selected",
        "_selected_action": [mine.pk, made.pk],
        "post": "yes",
    }

    form = admin_client.get(page("change", mine.pk)).text
    assert page("delete", mine.pk) not in form
    assert admin_client.post(page("delete", mine.pk), {"post": "yes"}).status_code == 403
    assert admin_client.post(page("changelist"), {"post": "yes", **chosen}).status_code == 403
    admin_client.post(page("delete", made.pk), {"post": "yes"})
    assert [*ToolRegistration.objects.exclude(source="own")] == []
    assert ToolRegistration.objects.filter(name="calculator").exists()


def test_a_server_is_deleted_with_its_tools(admin_client, remote):
    admin_client.post(page("delete", remote.server_id, of="mcpserver"), {"post": "yes"})

    assert not ToolRegistration.objects.filter(source="mcp").exists()


def test_an_agent_is_created(admin_client, agent):
    chosen = {f"tool-{own('search').pk}-is_given": "on", "handoffs": [agent.pk]}
    fallbacks = " openai/gpt-5 \n\nollama/llama3/8b\nopenai/gpt-5\ndemo\n"
    form = json.dumps({"type": "object", "properties": {"title": {"type": "string"}}})
    admin_client.post(
        page("add", of="agent"),
        agent_form(fallback_models=fallbacks, output_schema=form, **chosen),
    )

    writer = Agent.objects.get(name="writer")
    assert writer.fallback_models == "openai/gpt-5\nollama/llama3/8b\ndemo"
    assert writer.output_schema == json.loads(form)
    assert writer.personal_data == Agent.PersonalData.HIDDEN
    assert [*writer.handoffs.all()] == [agent]
    assert [tool.name for tool in writer.tools.all()] == ["search"]


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    one_in(
        4,
        [
            (
                {"fallback_models": "openai/x\ngpt-5"},
                "fallback_models",
                "Line 2 (gpt-5): use the form",
            ),
            (
                {"fallback_models": "demo\n\nopenai/ x"},
                "fallback_models",
                "Line 3 (openai/ x): use the form",
            ),
            ({"fallback_models": "openai/"}, "fallback_models", "the form provider/model"),
            ({"model": "openai/"}, "model", "as provider/model"),
            ({"name": "x" * 60}, "name", "Use 59 characters or fewer"),
            ({"name": "person"}, "name", "the tool that asks users questions"),
            ({"output_schema": "{"}, "output_schema", "line 1, column 2"),
            ({"output_schema": "[]"}, "output_schema", "a JSON object"),
            ({"output_schema": '{"type": "text"}'}, "output_schema", "text"),
            ({"mode": "panel"}, "handoffs", "A panel needs members"),
        ],
    ),
)
def test_an_invalid_agent_is_not_saved(admin_client, changes, field, words):
    response = admin_client.post(page("add", of="agent"), agent_form(**changes))

    assert errors(response).keys() == {field}
    assert words in errors(response)[field]
    assert not Agent.objects.exclude(name="helper").exists()


@pytest.mark.parametrize(("merge", "is_kept"), [("synthesis", True), ("vote", False)])
def test_only_a_synthesizing_panel_can_have_an_output_schema(
    admin_client, agent, merge, is_kept
):
    form = {"output_schema": '{"type": "object"}', "handoffs": [agent.pk]}

    admin_client.post(page("add", of="agent"), agent_form(mode="panel", merge=merge, **form))

    assert Agent.objects.filter(name="writer").exists() == is_kept


def test_an_agent_cannot_be_its_own_sub_agent(admin_client, agent):
    form = admin_client.get(page("change", agent.pk, of="agent")).context["adminform"].form
    response = admin_client.post(
        page("change", agent.pk, of="agent"), agent_form(name="helper", handoffs=[agent.pk])
    )

    assert agent not in form.fields["handoffs"].queryset
    assert "handoffs" in errors(response)


def test_a_tool_cannot_have_the_name_of_a_handoff(admin_client, agent):
    assert agent.handoff_tool_name == Handoff(agent.name, lambda: None).name
    tool = over_http(name=agent.handoff_tool_name)
    given = {f"tool-{tool.pk}-is_given": "on"}
    chosen = agent_form(handoffs=[agent.pk], **given)
    response = admin_client.post(page("add", of="agent"), chosen)

    assert f"hand off to {agent.name}" in errors(response)["handoffs"]
    assert not Agent.objects.filter(name="writer").exists()


def test_renaming_cannot_make_a_tool_and_a_handoff_collide(admin_client, agent):
    caller = Agent.objects.create(name="caller")
    caller.handoffs.add(agent)
    tool = over_http(name="ask_writer")
    caller.tools.add(tool)
    renamed = admin_client.post(page("change", agent.pk, of="agent"), agent_form(name="writer"))
    taken = admin_client.post(
        page("change", tool.pk), tool_fields(name=agent.handoff_tool_name)
    )

    assert (
        "caller hands off to this agent and already has a tool named ask_writer"
        in errors(renamed)["name"]
    )
    assert "caller uses this name to hand off" in errors(taken)["name"]


def test_a_schema_is_pretty_printed(admin_client, agent):
    def shown():
        html = admin_client.get(page("change", agent.pk, of="agent")).text
        return unescape(html.split('id="id_output_schema"')[1].split(">", 1)[1].split("<")[0])

    assert shown() == "\n"
    agent.output_schema = {"type": "object", "title": "題"}
    agent.save()
    assert shown() == '\n{\n  "type": "object",\n  "title": "題"\n}'


def test_the_agent_list_shows_the_kind_of_each(admin_client, agent):
    shy = Agent.objects.create(name="shy", model="openai/gpt-5", auto_execute_tools=False)
    shy.tools.add(ToolRegistration.objects.get(name="search"))
    html = admin_client.get(page("changelist", of="agent")).text

    asks = '>1 <span class="badge" data-tone="">Approval required</span><'
    for words in ("default model", "openai/gpt-5", asks, ">3<"):
        assert words in html


def test_the_approval_list_shows_call_and_user(admin_client, administrator):
    run = Run.objects.create(user=administrator, query="Order Emma for me.")
    asked_at = run.started_at
    about = {"agent_name": "buyer", "tool": "order", "asked_at": asked_at}
    Approval.objects.create(run=run, step=1, arguments='{"book": "' + "x" * 90 + '"}', **about)
    html = admin_client.get(page("changelist", of="approval")).text

    assert "Order Emma for me." in html
    assert "buyer" in html
    assert "{&quot;book&quot;: &quot;" + "x" * 69 + "…" in html


def test_the_circuit_page_is_empty_without_failures(admin_client):
    html = admin_client.get(reverse("admin:agents_circuits")).text

    assert "No recent failures." in html
    assert "These are the circuit breakers of the process that served this page." in html
    assert "<tbody" not in html.split('id="content-main"')[1]


def test_an_open_circuit_is_described(admin_client):
    fail("provider:openai", times=1)
    fail("tool:calculator", error="<b>Down</b> for a while.")
    html = admin_client.get(reverse("admin:agents_circuits")).text

    troubled, other = html.split("<tr data-key=")[1:]
    assert "Failing" in troubled
    assert f'href="{page("change", own("calculator").pk)}"' in troubled
    assert "&lt;b&gt;Down&lt;/b&gt; for a while." in troubled
    assert ">5</td>" in troubled
    assert "openai" in other
    assert "Healthy" in other
    assert "No recent failures." not in html


def test_a_circuit_ready_for_a_trial_is_described(admin_client, monkeypatch):
    fail("tool:calculator")
    monkeypatch.setattr(CIRCUITS.of("tool:calculator"), "clock", lambda: inf)

    listed = admin_client.get(page("changelist")).text
    assert "failing, retries on next use" in listed
    assert "on next use" in admin_client.get(reverse("admin:agents_circuits")).text


def test_an_administrator_can_close_a_circuit(admin_client):
    fail("model:openai/gpt-5")
    close = reverse("admin:agents_circuits_close")
    assert CIRCUITS.of("model:openai/gpt-5").is_refusing

    assert admin_client.get(close).status_code == 405
    said = admin_client.post(close, {"key": "model:openai/gpt-5"}, follow=True).text
    again = admin_client.post(close, {"key": "model:openai/gpt-5"}, follow=True).text

    assert not CIRCUITS.of("model:openai/gpt-5").is_refusing
    assert "will be retried" in said
    assert "This circuit breaker no longer exists." in again


def test_circuits_need_the_permission_to_change_agents(person):
    client = as_staff(person)
    there = reverse("admin:agents_circuits")
    fail("tool:calculator")

    assert client.get(there).status_code == 403
    closing = client.post(reverse("admin:agents_circuits_close"), {"key": "tool:calculator"})
    assert closing.status_code == 403
    assert CIRCUITS.of("tool:calculator").is_refusing
    assert there not in client.get("/admin/").text

    person.user_permissions.set(Permission.objects.filter(codename="change_agent"))
    assert client.get(there).status_code == 200
    assert there in client.get("/admin/").text
    assert there in client.get(page("changelist", of="agent")).text
