"""Console pages for MCP servers: setup, test, import and acceptance, by permission."""

import os
import shlex
import sys
from html import unescape
from pathlib import Path

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from agents.catalog import mcp_servers
from agents.catalog.mcp_servers import files
from agents.console.system import sandbox_status
from agents.models import Agent, AuditEntry, McpServer, McpSignIn, ToolRegistration
from agents.tools.mcp.configuration.config import Folder
from agents.tools.mcp.connection.health import Health
from agents.tools.mcp.definition import ToolDefinition
from tests.conftest import as_staff, as_user
from tests.sampling import one_in

pytestmark = pytest.mark.django_db(transaction=True)

PLAIN = str(Path(__file__).parents[2] / "tools" / "mcp_servers" / "plain.py")
CATALOG = ("mcpserver", "toolregistration")


def page(name, *args):
    return reverse(f"admin:agents_mcpserver_{name}", args=args)


@pytest.fixture
def clerk(person):
    """A user who can configure servers and accept tools, but not start programs."""
    person.is_staff = True
    person.save()
    allowed = Permission.objects.filter(content_type__model__in=CATALOG)
    person.user_permissions.set(allowed.exclude(codename="use_stdio_servers"))
    return as_user(person)


@pytest.fixture
def plain(tmp_path):
    return McpServer.objects.create(
        name="plain",
        transport="stdio",
        command=sys.executable,
        args=[PLAIN, str(tmp_path / "notes"), "two words"],
        env={"KEY": "hunter2"},
    )


def server_fields(*, command="", args=(), env=None, headers=None, **changes):
    """What the page sends: a command line, and rows for what is given of the secrets."""
    usual = {"name": "docs", "transport": "http", "url": "https://docs.example/mcp"}
    start = {"connect_timeout": "60", "isolation": "shared", "max_instances": "10"}
    line = shlex.join([command, *args]) if command else ""
    rows = {}
    for name, pairs in {"env": env, "headers": headers}.items():
        if pairs is not None:
            rows[f"{name}-name"] = [*pairs, ""]
            rows[f"{name}-value"] = [*pairs.values(), ""]
    texts = {"command_line": line, "timeout": "30", "enabled": "on"}
    return {**usual, **texts, **start, **rows, **changes}


def as_it_is(server):
    words = {"command": server.command, "args": server.args}
    return {"transport": server.transport, "url": server.url, **words}


def errors(response):
    return {k: " ".join(v) for k, v in response.context["adminform"].form.errors.items()}


def page_messages(response):
    return [str(message) for message in response.context["messages"]]


def keep(server, *definitions):
    mcp_servers.save_health(server.name, Health(state="ready", tools=definitions))


def test_the_list_shows_the_state_of_servers(admin_client, plain):
    mcp_servers.save_health(
        "plain", Health(state="failed", error="The program exited with status 1.")
    )
    html = admin_client.get(page("changelist")).text

    assert "failing" in html
    assert "The program exited with status 1." in html
    assert page("import") in html


def test_a_server_is_created(admin_client):
    admin_client.post(page("add"), server_fields(headers={"X-Key": "hunter2"}))

    server = McpServer.objects.get()
    assert server.url == "https://docs.example/mcp"
    assert server.headers.reveal() == {"X-Key": "hunter2"}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    one_in(
        4,
        [
            ({"url": "docs.example"}, "Enter a full URL"),
            ({"name": "a__b"}, "single - or _ in between"),
            ({"headers": {"X": ""}}, "Enter a value for X."),
            ({"headers": {"": "x"}}, "Enter a name for each value."),
            ({"headers-name": ["X", "X"], "headers-value": ["1", "2"]}, "X is entered twice."),
            ({"command_line": 'python "x', "transport": "stdio"}, "isn’t closed"),
            ({"transport": "stdio", "command": "bash"}, "can run any program"),
            ({"transport": "stdio", "command": "./x"}, "an absolute path"),
            ({"transport": "stdio"}, "Enter a command."),
        ],
    ),
)
def test_an_invalid_server_is_not_saved(admin_client, changes, sentence):
    response = admin_client.post(page("add"), server_fields(**changes))

    assert sentence in response.text
    assert not McpServer.objects.exists()


