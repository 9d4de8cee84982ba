"""Children that stay for more requests: replaced if they fail, ended when idle or alone."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from agents.tools import sandbox

ROOT = Path(__file__).parents[2]
GRANT = sandbox.Grant(seconds=30)
SOON = sandbox.Grant(seconds=1)
PROGRAM = """
import os, sys, time
while header := sys.stdin.buffer.read(4):
    request = reply = sys.stdin.buffer.read(int.from_bytes(header, "little"))
    match request.split():
        case [b"pid"]:
            reply = str(os.getpid()).encode()
        case [b"die", *pids] if not pids or int(pids[0]) == os.getpid():
            os.write(2, b"Out of luck.")
            os._exit(7)
        case [b"hang"]:
            time.sleep(60)
        case [b"complain"]:
            sys.stderr.write("no " * 100_000)
        case [b"flood"]:
            reply = bytes(3_000_000)
    sys.stdout.buffer.write(len(reply).to_bytes(4, "little") + reply)
    sys.stdout.flush()
"""
SERVER = """
import sys
from agents.tools import sandbox
child = sandbox.PersistentChild(
    sandbox.Worker(name="probe", program=sys.argv[1], memory_bytes=1_000_000_000)
)
print(child.ask(b"pid", sandbox.Grant(seconds=30)).decode(), flush=True)
child.ask(b"hang", sandbox.Grant(seconds=60))
"""


def make_child(program: Path, source: str = PROGRAM) -> sandbox.PersistentChild:
    program.write_text(source)
    return sandbox.PersistentChild(
        sandbox.Worker(name="probe", program=str(program), memory_bytes=1_000_000_000)
    )


@pytest.fixture
def child(tmp_path):
    persistent = make_child(tmp_path / "probe.py")
    yield persistent
    persistent.stop()


def ends(pid: int) -> bool:
    """Whether the process ends within ten seconds."""
    until = time.monotonic() + 10
    while time.monotonic() < until:
        try:
            if " Z " in Path(f"/proc/{pid}/stat").read_text():
                return True
        except OSError:
            return True
        time.sleep(0.01)
    return False


def test_one_child_answers_one_request_after_the_other(child):
    text = os.urandom(1_500_000)

    assert child.pid is None
    pid = int(child.ask(b"pid", GRANT))
    assert child.ask(text, GRANT) == text
    assert child.ask(b"", GRANT) == b""
    assert int(child.ask(b"pid", GRANT)) == child.pid == pid


def test_a_child_that_ended_between_requests_is_replaced(child):
    pid = int(child.ask(b"pid", GRANT))
    os.kill(pid, signal.SIGKILL)

    assert int(child.ask(b"pid", GRANT)) != pid


def test_a_request_during_which_a_child_ends_is_sent_once_more(child):
    pid = int(child.ask(b"pid", GRANT))

    assert child.ask(b"die %d" % pid, GRANT) == b"die %d" % pid
    assert child.pid not in {None, pid}


def test_a_request_that_ends_new_children_fails_with_what_they_wrote(child):
    child.ask(b"pid", GRANT)

    with pytest.raises(sandbox.WorkerFailed, match="ended with 7: 'Out of luck.'"):
        child.ask(b"die", GRANT)

    assert child.pid is None
    assert child.ask(b"hello", GRANT) == b"hello"


def test_a_child_that_is_late_is_killed_and_the_next_request_starts_another(child):
    pid = int(child.ask(b"pid", GRANT))

    with pytest.raises(TimeoutError):
        child.ask(b"hang", SOON)

    assert ends(pid)
    assert child.ask(b"hello", GRANT) == b"hello"


def test_a_child_that_does_not_read_a_long_request_is_late(tmp_path):
    child = make_child(tmp_path / "deaf.py", "import time; time.sleep(60)")

    with pytest.raises(TimeoutError):
        child.ask(bytes(1_000_000), SOON)


def test_what_a_child_complains_about_does_not_stop_it(child):
    assert child.ask(b"complain", GRANT) == b"complain"
    assert child.ask(b"complain", GRANT) == b"complain"


def test_a_child_that_writes_too_much_is_ended_and_not_asked_again(child):
    with pytest.raises(sandbox.WorkerFailed, match="more than"):
        child.ask(b"flood", GRANT)

    assert child.pid is None


def test_an_idle_child_is_ended(child):
    pid = int(child.ask(b"pid", GRANT))

    child.stop_if_idle(60)
    assert child.pid == pid

    child.stop_if_idle(0)
    assert child.pid is None
    assert ends(pid)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux kills it in the middle of work")
def test_a_child_ends_with_a_server_that_is_killed(tmp_path):
    program = tmp_path / "probe.py"
    program.write_text(PROGRAM)
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(program)], cwd=ROOT, stdout=subprocess.PIPE
    )
    with server, suppress(ProcessLookupError):
        pid = int(server.stdout.readline())
        time.sleep(0.2)
        os.kill(pid, 0)  # still at work
        server.kill()

        assert ends(pid)
        return
    pytest.fail("The child had ended before its server.")
