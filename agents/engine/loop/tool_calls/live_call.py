"""A tool call that runs: what it reports and asks becomes events of its step."""

import asyncio
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from math import isfinite
from typing import Any
from uuid import uuid4

from agents.engine.call_context import (
    CallContext,
    Question,
    QuestionAnswer,
    QuestionUnavailable,
    SamplingRefused,
    SamplingReply,
    SamplingRequest,
    SavedAnswer,
    current_run,
)
from agents.engine.events import Event, EventFactory, EventType, StatusKind
from agents.engine.guardrails.checks import GuardrailResult, Guardrails
from agents.engine.material.passages import Passage
from agents.engine.material.run_material import RunMaterial
from agents.engine.privacy.secrets import mask_secrets
from agents.engine.question_form import QUESTION_SECONDS, check_question
from agents.engine.sentences import Sentence as _
from agents.engine.turn.assembly import ToolCall

from ..lifecycle_events import guardrail_event
from ..model_calls.sampling import Sample, Sampler
from ..termination import WorkTime
from .approval import ELICITATION, digest

# Progress is sent about four times a second, and less often in a long call: every report is
# saved and rendered.
PROGRESS_SECONDS = 0.25
LONG_PROGRESS_SECONDS = 1.0
LONG_CALL_SECONDS = 60.0
MAX_MESSAGE_CHARS = 300
MAX_QUESTIONS = 20
MAX_SAMPLES = 10
MAX_SAMPLE_CHARS = 4_000
QUESTION_EXPIRED = _(
    "Nobody answered within %(minutes)s min.", minutes=f"{QUESTION_SECONDS / 60:g}"
)
QUESTION_ENDED = _("The call ended before the question was answered.")
QUESTION_INTERRUPTED = _("The server restarted, so the question was closed.")

Report = Callable[[EventFactory, int], Event]


