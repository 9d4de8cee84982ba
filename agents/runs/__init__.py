"""Runs, from preparation to the last event: the package's public functions.

Decisions are made through `approvals.decide`. Other packages may import the modules that read
or announce, such as `pubsub`, `event_store`, `projection` and `leases`.
"""

from .executor import active_count
from .leases import KIND
from .service import (
    RunInProgress,
    drive,
    drive_claimed,
    launch,
    on_finished,
    prepare,
    prepare_continuation,
    prepare_draft_run,
    prepare_experiment_run,
    prepare_rerun,
    recover_abandoned,
    resume,
    shut_down,
    stop,
    use_source,
    wait,
    wake,
)

__all__ = [
    "KIND",
    "active_count",
    "RunInProgress",
    "drive",
    "drive_claimed",
    "launch",
    "prepare",
    "prepare_rerun",
    "prepare_continuation",
    "prepare_draft_run",
    "prepare_experiment_run",
    "resume",
    "shut_down",
    "stop",
    "use_source",
    "recover_abandoned",
    "wait",
    "wake",
    "on_finished",
]
