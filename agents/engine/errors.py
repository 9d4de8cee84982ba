"""Errors of a run, and what happens next.

AgentError
├── AgentConnectionError       the model or a tool server can't be reached
├── ModelError                 the model was reached and can't be used
│   ├── ModelTimeout           it missed a deadline
│   │   └── ModelTooSlow       it was still sending
│   ├── ProviderFailed         its provider has a problem
│   ├── RateLimited            its provider asks to wait
│   ├── QuotaExhausted         its provider's quota or credit is used up
│   ├── ModelLoading           its server is still loading it
│   ├── CircuitOpen            it failed too often and isn't called for a while
│   ├── ModelBusy              all slots of its limits are in use
│   ├── AdapterFailed          its client raised something else
│   ├── EmptyReply             it returned nothing at all
│   ├── TruncatedReply         it was cut off in the middle of a tool call
│   └── PlanParseError         its text couldn't be parsed
├── ToolError
│   ├── ToolNotFoundError      the model sees it and can choose another
│   ├── UnreadableArguments    the model sees it and can write them again
│   ├── DuplicateToolError     two tools with one name: a configuration mistake
│   └── ToolExecutionFailed    the model sees it and can retry
├── NoPlan                     the model wrote no valid plan
├── OutputDecodingFailed       the structured answer never matched its schema
├── BadPattern                 an invalid guardrail pattern
├── BadSchema                  an invalid JSON Schema
├── BadExpression              a condition or reference that can't be evaluated
├── GuardrailBlocked           a guardrail blocked the question or the answer
├── RunCancelled               a user stopped the run, or a plan was declined
│   └── CallNotRecorded        a run on recorded results made another call
└── LimitReached               a policy ended the run
    ├── MaxStepsExceeded
    ├── DuplicateToolCall      the same tool with the same input too often
    ├── ToolCallLimitReached   one tool too often
    └── BudgetExceeded         time, tokens or money
        └── QuotaExceeded      a limit of a user, group, agent, model, tool or all together

`message` is the sentence users see if there is no better one; `advice` says what to do.

A run reports errors as events and ends: an `error` event has the class as its `type`. To catch
it instead, call `AgentResult.raise_for_status()` or
`AgentRuntime.run(…, raise_on_failure=True)`, which raises the same class.
"""

from collections.abc import Iterator

from .sentences import Sentence, joined
from .sentences import Sentence as _
from .spending import Refusal

MODELS_TRIED = _("%(sentence)s Models tried: %(models)s.")


class AgentError(Exception):
    message: str = _("The run couldn't continue.")
    advice: str = _("Try again. If it happens again, contact your administrator.")
    is_passing = False  # whether a retry may succeed
    is_outage = False  # whether the other side failed, not the request

    def __init__(self, message: str = "", *, advice: str = "") -> None:
        super().__init__(message or self.message)
        if advice:
            self.advice = advice

    def with_advice(self) -> str:
        """Return the message and what to do about it."""
        return joined(" ", filter(None, (str(self), self.advice)))

    def add_models(self, models: str) -> None:
        """Append the models that were tried to the message."""
        self.args = (MODELS_TRIED.fill(sentence=self, models=models),)


class AgentConnectionError(AgentError):
    message = _("Couldn't connect to the model.")

    is_passing = True
    is_outage = True
    advice = _("Check that the URL is correct and the server is running, then try again.")


class ModelError(AgentError):
    message = _("The model request failed.")


class ModelTimeout(ModelError):
    message = _("The model took too long to respond.")

    is_outage = True
    advice = _("It may be overloaded. Try again, or choose another model.")


class ModelTooSlow(ModelTimeout):
    message = _("The model didn't finish its response in time.")

    is_outage = False  # its server is alive, so others can ask it


class ProviderFailed(ModelError):
    message = _("The model's provider returned an error.")

    is_passing = True
    is_outage = True


class RateLimited(ModelError):
    message = _("The model's provider is rate limiting requests.")

    is_passing = True
    is_outage = True
    retry_after: float | None = None  # seconds, if the provider said so


