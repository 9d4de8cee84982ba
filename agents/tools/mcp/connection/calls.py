"""The calls that run on one connection, and what their server asks for meanwhile.

A server's request arrives in the connection's task, not in the call's. It is answered for the
call that it belongs to: the one whose stream it came through, or the only one that runs.
"""

import asyncio
import contextvars
import math
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from agents.engine.call_context import (
    CallContext,
    Question,
    QuestionAnswer,
    QuestionUnavailable,
    SamplingReply,
    SamplingRequest,
)
from agents.engine.call_timeout import CallTimeout
from agents.engine.errors import ToolError
from agents.engine.resilience import TokenBucket
from agents.engine.sentences import Sentence as _

PROGRESS_PER_SECOND = 10
MAX_PROGRESS_CHARS = 300
# How long a server may still ask about a call that was stopped or took too long.
ABANDONED_SECONDS = 600.0

Answer = TypeVar("Answer")
Owner = tuple[str, str]  # a user and a chat
_current: contextvars.ContextVar["CallInFlight | None"] = contextvars.ContextVar(
    "mcp_call", default=None
)


class UnrelatedRequest(ToolError):
    message = _("A server's request can't be assigned to a call.")


class CallTimedOut(ToolError):
    message = _("The call timed out.")

    def __init__(self, call: "CallInFlight") -> None:
        super().__init__(
            _("No response within %(seconds)s s.", seconds=f"{call.timeout.seconds:g}")
        )
        self.call = call


@dataclass(eq=False, slots=True, kw_only=True)
class CallInFlight:
    """One call: its context, and its timeout, which progress extends up to a maximum."""

    context: CallContext
    timeout: CallTimeout
    mask: Callable[[str], str]
    variables: contextvars.Context = field(default_factory=contextvars.copy_context)
    requests: set[asyncio.Task[Any]] = field(default_factory=set)
    is_sent: bool = False
    progress_limit: TokenBucket = field(
        default_factory=lambda: TokenBucket(1, PROGRESS_PER_SECOND)
    )

    @property
    def owner(self) -> Owner:
        return self.context.user_id, self.context.chat_id

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop the clock while a person or a model answers the server."""
        with self.timeout.pause():
            yield
        self.timeout.extend()
        self.context.extend_timeout()

    async def report_progress(
        self, progress: float, total: float | None, message: str | None
    ) -> None:
        """Pass on a server's progress, but not faster than anyone can read it."""
        self.timeout.extend()
        is_last = total is not None and progress >= total
        if not math.isfinite(progress) or not (is_last or self.progress_limit.allows()):
            return
        known_total = (
            total if total is not None and math.isfinite(total) and total > 0 else None
        )
        text = self.mask((message or "")[:MAX_PROGRESS_CHARS])
        self.context.report_progress(progress, known_total, text)


class CallTracker:
    """The calls of one connection; answers its server's requests on their behalf."""

    def __init__(self, name: str, mask: Callable[[str], str]) -> None:
        self.name = name
        self._mask = mask
        self._calls: list[CallInFlight] = []
        self._abandoned: dict[str, float] = {}  # by user

    @asynccontextmanager
    async def track(self, context: CallContext, seconds: float) -> AsyncIterator[CallInFlight]:
        """Run a call with this timeout; raise CallTimedOut when it is over."""
        deadline = asyncio.timeout(seconds)
        timeout = CallTimeout(deadline, seconds)
        call = CallInFlight(context=context, timeout=timeout, mask=self._mask)
        try:
            async with deadline:
                self._calls.append(call)
                token = _current.set(call)
                try:
                    yield call
                except BaseException:
                    if call.is_sent:  # without a response: the server may still ask about it
                        self._abandoned[context.user_id] = _now()
                    raise
                finally:
                    _current.reset(token)
                    self._calls.remove(call)
                    for task in call.requests:
                        task.cancel()
        except TimeoutError as error:
            if not deadline.expired():
                raise
            raise CallTimedOut(call) from error

    async def ask(self, question: Question) -> QuestionAnswer:
        """Ask the user of the call; raise QuestionUnavailable."""
        try:
            call = self._find_call()
        except UnrelatedRequest as error:
            raise QuestionUnavailable(str(error)) from error
        return await self._answer(call, call.context.ask(question))

    async def sample(self, request: SamplingRequest) -> SamplingReply:
        """Have the call's model answer; raise ToolError."""
        call = self._find_call()
        return await self._answer(call, call.context.sample(request))

    def _find_call(self) -> CallInFlight:
        """Return the call that a request belongs to; never another person's."""
        current_call = _current.get()
        if current_call is not None and current_call in self._calls:
            return current_call
        if not self._calls:
            raise UnrelatedRequest(_("No call is in progress, so there is no user to ask."))
        recent = _now() - ABANDONED_SECONDS
        self._abandoned = {
            user_id: abandoned_at
            for user_id, abandoned_at in self._abandoned.items()
            if abandoned_at > recent
        }
        owners = {call.owner for call in self._calls}
        # After a stopped call, its user can be asked in another chat, but no other user can.
        users = {user for user, _chat in owners} | {*self._abandoned}
        if len(owners) > 1 or len(users) > 1:
            raise UnrelatedRequest(
                _(
                    "Several users are using this server at once, so it's unclear which of "
                    "them to ask."
                )
            )
        return self._calls[-1]

    async def _answer(self, call: CallInFlight, work: Coroutine[Any, Any, Answer]) -> Answer:
        """Wait for an answer as part of the call, which may be over before."""
        task = asyncio.create_task(work, context=call.variables)
        call.requests.add(task)
        with call.paused():
            try:
                return await task
            except asyncio.CancelledError:
                current = asyncio.current_task()
                if current is not None and current.cancelling():
                    task.cancel()
                    raise
                raise UnrelatedRequest(_("The call is over.")) from None
            finally:
                call.requests.discard(task)


def _now() -> float:
    return asyncio.get_running_loop().time()
