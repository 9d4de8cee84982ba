"""Finds the processes that a test starts and leaves running.

Without this, the garbage collector reports them much later, in the name of another test.
"""

import subprocess
import weakref
from asyncio.base_subprocess import BaseSubprocessTransport

_started: weakref.WeakSet[subprocess.Popen] = weakref.WeakSet()
_transports: weakref.WeakSet[BaseSubprocessTransport] = weakref.WeakSet()
# Fixtures of a module or a session keep their processes from test to test.
_shared_fixtures = 0


def watch() -> None:
    """Remember every process from now on, with its transport if asyncio starts it."""
    start_process = subprocess.Popen.__init__
    start_transport = BaseSubprocessTransport.__init__

    def remember_process(self, *args, **options):
        if not _shared_fixtures:
            _started.add(self)
        start_process(self, *args, **options)

    def remember_transport(self, *args, **options):
        if not _shared_fixtures:
            _transports.add(self)
        start_transport(self, *args, **options)

    subprocess.Popen.__init__ = remember_process
    BaseSubprocessTransport.__init__ = remember_transport


class SharedFixture:
    """While it is entered, processes belong to a fixture of several tests."""

    def __enter__(self):
        global _shared_fixtures
        _shared_fixtures += 1

    def __exit__(self, *error):
        global _shared_fixtures
        _shared_fixtures -= 1


def left_behind() -> list[str]:
    """Return what the last test left behind, and forget it."""
    running = [f"process {str(p.args)[:200]}" for p in _started if _is_running(p)]
    unclosed = [f"{t!r}" for t in _transports if not t.is_closing()]
    _started.clear()
    _transports.clear()
    return running + unclosed


def _is_running(process: subprocess.Popen) -> bool:
    # A process that couldn't be started has no `returncode`.
    return hasattr(process, "returncode") and process.poll() is None
