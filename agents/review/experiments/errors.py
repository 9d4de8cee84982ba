"""Why an experiment can't start, or one of its runs can't continue."""

from agents.engine.errors import RunCancelled
from agents.engine.sentences import Sentence as _

NEEDS_APPROVAL = _("A tool call requires approval, which isn't possible in an experiment.")


class ExperimentRejected(Exception):
    """Raised when an experiment can't start; the user sees the reason."""


class ApprovalNeeded(RunCancelled):
    message = _("A tool call requires approval, which isn't possible in an experiment.")


class DeadlineExceeded(RunCancelled):
    message = _("The run took longer than the experiment allows.")

    def __init__(self, seconds: int) -> None:
        super().__init__(
            _("The experiment's timeout of %(seconds)s s was reached.", seconds=seconds)
        )
