"""Sets limits on a child process, then becomes a program such as ffmpeg.

It is started by path, isolated and with an empty environment. It has limits of memory, time and
output, and no network.
"""

import contextlib
import ctypes
import json
import os
import resource
import signal
import sys

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000


def main() -> None:
    limits, command = json.loads(sys.argv[1]), sys.argv[2:]
    os.nice(limits["nice"])
    # Python ignores this signal; the program must end when its output is too large.
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    _set(resource.RLIMIT_CPU, limits["cpu"])
    _set(resource.RLIMIT_FSIZE, limits["output"])
    _set(resource.RLIMIT_NOFILE, limits["files"])
    _set(resource.RLIMIT_CORE, 0)
    if sys.platform == "linux":
        _set(resource.RLIMIT_AS, limits["memory"])
        _leave_network()
    os.execve(command[0], command, {"LC_ALL": "C.UTF-8", **limits["environment"]})


def _set(kind: int, limit: int) -> None:
    _, most = resource.getrlimit(kind)
    limit = limit if most == resource.RLIM_INFINITY else min(limit, most)
    resource.setrlimit(kind, (limit, limit))


def _leave_network() -> None:
    """Move to a network without connections, where the system allows that."""
    with contextlib.suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(CLONE_NEWNET) != 0:
            libc.unshare(CLONE_NEWUSER | CLONE_NEWNET)


if __name__ == "__main__":
    main()
