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
        ({}, "'time' has neither command nor url: write one of them."),
        ({**TIME, **DOCS, "type": "stdio"}, "'time' has both command and url"),
        ({**TIME, "type": "http"}, "type of 'time' is 'http', which does not go with"),
        (
            {**TIME, "type": "carrier"},
            "type of 'time' must be stdio, http or sse, not 'carrier'.",
        ),
        ({**TIME, "args": "-y x"}, "args of 'time' must be a list of texts, not text."),
        (
            {**TIME, "args": ["a", 8080]},
            "args of 'time' must hold texts only, and 2 is a number.",
        ),
        ({**TIME, "env": {"PORT": 1}}, "env of 'time' must hold texts only, and 'PORT' is a"),
        ({**TIME, "env": {"A B": "c"}}, "env of 'time': 'A B' is no name of a variable."),
        ({**TIME, "env": ["A=b"]}, "env of 'time' must be an object of texts, not a list."),
        ({**TIME, "command": ["npx"]}, "command of 'time' must be text, not a list."),
        (
            {**TIME, "command": "a\nb"},
            "command of 'time' holds a character that cannot be seen.",
        ),
        ({**TIME, "args": ["x", "a\0b"]}, "args of 'time': item 2 holds a character"),
        ({**TIME, "args": ["\u202egnp.exe"]}, "args of 'time': item 1 holds a character"),
        ({**TIME, "args": ["${input:key}"]}, "args of 'time': item 1 has a blank"),
        (
            {**TIME, "env": {"KEY": "${env:KEY}"}},
            "env of 'time': 'KEY' has a blank, '${env:KEY}'",
        ),
        ({**TIME, "timeout": -1}, "timeout of 'time' must be a number above zero."),
        ({**TIME, "disabled": "yes"}, "disabled of 'time' must be true or false, not text."),
        ({**TIME, "shell": True}, "'shell' of 'time' is no field that is known here."),
        ({"url": "ftp://x/mcp"}, "url of 'time' must be a whole address"),
        ({"url": "http://"}, "url of 'time' must be a whole address"),
        ({"url": "http://x:99999/"}, "url of 'time' must be a whole address"),
        (
            {"url": "http://me:pass@x/mcp"},
            "url of 'time' holds a password: put it into headers.",
        ),
        ({**DOCS, "headers": {"a b": "c"}}, "headers of 'time': 'a b' is no name of a header."),
        ({**DOCS, "headers": {"A": "c\r\nB: d"}}, "the value of 'A' must be plain ASCII."),
        ({**DOCS, "headers": {"Host": "other"}}, "'Host' is set by the connection itself."),
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
    assert "'b' and 'B' would both be called 'b': rename one." in refusal.value.sentences


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
    assert "must be a–z, 0–9" in complaint(TIME, name)


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