def test_saved_secrets_are_never_shown(admin_client, plain):
    html = admin_client.get(page("change", plain.pk)).text
    admin_client.post(
        page("change", plain.pk),
        server_fields(**as_it_is(plain), timeout="90"),
    )

    server = McpServer.objects.get()
    assert "hunter2" not in html
    assert "KEY" in html
    assert (server.timeout, server.env.reveal()) == (90, {"KEY": "hunter2"})


def test_a_forged_initial_value_does_not_move_a_secret(admin_client, plain):
    lie = server_fields(**as_it_is(plain) | {"args": [PLAIN, "elsewhere"]})
    lie["initial-command_line"] = lie["command_line"]
    response = admin_client.post(page("change", plain.pk), lie)

    assert "was set for a different URL or command" in errors(response)["env"]
    assert McpServer.objects.get().args == plain.args


def test_all_errors_are_shown_at_their_fields(admin_client):
    headers = {"Host": "x", "A B": "c"}
    wrong = server_fields(
        name="a__b", url="docs.example", headers=headers, command_line="'", timeout="0"
    )
    found = errors(admin_client.post(page("add"), wrong))

    assert found.keys() == {"name", "url", "headers", "command_line", "timeout"}
    assert found["url"] == "Enter a full URL, e.g. https://host/mcp."
    assert "The header 'Host' is set automatically." in found["headers"]
    assert "'A B' isn't a valid header name." in found["headers"]


def test_invalid_arguments_are_the_only_error_of_a_program(admin_client):
    wrong = server_fields(transport="stdio", command_line="python 'x.py", url="")

    assert errors(admin_client.post(page("add"), wrong)).keys() == {"command_line"}


def test_only_a_saved_server_shows_its_last_status(admin_client, plain):
    mcp_servers.save_health("plain", Health(state="ready", latency=0.0123))
    new = admin_client.get(page("add")).text
    old = admin_client.get(page("change", plain.pk)).text

    assert "Last known status" not in new
    assert "Last known status" in old
    assert "12.3 ms" in old
    assert "uses the saved settings and updates this status." in old


def test_a_secret_is_not_sent_to_another_url_or_program(admin_client):
    admin_client.post(page("add"), server_fields(headers={"X-Key": "hunter2"}))
    server = McpServer.objects.get()
    there = page("change", server.pk)
    moved = admin_client.post(there, server_fields(url="https://evil.example/mcp"))
    admin_client.post(there, server_fields(timeout="90"))
    server.refresh_from_db()
    was = (server.url, server.timeout, server.headers.reveal())
    admin_client.post(there, server_fields(url="https://new.example/mcp", headers={}))
    server.refresh_from_db()

    assert "was set for a different URL or command. Enter the values again" in moved.text
    assert was == ("https://docs.example/mcp", 90, {"X-Key": "hunter2"})
    assert (server.url, server.headers.reveal()) == ("https://new.example/mcp", {})


def test_the_argv_is_shown_item_by_item(admin_client, plain):
    html = admin_client.get(page("change", plain.pk)).text

    assert f"<code>{sys.executable}</code><br><code>{PLAIN}</code><br>" in html
    assert "<br><code>two words</code>" in html


def test_the_page_shows_the_isolation_level_of_a_program(admin_client, plain):
    html = unescape(admin_client.get(page("change", plain.pk)).text)
    level = sandbox_status.general_level()

    assert sandbox_status.describe_level(level) in html
    assert level != "none" or "can read its secret key and database" in html


def test_an_http_server_has_no_isolation_level(admin_client):
    docs = McpServer.objects.create(name="docs", url="https://docs.example/mcp")
    html = unescape(admin_client.get(page("change", docs.pk)).text)

    assert sandbox_status.describe_level(sandbox_status.general_level()) not in html


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    one_in(
        4,
        [
            ("folders", "/no/such/folder", "the folder '/no/such/folder' doesn't exist"),
            ("folders", "DATA:rw", "inside this server's data folder"),
            ("env", {"PATH": "/tmp"}, "the environment variable 'PATH' is set automatically"),
            ("env", {"PYTHONPATH": "/tmp"}, "could make it run other programs"),
            ("command_line", "python -m x DATA/secret_key", "inside this server's data folder"),
        ],
    ),
)
def test_forbidden_program_settings_are_rejected_at_their_field(
    admin_client, settings, field, value, sentence
):
    if isinstance(value, str):
        value = value.replace("DATA", str(settings.DATA_DIR))
        value = value.replace("python", sys.executable)
    given = {"transport": "stdio", "command": sys.executable, "url": "", "args": ["-m", "x"]}
    response = admin_client.post(page("add"), server_fields(**given | {field: value}))

    assert sentence in errors(response)[field]
    assert not McpServer.objects.exists()


