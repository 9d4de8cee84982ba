"""MCP servers in the configuration of other programs, as people paste it."""

import json
import os
import time
from contextlib import suppress
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.tools.mcp.config_import import read_servers
from agents.tools.mcp.config_import.pasted_text import normalize_json
from agents.tools.mcp.configuration.config import (
    InvalidServerConfig,
    ServerConfig,
    find_problems,
)
from tests.sampling import one_in
from tests.tools.mcp_clients import CLIENTS

TIME = {"command": "uvx", "args": ["mcp-server-time"], "env": {"TZ": "Asia/Tokyo"}}
DOCS = {"type": "streamable-http", "url": "https://docs.example/mcp", "headers": {"X-Key": "k"}}


def one(entry, name="time"):
    [server] = read_servers({"mcpServers": {name: entry}})
    return server


def runs(server):
    return server.config.url or " ".join(server.config.argv)


@pytest.mark.parametrize("client", CLIENTS)
def test_the_documented_example_of_every_client_is_imported(client):
    wanted = CLIENTS[client]
    servers = read_servers(dedent(wanted.text))
    notes = {note for server in servers for note in server.notes}

    assert {server.config.name: runs(server) for server in servers} == wanted.servers
    assert {
        server.config.name: [value.name for value in server.missing]
        for server in servers
        if server.missing
    } == wanted.missing
    assert {*wanted.notes} <= notes
    assert [server.problems for server in servers] == [()] * len(servers)


@pytest.mark.parametrize("client", CLIENTS)
def test_an_imported_client_with_all_values_has_no_problems(client):
    for server in read_servers(dedent(CLIENTS[client].text)):
        values = {value.name: "entered" for value in server.missing}

        assert find_problems(server.fill_in(values)) == []


def test_a_server_entry_is_read():
    time = one(TIME, "Time")

    assert time.config == ServerConfig(
        name="time", command="uvx", args=("mcp-server-time",), env={"TZ": "Asia/Tokyo"}
    )
    assert (time.label, time.notes, time.missing) == ("Time", (), ())
    assert one(DOCS).config.headers == {"X-Key": "k"}


# What surrounds the JSON


BLOCK = '{"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}}}'


@pytest.mark.parametrize(
    "text",
    [
        BLOCK,
        f"\ufeff\n{BLOCK}\n",
        f"```json\n{BLOCK}\n```",
        f"Add this to your settings:\n\n~~~\n{BLOCK}\n~~~\nThen restart.",
        f"```\n{BLOCK}",
        BLOCK.replace('"', "\u201c", 1).replace('"', "\u201d", 1),
        BLOCK.replace(" ", "\u00a0"),
        BLOCK.replace("]}", "],}").replace("]", ",]").replace("}}", "}, // last\n}"),
        f"// the servers\n{BLOCK} /* end */",
        '"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}},',
        '"time": {"command": "uvx", "args": ["mcp-server-time"]}',
        '{"time": {"command": "uvx", "args": ["mcp-server-time"]}}',
        '{"command": "uvx", "args": ["mcp-server-time"]}',
        '"command": "uvx",\n"args": ["mcp-server-time"],',
        '[{"name": "time", "command": "uvx", "args": ["mcp-server-time"]}]',
        '{"command": "uvx mcp-server-time"}',
        f'{{"projects": {{"/srv/x": {BLOCK}}}}}',
    ],
)
def test_json_with_surrounding_text_is_read(text):
    [server] = read_servers(text)

    assert (server.config.name, server.config.argv) == ("time", ("uvx", "mcp-server-time"))


def test_comment_marks_and_quotes_in_strings_are_kept():
    text = '{"x": {"url": "https://x.example//mcp", "headers": {"A": "/* “a”, */ # ,]"}}} // b'
    [server] = read_servers(text)

    assert server.config.url == "https://x.example//mcp"
    assert server.config.headers == {"A": "/* “a”, */ # ,]"}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "Invalid JSON: Expecting value (line 1, column 1)."),
        ("{", "Invalid JSON: Expecting property name enclosed in double quotes (line 1"),
        ('// one\n{"a": /* two */ }', "Invalid JSON: Expecting value (line 2, column 17)."),
        ('```\n{"a" 1}\n```', "Invalid JSON: Expecting ':' delimiter (line 2, column 6)."),
        ('"a": {"command" 1}', "Invalid JSON: Expecting ':' delimiter (line 1, column 17)."),
        ("a:\n  - b: [", "Invalid YAML (line 3, column 1): Syntax error: "),
        ('[mcp_servers.x]\ncommand = "', "Invalid TOML: "),
        ("[]", "No server found."),
        ("3", "No server found."),
        ('{"mcpServers": []}', "No server found."),
        ('{"mcpServers": {}}', "No server found."),
        ("[" * 500_000, "This is nested too deeply."),
        (" " * 1_000_001, "The text is longer than 1,000,000 characters."),
    ],
)
def test_an_invalid_configuration_is_reported_with_its_position(text, sentence):
    with pytest.raises(InvalidServerConfig) as refusal:
        read_servers(text)

    assert str(refusal.value).startswith(sentence)


