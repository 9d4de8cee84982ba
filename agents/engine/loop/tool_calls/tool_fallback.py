"""Handles failing tools: retries them, then does without."""

import asyncio
import random
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Self

from agents.engine import fault_injection
from agents.engine.attachments import AttachmentRef
from agents.engine.call_context import NO_CONTEXT, CallContext, current, use_context
from agents.engine.call_timeout import CallTimeout
from agents.engine.errors import AgentError, ToolExecutionFailed
from agents.engine.guardrails.patterns import GuardrailResult
from agents.engine.privacy.secrets import mask_secrets
from agents.engine.resilience.circuit_breaker import NEVER_OPEN, Circuits
from agents.engine.resilience.retry import RetryPolicy
from agents.engine.result_cache import CacheMark
from agents.engine.sentences import Sentence as _
from agents.engine.text import shorten
from agents.engine.tool import (
    Effect,
    Tool,
    ToolInput,
    ToolResult,
    timeout_message,
    uncertain_message,
)

TOOL_TIMEOUT_SECONDS = 30.0
MAX_TIMEOUT_RETRIES = 1
MAX_ERROR_CHARS = 20_000

# Errors in the code or the input: they say nothing about the tool's dependencies.
PROGRAMMING_ERRORS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FallbackResult:
    """The result of a call with retries and fallback.

    `degraded` means the tool is unusable; its last error is in `result`. `is_outage`: a
    dependency is down. `failure` is the typed error, unless the input was at fault. `stand_in`
    is the fallback tool used, because of `reason`; with `is_preferred` it was called first.
    `tried` is the fallback tool that was called first and failed.
    `findings` are the guardrails' findings in the result, and `attachments` those of its
    attachments that are saved. `is_untrusted`: it is text from outside, and `suspicion` what in
    it looks like instructions. `cached`: it was saved earlier, so nothing was called.
    """

    result: ToolResult
    degraded: bool = False
    attempts: int = 1
    is_outage: bool = False
    failure: AgentError | None = None
    stand_in: str | None = None
    reason: str = ""
    is_preferred: bool = False
    tried: str = ""
    findings: tuple[GuardrailResult, ...] = ()
    attachments: tuple[AttachmentRef, ...] = ()
    is_untrusted: bool = False
    suspicion: str = ""
    cached: CacheMark | None = None
    ended: float = field(default_factory=monotonic)  # monotonic time

    @classmethod
    def refused(cls, error: str, failure: AgentError | None = None) -> Self:
        """Return the outcome of a call that wasn't made; the model reads why."""
        return cls(result=ToolResult(error=error, mendable=True), failure=failure)

    @property
    def output(self) -> str:
        return self.result.output

    @property
    def error(self) -> str | None:
        return self.result.error

    def failed_tool(self, called: str) -> str:
        """Return the tool that failed before another one made this call, or nothing."""
        is_rescued = self.stand_in is not None and not self.is_preferred
        return called if is_rescued else self.tried

    def raise_for_status(self) -> Self:
        """Return the result; raise its `failure` if the tool was unusable."""
        if self.failure is not None:
            raise self.failure
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attempt:
    result: ToolResult
    is_outage: bool = False
    is_late: bool = False


class FallbackStrategy:
    """What is done about failures: tools and models are retried, and skipped if they go on.

    `retry` is for models, `circuits` are shared by all runs of a process.
    """

    def __init__(
        self,
        max_retries: int = 2,
        *,
        pause: float = 0.1,
        retry: RetryPolicy | None = None,
        circuits: Circuits | None = None,
    ) -> None:
        self.max_retries = max_retries
        self.pause = pause
        self.retry = retry or RetryPolicy()
        self.circuits = circuits or Circuits(NEVER_OPEN)

    async def execute_with_fallback(self, tool: Tool, input: ToolInput) -> FallbackResult:
        context = current()
        if context is NO_CONTEXT:  # outside a run the call still has a timeout of its own
            with use_context(CallContext()):
                return await self.execute_with_fallback(tool, input)
        max_attempts = 1  # if repeating a call could do harm
        if effect(tool) != "at_most_once":
            own_limit: int | None = getattr(tool, "max_retries", None)
            max_attempts += self.max_retries if own_limit is None else own_limit
        late_attempts = 0
        for attempts in range(1, max_attempts + 1):
            attempt = await self._attempt(tool, input, context)
            result = attempt.result
            late_attempts += attempt.is_late
            if not result.is_error or result.mendable:
                return FallbackResult(result=result, attempts=attempts)
            # A timed-out call is repeated once, and only if it changes nothing.
            may_repeat_late = effect(tool) == "read" and late_attempts <= MAX_TIMEOUT_RETRIES
            if attempts == max_attempts or (attempt.is_late and not may_repeat_late):
                break
            wait = self.pause * 2**attempts * random.uniform(0.5, 1)
            context.report_retry(result.error or "", attempts + 1, wait)
            await asyncio.sleep(wait)
        return FallbackResult(
            result=result,
            degraded=True,
            attempts=attempts,
            is_outage=attempt.is_outage,
            failure=ToolExecutionFailed(result.error or ""),
        )

    async def _attempt(self, tool: Tool, input: ToolInput, context: CallContext) -> _Attempt:
        timeout = getattr(tool, "timeout", None) or TOOL_TIMEOUT_SECONDS
        try:
            async with asyncio.timeout(timeout) as call_timeout:
                context.timeout = CallTimeout(call_timeout, timeout)
                context.variables = copy_context()
                fault_injection.point("during_tool_call")
                result: object = await tool.execute(input)
        except Exception as error:
            if call_timeout.expired():
                message = timeout_message(tool.name, timeout)
                if effect(tool) == "at_most_once":
                    message = uncertain_message(message)
                return _Attempt(result=ToolResult(error=message), is_outage=True, is_late=True)
            message = _(
                "%(tool)s failed: %(type)s: %(words)s",
                tool=tool.name,
                type=type(error).__name__,
                words=error,
            )
            is_outage = not isinstance(error, PROGRAMMING_ERRORS)
            if isinstance(error, AgentError):
                is_outage = error.is_outage
            return _Attempt(result=_mask_error(ToolResult(error=message)), is_outage=is_outage)
        if isinstance(result, str):
            result = ToolResult(result)
        elif not isinstance(result, ToolResult):
            result = ToolResult(
                error=_(
                    "%(tool)s returned %(type)s instead of a ToolResult.",
                    tool=tool.name,
                    type=type(result).__name__,
                )
            )
        return _Attempt(
            result=_mask_error(result),
            is_outage=result.is_error and not result.mendable,
            is_late=result.is_late,
        )


def effect(tool: Tool) -> Effect:
    """Return the effect of repeating a call; the default is idempotent."""
    declared: Effect = getattr(tool, "effect", "idempotent")
    return declared


def _mask_error(result: ToolResult) -> ToolResult:
    """Mask secrets in a tool's error, which may quote other systems."""
    if result.error is None:
        return result
    return replace(result, error=mask_secrets(shorten(result.error, MAX_ERROR_CHARS)))
