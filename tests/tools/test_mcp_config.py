"""`mcpServers` of other programs, and a message for each problem."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.tools.mcp.config import (
    InvalidServerConfig,
    ServerConfig,
    find_problems,
    read_config,
    slugify,
)

TIME = {"command": "uvx", "args": ["mcp-server-time"], "env": {"TZ": "Asia/Tokyo"}}
DOCS = {"type": "streamable-http", "url": "https://docs.example/mcp", "headers": {"X-Key": "k"}}


def one(entry, name="time"):
    return read_config({"mcpServers": {name: entry}})


def complaint(entry, name="time"):
    with pytest.raises(InvalidServerConfig) as refusal:
        one(entry, name)
    return str(refusal.value)


def test_servers_of_claude_desktop_are_read():
    [time, docs] = read_config(json.dumps({"mcpServers": {"Time": TIME, "docs": DOCS}}))

    assert time == ServerConfig(
        name="time", command="uvx", args=("mcp-server-time",), env={"TZ": "Asia/Tokyo"}
    )
    assert time.argv == ("uvx", "mcp-server-time")
    assert (docs.transport, docs.url) == ("http", "https://docs.example/mcp")
    assert docs.headers == {"X-Key": "k"}


@pytest.mark.parametrize(
    "whole",
    [
        {"mcpServers": {"time": TIME}},
        {"servers": {"time": TIME}, "inputs": []},
        {"mcp": {"servers": {"time": TIME}}, "editor.fontSize": 12},
        {"time": TIME},
    ],
)
def test_every_program_keeps_them_in_its_own_place(whole):
    assert [server.name for server in read_config(whole)] == ["time"]


@pytest.mark.parametrize(
    ("entry", "transport"),
    [
        ({"url": "http://localhost:1/mcp"}, "http"),
        ({"url": "http://localhost:1/sse"}, "sse"),
        ({"url": "http://localhost:1/sse", "type": "http"}, "http"),
        ({"httpUrl": "http://localhost:1"}, "http"),
        ({"serverUrl": "http://localhost:1", "transport": "sse"}, "sse"),
        ({"command": "x", "type": "stdio", "autoApprove": ["a"]}, "stdio"),
    ],
)
def test_the_transport_is_said_or_found_out(entry, transport):
    [server] = one(entry)

    assert server.transport == transport


def test_servers_that_are_switched_off_are_left_out():
    off = {"a": {**TIME, "disabled": True}, "b": {**TIME, "enabled": False}, "c": TIME}

    assert [server.name for server in read_config({"mcpServers": off})] == ["c"]


def test_times_are_seconds_whoever_wrote_them():
    [seconds] = one({**TIME, "timeout": 60})
    [milliseconds] = one({**TIME, "timeout": 60_000, "initTimeout": 5_000})

    assert seconds.call_timeout == milliseconds.call_timeout == 60
    assert milliseconds.connect_timeout == 5


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        ("npx", "'time' must be an object with command or url, not text."),
        ({}, "'time' has neither command nor url. Enter one."),
        ({**TIME, **DOCS, "type": "stdio"}, "'time' has both command and url"),
        ({**TIME, "type": "http"}, "The type of 'time' is 'http', which doesn't match"),
        (
            {**TIME, "type": "carrier"},
            "The type of 'time' must be stdio, http or sse, not 'carrier'.",
        ),
        (
            {**TIME, "args": "-y x"},
            "Server 'time', args: Must be a list of text values, not text.",
        ),
        (
            {**TIME, "args": ["a", 8080]},
            "Server 'time', args: Must contain only text, but 2 is a number.",
        ),
        (
            {**TIME, "env": {"PORT": 1}},
            "Server 'time', env: Must contain only text, but 'PORT' is a",
        ),
        (
            {**TIME, "env": {"A B": "c"}},
            "Server 'time', env: 'A B' isn't a valid variable name.",
        ),
        (
            {**TIME, "env": ["A=b"]},
            "Server 'time', env: Must be an object with text values, not a list.",
        ),
        ({**TIME, "command": ["npx"]}, "Server 'time', command: Must be text, not a list."),
        (
            {**TIME, "command": "a\nb"},
            "Server 'time', command: The command contains an invisible character.",
        ),
        ({**TIME, "args": ["x", "a\0b"]}, "Server 'time', args: Item 2 contains an invisible"),
        (
            {**TIME, "args": ["\u202egnp.exe"]},
            "Server 'time', args: Item 1 contains an invisible",
        ),
        (
            {**TIME, "args": ["${input:key}"]},
            "Server 'time', args: Item 1 contains a placeholder",
        ),
        (
            {**TIME, "env": {"KEY": "${env:KEY}"}},
            "Server 'time', env: 'KEY' contains a placeholder, '${env:KEY}'",
        ),
        ({**TIME, "timeout": -1}, "Server 'time', timeout: Must be a number above 0."),
        (
            {**TIME, "disabled": "yes"},
            "Server 'time', disabled: Must be true or false, not text.",
        ),
        ({**TIME, "shell": True}, "'time' has an unknown field: 'shell'."),
        ({"url": "ftp://x/mcp"}, "Server 'time', url: Enter a full URL"),
        ({"url": "http://"}, "Server 'time', url: Enter a full URL"),
        ({"url": "http://x:99999/"}, "Server 'time', url: Enter a full URL"),
        (
            {"url": "http://me:pass@x/mcp"},
            "Server 'time', url: The URL contains a password. Move it to the headers.",
        ),
        (
            {**DOCS, "headers": {"a b": "c"}},
            "Server 'time', headers: 'a b' isn't a valid header name.",
        ),
        (
            {**DOCS, "headers": {"A": "c\r\nB: d"}},
            "The value of 'A' can only contain printable ASCII characters.",
        ),
        ({**DOCS, "headers": {"Host": "other"}}, "The header 'Host' is set automatically."),
    ],
)
def test_every_mistake_has_a_sentence(entry, sentence):
    assert sentence in complaint(entry)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "3",
        '{"mcpServers": []}',
        '{"mcpServers": {}}',
        json.dumps(TIME),
        "[" * 9_999,
    ],
)
def test_what_is_no_configuration_is_said_to_be_none(text):
    with pytest.raises(InvalidServerConfig):
        read_config(text)


def test_all_mistakes_are_told_at_once():
    with pytest.raises(InvalidServerConfig) as refusal:
        read_config({"mcpServers": {"a": {}, "b": {**TIME, "args": 1}, "B": TIME}})

    assert len(refusal.value.sentences) == 3
    assert "'b' and 'B' would both be named 'b'. Rename one." in refusal.value.sentences


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("Brave Search", "brave-search"),
        ("@scope/server", "scope-server"),
        ("a__b", "a_b"),
        ("_x_", "x"),
        ("ＴＩＭＥ", "time"),
    ],
)
def test_names_are_made_short(name, short):
    assert slugify(name) == short


@pytest.mark.parametrize("name", ["時間", "x" * 41, "--"])
def test_a_name_that_cannot_begin_a_tool_is_refused(name):
    assert "Use a–z and 0–9" in complaint(TIME, name)


def test_secrets_are_not_shown_by_accident():
    [server] = one({**TIME, "env": {"KEY": "hunter2"}})

    assert "hunter2" not in repr(server)
    assert server.secrets == ("hunter2",)


SHAPES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["command", "args", "env", "url", "headers", "type", "mcp", "servers"]
            )
            | st.text(max_size=4),
            inner,
            max_size=4,
        )
    ),
)


@given(SHAPES)
def test_no_shape_breaks_the_reading(shape):
    with suppress(InvalidServerConfig):
        servers = read_config({"mcpServers": {"x": shape, "y": TIME}})
        assert [find_problems(server) for server in servers] == [[]] * len(servers)