@pytest.mark.parametrize(
    "text", one_in(3, ["```a\n" * 190_000, "{" + "/* " * 300_000, "“a" * 400_000])
)
def test_long_texts_are_read_in_linear_time(text):
    started = time.process_time()
    with pytest.raises(InvalidServerConfig):
        read_servers(text)

    assert time.process_time() - started < 5


def test_too_many_servers_are_rejected():
    with pytest.raises(InvalidServerConfig, match="Too many servers: 101. The limit is 100."):
        read_servers({"mcpServers": {f"s{n}": TIME for n in range(101)}})


# Fields


@pytest.mark.parametrize(
    ("entry", "transport"),
    [
        ({"url": "http://localhost:1/mcp"}, "http"),
        ({"url": "http://localhost:1/sse"}, "sse"),
        ({"url": "http://localhost:1/sse", "type": "http"}, "http"),
        ({"url": "http://localhost:1/sse", "type": "remote"}, "sse"),
        ({"httpUrl": "http://localhost:1"}, "http"),
        ({"serverUrl": "http://localhost:1", "transport": "sse"}, "sse"),
        ({"url": "http://localhost:1/mcp", "type": "stdio"}, "http"),
        ({"command": "x", "type": "http"}, "stdio"),
        ({"command": "x", "type": "stdio", "autoApprove": ["a"]}, "stdio"),
    ],
)
def test_the_transport_is_read_or_inferred(entry, transport):
    assert one(entry).config.transport == transport


def test_disabled_servers_stay_disabled():
    off = {"a": {**TIME, "disabled": True}, "b": {**TIME, "enabled": False}, "c": TIME}

    assert [server.is_enabled for server in read_servers({"mcpServers": off})] == [0, 0, 1]


def test_timeouts_are_converted_to_seconds():
    seconds = one({**TIME, "timeout": 60}).config
    milliseconds = one({**TIME, "timeout": 60_000, "initTimeout": 5_000}).config
    wrong = one({**TIME, "timeout": "soon"})

    assert seconds.call_timeout == milliseconds.call_timeout == 60
    assert milliseconds.connect_timeout == 5
    assert wrong.config.call_timeout == 30
    assert wrong.notes == ("Skipped 'timeout', which isn't used here.",)


def test_values_of_another_type_are_converted():
    server = one({"command": "x", "args": "-y 'a b'", "env": ["A=b", "C=d=e"]})

    assert server.config.args == ("-y", "a b")
    assert server.config.env == {"A": "b", "C": "d=e"}
    assert server.notes == ("Converted 'args' to a list.", "Converted 'env' to an object.")
    assert one({**TIME, "env": {"PORT": 1, "ON": True}}).config.env == {
        "PORT": "1",
        "ON": "true",
    }


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        ("npx", "'time' must be an object with command or url, not text."),
        ({"env": {}}, "'time' has neither command nor url. Enter one."),
        ({**TIME, **DOCS, "type": "stdio"}, "'time' has both command and url"),
        ({**TIME, "type": "ws"}, "The type of 'time' must be stdio, http or sse, not 'ws'."),
        (
            {**TIME, "args": 5},
            "Server 'time', args: Must be a list of text values, not a number",
        ),
        ({**TIME, "args": ["a", {}]}, "args: Must contain only text, but 2 is an object."),
        ({**TIME, "env": {"A": []}}, "env: Must contain only text, but 'A' is a list."),
        ({**TIME, "env": "A=b"}, "env: Must be an object with text values, not text."),
        ({"command": {"x": 1}}, "command: Must be text, not an object."),
    ],
)
def test_a_mistake_has_a_message_and_other_servers_are_imported(entry, sentence):
    wrong, right = read_servers({"mcpServers": {"time": entry, "docs": DOCS}})

    assert sentence in wrong.problems[0]
    assert wrong.config is None
    assert right.config.url == "https://docs.example/mcp"


def test_an_unknown_field_is_skipped_with_a_note():
    server = one({**TIME, "shell": True, "description": "The time.", "color": None})

    assert server.notes == ("Skipped 'shell', which isn't used here.",)


# Names