def test_a_package_without_a_version_is_saved_with_a_warning(
    admin_client, tmp_path, monkeypatch
):
    (tmp_path / "npx").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    given = {"transport": "stdio", "command": "npx", "args": ["-y", "some-server"], "url": ""}
    response = admin_client.post(page("add"), server_fields(**given), follow=True)
    shown = admin_client.get(page("change", McpServer.objects.get(name="docs").pk)).text

    warning = "some-server has no pinned version, so a new release can change what runs."
    assert f"docs: {warning}" in page_messages(response)
    assert f'<p class="caution">{warning}</p>' in shown


def test_folders_and_trust_are_saved(admin_client, tmp_path):
    given = {"transport": "stdio", "command": sys.executable, "args": ["-m", "x"], "url": ""}
    typed_in = server_fields(**given, folders=f"{tmp_path}:rw", trusts_annotations="on")
    admin_client.post(page("add"), typed_in)

    server = McpServer.objects.get()
    assert (server.folders, server.trusts_annotations) == (f"{tmp_path}:rw", True)
    assert mcp_servers.server_config(server).folders == (
        Folder(str(tmp_path), is_writable=True),
    )


def test_a_connection_is_tested(admin_client, plain):
    response = admin_client.post(page("test", plain.pk), follow=True)

    assert "Connected. Tools: a.b/日本, add, count" in page_messages(response)[0]
    assert ToolRegistration.objects.filter(server=plain).count() == 12
    assert "plain__add" in response.text


def test_a_failed_connection_test_has_a_reason(admin_client, plain):
    McpServer.objects.update(args=[*plain.args, "dead"])

    assert (
        "There is no cheese at all."
        in page_messages(admin_client.post(page("test", plain.pk), follow=True))[0]
    )


def test_a_server_is_disconnected_after_the_change_is_committed(
    admin_client, plain, monkeypatch
):
    left = []

    def disconnect(name):
        left.append((name, connection.in_atomic_block))
        return []

    for place in (mcp_servers, files):
        monkeypatch.setattr(place, "disconnect", disconnect)
    admin_client.post(page("change", plain.pk), server_fields(**as_it_is(plain)))
    admin_client.post(page("delete", plain.pk), {"post": "yes"})

    assert left == [("plain", False), ("plain", False)]


def test_saving_and_testing_programs_needs_the_permission(clerk, plain):
    added = clerk.post(
        page("add"), server_fields(transport="stdio", command=sys.executable, args=["x"])
    )
    changed = clerk.post(page("change", plain.pk), server_fields(name="plain", enabled=""))
    tested = clerk.post(page("test", plain.pk))

    assert "have permission to set up servers that run programs" in added.text
    assert (changed.status_code, tested.status_code) == (403, 403)
    assert list(McpServer.objects.values_list("name", "enabled")) == [("plain", True)]


def test_an_http_server_needs_no_program_permission(clerk):
    clerk.post(page("add"), server_fields())
    server = McpServer.objects.get()
    turned = clerk.post(
        page("change", server.pk),
        server_fields(transport="stdio", command="npx", args=["x"], url=""),
    )

    assert "have permission to set up servers that run programs" in turned.text


def test_a_changed_tool_is_shown_and_accepted(admin_client, plain):
    keep(plain, ToolDefinition(name="add", description="Adds up."))
    keep(plain, ToolDefinition(name="add", description="<b>Adds</b> it all up."))
    row = ToolRegistration.objects.get()
    html = admin_client.get(page("change", plain.pk)).text
    admin_client.post(page("accept", row.pk), {"seen": "something else"})
    row.refresh_from_db()
    was_held = bool(row.pending)
    response = admin_client.post(
        page("accept", row.pk), {"seen": mcp_servers.pending_digest(row)}, follow=True
    )
    row.refresh_from_db()

    assert "<del>Adds up.</del>" in html
    assert "<ins>&lt;b&gt;Adds&lt;/b&gt; it all up.</ins>" in html
    assert was_held
    assert row.pending is None
    assert page_messages(response)[-1] == "plain__add accepted."


