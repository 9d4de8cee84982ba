"""The one way to start a child process: confined to what its kind of work needs.

A `Worker` is a kind of child. `run` (in a thread) and `run_async` (on an event loop) start one
for a single request, and kill it with everything it started when it is late or not needed any
more. `spawn` starts a program that stays, such as an MCP server's supervisor.
"""

from .fair_slots import FairSlots, NoFreeSlot
from .processes import Reply, WorkerFailed, run, run_async, spawn
from .worker import (
    CPU_FACTS,
    Grant,
    Level,
    Worker,
    command,
    exclude_hidden,
    hide,
    landlock_abi,
    level,
)

__all__ = [
    "CPU_FACTS",
    "FairSlots",
    "Grant",
    "Level",
    "NoFreeSlot",
    "Reply",
    "Worker",
    "WorkerFailed",
    "command",
    "exclude_hidden",
    "hide",
    "landlock_abi",
    "level",
    "run",
    "run_async",
    "spawn",
]
