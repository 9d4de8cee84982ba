"""Supervises one program that stays, and leaves none of its processes behind.

It is started by path, without site-packages, as a session leader. The program gets its standard
streams. It watches a pipe whose other end the product holds: that end is closed when the
program isn't needed any more, and also when the product is killed. Then, and when the program
ends by itself, everything it ever started is killed.

It also measures the memory, CPU time and number of all these processes, and kills them over
their limits. That needs no privileges, unlike a control group. Between two measurements, each
process is bounded by resource limits.
"""

import ctypes
import json
import os
import resource
import select
import shutil
import signal
import sys
import time
from collections import deque

GRACE_SECONDS = 2.0
KILL_SECONDS = 3.0
EXIT_NOT_FOUND = 127
# Exit statuses of a program over its limits.
EXIT_MEMORY = 220
EXIT_CPU = 221
EXIT_PROCESSES = 222
EXIT_FILE = 128 + signal.SIGXFSZ
MEASURE_SECONDS = 1.0
CPU_WINDOW_SECONDS = 300.0
# A process may reserve more than it uses. Address space isn't limited: V8 reserves many times
# what it uses, its data is closer to that (docs/decisions/mcp-sandbox.md has figures).
RESERVED_BYTES = 640 * 2**20
DATA_FACTOR = 2
SET_CHILD_SUBREAPER = 36
STOP_SIGNALS = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}


def main() -> None:
    liveness_pipe = int(sys.argv[1])
    folder = sys.argv[2]
    command = sys.argv[4:]
    limits = json.loads(sys.argv[3])
    # The program inherits nothing but its standard streams: not the lifeline, and not what is
    # open by accident, because not every event loop closes what it doesn't pass on.
    for number in map(int, os.listdir("/dev/fd")):
        if number > 2:
            try:
                os.set_inheritable(number, False)
            except OSError:  # the listing's own
                continue
    # Each process that this one starts is bounded, and itself.
    _set_limit(resource.RLIMIT_CORE, 0)
    if memory := limits.get("memory"):
        _set_limit(resource.RLIMIT_DATA, RESERVED_BYTES + DATA_FACTOR * memory)
    if size := limits.get("file"):
        _set_limit(resource.RLIMIT_FSIZE, size)
    if sys.platform == "linux":
        # Adopt the program's orphans, whatever session they moved to.
        ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal_pipe = _install_signal_pipe()
    status = _supervise(command, liveness_pipe, signal_pipe, TreeMeter(limits))
    _terminate_all()
    if folder:
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(status)


def _set_limit(kind: int, limit: int) -> None:
    _, hard_limit = resource.getrlimit(kind)
    limit = limit if hard_limit == resource.RLIM_INFINITY else min(limit, hard_limit)
    resource.setrlimit(kind, (limit, limit))


class TreeMeter:
    """Measures all processes of a program together."""

    def __init__(self, limits: dict[str, int]) -> None:
        self.limits = limits if sys.platform == "linux" else {}
        self.times: deque[tuple[float, float]] = deque()
        self.due = time.monotonic() + MEASURE_SECONDS

    @property
    def seconds(self) -> float | None:
        """Until the next measurement; None without limits."""
        return max(0.0, self.due - time.monotonic()) if self.limits else None

    def excess(self) -> int:
        """Return the exit status for the limit that is passed, 0 if none is or it isn't due."""
        if not self.limits or time.monotonic() < self.due:
            return 0
        self.due = time.monotonic() + MEASURE_SECONDS
        pids = _listed_descendants()
        if self._is_over("processes", len(pids)):
            return EXIT_PROCESSES
        if self._is_over("memory", sum(map(_own_bytes, pids))):
            return EXIT_MEMORY
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        measured_at = time.monotonic()
        cpu_total = ended.ru_utime + ended.ru_stime + sum(map(_cpu_seconds, pids))
        self.times.append((measured_at, cpu_total))
        while self.times[0][0] < measured_at - CPU_WINDOW_SECONDS:
            self.times.popleft()
        return EXIT_CPU if self._is_over("cpu", cpu_total - self.times[0][1]) else 0

    def _is_over(self, name: str, used: float) -> bool:
        limit = self.limits.get(name)
        return limit is not None and used > limit