def test_accepting_a_changed_tool_needs_the_permission(clerk, person, plain):
    keep(plain, ToolDefinition(name="add"))
    keep(plain, ToolDefinition(name="add", description="Other."))
    row = ToolRegistration.objects.get()
    person.user_permissions.clear()

    assert (
        clerk.post(
            page("accept", row.pk), {"seen": mcp_servers.pending_digest(row)}
        ).status_code
        == 403
    )
    assert Client().post(page("test", plain.pk)).status_code == 302


def test_get_requests_change_nothing(admin_client, plain):
    keep(plain, ToolDefinition(name="add"))
    row = ToolRegistration.objects.get()

    assert admin_client.get(page("test", plain.pk)).status_code == 405
    assert admin_client.get(page("accept", row.pk)).status_code == 405


# Testing unsaved settings


def post_test(client, *args, **typed_in):
    return unescape(client.post(page("try", *args), typed_in).text)


def test_an_unsaved_form_is_tested_without_saving_it(admin_client, tmp_path):
    args = [PLAIN, str(tmp_path / "notes")]
    html = post_test(
        admin_client,
        **server_fields(transport="stdio", command=sys.executable, args=args, url=""),
    )

    entry = AuditEntry.objects.get(action="server.tested")
    assert entry.detail == {"name": "docs", "is_saved": False}
    assert "Connected. 12 tools found. Nothing was saved." in html
    assert "<code>count</code>" in html
    assert not McpServer.objects.exists()
    assert not ToolRegistration.objects.exists()


def test_a_test_with_too_much_to_review_says_so(admin_client, tmp_path):
    args = [PLAIN, str(tmp_path / "notes"), *["x" * 1_000] * 18]
    html = post_test(
        admin_client,
        **server_fields(transport="stdio", command=sys.executable, args=args, url=""),
    )

    assert "Connected." in html
    assert "too long to review" in html


def test_an_unsaved_change_is_tested_with_the_saved_secrets(admin_client, plain, tmp_path):
    changed = server_fields(**as_it_is(plain), timeout="7")
    html = post_test(admin_client, plain.pk, **changed)
    broken = post_test(admin_client, plain.pk, **changed | {"command_line": "/no/such/program"})

    plain.refresh_from_db()
    assert "Connected." in html
    assert "Not tested. Fix these errors first." in broken
    assert (plain.timeout, plain.state) == (30, "unknown")


def test_a_test_does_not_send_a_secret_to_another_url(admin_client):
    server = McpServer.objects.create(
        name="docs", url="https://docs.example/mcp", headers={"X-Key": "hunter2"}
    )
    html = post_test(admin_client, server.pk, **server_fields(url="https://evil.example/mcp"))

    assert "Not tested. Fix these errors first." in html
    assert "was set for a different URL or command" in html


def test_testing_an_unreachable_server_has_a_reason(admin_client, settings):
    html = post_test(admin_client, **server_fields(url="http://127.0.0.1:9/mcp"))

    assert "This server can't be used." in html or "Not tested. Fix these errors first." in html
    assert not McpServer.objects.exists()


def test_testing_a_program_needs_the_permission_to_start_one(clerk, plain, tmp_path):
    args = [PLAIN, str(tmp_path / "started")]
    program = {"transport": "stdio", "command": sys.executable, "args": args, "url": ""}
    new = post_test(clerk, **server_fields(**program))
    other = clerk.post(page("try", plain.pk), server_fields(**as_it_is(plain)))
    tested = clerk.post(page("test", plain.pk))

    assert (
        "You don't have permission to set up servers that run programs on this machine."
    ) in new
    assert (other.status_code, tested.status_code) == (403, 403)
    assert not (tmp_path / "started").exists()


def test_a_test_needs_post_and_permission(admin_client, plain, person):
    looker = as_staff(person, "view_mcpserver")

    assert admin_client.get(page("try")).status_code == 405
    assert looker.post(page("try"), server_fields()).status_code == 403
    assert looker.post(page("try", plain.pk), server_fields()).status_code == 403


