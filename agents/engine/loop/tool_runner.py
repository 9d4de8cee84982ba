"""Runs the tools of one run and tracks which of them still work."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from typing import Any

from agents.engine.attachments import AttachmentStore, MemoryAttachmentStore, save_all
from agents.engine.call_context import NO_CONTEXT, CallContext, use_context
from agents.engine.concurrency.thread import run_in_thread_if_large
from agents.engine.errors import AgentError, CircuitOpen, QuotaExceeded, ToolNotFoundError
from agents.engine.guardrails.checks import Guardrails
from agents.engine.material import find_instructions
from agents.engine.resilience.circuit_breaker import NEVER_OPEN, Circuits
from agents.engine.result_cache import ResultCache
from agents.engine.spending import NO_LIMITS, SpendingGate
from agents.engine.tool import TEXT_INPUT_SCHEMA, Tool, ToolInput, ToolRegistry, ToolResult
from agents.engine.tool_selection import FIND_TOOLS, argument_error
from agents.engine.turn.assembly import ToolCall

from .cached_calls import run_cached
from .output_schema import OutputSchema
from .tool_fallback import FallbackResult, FallbackStrategy, effect

MAX_SIMILAR = 5

Outcomes = Mapping[str, asyncio.Task[FallbackResult]]


class ToolRunner:
    """Runs tools; one that failed for good is neither offered nor called again.

    Its fallback (`fallback_tool`, a name) is called instead, unless that needs approval or
    could do something twice, or `claim_stand_in` says that its limit is reached. `unsent` tools
    can be called, but the model may not have seen their schema, so their arguments are checked
    first.
    """

    def __init__(
        self,
        registry: ToolRegistry,
        fallback: FallbackStrategy,
        *,
        circuits: Circuits | None = None,
        auto_execute: bool = True,
        guardrails: Guardrails | None = None,
        attachments: AttachmentStore | None = None,
        spending: SpendingGate = NO_LIMITS,
        claim_stand_in: Callable[[str], bool] = lambda name: True,
    ) -> None:
        self.registry = registry
        self.fallback = fallback
        self.circuits = circuits or Circuits(NEVER_OPEN)
        self.auto_execute = auto_execute
        self.guardrails = guardrails or Guardrails()
        self.attachments = attachments or MemoryAttachmentStore()
        self.spending = spending
        self.claim_stand_in = claim_stand_in
        self.unavailable: set[str] = set()
        self.unsent: frozenset[str] = frozenset()
        self.is_degraded = False
        self._misfits: dict[tuple[str, str], str] = {}

    def available_tools(self) -> list[Tool]:
        names = self.registry.list_tools()
        return [self.registry.get(name) for name in names if name not in self.unavailable]

    async def check_unsent(self, calls: Sequence[ToolCall]) -> None:
        """Check the arguments of tools that the model wasn't sent."""
        for call in calls:
            if call.name in self.unsent:
                tool, size = self.registry.get(call.name), len(call.arguments)
                error = await run_in_thread_if_large(size, argument_error, tool, call)
                self._misfits[call.name, call.arguments] = error

    def misfit(self, call: ToolCall) -> str:
        """Return why the arguments of an unsent tool don't match its schema, or nothing."""
        return self._misfits.get((call.name, call.arguments), "")

    @asynccontextmanager
    async def run_concurrently(
        self, calls: Sequence[ToolCall], context: Callable[[ToolCall], CallContext]
    ) -> AsyncIterator[Outcomes]:
        """Start the read-only calls and yield them by id.

        Others start once they are recorded.
        """
        tasks = {
            call.id: asyncio.create_task(self.use(call, context(call)))
            for call in self._read_only_calls(calls)
        }
        try:
            yield tasks
        finally:
            for task in tasks.values():
                task.cancel()
            if tasks:
                await asyncio.wait(tasks.values())

    def _read_only_calls(self, calls: Sequence[ToolCall]) -> list[ToolCall]:
        if len(calls) < 2:
            return []
        known = [call for call in calls if self.registry.has(call.name)]
        return [c for c in known if getattr(self.registry.get(c.name), "effect", "") == "read"]

    async def use(self, call: ToolCall, context: CallContext = NO_CONTEXT) -> FallbackResult:
        """Make the call in its context; any problem with it is returned as a result."""
        was_out_of_order = call.name in self.unavailable
        with use_context(context):
            outcome = await self._run_preferred(call) or await self._run_call(call)
            if outcome.is_preferred and (outcome.degraded or outcome.result.is_error):
                tried = outcome.stand_in or ""
                outcome = replace(await self._run_call(call), tried=tried)
            if (was_out_of_order or outcome.degraded) and outcome.stand_in is None:
                outcome = await self._run_stand_in(call, outcome)
        if outcome.degraded:
            self.is_degraded = True
        elif not outcome.result.is_error:
            self.is_degraded = False
        guarded = await self._mark_untrusted(call.name, await self.guard_result(outcome))
        return await self._save_attachments(guarded)

    async def _mark_untrusted(self, name: str, outcome: FallbackResult) -> FallbackResult:
        """Mark text from outside, and say what in it looks like instructions."""
        used = outcome.stand_in or name
        tool = self.registry.get(used) if self.registry.has(used) else None
        if not getattr(tool, "is_untrusted", False):
            return outcome
        text = outcome.result.text
        suspicion = await run_in_thread_if_large(len(text), find_instructions, text)
        return replace(outcome, is_untrusted=True, suspicion=suspicion)

    async def _save_attachments(self, outcome: FallbackResult) -> FallbackResult:
        """Save the result's attachments before the event that refers to them."""
        if not outcome.result.attachments:
            return outcome
        result, refs = await save_all(outcome.result, self.attachments)
        return replace(outcome, result=result, attachments=refs)

    async def guard_result(self, outcome: FallbackResult) -> FallbackResult:
        """Apply guardrails to a result; a blocked result becomes an error."""
        result = outcome.result
        guardrails = self.guardrails
        checks = guardrails.model_checks
        if not guardrails.applies_to("tool_output") and not checks.for_stage("tool_output"):
            return outcome
        inspected = await run_in_thread_if_large(
            len(result.text), guardrails.inspect, result.text, "tool_output"
        )
        findings = inspected.findings
        if not inspected.is_blocked:
            findings += tuple(await checks.judge(inspected.text, "tool_output"))
        blocked = next((finding for finding in findings if finding.blocks), None)
        if blocked is not None:
            withheld = f"The result was blocked: {blocked.reason}"
            result = ToolResult(error=withheld, mendable=True)
        elif inspected.text != result.text and result.is_error:
            result = replace(result, error=inspected.text.removeprefix("Error: "))
        elif inspected.text != result.text:
            result = replace(result, output=inspected.text, note="")
        # The reason for a fallback is displayed too.
        reason = guardrails.inspect(outcome.reason, "tool_output").text
        return replace(outcome, result=result, findings=findings, reason=reason)

    async def _run_call(self, call: ToolCall) -> FallbackResult:
        if call.name in self.unavailable:
            return _refusal(f"{call.name} is failing. Answer without it.")
        try:
            tool, input = self.registry.get(call.name), call.input
        except ToolNotFoundError as error:
            return replace(_refusal(self._not_found(call.name, error)), failure=error)
        except ValueError as error:
            return _refusal(f"The arguments aren't a JSON object: {error}.")
        if error_text := self.misfit(call):
            return _refusal(error_text)
        outcome = await self._run_tool(tool, input)
        if outcome.degraded:
            self.unavailable.add(call.name)
        return outcome

    def _not_found(self, name: str, error: ToolNotFoundError) -> str:
        """Say which tools have similar names, if there are too many to list."""
        if not self.unsent or name in self.registry.withheld:
            return str(error)
        similar = get_close_matches(name, self.registry.list_tools(), MAX_SIMILAR, 0.5)
        sentence = f"There is no tool named {name!r}. Search with {FIND_TOOLS}."
        return f"{sentence} Similar names: {', '.join(similar)}." if similar else sentence

    async def _run_tool(self, tool: Tool, input: ToolInput) -> FallbackResult:
        """Run the tool, or take its result from the cache if it has one."""
        cache: ResultCache | None = getattr(tool, "result_cache", None)
        if cache is None:
            return await self._run_live(tool, input)
        return await run_cached(cache, input, partial(self._run_live, tool, input))

    async def _run_live(self, tool: Tool, input: ToolInput) -> FallbackResult:
        """Run the tool if limits across runs allow it; if not, the model reads which one."""
        try:
            async with self.spending.tool_call(tool.name):
                return await self._run_guarded(tool, input)
        except QuotaExceeded as error:
            return replace(_refusal(f"{error} {error.advice}".strip()), failure=error)

    async def _run_guarded(self, tool: Tool, input: ToolInput) -> FallbackResult:
        """Run the tool; the circuit breaker skips one that keeps failing in any run."""
        try:
            with self.circuits.of(f"tool:{tool.name}").attempt() as attempt:
                outcome = await self.fallback.execute_with_fallback(tool, input)
                if outcome.is_outage:
                    attempt.record_failure(outcome.error or "")
                elif not outcome.degraded:
                    attempt.record_success()
                return outcome
        except CircuitOpen as error:
            refusal = f"{error} Answer without it."
            result = ToolResult(error=refusal)
            return FallbackResult(result=result, degraded=True, attempts=0, failure=error)

    async def _run_stand_in(self, call: ToolCall, outcome: FallbackResult) -> FallbackResult:
        """Run the fallback tool, if there is one that may be used."""
        stand_in = await self._claim_stand_in(call)
        if stand_in is None:
            return outcome
        stand_in_outcome = await self._run_call(replace(call, name=stand_in.name))
        reason = outcome.error or ""
        result = _stand_in_result(call.name, stand_in.name, stand_in_outcome.result)
        return replace(
            stand_in_outcome,
            result=result,
            stand_in=stand_in.name,
            reason=reason,
            tried=outcome.tried,
        )

    async def _run_preferred(self, call: ToolCall) -> FallbackResult | None:
        """Run the fallback tool first if it is more reliable."""
        tool = self.registry.get(call.name) if self.registry.has(call.name) else None
        why: str = getattr(tool, "prefers_fallback", "")
        stand_in = await self._claim_stand_in(call) if why else None
        if stand_in is None:
            return None
        stand_in_outcome = await self._run_call(replace(call, name=stand_in.name))
        return replace(stand_in_outcome, stand_in=stand_in.name, reason=why, is_preferred=True)

    async def _claim_stand_in(self, call: ToolCall) -> Tool | None:
        """Return the tool that makes this call instead, and count it; None if none may."""
        # A call that can't be right wasn't approved, so no other tool makes it either.
        other = None if self.misfit(call) else self._find_stand_in(call.name)
        # In a thread, because validating large arguments takes a while.
        if other is None or not await asyncio.to_thread(_accepts, other, call):
            return None
        return other if self.claim_stand_in(other.name) else None

    def _find_stand_in(self, name: str) -> Tool | None:
        tool = self.registry.get(name) if self.registry.has(name) else None
        other: str = getattr(tool, "fallback_tool", None) or ""
        if not self.auto_execute or other in self.unavailable or not self.registry.has(other):
            return None
        stand_in = self.registry.get(other)
        asks = getattr(stand_in, "needs_approval", False)
        return stand_in if tool and not asks and _is_safe_stand_in(tool, stand_in) else None


def _refusal(error: str) -> FallbackResult:
    return FallbackResult(result=ToolResult(error=error, mendable=True))


def _stand_in_result(name: str, other: str, result: ToolResult) -> ToolResult:
    if result.error is not None:
        error = f"{name} is failing, so {other} was called instead: {result.error}"
        return replace(result, error=error)
    output = f"{name} is failing, so {other} answered instead: {result.output}"
    return replace(result, output=output)


def _is_safe_stand_in(tool: Tool, stand_in: Tool) -> bool:
    """Whether the fallback is at most as harmful and the call can't have happened."""
    harm = {"read": 0, "idempotent": 1}
    return harm.get(effect(stand_in), 2) <= harm.get(effect(tool), 2) < 2


def _accepts(tool: Tool, call: ToolCall) -> bool:
    """Whether the tool knows all arguments and they match its schema."""
    schema: Mapping[str, Any] = getattr(tool, "parameters", TEXT_INPUT_SCHEMA)
    known: Mapping[str, Any] = schema.get("properties", {})
    try:
        OutputSchema(schema).decode(call.arguments)
        return call.input.keys() <= known.keys()
    except (AgentError, ValueError):
        return False
