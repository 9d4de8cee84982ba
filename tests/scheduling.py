"""Distributes test files to workers."""

from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

# Tests that start whole processes and mostly wait; many at once slow each other down.
LONG = ("tests/access/", "tests/faults/", "tests/scaled/")


class MixedScheduling(LoadFileScheduling):
    """All workers but one start with long files; that one works while they wait."""

    def _assign_work_unit(self, node: WorkerController) -> None:
        others = [each for each in self.nodes if each is not node and self._waits(each)]
        is_for_long = len(others) < len(self.nodes) - 1
        fit = [file for file in self.workqueue if file.startswith(LONG) == is_for_long]
        if fit:
            self.workqueue.move_to_end(fit[0], last=False)
        super()._assign_work_unit(node)

    def _waits(self, node: WorkerController) -> bool:
        """Whether a long file is left of its assigned work."""
        return any(
            file.startswith(LONG) and not all(tests.values())
            for file, tests in self.assigned_work[node].items()
        )
