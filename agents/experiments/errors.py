"""Why an experiment can't start, or one of its runs can't continue."""

from agents.engine.errors import RunCancelled

NEEDS_APPROVAL = "A tool call needs approval, which an experiment can't get."


class ExperimentRejected(Exception):
    """Raised when an experiment can't start; the user sees the reason."""


class ApprovalNeeded(RunCancelled):
    """A tool call needs approval, which an experiment can't get."""


class DeadlineExceeded(RunCancelled):
    """The run took longer than the experiment allows."""

    def __init__(self, seconds: int) -> None:
        super().__init__(f"The experiment's timeout of {seconds} s was reached.")
