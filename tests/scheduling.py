"""Distributes test files to workers."""

from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

# Tests that start whole processes and mostly wait; many at once slow each other down.
LONG = ("tests/access/", "tests/faults/", "tests/scaled/")
# Tests that call models with LiteLLM: importing it takes a worker 8 s of computing time.
WITH_LITELLM = (
    "tests/llm/test_litellm_model.py",
    "tests/catalog/test_personal_data.py",
    "tests/runs/test_plans_over_the_wire.py",
    "tests/knowledge/test_remote_embeddings.py",
    "tests/web/test_warmup.py",
    "tests/llm/test_attachments.py",
    "tests/llm/test_contract.py",
    "tests/llm/test_error_causes.py",
    "tests/llm/test_media_providers.py",
    "tests/llm/test_model_probe.py",
    "tests/llm/test_model_servers.py",
    "tests/llm/test_one_request.py",
    "tests/llm/test_providers.py",
    "tests/llm/test_secret_leaks.py",
)


class MixedScheduling(LoadFileScheduling):
    """All workers but one start with long files; that one works while they wait.

    It also gets the files that use LiteLLM, as long as there are others for the rest.
    """

    def _assign_work_unit(self, node: WorkerController) -> None:
        others = [each for each in self.nodes if each is not node and self._waits(each)]
        is_for_long = len(others) < len(self.nodes) - 1
        suitable = self._suitable(node)
        fit = [file for file in suitable if file.startswith(LONG) == is_for_long] or suitable
        if fit:
            self.workqueue.move_to_end(fit[0], last=False)
        super()._assign_work_unit(node)

    def _suitable(self, node: WorkerController) -> list[str]:
        """Return the files for this worker, those that use LiteLLM first or not at all."""
        users = [each for each in self.nodes if self._has_litellm(each)]
        if users and node not in users:
            return [file for file in self.workqueue if file not in WITH_LITELLM]
        return sorted(self.workqueue, key=lambda file: file not in WITH_LITELLM)

    def _has_litellm(self, node: WorkerController) -> bool:
        return any(file in WITH_LITELLM for file in self.assigned_work[node])

    def _waits(self, node: WorkerController) -> bool:
        """Whether a long file is left of its assigned work."""
        return any(
            file.startswith(LONG) and not all(tests.values())
            for file, tests in self.assigned_work[node].items()
        )
