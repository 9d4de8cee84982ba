"""Every kind of child process, and what it can't do."""

import os
import re
import socket
import threading
import time
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from agents.catalog.file_tables import TABLE_LOADER
from agents.files.images import IMAGE_DECODER
from agents.knowledge.parsing.process import DOCUMENT_PARSER
from agents.media.ffmpeg import FFMPEG
from agents.media.transcription import WHISPER
from agents.tools import sandbox
from agents.tools.database.server_tool import SERVER_QUERY
from agents.tools.database.tool import SQLITE_QUERY
from agents.tools.sandbox import child, fair_slots, worker

ROOT = Path(__file__).parents[2]
KINDS = [
    DOCUMENT_PARSER,
    FFMPEG,
    IMAGE_DECODER,
    SERVER_QUERY,
    SQLITE_QUERY,
    TABLE_LOADER,
    WHISPER,
]
WITH_NETWORK = {SERVER_QUERY.name}
# The only modules that start processes: MCP programs go through `spawn` and their supervisor
# (tests/tools/test_mcp_sandbox.py), and `bwrap` is tried with nothing to run. A job that has
# ended its process is tried alone in another process of the product, and an administrator's
# backup runs PostgreSQL's own programs.
STARTERS = {
    "agents/db/jobs.py": {"import subprocess"},
    "agents/management/backup.py": {"import subprocess"},
    "agents/tools/mcp/sandbox.py": {"import subprocess"},
    "agents/tools/mcp/supervisor.py": {"os.posix_spawn"},
    "agents/tools/sandbox/child.py": {"os.execve"},
    "agents/tools/sandbox/processes.py": {"import subprocess", "create_subprocess_exec"},
}
WAYS = re.compile(
    r"\b(import subprocess|import multiprocessing|import pty|create_subprocess_\w+|"
    r"ProcessPoolExecutor|os\.(?:posix_spawnp?|fork\w*|popen|system|exec\w+|spawn\w+))\b"
)
PROBE = """
import json, os, resource, socket, sys
def tried(attempt):
    try:
        attempt()
    except OSError as error:
        return type(error).__name__
    return "done"
request = json.loads(sys.stdin.buffer.read())
status = dict(line.split(":\\t", 1) for line in open(request["status"]) if ":\\t" in line)
print(json.dumps({
    "read": tried(lambda: open(request["secret"]).read()),
    "write": tried(lambda: open(request["new"], "w")),
    "connect": tried(lambda: socket.create_connection(("127.0.0.1", request["port"]), 2)),
    "local": tried(lambda: socket.socket(socket.AF_UNIX)),
    "kill": tried(lambda: os.kill(request["parent"], 0)),
    "variables": sorted(set(os.environ) - {"LC_CTYPE"}),
    "open": [n for n in range(3, 200) if tried(lambda: os.fstat(n)) == "done"],
    "limits": {
        n: resource.getrlimit(getattr(resource, "RLIMIT_" + n)) for n in request["limits"]
    },
    "capabilities": int(status["CapEff"], 16),
    "no_new_privileges": int(status["NoNewPrivs"]),
    "session": os.getsid(0) == os.getpid(),
}))
"""


