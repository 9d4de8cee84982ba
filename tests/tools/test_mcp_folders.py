"""The files of MCP programs: persistent, and separate per server and instance."""

import asyncio
import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from agents.engine.call_context import use_context
from agents.tools.mcp.configuration.config import Sandbox, ServerConfig
from agents.tools.mcp.connection import pool
from agents.tools.mcp.connection.pool import ConnectionPool, IsolatedServer
from agents.tools.mcp.process import data_files, sandbox, server_folder
from agents.tools.mcp.process.isolation import scope_of, scoped_config
from tests.sampling import one_in
from tests.tools.conftest import SERVERS, Call, connect, until

MEMORY = "@modelcontextprotocol/server-memory"


@pytest.fixture
def home(tmp_path):
    return tmp_path / "data" / "mcp" / "7"


@pytest.fixture(params=["bubblewrap", "landlock"])
def config(request, home, tmp_path):
    """A program with a persistent folder, at each isolation level of this machine."""
    if sandbox.available_level((request.param,)) != request.param:
        pytest.skip(f"{request.param} does not work here")
    return ServerConfig(
        name="plain",
        command=sys.executable,
        args=(str(SERVERS / "plain.py"), os.devnull),
        home=str(home),
        sandbox=Sandbox(levels=(request.param,), hidden=(str(tmp_path / "data"),)),
        connect_timeout=10,
        call_timeout=5,
    )


async def write(server, path, text):
    result = await server.call("write", {"path": path, "text": text})
    return result.output or result.error


async def test_files_stay_after_the_server_has_stopped_and_after_a_restart(config):
    async with connect(config, heartbeat=0.05, idle=0.2) as server:
        await write(server, "notes.txt", "cheddar ")
        await until(lambda: server.health.state == "stopped")
        again = await write(server, "notes.txt", "brie ")
    async with connect(config) as server:
        restarted = await write(server, "notes.txt", "feta")
        around = json.loads((await server.call("environment", {})).output)

    folder = sandbox.home_path(config)
    assert (again, restarted) == ("cheddar brie ", "cheddar brie feta")
    assert around["cwd"] == str(folder / "work")
    assert (folder / "work" / "notes.txt").read_text() == "cheddar brie feta"
    assert {part.stat().st_mode & 0o777 for part in folder.iterdir()} == {0o700}


async def test_temporary_files_are_deleted_at_the_start_unless_another_instance_runs(config):
    async with connect(config) as server:
        tmp = json.loads((await server.call("environment", {})).output)["env"]["TMPDIR"]
        await write(server, f"{tmp}/a", "a")
        async with connect(config) as other:
            await other.ready()
            shared = sorted(os.listdir(tmp))
    async with connect(config) as server:
        await server.ready()
        left = [name for name in os.listdir(tmp) if name == "a"]

    assert "a" in shared
    assert left == []


async def test_a_server_writes_to_its_own_folder_and_nowhere_else(config, home):
    beside = home.with_name("8") / "work"
    beside.mkdir(parents=True)
    async with connect(config) as server:
        for path in (beside / "a", home.parent / "a", home.with_name("7.lock")):
            await write(server, str(path), "x")

    assert not (beside / "a").exists()
    assert not (home.parent / "a").exists()
    assert home.with_name("7.lock").read_text() == ""


async def test_the_size_of_all_files_is_known_and_all_are_deleted(config, home):
    pools = ConnectionPool()
    async with connect(config) as server:
        await write(server, "a", "12345")
    isolated = IsolatedServer(pools, config, "person")
    with use_context(Call("12")):
        await isolated.call("write", {"path": "b", "text": "123"})
    await pools.close()

    size = server_folder.measure(home)
    server_folder.delete(home)

    assert (size.bytes, size.files) == (8, 2)
    assert server_folder.measure(home).files == 0
    assert [path.name for path in home.parent.iterdir()] == []


def test_a_link_in_a_servers_folder_is_not_followed_when_it_is_measured(home, tmp_path):
    (tmp_path / "secret").write_text("x" * 1000)
    (home / "work").mkdir(parents=True)
    (home / "work" / "link").symlink_to(tmp_path)

    assert server_folder.measure(home).bytes < 1000


# Servers that write next to their own program


@pytest.mark.parametrize(
    ("args", "given", "expected"),
    [
        (f"-y {MEMORY}", "", "work/memory.jsonl"),
        (f"-y {MEMORY}@2026.1.26", "memory.json", "work/memory.json"),
        (f"/opt/node_modules/{MEMORY}/dist/index.js", "./m/x", "work/m/x"),
        (f"-y {MEMORY}", "/srv/memory.json", "/srv/memory.json"),
        ("-y @modelcontextprotocol/server-time", "memory.json", None),
    ],
)
def test_a_known_server_keeps_its_data_in_the_working_folder(tmp_path, args, given, expected):
    env = {"MEMORY_FILE_PATH": given} if given else {}
    config = ServerConfig(name="m", command="npx", args=tuple(args.split()), env=env)

    found = data_files.variables(config, tmp_path).get("MEMORY_FILE_PATH")

    assert found == (str(tmp_path / expected) if expected else None)


def test_data_that_an_earlier_version_left_in_the_package_is_still_used(tmp_path):
    package = tmp_path / "home/.npm/_npx/a1/node_modules" / MEMORY / "dist"
    package.mkdir(parents=True)
    (package / "memory.jsonl").write_text("{}")
    config = ServerConfig(name="m", command="npx", args=("-y", MEMORY))

    found = data_files.variables(config, tmp_path)

    assert found == {"MEMORY_FILE_PATH": str(package / "memory.jsonl")}


