"""Brings the saved answers to the running calls that asked for them.

An answer is saved in the approval's row by any process. The process that drives the run reads
it from there, as it reads requests to stop; in the same process it is told at once.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Literal, cast

from agents.engine.call_context import SavedAnswer
from agents.models import Approval

from .projection import VERDICT_BY_ACTION

Action = Literal["accept", "decline", "cancel"]
ACTION_BY_VERDICT = {verdict: cast(Action, name) for name, verdict in VERDICT_BY_ACTION.items()}

OpenQuestions = Mapping[str, int]  # the run of each open question
AnswerReader = Callable[[OpenQuestions], Awaitable[dict[str, SavedAnswer]]]


class QuestionDesk:
    """The open questions of the runs that this process drives."""

    def __init__(self, reader: AnswerReader) -> None:
        self._read = reader
        self._open: dict[str, int] = {}
        self._answers: dict[str, asyncio.Future[SavedAnswer]] = {}

    async def wait(self, run: int, id: str, seconds: float) -> SavedAnswer | None:
        future = self._answers[id] = asyncio.get_running_loop().create_future()
        self._open[id] = run
        try:
            await asyncio.wait([future], timeout=seconds)
            if not future.done():
                await self.deliver()  # it may just have been saved
            return future.result() if future.done() else None
        finally:
            del self._open[id], self._answers[id]

    async def deliver(self) -> None:
        """Look for answers to the open questions, if there are any."""
        if not self._open:
            return
        for id, answer in (await self._read(dict(self._open))).items():
            if (future := self._answers.get(id)) is not None and not future.done():
                future.set_result(answer)


@dataclass(frozen=True, slots=True)
class RunQuestions:
    """The questions of one run."""

    desk: QuestionDesk
    run: int

    async def wait(self, id: str, seconds: float) -> SavedAnswer | None:
        """Return the answer to this question, or None if there is none in time."""
        return await self.desk.wait(self.run, id, seconds)


def find_answers(questions: OpenQuestions) -> dict[str, SavedAnswer]:
    """Return the saved answers to these questions, by id."""
    requests = Approval.objects.filter(run__in=set(questions.values()), call_id__in=questions)
    decided = requests.exclude(verdict=Approval.Verdict.WAITING).exclude(decided_by=None)
    answers: dict[str, SavedAnswer] = {}
    for approval in decided.select_related("decided_by"):
        user = approval.decided_by
        answers[approval.call_id] = SavedAnswer(
            action=ACTION_BY_VERDICT[Approval.Verdict(approval.verdict)],
            content=json.loads(approval.new_arguments) if approval.new_arguments else {},
            by=None if user is None else user.pk,
            by_name="" if user is None else user.get_username(),
        )
    return answers
