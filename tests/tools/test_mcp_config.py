"""The configuration of an MCP server, and a message for each problem."""

import pytest

from agents.tools.mcp.configuration.config import ServerConfig, find_problems, slugify


def complaint(name="time", **fields):
    return " ".join(map(str, find_problems(ServerConfig(name=name, **fields))))


def program(**fields):
    return {"command": "uvx", "args": ("mcp-server-time",), **fields}


def remote(**fields):
    return {"transport": "http", "url": "https://docs.example/mcp", **fields}


@pytest.mark.parametrize(
    "fields",
    [
        program(env={"TZ": "Asia/Tokyo"}),
        remote(headers={"X-Key": "k"}),
        remote(url="http://localhost:1/sse", transport="sse"),
    ],
)
def test_a_complete_configuration_has_no_problems(fields):
    assert complaint(**fields) == ""


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        (program(command=""), "Server 'time', command: Enter a command."),
        (
            program(env={"A B": "c"}),
            "Server 'time', env: 'A B' isn't a valid variable name.",
        ),
        (
            program(command="a\nb"),
            "Server 'time', command: The command contains an invisible character.",
        ),
        (program(args=("x", "a\0b")), "Server 'time', args: Item 2 contains an invisible"),
        (program(args=("\u202egnp.exe",)), "Server 'time', args: Item 1 contains an invisible"),
        (program(env={"A": "\0"}), "env: The value of 'A' contains a NUL character."),
        (
            program(args=("${input:key}",)),
            "Server 'time', args: Item 1 contains a placeholder",
        ),
        (
            program(env={"KEY": "${env:KEY}"}),
            "Server 'time', env: 'KEY' contains a placeholder, '${env:KEY}'",
        ),
        (remote(url="ftp://x/mcp"), "Server 'time', url: Enter a full URL"),
        (remote(url="http://"), "Server 'time', url: Enter a full URL"),
        (remote(url="http://x:99999/"), "Server 'time', url: Enter a full URL"),
        (
            remote(url="http://me:pass@x/mcp"),
            "Server 'time', url: The URL contains a password. Move it to the headers.",
        ),
        (
            remote(headers={"a b": "c"}),
            "Server 'time', headers: 'a b' isn't a valid header name.",
        ),
        (
            remote(headers={"A": "c\r\nB: d"}),
            "The value of 'A' can only contain printable ASCII characters.",
        ),
        (remote(headers={"Host": "other"}), "The header 'Host' is set automatically."),
    ],
)
def test_every_mistake_has_a_message(fields, sentence):
    assert sentence in complaint(**fields)


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
def test_names_are_shortened(name, short):
    assert slugify(name) == short


@pytest.mark.parametrize("name", ["時間", "x" * 41, "--"])
def test_a_name_that_cannot_start_a_tool_name_is_rejected(name):
    assert "Use a–z and 0–9" in complaint(name, **program())


def test_secrets_are_not_shown_by_accident():
    server = ServerConfig(name="time", **program(env={"KEY": "hunter2"}))

    assert "hunter2" not in repr(server)
    assert server.secrets == ("hunter2",)
