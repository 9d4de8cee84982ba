"""Runs the tools of one run and tracks which of them still work."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from agents.engine.attachments import AttachmentStore, MemoryAttachmentStore, save_all
from agents.engine.call_context import NO_CONTEXT, CallContext, use_context
from agents.engine.concurrency.thread import run_in_thread_if_large
from agents.engine.errors import AgentError, CircuitOpen, ToolNotFoundError, UnreadableArguments
from agents.engine.guardrails.checks import Guardrails
from agents.engine.material import find_instructions
from agents.engine.sentences import Sentence as _
from agents.engine.sentences import without_error_prefix
from agents.engine.tool import TEXT_INPUT_SCHEMA, Tool, ToolInput, ToolRegistry, ToolResult
from agents.engine.tool_selection import FIND_TOOLS, argument_error
from agents.engine.turn.assembly import ToolCall

from ..capability import Hooks
from ..output.output_schema import OutputSchema
from .tool_fallback import FallbackResult, FallbackStrategy, effect

MAX_SIMILAR = 5

Outcomes = Mapping[str, asyncio.Task[FallbackResult]]


class ToolRunner:
    """Runs tools; one that failed for good is neither offered nor called again.

    Its fallback (`fallback_tool`, a name) is called instead, unless that needs approval or
    could do something twice, or `claim_stand_in` says that its limit is reached. The arguments
    of unsent tools are checked first, because the model may not have seen their schema.
    """

    def __init__(
        self,
        registry: ToolRegistry,
        fallback: FallbackStrategy,
        *,
        auto_execute: bool = True,
        guardrails: Guardrails | None = None,
        attachments: AttachmentStore | None = None,
        hooks: Hooks | None = None,
        claim_stand_in: Callable[[str], bool] = lambda name: True,
    ) -> None:
        self.registry = registry
        self.fallback = fallback
        self.auto_execute = auto_execute
        self.guardrails = guardrails or Guardrails()
        self.attachments = attachments or MemoryAttachmentStore()
        self.hooks = hooks or Hooks()
        self.claim_stand_in = claim_stand_in
        self.unavailable: set[str] = set()
        self.is_degraded = False
        self._misfits: dict[tuple[str, str], str] = {}

    def available_tools(self) -> list[Tool]:
        return [tool for tool in self.registry if tool.name not in self.unavailable]

    def sent_tools(self) -> list[Tool]:
        """Return the tools whose definitions the model is sent."""
        tools = self.available_tools()
        unsent = self.registry.unsent
        return [tool for tool in tools if tool.name not in unsent] if unsent else tools

    async def check_unsent(self, calls: Sequence[ToolCall]) -> None:
        """Check the arguments of tools that the model wasn't sent."""
        for call in calls:
            if call.name in self.registry.unsent:
                tool = self.registry.get(call.name)
                error = await run_in_thread_if_large(
                    len(call.arguments), argument_error, tool, call
                )
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
        tasks = dict[str, asyncio.Task[FallbackResult]]()
        if len(calls) > 1:
            for call in calls:
                tool = self.registry.get(call.name) if self.registry.has(call.name) else None
                if getattr(tool, "effect", "") == "read":
                    tasks[call.id] = asyncio.create_task(self.use(call, context(call)))
        try:
            yield tasks
        finally:
            for task in tasks.values():
                task.cancel()
            if tasks:
                await asyncio.wait(tasks.values())

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
        outcome = await self.screen(outcome, outcome.stand_in or call.name)
        if outcome.result.attachments:  # saved before the event that refers to them
            result, refs = await save_all(outcome.result, self.attachments)
            outcome = replace(outcome, result=result, attachments=refs)
        return outcome

    async def screen(self, outcome: FallbackResult, name: str) -> FallbackResult:
        """Apply guardrails to a result of this tool, and mark text from outside."""
        outcome = await self.guard_result(outcome)
        tool = self.registry.get(name) if self.registry.has(name) else None
        if not getattr(tool, "is_untrusted", False):
            return outcome
        text = outcome.result.text
        suspicion = await run_in_thread_if_large(len(text), find_instructions, text)
        return replace(outcome, is_untrusted=True, suspicion=suspicion)

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
            withheld = _("The result was blocked: %(reason)s", reason=blocked.reason)
            result = ToolResult(error=withheld, mendable=True)
        elif inspected.text != result.text and result.is_error:
            result = replace(result, error=without_error_prefix(inspected.text))
        elif inspected.text != result.text:
            result = replace(result, output=inspected.text, note="")
        # The reason for a fallback is displayed too.
        reason = guardrails.inspect(outcome.reason, "tool_output").text
        return replace(outcome, result=result, findings=findings, reason=reason)

    async def _run_call(self, call: ToolCall) -> FallbackResult:
        if call.name in self.unavailable:
            return FallbackResult.refused(
                _("%(tool)s is failing. Answer without it.", tool=call.name)
            )
        try:
            tool = self.registry.get(call.name)
            input = call.input
        except ToolNotFoundError as error:
            return FallbackResult.refused(self._not_found(call.name, error), error)
        except ValueError as error:
            refusal = _("The arguments aren't a JSON object: %(reason)s.", reason=error)
            return FallbackResult.refused(refusal, UnreadableArguments(refusal))
        if error_text := self.misfit(call):
            return FallbackResult.refused(error_text)
        # Made for each call: kept, it would refer to this object, which refers to it.
        call_with_hooks = self.hooks.wrap_tool(self._run_guarded)
        outcome = await call_with_hooks(tool, input)
        if outcome.degraded:
            self.unavailable.add(call.name)
        return outcome

    def _not_found(self, name: str, error: ToolNotFoundError) -> str:
        """Say which tools have similar names, if there are too many to list."""
        if not self.registry.unsent or name in self.registry.withheld:
            return str(error)
        similar = get_close_matches(name, self.registry.list_tools(), MAX_SIMILAR, 0.5)
        sentence = _(
            "There is no tool named %(name)s. Search with %(search)s.",
            name=repr(name),
            search=FIND_TOOLS,
        )
        if not similar:
            return sentence
        names = ", ".join(similar)
        return _("%(sentence)s Similar names: %(names)s.", sentence=sentence, names=names)

    async def _run_guarded(self, tool: Tool, input: ToolInput) -> FallbackResult:
        """Run the tool; the circuit breaker skips one that keeps failing in any run."""
        try:
            with self.fallback.circuits.of(f"tool:{tool.name}").attempt() as attempt:
                outcome = await self.fallback.execute_with_fallback(tool, input)
                if outcome.is_outage:
                    attempt.record_failure(outcome.error or "")
                elif not outcome.degraded:
                    attempt.record_success()
                return outcome
        except CircuitOpen as error:
            refusal = _("%(sentence)s Answer without it.", sentence=error)
            result = ToolResult(error=refusal)
            return FallbackResult(result=result, degraded=True, attempts=0, failure=error)

    async def _run_stand_in(self, call: ToolCall, outcome: FallbackResult) -> FallbackResult:
        """Run the fallback tool, if there is one that may be used."""
        stand_in = await self._claim_stand_in(call)
        if stand_in is None:
            return outcome
        stand_in_outcome = await self._run_call(replace(call, name=stand_in.name))
        result = stand_in_outcome.result
        if result.error is not None:
            error = _(
                "%(tool)s is failing, so %(fallback)s was called instead: %(why)s",
                tool=call.name,
                fallback=stand_in.name,
                why=result.error,
            )
            result = replace(result, error=error)
        else:
            output = _(
                "%(tool)s is failing, so this result is from %(fallback)s: %(output)s",
                tool=call.name,
                fallback=stand_in.name,
                output=result.output,
            )
            result = replace(result, output=output)
        return replace(
            stand_in_outcome,
            result=result,
            stand_in=stand_in.name,
            reason=outcome.error or "",
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
        if self.misfit(call) or not self.auto_execute or not self.registry.has(call.name):
            return None
        tool = self.registry.get(call.name)
        name: str = getattr(tool, "fallback_tool", None) or ""
        if name in self.unavailable or not self.registry.has(name):
            return None
        stand_in = self.registry.get(name)
        # It is at most as harmful, and the call can't have happened.
        harm = {"read": 0, "idempotent": 1}
        is_safe = harm.get(effect(stand_in), 2) <= harm.get(effect(tool), 2) < 2
        if not is_safe or getattr(stand_in, "needs_approval", False):
            return None
        # In a thread, because validating large arguments takes a while.
        if not await asyncio.to_thread(_accepts, stand_in, call):
            return None
        return stand_in if self.claim_stand_in(name) else None


def _accepts(tool: Tool, call: ToolCall) -> bool:
    """Whether the tool has all these arguments and they match its schema."""
    schema: Mapping[str, Any] = getattr(tool, "parameters", TEXT_INPUT_SCHEMA)
    properties: Mapping[str, Any] = schema.get("properties", {})
    try:
        OutputSchema(schema).decode(call.arguments)
        return call.input.keys() <= properties.keys()
    except (AgentError, ValueError):
        return False