@pytest.mark.parametrize(
    ("entry", "name"),
    [
        (
            {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory@1.0"]},
            "memory",
        ),
        ({"command": "uvx", "args": ["mcp-server-git==2.0"]}, "git"),
        (
            {"command": "docker", "args": ["run", "-i", "-e", "K", "ghcr.io/a/figma-mcp:1"]},
            "figma",
        ),
        ({"command": "python3", "args": ["-m", "weather_mcp"]}, "weather"),
        ({"command": "node", "args": ["/srv/notes/index.js"]}, "index"),
        ({"command": "/opt/acme-server"}, "acme"),
        ({"url": "https://mcp.notion.com/mcp"}, "notion"),
        ({"url": "http://10.0.0.1/mcp"}, "server"),
        ({"url": "http://localhost:8000/mcp"}, "localhost"),
    ],
)
def test_a_server_without_a_name_gets_one(entry, name):
    [server] = read_servers(entry)

    assert server.config.name == name
    assert f"Named {name!r}. You can change the name." in server.notes


def test_a_duplicate_or_invalid_name_is_changed():
    servers = read_servers({"b": TIME, "B": TIME, "時間": TIME, "x" * 60: TIME})

    assert [server.config.name for server in servers] == ["b", "b-2", "time", "x" * 40]
    assert [len(server.notes) for server in servers] == [0, 1, 1, 1]


# Variables and placeholders


def test_variables_are_expanded_from_the_entry_not_from_the_environment(monkeypatch):
    monkeypatch.setenv("OURS", "sentinel")
    env = {"ROOT": "/srv", "DATA": "${ROOT}/data", "LOOP": "$LOOP", "KEY": "${env:OURS}"}
    server = one({"command": "x", "args": ["$DATA", "--x=${DATA}/y", "$OURS"], "env": env})

    assert server.config.args == ("/srv/data", "--x=/srv/data/y", "${OURS}")
    assert server.config.env == {
        "ROOT": "/srv",
        "DATA": "/srv/data",
        "LOOP": "${LOOP}",
        "KEY": "${OURS}",
    }
    assert [(v.name, v.fields) for v in server.missing] == [
        ("OURS", ("args", "env")),
        ("LOOP", ("env",)),
    ]
    assert "sentinel" not in repr(server)
    assert "'OURS' needs a value (args, env)." in server.notes
    assert "'OURS' is part of args, which isn't encrypted." in server.notes
    assert os.environ["OURS"] == "sentinel"


def test_variables_that_refer_to_each_other_are_expanded_to_a_limit():
    env = {f"V{n}": f"${{V{n + 1}}}" * 50 for n in range(20)}

    assert len(one({"command": "x", "env": env}).config.env["V0"]) < 1_000_000


@pytest.mark.parametrize(
    "value",
    [
        *("<YOUR_API_KEY>", "your-key-here", "YOUR_API_KEY_HERE", "your api key", "sk-...", ""),
        *("ghp_xxxxxxxx", "xxx", "***", "REPLACE_ME", "changeme", "insert-token-here", "…"),
        *("byul_api_key", "my-secret-token", "api-key", "token", "[your key]", "sk-ant-xxxx"),
        None,
    ],
)
def test_a_placeholder_becomes_a_secret_to_enter(value):
    server = one({"command": "x", "env": {"API_KEY": value}})

    assert server.config.env == {"API_KEY": "${API_KEY}"}
    assert [(v.name, v.is_secret) for v in server.missing] == [("API_KEY", True)]
    assert "'API_KEY' needs a value (env)." in server.notes


@pytest.mark.parametrize(
    "value",
    [
        "sk-proj-8Fh2",
        "Asia/Tokyo",
        "pa$word",
        "a $b c",
        "info",
        "true",
        "/srv/x",
        "x",
        "hunter2",
    ],
)
def test_a_real_secret_is_not_read_as_a_placeholder(value):
    assert one({"command": "x", "env": {"API_KEY": value}}).missing == ()


def test_ordinary_values_are_not_read_as_placeholders():
    env = {"SORT_BY": "primary key", "BUCKET": "my-bucket", "KIND": "token"}

    assert one({"command": "x", "env": env}).missing == ()


def test_entered_values_go_where_they_are_used():
    header = {"Authorization": "Bearer <token>", "X-Team": "${TEAM}"}
    server = one({"url": "https://x.example/mcp?key=YOUR_API_KEY", "headers": header})
    values = {"Authorization": "Bearer s3cret", "TEAM": "blue"}
    config = server.fill_in(values)

    assert config.headers == {"Authorization": "Bearer s3cret", "X-Team": "blue"}
    assert config.url == "https://x.example/mcp?key=${YOUR_API_KEY}"
    assert [problem.field for problem in find_problems(config)] == ["url"]


def test_vs_code_inputs_are_described():
    text = dedent(CLIENTS["VS Code"].text)
    [key], [region] = (server.missing for server in read_servers(text))

    assert (key.description, key.is_secret, key.default) == ("API key", True, "")
    assert (region.choices, region.is_secret, region.default) == (("eu", "us"), False, "eu")


def test_secrets_are_not_shown_by_accident():
    assert "hunter2" not in repr(one({**TIME, "env": {"KEY": "hunter2"}}))


# Other machines


@pytest.mark.parametrize(
    ("entry", "argv"),
    [
        ({"command": "cmd.exe", "args": ["/C", "npx", "-y", "x"]}, "npx -y x"),
        ({"command": "cmd", "args": ["/d", "/s", "/c", "uvx", "x"]}, "uvx x"),
        ({"command": "C:\\Program Files\\nodejs\\npx.cmd", "args": ["x"]}, "npx x"),
        ({"command": "/opt/homebrew/bin/uvx", "args": ["x"]}, "uvx x"),
        ({"command": "npx.cmd", "args": ["x"]}, "npx x"),
    ],
)
def test_programs_of_another_machine_are_translated_with_a_note(entry, argv):
    server = one(entry)

    assert " ".join(server.config.argv) == argv
    assert any(note.startswith("Starts ") for note in server.notes)


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "cmd", "args": ["/c"]},
        {"command": "bash", "args": ["-c", "npx x"]},
        {"command": "/opt/acme/server"},
    ],
)
def test_other_programs_are_not_translated(entry):
    server = one(entry)

    assert server.config.argv == (entry["command"], *entry.get("args", ()))
    assert server.notes == ()


