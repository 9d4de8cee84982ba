"""Which worker gets which files of tests."""

from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

# Whole processes, for which a test mostly waits, and which many at once would only hold up.
LONG = ("tests/access/", "tests/faults/", "tests/scaled/")


class Mixed(LoadFileScheduling):
    """All workers but one begin with what is long; that one works while they wait."""

    def _assign_work_unit(self, node: WorkerController) -> None:
        others = [each for each in self.nodes if each is not node and self._waits(each)]
        is_for_long = len(others) < len(self.nodes) - 1
        fit = [file for file in self.workqueue if file.startswith(LONG) == is_for_long]
        if fit:
            self.workqueue.move_to_end(fit[0], last=False)
        super()._assign_work_unit(node)

    def _waits(self, node: WorkerController) -> bool:
        """Whether something long is left of what it was given."""
        return any(
            file.startswith(LONG) and not all(tests.values())
            for file, tests in self.assigned_work[node].items()
        )
