"""What an MCP program can access, at each isolation level of this machine."""

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
import venv
from pathlib import Path

import psutil
import pytest

from agents.tools.mcp.configuration.config import Folder, Sandbox, ServerConfig, read_folders
from agents.tools.mcp.connection.connection import Connection
from agents.tools.mcp.process import sandbox, server_folder
from agents.tools.mcp.process.launch import LaunchRefused, check_launch
from agents.tools.sandbox import child

PLAIN = str(Path(__file__).with_name("mcp_servers") / "plain.py")
SOURCE = Path(PLAIN).read_text()
SENTINEL = "only-the-product-knows"


@pytest.fixture(params=["bubblewrap", "landlock"])
def level(request):
    if sandbox.available_level((request.param,)) != request.param:
        pytest.skip(f"{request.param} does not work here")
    return request.param


@pytest.fixture
def data(tmp_path):
    """The product's data folder, with secret files."""
    folder = tmp_path / "data"
    folder.mkdir()
    for name in ("secret_key", "ashiato.sqlite3"):
        (folder / name).write_text(SENTINEL)
    return folder


@pytest.fixture
def config(data, level):
    def made(**more):
        given = {
            "command": sys.executable,
            "args": (PLAIN, str(data.parent / "notes")),
            "home": str(data / "mcp" / "7"),
            "sandbox": Sandbox(mode="require", levels=(level,), hidden=(str(data),)),
        }
        return ServerConfig(name="plain", **given | more)

    return made


async def look_at(config, *paths):
    """Return what the server finds at these paths."""
    connection = Connection(config)
    try:
        await connection.ready(again=False)
        return [(await connection.call("look", {"path": str(path)})).output for path in paths]
    finally:
        await connection.close()


async def test_the_products_files_cannot_be_read(config, data, monkeypatch):
    monkeypatch.setenv("ASHIATO_SENTINEL", SENTINEL)
    (data / "mcp" / "8").mkdir(parents=True)
    (data / "mcp" / "8" / "own").write_text(SENTINEL)
    child = psutil.Popen(["sleep", "60"], env={"SENTINEL": SENTINEL})
    held = os.open(data / "secret_key", os.O_RDONLY)
    found = await look_at(
        config(),
        *(data / "secret_key", data / "ashiato.sqlite3", data, data / "mcp" / "8" / "own"),
        *(f"/proc/{os.getpid()}/environ", f"/proc/{child.pid}/environ"),
        *(f"/proc/{os.getpid()}/root{data}/secret_key", f"/proc/{os.getpid()}/fd/{held}"),
        *("/proc/1/environ", "/etc/shadow", "/root/.ssh", str(Path.home() / ".bashrc")),
        Path(__file__).parents[2] / "manage.py",
    )
    child.kill()
    child.wait()
    os.close(held)

    assert SENTINEL not in " ".join(found)
    refused = {"PermissionError", "FileNotFoundError"}
    # Its own namespace has another process 1 and the parent folders.
    assert {found[n] for n in (0, 1, 3, 4, 5, 6, 7, 9, 10, 11, 12)} <= refused
    assert found[2] in {*refused, "mcp"}


async def test_needed_files_are_available(config, data, tmp_path):
    shared, kept = tmp_path / "shared", tmp_path / "kept"
    for folder in (shared, kept):
        folder.mkdir()
        (folder / "page").write_text("readable")
    opened = (Folder(str(shared)), Folder(str(kept), is_writable=True))
    modes = (PLAIN, str(kept / "notes"))
    found = await look_at(config(folders=opened, args=modes), shared / "page", kept / "page")
    written = (kept / "notes").exists()
    await look_at(config(folders=opened, args=(PLAIN, str(shared / "notes"))), shared)

    assert found == ["readable", "readable"]
    assert written
    assert not (shared / "notes").exists()


GIT_CONFIGURATION = Path("/etc/gitconfig")


@pytest.mark.skipif(not GIT_CONFIGURATION.exists(), reason="git has no such file here")
async def test_git_can_read_the_machines_configuration(config):
    content = GIT_CONFIGURATION.read_text()  # noqa: ASYNC240

    assert await look_at(config(), GIT_CONFIGURATION) == [content]