@pytest.mark.skipif(not shutil.which("node"), reason="node isn't installed")
async def test_a_server_whose_package_is_read_only_still_remembers(home, tmp_path):
    package = tmp_path / "lib/node_modules" / MEMORY
    (package / "dist").mkdir(parents=True)
    (package / "package.json").write_text("{}")
    beside = tmp_path / "lib/node_modules/hoisted"
    beside.mkdir()
    (beside / "index.js").write_text("")
    (package / "dist" / "index.js").write_text(
        """
        require('hoisted')
        const fs = require('fs'), path = require('path')
        const file = path.resolve(__dirname, process.env.MEMORY_FILE_PATH || 'memory.jsonl')
        const about = {protocolVersion: '2025-06-18', capabilities: {tools: {}},
                       serverInfo: {name: 'n', version: '1'}}
        const remember = () => {
          fs.appendFileSync(file, 'x')
          return {content: [{type: 'text', text: fs.readFileSync(file, 'utf8')}]}
        }
        const answers = {initialize: () => about, 'tools/list': () => ({tools: []}),
          'tools/call': remember}
        require('readline').createInterface({input: process.stdin}).on('line', line => {
          const {id, method} = JSON.parse(line)
          if (id !== undefined) console.log(JSON.stringify(
            {jsonrpc: '2.0', id, ...(answers[method] ? {result: answers[method]()}
              : {error: {code: -32601, message: 'Method not found'}})}))
        })
        """
    )
    args = (str(package / "dist" / "index.js"),)
    config = ServerConfig(name="memory", command="node", args=args, home=str(home))
    found = []
    for _ in range(2):
        async with connect(config) as server:
            found.append((await server.call("remember", {})).output)

    assert found == ["x", "xx"]
    assert sandbox.home_path(config).joinpath("work", "memory.jsonl").read_text() == "xx"
    assert not (package / "dist" / "memory.jsonl").exists()


# Instances per user and chat


async def written(server, call, text="x"):
    with use_context(call):
        result = await server.call("write", {"path": "notes", "text": text})
    return result.output or result.error


@pytest.mark.parametrize(
    ("isolation", "seen", "instances"),
    one_in(
        3,
        [
            ("shared", ["a", "ab", "abc"], 1),
            ("person", ["a", "b", "ac"], 2),
            ("chat", ["a", "b", "c"], 3),
        ],
    ),
)
async def test_instances_are_shared_per_user_or_chat_as_configured(
    plain, home, isolation, seen, instances
):
    pools = ConnectionPool()
    config = plain(home=str(home))
    server = IsolatedServer(pools, config, isolation)
    calls = [Call("1", "10"), Call("2", "20"), Call("1", "30")]

    found = [await written(server, call, word) for call, word in zip(calls, "abc", strict=True)]
    running = pools.instances()
    await pools.close()

    assert found == seen
    assert running == {"plain": instances}


async def test_a_call_without_a_user_is_rejected_by_an_isolated_server(plain, home):
    server = IsolatedServer(ConnectionPool(), plain(home=str(home)), "chat")

    assert await written(server, Call("", "")) == (
        "plain has a separate instance for each user, but the user of this call is unknown."
    )


async def test_at_the_limit_the_least_recently_used_instance_stops(plain, home):
    pools = ConnectionPool()
    server = IsolatedServer(pools, plain(home=str(home)), "person", max_instances=2)
    for who in ("1", "2", "1", "3"):
        await written(server, Call(who))
    running = sorted(scope for _, scope in pools._open)
    again = await written(server, Call("2"))
    await pools.close()

    assert running == ["people/1", "people/3"]
    assert again == "xx"  # its files are still there


async def test_a_busy_instance_is_not_stopped_for_another_one(plain, home, notes):
    pools = ConnectionPool()
    server = IsolatedServer(pools, plain(home=str(home)), "person", max_instances=1)
    with use_context(Call("1")):
        hung = asyncio.create_task(server.call("never", {}))
    await until(lambda: notes.exists() and "begun" in notes.read_text())
    refused = await written(server, Call("2"))
    hung.cancel()
    await asyncio.wait([hung])
    await pools.close()

    assert refused == "plain is busy: all 1 instances are in use. Try again in a moment."


async def test_an_instance_stops_by_itself_sooner_than_a_shared_server(plain, home):
    assert pool.INSTANCE_IDLE_SECONDS < 900
    pools = ConnectionPool()
    connection = await pools.ensure(plain(home=str(home)), "people/1")
    await pools.close()

    assert connection._idle == pool.INSTANCE_IDLE_SECONDS


@pytest.mark.parametrize("name", ["../../etc", "..", ".x", "a/b", "chat.7.lock", "x" * 65])
def test_a_scope_is_always_a_safe_path(plain, name):
    scope = scope_of("person", Call(name), "plain")
    config = scoped_config(plain(home="/data/mcp/7"), scope)

    assert Path(config.home).parent == Path("/data/mcp/7.people")
    assert Path(config.home).name.startswith("h-")


def test_a_chat_folder_is_named_after_the_chat():
    assert scope_of("chat", Call("1", "chat.7"), "plain") == "chats/chat.7"


def test_files_deleted_while_measuring_are_not_counted(home, monkeypatch):
    walk = server_folder._walk
    (home / "tmp").mkdir(parents=True)
    (home / "tmp" / "short-lived").write_text("x")

    def vanishing(folder):
        for entry in walk(folder):
            if entry.is_file():
                os.unlink(entry.path)
            yield entry

    monkeypatch.setattr(server_folder, "_walk", vanishing)

    assert server_folder.measure(home).files == 0