def probe(kind: sandbox.Worker, tmp_path: Path) -> dict[str, object]:
    """Return what a child of this kind is able to do."""
    (tmp_path / "secret").write_text("secret")
    program = tmp_path / "probe.py"
    program.write_text(PROBE)
    changed = replace(
        kind, program=str(program), readable=[*kind.readable, "/proc/self/status"]
    )
    with socket.create_server(("127.0.0.1", 0)) as server, ExitStack() as stack:
        leaked = stack.enter_context(open(os.devnull))
        os.set_inheritable(leaked.fileno(), True)
        request = {
            "secret": str(tmp_path / "secret"),
            "new": str(tmp_path / "new"),
            "status": "/proc/self/status",
            "port": server.getsockname()[1],
            "parent": os.getpid(),
            "limits": sorted(sandbox.level(kind).limits),
        }
        return sandbox.run(changed, request, sandbox.Grant(seconds=30)).json()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_kind_of_child_is_confined(kind, tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET_KEY", "hush")
    level = sandbox.level(kind)
    able = probe(kind, tmp_path)

    if level.landlock:
        assert (able["read"], able["write"]) == ("PermissionError", "PermissionError")
    if level.landlock >= 6:
        assert able["kill"] == "PermissionError"
    if level.network == "seccomp":
        assert (able["connect"], able["local"]) == ("PermissionError", "PermissionError")
    assert (able["connect"] == "done") == (kind.name in WITH_NETWORK)
    assert set(able["variables"]) == level.environment
    assert able["open"] == []
    assert set(able["limits"]) == {"AS", "CPU", "FSIZE", "NOFILE", "CORE"}
    assert able["limits"]["AS"][0] <= kind.memory_bytes
    assert able["limits"]["CPU"][1] <= 31
    assert (able["capabilities"], able["no_new_privileges"]) == (0, 1)
    assert able["session"]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_without_landlock_and_seccomp_children_still_run_and_the_level_says_so(
    kind, tmp_path, monkeypatch
):
    monkeypatch.setattr(worker, "_has_landlock", lambda: 0)
    monkeypatch.setattr(worker, "_has_seccomp", lambda: False)

    assert sandbox.level(kind).landlock == 0
    assert sandbox.level(kind).network in {"allowed", "namespace"}
    assert probe(kind, tmp_path)["read"] == "done"


def test_the_list_of_children_is_complete():
    """A new way to start a process, or a new kind of child, must be added above."""
    starters: dict[str, set[str]] = {}
    workers = 0
    paths = [
        path for name in ("agents", "chat", "project") for path in (ROOT / name).rglob("*.py")
    ]
    for path in paths:
        source = path.read_text()
        workers += len(re.findall(r"^\w+ = (?:sandbox\.)?Worker\(", source, re.MULTILINE))
        if ways := set(WAYS.findall(source)):
            starters[str(path.relative_to(ROOT))] = ways

    assert starters == STARTERS
    assert workers == len(KINDS) == len({kind.name for kind in KINDS})


def test_a_sandbox_that_cannot_be_applied_runs_nothing(tmp_path):
    ran = tmp_path / "ran.py"
    ran.write_text("print('it ran')")
    policy = sandbox.command(replace(SQLITE_QUERY, program=str(ran)), sandbox.Grant(seconds=5))[
        -2
    ]
    start = tmp_path / "start.py"
    start.write_text(
        f"import sys; sys.path.insert(0, {str(Path(child.__file__).parent)!r})\n"
        "import child\n"
        "def fail(): raise OSError(1, 'Operation not permitted')\n"
        "child.drop_privileges = fail\n"
        f"sys.argv = ['child', {policy!r}, {str(ran)!r}]\nchild.main()\n"
    )
    kind = replace(
        SQLITE_QUERY,
        program=str(start),
        readable=[str(tmp_path), str(Path(child.__file__).parent)],
    )

    ended = sandbox.run(kind, {}, sandbox.Grant(seconds=5))

    assert (ended.code, ended.output) == (child.EXIT_NOT_CONFINED, b"")
    assert "couldn't be applied" in ended.complaint


def test_a_child_that_writes_too_much_is_ended(tmp_path):
    program = tmp_path / "flood.py"
    program.write_text("while True: print('x' * 10_000)")
    kind = replace(SQLITE_QUERY, program=str(program), output_bytes=100_000)

    with pytest.raises(sandbox.WorkerFailed, match="more than 100,000 bytes"):
        sandbox.run(kind, {}, sandbox.Grant(seconds=30))


async def test_a_child_on_an_event_loop_that_writes_too_much_is_ended(tmp_path):
    program = tmp_path / "flood.py"
    program.write_text("while True: print('x' * 10_000)")
    kind = replace(SQLITE_QUERY, program=str(program), output_bytes=100_000)

    with pytest.raises(sandbox.WorkerFailed, match="more than 100,000 bytes"):
        await sandbox.run_async(kind, {}, sandbox.Grant(seconds=30))


def test_one_owner_cannot_take_all_slots():
    slots = sandbox.FairSlots(3, per_owner=2)
    with slots.slot("A", 1), slots.slot("A", 1):
        with pytest.raises(TimeoutError), slots.slot("A", 0.01):
            pass
        with slots.slot("B", 0):
            pass


def test_owners_take_turns():
    slots = sandbox.FairSlots(1, per_owner=1)
    order: list[str] = []

    def work(owner: str) -> None:
        with slots.slot(owner, 30):
            order.append(owner)

    with slots.slot("A", 1):
        threads = []
        for owner in ["A", "A", "A", "B"]:
            threads.append(threading.Thread(target=work, args=[owner]))
            threads[-1].start()
            while len(slots._waiting) < len(threads):
                pass
    for thread in threads:
        thread.join()

    assert order == ["B", "A", "A", "A"]


def test_a_free_slot_wakes_only_the_next_of_many_that_wait(monkeypatch):
    slots = sandbox.FairSlots(1, per_owner=1)
    choices: list[object] = []
    choose = slots._next
    monkeypatch.setattr(slots, "_next", lambda: choices.append(None) or choose())

    with waiting_threads(slots, [str(number % 6) for number in range(60)]):
        pass

    assert len(choices) <= 4 * 60 + 4


def test_one_owner_cannot_fill_the_queue():
    slots = sandbox.FairSlots(1, per_owner=1)

    with waiting_threads(slots, ["A"] * fair_slots.MAX_WAITING_PER_OWNER):
        with pytest.raises(TimeoutError), slots.slot("A", 600):
            pass
        assert len(slots._waiting) == fair_slots.MAX_WAITING_PER_OWNER
    assert not slots._waiting


@contextmanager
def waiting_threads(slots, owners):
    """Have a thread of each owner wait while this is open, then let all of them have a turn."""

    def work(owner: str) -> None:
        with slots.slot(owner, 60):
            pass

    threads = [threading.Thread(target=work, args=[owner]) for owner in owners]
    with slots.slot("first", 1):
        for thread in threads:
            thread.start()
        while len(slots._waiting) < len(threads):
            time.sleep(0.001)
        yield
    for thread in threads:
        thread.join()


def test_a_data_folder_beside_code_is_hidden_from_children(tmp_path, monkeypatch):
    data = tmp_path / "opt" / "product" / "data"
    data.mkdir(parents=True)
    (data / "key").write_text("secret")
    (data.parent / "code").write_text("code")
    monkeypatch.setattr(worker, "CODE_PATHS", (*worker.CODE_PATHS, str(tmp_path / "opt")))
    monkeypatch.setattr(worker, "_hidden", set())
    sandbox.hide([str(data)])
    readable = worker._code_paths()
    worker._code_paths.cache_clear()

    assert str(data.parent / "code") in readable
    assert not any(data.is_relative_to(path) for path in readable)


def test_a_child_can_list_nothing_of_the_process_that_started_it():
    paths = worker._both_names(sandbox.CPU_FACTS)

    assert "/proc/self" in paths
    assert f"/proc/{os.getpid()}" not in paths