async def test_a_program_in_a_writable_folder_can_write_beside_itself(config, tmp_path):
    own = tmp_path / "own"
    venv.create(own, symlinks=True)
    beside = own / "lib" / "notes"
    started = {"command": str(own / "bin" / "python"), "args": (PLAIN, str(beside))}

    await look_at(config(**started, folders=(Folder(str(own), is_writable=True),)), own)

    assert beside.exists()


async def test_a_server_reaches_the_network(config, tmp_path):
    script = tmp_path / "server" / "net.py"
    script.parent.mkdir()
    reaching = (
        "def look_at(path):\n    import socket\n"
        "    there = socket.create_connection(('127.0.0.1', int(path)), 5)\n"
        "    return there.recv(9).decode()\n"
    )
    script.write_text(SOURCE.replace("def look_at(path):", reaching))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(30)
        port = listening.getsockname()[1]

        async def serve():
            there, _ = await asyncio.to_thread(listening.accept)
            there.sendall(b"connected")
            there.close()

        serving = asyncio.create_task(serve())
        found = await look_at(config(args=(str(script), "notes")), port)
        await serving

    assert found == ["connected"]


@pytest.mark.thorough
async def test_child_processes_end_with_the_server(config):
    # Other tests of this process leave children of their own: servers, pools.
    before = set(psutil.Process().children(recursive=True))
    connection = Connection(config(args=(PLAIN, "notes", "child", "session", "deaf")))
    await connection.ready(again=False)
    family = set(psutil.Process().children(recursive=True)) - before
    await connection.close()

    assert len(family) >= 3
    assert not [p for p in family if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.skipif(not shutil.which("node"), reason="node is not installed here")
async def test_a_node_server_runs_with_its_projects_modules(config, tmp_path):
    project = tmp_path / "project"
    (project / "dist").mkdir(parents=True)
    (project / "node_modules" / "said").mkdir(parents=True)
    (project / "package.json").write_text("{}")
    (project / "node_modules" / "said" / "index.js").write_text("module.exports = 'from node'")
    (project / "dist" / "server.js").write_text(
        """
        const about = {protocolVersion: '2025-06-18', capabilities: {tools: {}},
                       serverInfo: {name: 'n', version: '1'}}
        const answers = {initialize: () => about, 'tools/list': () => ({tools: []}),
          'tools/call': () => ({content: [{type: 'text', text: require('said')}]})}
        require('readline').createInterface({input: process.stdin}).on('line', line => {
          const {id, method} = JSON.parse(line)
          if (id !== undefined) console.log(JSON.stringify(
            {jsonrpc: '2.0', id, ...(answers[method] ? {result: answers[method]()}
              : {error: {code: -32601, message: 'Method not found'}})}))
        })
        """
    )
    args = (str(project / "dist" / "server.js"),)

    assert await look_at(config(command="node", args=args), "anything") == ["from node"]


async def test_a_link_left_by_a_server_cannot_escape_its_folder(config, data):
    kept = data / "mcp" / "7"
    kept.mkdir(parents=True)
    (kept / "work").symlink_to(data)
    found = await look_at(config(), ".", data / "secret_key")

    assert found[0] == ""
    assert not (kept / "work").is_symlink()
    assert found[1] in {"PermissionError", "FileNotFoundError"}


def test_a_server_cannot_replace_what_the_next_process_mounts(config, data):
    """Only in bubblewrap: Landlock allows the folder itself, wherever its links lead."""
    given = config()
    if given.sandbox.levels != ("bubblewrap",):
        pytest.skip("nothing is mounted")
    folder = data / "mcp" / "7"
    for part in sandbox.SUBFOLDERS:
        (folder / part).mkdir(parents=True)
    argv = sandbox.sandbox_argv(given, folder)
    mounts = argv[: argv.index("--") + 1]
    swap = f"mv {folder}/tmp {folder}/old; ln -s {data} {folder}/tmp; echo kept > /tmp/mark"
    subprocess.run([*mounts, "/bin/sh", "-c", swap], check=False, capture_output=True)

    assert not (folder / "tmp").is_symlink()
    assert (folder / "tmp" / "mark").read_text() == "kept\n"


# Another user


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_links_are_not_followed_when_files_change_owner(data, tmp_path):
    folder = tmp_path / "folder"
    (folder / "work").mkdir(parents=True)
    (folder / "work" / "own").touch()
    (folder / "work" / "link").symlink_to(data)
    sandbox._chown_tree(folder, 60_800)

    assert (folder / "work" / "own").stat().st_uid == 60_800
    assert data.stat().st_uid == (data / "secret_key").stat().st_uid == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_another_system_user_cannot_read_the_products_files(data, tmp_path):
    data.chmod(0o700)
    config = ServerConfig(
        name="cat",
        command="/bin/cat",
        args=(f"{data}/secret_key",),
        home=str(data / "mcp" / "7"),
        sandbox=Sandbox(levels=("user",)),
    )
    tmp_path.chmod(0o711)
    with server_folder.ServerFolder(config) as starting:
        folder = starting.prepare()
        tried = subprocess.run(
            sandbox.sandbox_argv(config, folder), capture_output=True, check=False
        )
        owner = (folder / "tmp").stat().st_uid
    server_folder.delete(Path(config.home))

    assert sandbox.isolation_level(config) == "user"
    assert b"Permission denied" in tried.stderr
    assert owner >= sandbox.FIRST_UID
    assert not folder.exists()


# No sandbox


def test_without_a_required_sandbox_nothing_starts(data):
    config = ServerConfig(name="x", command="ls", sandbox=Sandbox(mode="require", levels=()))

    with pytest.raises(LaunchRefused, match="ASHIATO_MCP_SANDBOX is 'require'"):
        sandbox.sandbox_argv(config, data)
    assert sandbox.isolation_level(config) == "none"


def test_a_sandbox_that_cannot_be_applied_ends_the_program():
    policy = json.dumps({"read": ["/"], "write": []})
    code = (
        f"import sys; sys.path.insert(0, {str(Path(child.__file__).parent)!r})\n"
        "import child\n"
        "def broken(*_): raise OSError(1, 'Operation not permitted')\n"
        "child.restrict = broken\n"
        f"sys.argv = ['x', {policy!r}, '/bin/echo', 'it ran']\nchild.main()"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)

    assert ended.returncode == child.EXIT_NOT_CONFINED
    assert ended.stdout == b""
    assert b"The sandbox couldn't be applied: Operation not permitted." in ended.stderr


def test_the_sandbox_can_be_switched_off(data):
    config = ServerConfig(name="x", command="ls", sandbox=Sandbox(mode="off"))

    assert sandbox.sandbox_argv(config, data) == (shutil.which("ls"),)


# Folders


def test_folders_are_parsed_with_their_access_mode():
    assert read_folders(["/srv/a ", "", "/srv/b:rw", "/srv/c:ro"]) == (
        Folder("/srv/a"),
        Folder("/srv/b", is_writable=True),
        Folder("/srv/c"),
    )


@pytest.mark.parametrize("where", ["data", "data/mcp", ".", "link", "data/../data", "/"])
def test_the_products_folders_cannot_be_opened(data, where):
    (data / "mcp").mkdir()
    (data.parent / "link").symlink_to(data)
    folders = read_folders([str(data.parent / where)])
    config = ServerConfig(
        name="x", command="ls", folders=folders, sandbox=Sandbox(hidden=(str(data),))
    )

    with pytest.raises(LaunchRefused, match="inside this server's data folder") as refusal:
        check_launch(config)
    assert refusal.value.field == "folders"


@pytest.mark.parametrize("path", ["/no/such", "relative", "/proc/1", "/sys", "/dev"])
def test_a_missing_or_reserved_folder_is_rejected(path):
    config = ServerConfig(name="x", command="ls", folders=read_folders([path]))

    with pytest.raises(LaunchRefused):
        check_launch(config)


def test_a_folder_with_hidden_parts_is_opened_without_them(tmp_path):
    for name in ("bin", "lib", "var"):
        (tmp_path / name).mkdir()
    parts = sandbox.exclude_hidden(tmp_path, [str(tmp_path / "var")])

    assert list(parts) == [tmp_path / "bin", tmp_path / "lib"]
