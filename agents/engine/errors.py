"""Errors of a run, and what happens next.

AgentError
├── AgentConnectionError       the model or a tool server can't be reached
├── ModelError                 the model was reached and can't be used
│   ├── ModelTimeout           it missed a deadline
│   ├── ProviderFailed         its provider has a problem
│   ├── RateLimited            its provider asks to wait
│   ├── CircuitOpen            it failed too often and isn't called for a while
│   ├── ModelBusy              all slots of its limits are in use
│   ├── AdapterFailed          its client raised something else
│   ├── EmptyReply             it returned nothing at all
│   ├── TruncatedReply         it was cut off in the middle of a tool call
│   └── PlanParseError         its text couldn't be parsed
├── ToolError
│   ├── ToolNotFoundError      the model sees it and can choose another
│   ├── DuplicateToolError     two tools with one name: a configuration mistake
│   └── ToolExecutionFailed    the model sees it and can retry
├── OutputDecodingFailed       the structured answer never matched its schema
├── BadPattern                 an invalid guardrail pattern
├── BadSchema                  an invalid JSON Schema
├── BadExpression              a condition or reference that can't be evaluated
├── GuardrailBlocked           a guardrail blocked the question or the answer
├── RunCancelled               a user stopped the run, or a plan was declined
└── LimitReached               a policy ended the run
    ├── MaxStepsExceeded
    ├── DuplicateToolCall      the same tool with the same input too often
    ├── ToolCallLimitReached   one tool too often
    └── BudgetExceeded         time, tokens or money

The docstring is the message users see; `advice` says what to do about it.

A run reports errors as events and ends: an `error` event has the class as its `type`. To catch
it instead, call `AgentResult.raise_for_status()` or
`AgentRuntime.run(…, raise_on_failure=True)`, which raises the same class.
"""

from collections.abc import Iterator


class AgentError(Exception):
    """The run could not go on."""

    advice = "Try again; if it happens again, tell your administrator."
    is_passing = False  # whether a retry may succeed
    is_outage = False  # whether the other side failed, not the request

    def __init__(self, message: str = "", *, advice: str = "") -> None:
        super().__init__(message or self.__doc__)
        if advice:
            self.advice = advice

    def add(self, sentence: str) -> None:
        """Append a sentence to the message."""
        self.args = (f"{self} {sentence}",)


class AgentConnectionError(AgentError):
    """The model could not be reached."""

    is_passing = True
    is_outage = True
    advice = "Check that its address is right and that it is running, then try again."


class ModelError(AgentError):
    """The model could not be used."""


class ModelTimeout(ModelError):
    """The model took too long."""

    is_outage = True
    advice = "It may be overloaded. Try again, or choose another model."


class ProviderFailed(ModelError):
    """The model's provider has a problem."""

    is_passing = True
    is_outage = True


class RateLimited(ModelError):
    """The model's provider asks to wait."""

    is_passing = True
    is_outage = True
    retry_after: float | None = None  # seconds, if the provider said so


class CircuitOpen(ModelError):
    """It has failed too often, and is left alone for a while."""

    advice = "Wait until then, or choose another model."


class ModelBusy(ModelError):
    """As many ask this model as its limits allow."""

    advice = "Try again in a while, or choose another model."


class AdapterFailed(ModelError):
    """The model adapter failed."""

    advice = "Ask your administrator to check the server log."


class EmptyReply(ModelError):
    """The model's provider sent an empty answer."""

    # Not an outage: healthy models answer some questions with nothing.
    is_passing = True
    advice = "Try again, or choose another model."


class TruncatedReply(ModelError):
    """The model was cut off in the middle of a tool call, so the call was not made."""

    advice = "Ask for something smaller, or raise the model's output limit."


class PlanParseError(ModelError):
    """The model's reply followed no form that this agent can read."""

    advice = "Try again, or choose a model that can call tools itself."


class ToolError(AgentError):
    """The tool failed."""


class ToolNotFoundError(ToolError):
    """There is no tool of this name."""


class DuplicateToolError(ToolError):
    """There is a tool of this name already."""


class ToolExecutionFailed(ToolError):
    """The tool failed while it ran."""

    is_outage = True


class NoPlan(AgentError):
    """The model wrote no plan that can be carried out."""

    advice = "Ask in other words, or choose another model."


class OutputDecodingFailed(AgentError):
    """The answer did not fit its schema."""


class BadPattern(AgentError):
    """This pattern cannot be used."""


class BadSchema(AgentError):
    """This JSON Schema cannot be used."""


class BadExpression(AgentError, ValueError):
    """This expression cannot be used."""

    def __init__(self, message: str = "", *, position: int = 0) -> None:
        super().__init__(message)
        self.position = position  # character offset, from 0


class GuardrailBlocked(AgentError):
    """A guardrail blocked the question or the answer."""

    advice = ""


class RunCancelled(AgentError):
    """The run was stopped before it had an answer."""

    advice = ""


class LimitReached(AgentError):
    """The run reached one of its limits."""

    advice = ""


class MaxStepsExceeded(LimitReached):
    """The run used up its steps before it had an answer."""


class DuplicateToolCall(LimitReached):
    """The run called the same tool with the same input too often."""


class ToolCallLimitReached(LimitReached):
    """The run called one tool too often."""


class BudgetExceeded(LimitReached):
    """The run used up its time, token or cost budget."""


def error_class(name: str) -> type[AgentError]:
    """Return the error class with this name, as found in an `error` event."""
    return next((kind for kind in _subclasses(AgentError) if kind.__name__ == name), AgentError)


def _subclasses(kind: type[AgentError]) -> Iterator[type[AgentError]]:
    yield kind
    for narrower in kind.__subclasses__():
        yield from _subclasses(narrower)