def test_a_null_character_is_rejected_with_a_message(admin_client):
    line = {"command_line": "/bin/true a\x00b"}
    answer = admin_client.post(page("try"), server_fields(transport="stdio", **line))

    assert answer.status_code == 200


# Tools on and off


def test_a_tool_is_switched_on_and_off_on_its_servers_page(admin_client, plain):
    keep(plain, ToolDefinition(name="add"))
    row = ToolRegistration.objects.get()

    off = admin_client.post(page("switch", row.pk), {"enabled": "off"}, follow=True)
    row.refresh_from_db()
    was_off = not row.enabled
    admin_client.post(page("switch", row.pk), {"enabled": "on"})
    row.refresh_from_db()

    assert was_off
    assert row.enabled
    assert page_messages(off) == ["Disabled: plain__add"]
    assert off.redirect_chain[0][0].endswith(f"#tool-{row.pk}")
    assert "Enable plain__add" in off.text


def test_switching_tools_needs_the_change_permission(person, plain):
    keep(plain, ToolDefinition(name="add"))
    person.is_staff = True
    person.save()
    person.user_permissions.set(Permission.objects.filter(content_type__model="mcpserver"))
    client, row = as_user(person), ToolRegistration.objects.get()

    answer = client.post(page("switch", row.pk), {"enabled": "off"})
    html = client.get(page("change", plain.pk)).text

    row.refresh_from_db()
    assert answer.status_code == 403
    assert row.enabled
    assert page("switch", row.pk) not in html


def test_get_requests_switch_nothing(admin_client, plain):
    keep(plain, ToolDefinition(name="add"))

    assert (
        admin_client.get(page("switch", ToolRegistration.objects.get().pk)).status_code == 405
    )


def test_files_of_a_server_are_counted_and_deleted_after_confirmation(admin_client, plain):
    folder = mcp_servers.home_folder(plain.pk) / "work"
    folder.mkdir(parents=True)
    (folder / "notes").write_text("12345")

    counted = admin_client.get(page("change", plain.pk)).text
    asked = admin_client.get(page("files", plain.pk)).text
    is_there_still = folder.exists()
    admin_client.post(page("files", plain.pk))

    assert "5\xa0bytes in 1 file." in counted
    assert "permanently deletes everything it has saved" in asked
    assert is_there_still
    assert not folder.exists()
    detail = AuditEntry.objects.get(action="server.files_deleted").detail
    assert (detail["files"], detail["bytes"]) == (1, 5)


def test_a_server_without_files_offers_nothing_to_delete(admin_client, plain):
    link = page("files", plain.pk)

    assert link not in admin_client.get(page("change", plain.pk)).text
    asked = admin_client.get(link).text
    assert "plain has no files on this machine." in asked
    assert "permanently deletes" not in asked


def test_the_page_that_deletes_a_server_counts_its_files(admin_client, plain):
    folder = mcp_servers.home_folder(plain.pk)
    folder.mkdir(parents=True)
    (folder / "notes").write_text("x")

    asked = admin_client.get(page("delete", plain.pk)).text

    assert "iles of this server</span><strong>1<" in asked


def test_a_program_has_its_own_limits_or_those_of_the_settings():
    own = mcp_servers.child_limits(McpServer(memory_mb=100, cpu_seconds=30))
    usual = mcp_servers.child_limits(McpServer())

    assert (own.memory_mb, own.cpu_seconds) == (100, 30)
    assert (usual.memory_mb, usual.cpu_seconds, usual.processes) == (2048, 240, 100)


# Command lines, rows and the page after saving


def test_a_command_line_is_split_and_shown_again(admin_client, tmp_path):
    line = f"{sys.executable} {PLAIN} 'two words' {tmp_path}"
    admin_client.post(page("add"), server_fields(transport="stdio", command_line=line, url=""))

    server = McpServer.objects.get()
    assert (server.command, server.args) == (
        sys.executable,
        [PLAIN, "two words", str(tmp_path)],
    )
    form = admin_client.get(page("change", server.pk)).context["adminform"].form
    assert form["command_line"].value() == line


def test_a_row_without_a_value_keeps_the_saved_one(admin_client, plain):
    McpServer.objects.filter(pk=plain.pk).update(env={"KEY": "hunter2", "OLD": "x"})
    rows = {"KEY": "", "NEW": "y"}
    admin_client.post(page("change", plain.pk), server_fields(**as_it_is(plain), env=rows))

    assert McpServer.objects.get().env.reveal() == {"KEY": "hunter2", "NEW": "y"}