class LiveCall(CallContext):
    """The context of one call in a run: collects reports until the call's step yields them."""

    def __init__(
        self,
        call: ToolCall,
        guardrails: Guardrails,
        work_time: WorkTime,
        sampler: Sampler | None = None,
        material: RunMaterial | None = None,
    ) -> None:
        run = current_run()
        self.user_id = run.user_id
        self.chat_id = run.chat_id
        self._desk = run.questions
        self._call = call
        self._tool = call.name
        self._guardrails = guardrails
        self._work_time = work_time
        self._sampler = sampler
        self._material = material or RunMaterial()
        self._sample_count = 0
        self._question_count = 0
        self._question_lock: asyncio.Lock | None = None
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._began = self._loop.time()
        self._reports: list[Report] = []
        self._progress: dict[str, Any] = {}
        self._is_progress_new = False
        self._progress_at = 0.0  # when the next progress may be sent
        self._timer: asyncio.TimerHandle | None = None
        self._waiter: asyncio.Future[None] | None = None

    @property
    def is_personal(self) -> bool:
        return bool(self._question_count or self._sample_count)

    def report_progress(
        self, progress: float, total: float | None = None, message: str = ""
    ) -> None:
        if threading.get_ident() != self._thread:
            self._loop.call_soon_threadsafe(self.report_progress, progress, total, message)
            return
        self.extend_timeout()
        if not isfinite(progress):
            return
        has_total = total is not None and isfinite(total) and total > 0
        text = " ".join(message[: 2 * MAX_MESSAGE_CHARS].split())
        fields = {
            "progress": max(0.0, progress),
            "total": total if has_total else None,
            "message": mask_secrets(text)[:MAX_MESSAGE_CHARS],
        }
        if fields == self._progress:
            return
        self._progress = fields
        self._is_progress_new = True
        if self._is_progress_due:
            self._wake()
        elif self._timer is None:
            self._timer = self._loop.call_at(self._progress_at, self._on_timer)

    def report_retry(self, message: str, attempt: int, seconds: float) -> None:
        def report(emit: EventFactory, step: int) -> Event:
            return emit(
                EventType.STATUS,
                kind=StatusKind.RETRY,
                tool=self._tool,
                message=message,
                seconds=round(seconds, 1),
                attempt=attempt,
                step=step,
            )

        self._add(report)

    def number_sources(self, passages: Sequence[Passage]) -> list[Passage]:
        return self._material.number(passages)

    def find_source(self, number: int) -> Passage | None:
        return self._material.sources.get(number)

    def find_page(self, url: str) -> str:
        return self._material.find_page(url)

    def report_usage(self, usage: Mapping[str, Any]) -> None:
        if self._sampler is not None:
            self._sampler.run_state.progress.used.add(dict(usage))
        self._add(partial(self._usage_event, usage))

    def report_reranking(self, model: str, problem: str = "") -> None:
        def report(emit: EventFactory, step: int) -> Event:
            return emit(
                EventType.STATUS,
                kind=StatusKind.RERANKED,
                model=model,
                message=problem,
                step=step,
            )

        self._add(report)

    async def ask(self, question: Question) -> QuestionAnswer:
        if self._desk is None:
            raise QuestionUnavailable(_("This run has no user to ask."))
        check_question(question)
        self._question_lock = self._question_lock or asyncio.Lock()
        async with self._question_lock:  # one at a time: a step shows one question
            self._question_count += 1
            if self._question_count > MAX_QUESTIONS:
                raise QuestionUnavailable(
                    _("A call can ask up to %(most)s questions.", most=MAX_QUESTIONS)
                )
            question = self._screen_question(question)
            id = f"{self._call.id}/{uuid4().hex[:12]}"
            answer = None
            why: str = QUESTION_ENDED
            # The clocks of the run and of the call stop.
            with self._work_time.pause(), self._pause_timeout():
                self._add(lambda emit, step: self._question_event(emit, id, step, question))
                try:
                    answer = await self._desk.wait(id, QUESTION_SECONDS)
                    answer, why = self._screen_answer(answer)
                finally:
                    saved = answer or SavedAnswer(action="cancel")
                    self._add(lambda emit, step: answer_event(emit, id, step, saved, why))
            return saved

    async def sample(self, request: SamplingRequest) -> SamplingReply:
        try:
            reply = await self._sample(request)
        except SamplingRefused as error:
            why = str(error)
            self._add(lambda emit, step: self._sampling_event(emit, step, request, message=why))
            raise
        text = mask_secrets(reply.text[:MAX_SAMPLE_CHARS])
        self._add(
            lambda emit, step: self._sampling_event(
                emit, step, request, reply=text, model=reply.model
            )
        )
        return reply

    async def _sample(self, request: SamplingRequest) -> SamplingReply:
        if self._sampler is None:
            raise SamplingRefused
        self._sample_count += 1
        if self._sample_count > MAX_SAMPLES:
            raise SamplingRefused(
                _("A call can use the model up to %(most)s times.", most=MAX_SAMPLES)
            )
        sample = Sample()
        try:
            with self._pause_timeout():
                # A server asks in a task of its own; what it uses is part of this call.
                variables = self.variables.copy() if self.variables else None
                answer = self._sampler.answer(request, sample)
                return await asyncio.create_task(answer, context=variables)
        finally:
            for finding in sample.findings:
                self._add(partial(self._finding_event, finding))
            if sample.usage:
                self._add(partial(self._usage_event, sample.usage))

    def _usage_event(self, usage: Mapping[str, Any], emit: EventFactory, step: int) -> Event:
        return emit(EventType.USAGE, step=step, is_added=True, **usage)

    def _finding_event(self, finding: GuardrailResult, emit: EventFactory, step: int) -> Event:
        assert self._sampler is not None
        run_state = self._sampler.run_state
        return guardrail_event(run_state, finding, tool=self._tool, call=step)

    def _sampling_event(
        self, emit: EventFactory, step: int, request: SamplingRequest, **fields: str
    ) -> Event:
        lines = [f"system: {request.system}"] if request.system else []
        for message in request.messages:
            content = message.get("content")
            text = content if isinstance(content, str) else "[…]"
            lines.append(f"{message.get('role')}: {text}")
        return emit(
            EventType.STATUS,
            kind=StatusKind.SAMPLING,
            tool=self._tool,
            source=request.source,
            prompt=mask_secrets("\n\n".join(lines)[:MAX_SAMPLE_CHARS]),
            **fields,
            step=step,
        )

    def _pause_timeout(self) -> AbstractContextManager[None]:
        return nullcontext() if self.timeout is None else self.timeout.pause()

    def _screen_question(self, question: Question) -> Question:
        """Apply guardrails to what a tool wants to show the user, its form included."""
        fields = {
            "message": question.message,
            "url": question.url,
            "schema": dict(question.schema),
        }
        inspected = self._guardrails.inspect_value(fields, "tool_output")
        if inspected.is_blocked:
            raise QuestionUnavailable(
                _("The question was blocked: %(reason)s", reason=inspected.result.reason)
            )
        screened = replace(question, **inspected.value)
        check_question(screened)  # what was masked may have been needed
        return screened

    def _screen_answer(self, answer: SavedAnswer | None) -> tuple[SavedAnswer | None, str]:
        """Apply guardrails to what goes to the tool; return also why there is no answer."""
        if answer is None:
            return None, QUESTION_EXPIRED
        inspected = self._guardrails.inspect_value(dict(answer.content), "tool_input")
        if inspected.is_blocked:
            return None, _("The answer was blocked: %(reason)s", reason=inspected.result.reason)
        return replace(answer, content=inspected.value), ""

    def _question_event(
        self, emit: EventFactory, id: str, step: int, question: Question
    ) -> Event:
        fields: dict[str, Any] = {"source": question.source, "message": question.message}
        if question.url:
            fields["url"] = question.url
        else:
            fields["schema"] = dict(question.schema)
        arguments = json.dumps(fields, ensure_ascii=False, default=str)
        call = ToolCall(id=id, name=self._tool, arguments=arguments)
        return emit(
            EventType.APPROVAL_REQUESTED,
            id=id,
            function={"name": self._tool, "arguments": arguments},
            digest=digest(call, ELICITATION, emit.seq + 1),
            why=ELICITATION,
            seconds=QUESTION_SECONDS,
            step=step,
        )

    async def wait(self, task: "asyncio.Task[Any]") -> bool:
        """Wait until there are reports or the call has ended; return whether it has."""
        is_progress_ready = self._is_progress_new and self._is_progress_due
        if not task.done() and not self._reports and not is_progress_ready:
            self._waiter = self._loop.create_future()
            task.add_done_callback(self._wake)
            try:
                await self._waiter
            finally:
                task.remove_done_callback(self._wake)
                self._waiter = None
        return task.done()

    def take_events(self, emit: EventFactory, step: int, *, is_over: bool) -> list[Event]:
        """Return the events to yield now; when the call is over, all that are left."""
        if not self._reports and not self._is_progress_new:
            return []
        events = [report(emit, step) for report in self._reports]
        self._reports.clear()
        if self._is_progress_new and (is_over or self._is_progress_due):
            current_time = self._loop.time()
            is_long = current_time - self._began > LONG_CALL_SECONDS
            interval = LONG_PROGRESS_SECONDS if is_long else PROGRESS_SECONDS
            self._is_progress_new = False
            self._progress_at = current_time + interval
            progress = emit(
                EventType.STATUS,
                kind=StatusKind.TOOL_PROGRESS,
                tool=self._tool,
                **self._progress,
                step=step,
            )
            events.append(progress)
        return events

    @property
    def _is_progress_due(self) -> bool:
        return self._loop.time() >= self._progress_at

    def _on_timer(self) -> None:
        self._timer = None
        self._wake()

    def _add(self, report: Report) -> None:
        self._reports.append(report)
        self._wake()

    def _wake(self, _call: object = None) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


def answer_event(
    emit: EventFactory, id: str, step: int, answer: SavedAnswer, why: str
) -> Event:
    """Return the event that closes a question; `why` says why it has no answer."""
    is_accepted = answer.action == "accept"
    content = json.dumps(dict(answer.content), ensure_ascii=False)
    return emit(
        EventType.APPROVAL_RESOLVED,
        id=id,
        is_approved=is_accepted,
        action=answer.action,
        arguments=content if is_accepted else None,
        reason=why,
        why=ELICITATION,
        by=answer.by,
        by_name=answer.by_name,
        step=step,
    )
