"""What a tool can do while its call runs: report progress, ask the user, use the model.

The run loop sets the context around each call; a tool finds it with `current()`. Outside a run
it is `NO_CONTEXT`, which ignores reports and refuses the rest.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import Context, ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from .call_timeout import CallTimeout
from .errors import ToolError
from .material.passages import Passage
from .material.run_material import RunMaterial
from .sentences import Sentence as _


class QuestionUnavailable(ToolError):
    message = _("There's no user to ask here.")


class SamplingRefused(ToolError):
    message = _("The model can't be used here.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question to the run's user, with the JSON schema of the form to fill in.

    `source` is who asks, e.g. the MCP server's name. With a `url`, the user opens that page
    instead of filling in a form.
    """

    source: str
    message: str
    schema: Mapping[str, Any] = field(default_factory=dict)
    url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionAnswer:
    """The user's answer: accepted with content, declined, or closed without an answer."""

    action: Literal["accept", "decline", "cancel"]
    content: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingRequest:
    """Messages that a tool wants the agent's model to answer."""

    source: str
    messages: Sequence[Mapping[str, Any]]
    system: str = ""
    max_tokens: int | None = None
    temperature: float | None = None
    stop: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingReply:
    text: str
    model: str
    stop_reason: str = "endTurn"


class CallContext:
    """The context of a call that isn't part of a run."""

    timeout: CallTimeout | None = None  # of the attempt that runs now
    variables: Context | None = None  # in which the tool runs: whose call it is, and so on

    # Who the call is for, for tools that keep people or chats apart.
    user_id: str = ""
    chat_id: str = ""

    @property
    def is_personal(self) -> bool:
        """Whether a person or a model was asked meanwhile, so the result fits no other call."""
        return False

    def report_progress(
        self, progress: float, total: float | None = None, message: str = ""
    ) -> None:
        """Show progress in the call's step, and give the call its full timeout again."""
        self.extend_timeout()

    def report_retry(self, message: str, attempt: int, seconds: float) -> None:
        """Show in the step that the call is repeated after `seconds`."""

    def extend_timeout(self) -> None:
        """Give the call its full timeout from now, e.g. once its server has started."""
        if self.timeout is not None:
            self.timeout.extend()

    def number_sources(self, passages: Sequence[Passage]) -> list[Passage]:
        """Return the passages with their numbers, which are unique in the run."""
        return RunMaterial().number(passages)

    def find_source(self, number: int) -> Passage | None:
        """Return the passage with this number in the run."""
        return None

    def find_page(self, url: str) -> str:
        """Return the address to open for a web page; in a run, only what was named there."""
        return url

    def report_usage(self, usage: Mapping[str, Any]) -> None:
        """Count what another model used for this call towards the run's cost and limits."""

    def report_reranking(self, model: str, problem: str = "") -> None:
        """Show in the step which model put the results in order, or why none did."""

    async def ask(self, question: Question) -> QuestionAnswer:
        """Ask the run's user and wait for the answer; raise QuestionUnavailable."""
        raise QuestionUnavailable(_("There's no user to ask outside a chat."))

    async def sample(self, request: SamplingRequest) -> SamplingReply:
        """Have the agent's model answer, within the run's budget; raise SamplingRefused."""
        raise SamplingRefused(_("No model is available outside a run."))


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedAnswer(QuestionAnswer):
    """An answer as it was saved, and by whom."""

    by: int | None = None
    by_name: str = ""


class QuestionDesk(Protocol):
    """Gets the answers to the questions of running calls."""

    async def wait(self, id: str, seconds: float) -> SavedAnswer | None:
        """Return the answer to this question, or None if there is none in time."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """Who a run is for and how to ask them, as the process that drives it knows."""

    user_id: str = ""
    chat_id: str = ""
    questions: QuestionDesk | None = None


NO_CONTEXT = CallContext()
_current: ContextVar[CallContext] = ContextVar("call_context", default=NO_CONTEXT)


def current() -> CallContext:
    return _current.get()


@contextmanager
def use_context(context: CallContext) -> Iterator[None]:
    token = _current.set(context)
    try:
        yield
    finally:
        _current.reset(token)


NO_RUN = RunContext()
_current_run: ContextVar[RunContext] = ContextVar("run_context", default=NO_RUN)


def current_run() -> RunContext:
    return _current_run.get()


@contextmanager
def use_run(run: RunContext) -> Iterator[None]:
    """Tell the calls in this block who they are for."""
    token = _current_run.set(run)
    try:
        yield
    finally:
        _current_run.reset(token)