def test_a_kept_row_does_not_follow_to_another_url(admin_client):
    server = McpServer.objects.create(
        name="docs", url="https://docs.example/mcp", headers={"A": "hunter2", "B": "x"}
    )
    moved = {"url": "https://evil.example/mcp", "headers": {"A": "", "C": "y"}}
    response = admin_client.post(page("change", server.pk), server_fields(**moved))

    assert "was set for a different URL" in errors(response)["headers"]
    assert McpServer.objects.get().url == "https://docs.example/mcp"


def client_fields(**changes):
    client = {"oauth_client_id": "ours", "oauth_client_secret": "", "sign_in": "user"}
    return server_fields(**{**client, **changes})


@pytest.fixture
def entered(admin_client):
    admin_client.post(page("add"), client_fields(oauth_client_secret="hunter2"))
    server = McpServer.objects.get()
    server.oauth_client = {"issuer": "https://docs.example/"}
    server.save()
    return server


def test_an_oauth_client_is_entered_and_its_secret_stays_hidden(admin_client, entered):
    html = admin_client.get(page("change", entered.pk)).text
    admin_client.post(page("change", entered.pk), client_fields(timeout="90"))

    assert "hunter2" not in html
    assert "http://testserver/mcp/callback/" in html
    entered.refresh_from_db()
    assert (entered.timeout, entered.oauth_client_id) == (90, "ours")
    assert entered.oauth_client_secret.reveal() == "hunter2"
    assert entered.oauth_client.reveal() == {"issuer": "https://docs.example/"}
    assert "hunter2" not in str(list(AuditEntry.objects.values_list("detail")))


def test_a_client_secret_stays_with_its_client_and_url(admin_client, entered):
    there = page("change", entered.pk)
    moved = admin_client.post(there, client_fields(url="https://evil.example/mcp"))
    alone = {"oauth_client_id": "", "oauth_client_secret": "new"}
    orphaned = admin_client.post(there, client_fields(**alone))
    McpSignIn.objects.create(server=entered, url=entered.url, signed_in_at=timezone.now())
    admin_client.post(there, client_fields(oauth_client_id="other"))

    assert "for a different URL" in errors(moved)["oauth_client_secret"]
    assert "oauth_client_id" in errors(orphaned)
    assert 'value="new"' not in orphaned.text
    assert ">\nnew</" not in orphaned.text
    entered.refresh_from_db()
    assert (entered.url, entered.oauth_client_id) == ("https://docs.example/mcp", "other")
    assert not entered.oauth_client_secret
    assert not entered.oauth_client
    assert not McpSignIn.objects.exists()


def test_a_saved_server_is_connected_and_given_to_agents(admin_client, plain):
    writer = Agent.objects.create(name="writer")
    reader = Agent.objects.create(name="reader")
    saved = admin_client.post(page("change", plain.pk), server_fields(**as_it_is(plain)))
    connected = admin_client.post(page("setup", plain.pk))
    admin_client.post(page("agents", plain.pk), {"agent": [writer.pk]})

    assert saved.url == page("setup", plain.pk)
    assert "Connected. 12 tools found." in connected.text
    assert writer.links.count() == 12
    assert [version.note for version in writer.versions.all()][0] == "Added the tools of plain."
    assert not reader.links.exists()
    assert f'value="{writer.pk}" checked' in admin_client.post(page("setup", plain.pk)).text

    admin_client.post(page("agents", plain.pk))
    assert not writer.links.exists()


def test_a_failed_connection_says_why_and_what_to_do(admin_client, plain):
    McpServer.objects.update(args=[*plain.args, "dead"])
    text = admin_client.post(page("setup", plain.pk)).text

    assert "There is no cheese at all." in text
    assert "Try again" in text


def test_agents_are_chosen_only_by_those_who_can_change_agents(clerk):
    server = McpServer.objects.create(name="docs", url="https://docs.example/mcp")
    agent = Agent.objects.create(name="writer")

    answer = clerk.post(page("agents", server.pk), {"agent": [agent.pk]})

    assert answer.status_code == 403