def test_an_example_path_is_noted():
    paths = ["/path/to/files", "/srv/path", "https://x.example/mcp"]
    server = one({"command": "npx", "args": ["-y", "x", *paths]})

    assert server.notes == (
        "'/path/to/files' looks like a path on another computer. "
        "Replace it with a path on this server.",
    )


SHAPES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *("command", "args", "env", "url", "headers", "type", "mcp", "servers"),
                    *("config", "transport", "env_keys", "requestOptions", "timeout", "name"),
                ]
            )
            | st.text(max_size=4),
            inner,
            max_size=4,
        )
    ),
)


@given(SHAPES)
def test_any_json_value_is_read_without_an_exception(shape):
    first, last = read_servers({"mcpServers": {"x": shape, "y": TIME}})

    assert bool(first.config) != bool(first.problems)
    assert last.config.command == "uvx"
    with suppress(InvalidServerConfig):
        read_servers({"x": shape})


@given(st.text(max_size=40) | st.text(alphabet='{}[]"“”,:/*#\n\\ a`', max_size=60))
def test_any_text_is_read_without_an_exception(text):
    try:
        servers = read_servers(text)
    except InvalidServerConfig:
        return
    assert all(bool(server.config) != bool(server.problems) for server in servers)


@given(SHAPES)
def test_strict_json_is_read_unchanged(shape):
    text = json.dumps(shape, ensure_ascii=False)

    assert normalize_json(text) == text


def test_folder_access_is_the_first_note():
    noisy = {f"option{number}": 1 for number in range(40)}
    server = one({**noisy, **TIME, "folders": ["/srv/shared:rw", "/data"]})

    assert server.notes[0] == "Gets access to these folders: /srv/shared:rw, /data."


def test_an_unclosed_quote_is_part_of_the_argument():
    assert one({"command": "npx", "args": "it's here"}).config.args == ("it's", "here")


def test_the_expansion_of_a_long_variable_is_limited():
    server = one({"command": "npx", "args": ["${X}" * 900], "env": {"X": "y" * 100_000}})

    assert len(server.config.args[0]) < 1_100_000


def test_many_blank_lines_are_read_quickly():
    started = time.process_time()
    with suppress(InvalidServerConfig):
        read_servers("x" + "\n" * 300_000)

    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    "text", [f'{{"mcpServers": {{"a": {"1" * 5_000}}}}}', f"[mcp_servers.a]\nx = {'1' * 5_000}"]
)
def test_a_huge_number_is_an_error_with_a_message(text):
    with pytest.raises(InvalidServerConfig, match="Invalid (JSON|TOML)"):
        read_servers(text)


def test_a_lone_surrogate_is_replaced():
    [server] = read_servers(
        '{"mcpServers": {"a": {"command": "npx", "env": {"B": "\\ud800"}}}}'
    )

    assert server.config.env == {"B": "?"}