class QuotaExhausted(ModelError):
    message = _("The quota at the model's provider is used up.")

    # Not passing: unlike a rate limit it doesn't end by itself within a run.
    advice = _("Contact your administrator, or choose another model.")


class ModelLoading(ModelError):
    message = _("The model is still loading.")

    is_passing = True
    advice = _("Try again in a minute, or choose another model.")
    retry_after: float | None = None  # seconds


class CircuitOpen(ModelError):
    message = _("The model keeps failing, so it's paused for now.")

    advice = _("Wait for the retry, or choose another model.")


class ModelBusy(ModelError):
    message = _("This model has reached its request limit.")

    advice = _("Try again later, or choose another model.")


class AdapterFailed(ModelError):
    message = _("The model adapter failed.")

    advice = _("Ask your administrator to check the server log.")


class EmptyReply(ModelError):
    message = _("The model returned an empty response.")

    # Not an outage: healthy models answer some questions with nothing.
    is_passing = True
    advice = _("Try again, or choose another model.")


class TruncatedReply(ModelError):
    message = _("The model's output was cut off during a tool call, so the tool wasn't called.")

    advice = _("Ask for less, or raise the model's output limit.")


class PlanParseError(ModelError):
    message = _("The agent couldn't parse the model's response.")

    advice = _("Try again, or choose a model that supports tool calling.")


class ToolError(AgentError):
    message = _("The tool failed.")


class ToolNotFoundError(ToolError):
    message = _("There is no tool with this name.")


class UnreadableArguments(ToolError):
    message = _("The arguments aren't a JSON object.")


class DuplicateToolError(ToolError):
    message = _("A tool with this name already exists.")


class ToolExecutionFailed(ToolError):
    message = _("The tool failed while running.")

    is_outage = True


class NoPlan(AgentError):
    message = _("The model didn't write a valid plan.")

    advice = _("Rephrase your message, or choose another model.")


class OutputDecodingFailed(AgentError):
    message = _("The answer didn't match its schema.")


class BadPattern(AgentError):
    message = _("This pattern isn't valid.")


class BadSchema(AgentError):
    message = _("This JSON Schema isn't valid.")


class BadExpression(AgentError, ValueError):
    message = _("This expression isn't valid.")

    def __init__(self, message: str = "", *, position: int = 0) -> None:
        super().__init__(message)
        self.position = position  # character offset, from 0


class GuardrailBlocked(AgentError):
    message = _("A guardrail blocked the message or the answer.")

    advice = ""


class RunCancelled(AgentError):
    message = _("The run was stopped before it had an answer.")

    advice = ""


class LimitReached(AgentError):
    message = _("The run reached one of its limits.")

    advice = ""


class MaxStepsExceeded(LimitReached):
    message = _("The run reached its max steps without an answer.")


class DuplicateToolCall(LimitReached):
    message = _("The run called the same tool with the same arguments too many times.")


class ToolCallLimitReached(LimitReached):
    message = _("The run called one tool too many times.")


class BudgetExceeded(LimitReached):
    message = _("The run reached its time, token or cost limit.")


class QuotaExceeded(BudgetExceeded):
    message = _("A usage limit is reached.")

    def __init__(
        self, message: str = "", *, advice: str = "", refusal: Refusal | None = None
    ) -> None:
        super().__init__(message, advice=advice)
        self.refusal = refusal

    @property
    def is_of_model(self) -> bool:
        """Whether only this model is refused: by its own limit, or because it has no price."""
        return self.refusal is not None and (
            self.refusal.scope == "model" or self.refusal.reason == "no_price"
        )


def without_models(message: str) -> str:
    """Return the message of an error without the models that were tried."""
    if isinstance(message, Sentence) and message.template == MODELS_TRIED:
        sentence: str = message.params["sentence"]
        return sentence
    return message


def error_class(name: str) -> type[AgentError]:
    """Return the error class with this name, as found in an `error` event."""
    return next((kind for kind in _subclasses(AgentError) if kind.__name__ == name), AgentError)


def _subclasses(kind: type[AgentError]) -> Iterator[type[AgentError]]:
    yield kind
    for narrower in kind.__subclasses__():
        yield from _subclasses(narrower)
