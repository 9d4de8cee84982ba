"""What child processes can't do, and how they end."""

import os
import socket
import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from agents.tools import sandbox
from agents.tools.sandbox import child, fair_slots, unconfined, worker

ROOT = Path(__file__).parents[2]
WORKER = sandbox.Worker(name="probe", memory_bytes=1_000_000_000, open_files=20)
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
    "reach": tried(lambda: socket.socket(socket.AF_UNIX).connect(request["address"])),
    "wait": tried(lambda: socket.socket(socket.AF_UNIX).bind(request["address"] + "2")),
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


def probe(tmp_path: Path, **changes: object) -> dict[str, object]:
    """Return what a child is able to do."""
    (tmp_path / "secret").write_text("secret")
    program = tmp_path / "probe.py"
    program.write_text(PROBE)
    kind = replace(WORKER, program=str(program), readable=["/proc/self/status"], **changes)
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_UNIX) as local_server,
        ExitStack() as stack,
    ):
        local_server.bind(str(tmp_path / "socket"))
        local_server.listen()
        leaked = stack.enter_context(open(os.devnull))
        os.set_inheritable(leaked.fileno(), True)
        request = {
            "secret": str(tmp_path / "secret"),
            "new": str(tmp_path / "new"),
            "status": "/proc/self/status",
            "port": server.getsockname()[1],
            "address": str(tmp_path / "socket"),
            "parent": os.getpid(),
            "limits": ["AS", "CPU", "FSIZE", "NOFILE", "CORE"],
        }
        return sandbox.run(kind, request, sandbox.Grant(seconds=30)).json()


@pytest.fixture(scope="module")
def able(tmp_path_factory):
    """What a child without any grants is able to do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SECRET_KEY", "hush")
        return probe(tmp_path_factory.mktemp("probe"))


@pytest.mark.skipif(not sandbox.landlock_abi(), reason="the kernel has no Landlock")
def test_a_child_reads_and_writes_nothing_that_it_was_not_granted(able):
    assert able["read"] == able["write"] == "PermissionError"


@pytest.mark.skipif(sandbox.landlock_abi() < 6, reason="needs a newer Landlock")
def test_a_child_cannot_signal_the_server(able):
    assert able["kill"] == "PermissionError"


def test_a_child_has_no_network(able):
    assert able["connect"] != "done"
    if child.has_seccomp():
        assert able["connect"] == able["local"] == "PermissionError"


@pytest.mark.skipif(not child.has_seccomp(), reason="the system can't refuse single calls")
def test_a_child_with_silent_sockets_reaches_nobody(tmp_path):
    able = probe(tmp_path, has_silent_sockets=True)

    assert able["local"] == able["wait"] == "done"
    assert able["connect"] == able["reach"] == "PermissionError"
    assert not (tmp_path / "socket2").exists()


def test_a_child_whose_work_needs_the_network_has_it(tmp_path):
    assert probe(tmp_path, has_network=True)["connect"] == "done"


def test_a_child_gets_none_of_the_servers_variables(able):
    assert set(able["variables"]) == set(worker.BASE_ENVIRONMENT)


def test_a_child_inherits_no_open_files(able):
    assert able["open"] == []


def test_a_child_has_limits_of_memory_time_and_files(able):
    assert able["limits"]["AS"][0] <= WORKER.memory_bytes
    assert able["limits"]["CPU"][1] <= 31
    assert able["limits"]["FSIZE"] == able["limits"]["CORE"] == [0, 0]
    assert able["limits"]["NOFILE"] == [20, 20]


def test_a_child_has_no_privileges_and_cannot_gain_any(able):
    assert (able["capabilities"], able["no_new_privileges"]) == (0, 1)


def test_a_child_has_a_session_of_its_own(able):
    assert able["session"]


def test_without_landlock_children_still_run(tmp_path, monkeypatch):
    monkeypatch.setattr(worker, "_has_landlock", lambda: 0)

    assert probe(tmp_path)["read"] == "done"


def test_only_database_queries_and_git_fetches_have_the_network():
    sources = {path: path.read_text() for path in (ROOT / "agents").rglob("*.py")}

    assert {path.name for path, text in sources.items() if "has_network=True" in text} == {
        "server_tool.py",
        "git.py",
    }


def test_a_child_that_is_late_is_killed_with_everything_it_started(tmp_path):
    program = tmp_path / "late.py"
    program.write_text(
        "import os, time\nif not os.fork(): print(os.getpid(), flush=True)\ntime.sleep(60)\n"
    )
    written = bytearray()

    with pytest.raises(TimeoutError):
        sandbox.run(
            replace(WORKER, program=str(program)),
            {},
            sandbox.Grant(seconds=2),
            on_output=written.extend,
        )
    grandchild = Path(f"/proc/{int(written)}/stat")
    end = time.monotonic() + 10
    while grandchild.exists() and " Z " not in grandchild.read_text():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_an_unconfined_program_ends_with_its_caller():
    sleep = [sys.executable, "-c", "import time; print(flush=True); time.sleep(60)"]

    with unconfined.start(unconfined.Reason.OWN_JOB, sleep, grace_seconds=0.1) as running:
        assert running.wait(0.1) is None

    assert running.wait(0) == -9


def test_a_sandbox_that_cannot_be_applied_runs_nothing(tmp_path):
    ran = tmp_path / "ran.py"
    ran.write_text("print('it ran')")
    policy = sandbox.command(replace(WORKER, program=str(ran)), sandbox.Grant(seconds=5))[-2]
    start = tmp_path / "start.py"
    start.write_text(
        f"import sys; sys.path.insert(0, {str(Path(child.__file__).parent)!r})\n"
        "import child\n"
        "def fail(): raise OSError(1, 'Operation not permitted')\n"
        "child.drop_privileges = fail\n"
        f"sys.argv = ['child', {policy!r}, {str(ran)!r}]\nchild.main()\n"
    )
    kind = replace(
        WORKER,
        program=str(start),
        readable=[str(tmp_path), str(Path(child.__file__).parent)],
    )

    ended = sandbox.run(kind, {}, sandbox.Grant(seconds=5))

    assert (ended.code, ended.output) == (child.EXIT_NOT_CONFINED, b"")
    assert "couldn't be applied" in ended.complaint


def test_a_child_that_writes_too_much_is_ended(tmp_path):
    program = tmp_path / "flood.py"
    program.write_text("while True: print('x' * 10_000)")
    kind = replace(WORKER, program=str(program), output_bytes=100_000)

    with pytest.raises(sandbox.WorkerFailed, match="more than 100,000 bytes"):
        sandbox.run(kind, {}, sandbox.Grant(seconds=30))


async def test_a_child_on_an_event_loop_that_writes_too_much_is_ended(tmp_path):
    program = tmp_path / "flood.py"
    program.write_text("while True: print('x' * 10_000)")
    kind = replace(WORKER, program=str(program), output_bytes=100_000)

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
    readable = worker._code_paths(worker.CODE_PATHS)
    worker._code_paths.cache_clear()

    assert str(data.parent / "code") in readable
    assert not any(data.is_relative_to(path) for path in readable)


def test_a_child_can_list_nothing_of_the_process_that_started_it():
    paths = worker._both_names(sandbox.CPU_FACTS)

    assert "/proc/self" in paths
    assert f"/proc/{os.getpid()}" not in paths