def _own_bytes(pid: int) -> int:
    """Return the memory of a process, with its part of what it shares with other processes."""
    try:
        status = _kilobytes(f"/proc/{pid}/status")
        shared = status.get("RssShmem", 0)
        if shared:
            shared = _kilobytes(f"/proc/{pid}/smaps_rollup").get("Pss_Shmem", shared)
    except OSError:
        return 0
    return 1024 * (status.get("RssAnon", 0) + status.get("VmSwap", 0) + shared)


def _kilobytes(path: str) -> dict[str, int]:
    """Return the sizes in a file of /proc, by name."""
    with open(path) as file:
        words = [line.split() for line in file]
    return {word[0].rstrip(":"): int(word[1]) for word in words if word[2:] == ["kB"]}


def _cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process and of its children that have ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            ticks = sum(map(int, stat.read().rpartition(b")")[2].split()[11:15]))
    except (OSError, ValueError):
        return 0.0
    return ticks / os.sysconf("SC_CLK_TCK")


def _install_signal_pipe() -> int:
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    os.set_blocking(read_end, False)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    for number in (*STOP_SIGNALS, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    return read_end


def _supervise(
    command: list[str], liveness_pipe: int, signal_pipe: int, meter: "TreeMeter"
) -> int:
    """Return the program's exit status, or that of a limit; 0 if the product ended it."""
    try:
        usual = [*STOP_SIGNALS, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ]
        program_pid = os.posix_spawn(command[0], command, os.environ, setsigdef=usual)
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
        return EXIT_NOT_FOUND
    # So that the product sees the end of output when the program closes its end.
    null_device = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null_device, stream)
    while True:
        ready, _, _ = select.select([liveness_pipe, signal_pipe], [], [], meter.seconds)
        received = set(os.read(signal_pipe, 512)) if signal_pipe in ready else set()
        if liveness_pipe in ready or received & STOP_SIGNALS:
            return 0
        if program_pid in (ended := _reap()):
            return ended[program_pid]
        if status := meter.excess():
            _signal_descendants(signal.SIGKILL)
            return status


def _reap() -> dict[int, int]:
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if not pid:
            return ended
        code = os.waitstatus_to_exitcode(status)
        ended[pid] = code if code >= 0 else 128 - code


def _terminate_all() -> None:
    if sys.platform != "linux":
        os.killpg(0, signal.SIGTERM)
        time.sleep(GRACE_SECONDS)
        os.killpg(0, signal.SIGKILL)
    started = time.monotonic()
    _reap()
    # Not to bubblewrap, which would kill the program at once instead of letting it end.
    _signal_descendants(signal.SIGTERM, spare=b"bwrap")
    while _descendants() and time.monotonic() - started < GRACE_SECONDS + KILL_SECONDS:
        if time.monotonic() - started > GRACE_SECONDS:
            _signal_descendants(signal.SIGKILL)
        time.sleep(0.02)
        _reap()


def _signal_descendants(signal_number: signal.Signals, spare: bytes = b"") -> None:
    for pid in _descendants():
        try:
            if not spare or _program_name(pid) != spare:
                os.kill(pid, signal_number)
        except (ProcessLookupError, PermissionError):  # the others must be killed anyway
            continue


def _program_name(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/comm", "rb") as comm:
            return comm.read().strip()
    except OSError:
        return b""


def _listed_descendants() -> set[int]:
    """Return all descendants from the kernel's lists, which cost less than all of /proc.

    A list can miss a process that has just been started or orphaned, so this is for measuring.
    """
    if not os.path.exists("/proc/thread-self/children"):
        return _descendants()
    descendants: set[int] = set()
    wave = {os.getpid()}
    while wave := {child for pid in wave for child in _children(pid)} - descendants:
        descendants |= wave
    return descendants


def _children(pid: int) -> set[int]:
    children: set[int] = set()
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as listed:
                children |= set(map(int, listed.read().split()))
    except OSError:  # it has ended
        pass
    return children


def _descendants() -> set[int]:
    parents: dict[int, int] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", "rb") as stat:
                    # The name may contain anything, including brackets: the last one ends it.
                    parents[int(entry)] = int(stat.read().rpartition(b")")[2].split()[1])
            except (FileNotFoundError, ProcessLookupError):
                continue
    descendants: set[int] = set()
    wave = {os.getpid()}
    while wave := {pid for pid, parent in parents.items() if parent in wave}:
        descendants |= wave
    return descendants


if __name__ == "__main__":
    main()
