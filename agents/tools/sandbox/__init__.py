"""The one way to start a child process: confined to what its kind of work needs.

A `Worker` is a kind of child. `run` (in a thread) and `run_async` (on an event loop) start one
for a single request, and kill it with everything it started when it is late or not needed any
more. A `PersistentChild` stays for more requests, such as a model that takes a second to load.
`supervised.start` starts a program that stays, such as an MCP server, and `unconfined.start`
one that can't be confined, with the reason. No other module of the product starts a process: a
rule of ruff (`banned-api`) sees to that.
"""

from . import bubblewrap, supervised, unconfined
from .fair_slots import FairSlots, NoFreeSlot
from .persistent import PersistentChild
from .processes import Reply, WorkerFailed, run, run_async
from .worker import (
    CPU_FACTS,
    Grant,
    Worker,
    command,
    confined_argv,
    confines_foreign_code,
    exclude_hidden,
    hide,
    landlock_abi,
)

__all__ = [
    "CPU_FACTS",
    "FairSlots",
    "Grant",
    "NoFreeSlot",
    "PersistentChild",
    "Reply",
    "Worker",
    "WorkerFailed",
    "bubblewrap",
    "command",
    "confined_argv",
    "confines_foreign_code",
    "exclude_hidden",
    "hide",
    "landlock_abi",
    "run",
    "run_async",
    "supervised",
    "unconfined",
]
