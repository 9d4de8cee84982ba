"""Programs with the product's own rights, each with the reason why it can't be confined.

They still have a session of their own, and are killed with what they started when the caller
doesn't need them any more.
"""

import logging
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from enum import StrEnum

from .processes import Reply, kill_group

logger = logging.getLogger(__name__)


class Reason(StrEnum):
    """Why a program has the product's own rights."""

    OWN_JOB = (
        "It is the product itself with a single job, which needs the database, the files and "
        "the models like all jobs in the server's process."
    )
    DATABASE_CLIENT = (
        "It is PostgreSQL's own program in an administrator's command. It reads its settings "
        "and certificates wherever they are, and takes as long as the database is large."
    )


class UnconfinedProcess:
    """A running program; the end of its input tells it to stop."""

    def __init__(self, child: "subprocess.Popen[bytes]") -> None:
        self._child = child

    def wait(self, seconds: float) -> int | None:
        """Return its exit code, negative for a signal; None if it hasn't ended in time."""
        with suppress(subprocess.TimeoutExpired):
            return self._child.wait(seconds)
        return None


@contextmanager
def start(
    reason: Reason, argv: Sequence[str], *, grace_seconds: float
) -> Iterator[UnconfinedProcess]:
    """Start a program with our variables, output and log.

    At the end its input is closed, and if it goes on all the same, it is killed.
    """
    logger.debug("%s isn't confined: %s", argv[0], reason)
    child = subprocess.Popen(argv, stdin=subprocess.PIPE, start_new_session=True)
    process = UnconfinedProcess(child)
    try:
        yield process
    finally:
        assert child.stdin is not None
        child.stdin.close()
        process.wait(grace_seconds)
        kill_group(child.pid)
        child.wait()


def run(reason: Reason, argv: Sequence[str], env: Mapping[str, str]) -> Reply:
    """Run a program to its end, with these variables; raise FileNotFoundError."""
    logger.debug("%s isn't confined: %s", argv[0], reason)
    child = subprocess.Popen(
        argv,
        env=dict(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        _, complaint = child.communicate()
    finally:
        kill_group(child.pid)
        child.wait()
    return Reply(
        code=child.returncode, output=b"", complaint=complaint.decode("utf-8", "replace")
    )
