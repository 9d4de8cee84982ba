"""Listening to one turn of a model: its words as events, none of them blocked."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from itertools import count

from .errors import AgentError
from .events import Event, Stamp, Type
from .guardrails import GuardrailResult, Guardrails
from .planner import ReActPlanner, Request
from .retry import RetryPolicy
from .turn import PlanResult


class Listening:
    """Afterwards there is a `plan`, or a `finding` that blocks it; `said` is what was shown."""

    def __init__(
        self,
        planner: ReActPlanner,
        guardrails: Guardrails,
        retry: RetryPolicy,
        emit: Stamp,
        step: int,
    ) -> None:
        self.planner = planner
        self.guardrails = guardrails
        self.retry = retry
        self.emit = emit
        self.step = step
        self.plan: PlanResult | None = None
        self.finding: GuardrailResult | None = None
        self.said: list[str] = []

    async def events(self, request: Request) -> AsyncGenerator[Event, None]:
        """What the model says; asked anew where it failed before its first word."""
        for attempt in count(1):
            first = self.emit.seq
            try:
                async with aclosing(self._words(request)) as words:
                    async for event in words:
                        yield event
                return
            except AgentError as error:
                has_spoken = self.emit.seq > first
                wait = None if has_spoken else self.retry.wait(error, attempt)
                if wait is None:
                    raise
                yield self._waits(error, wait, attempt)
            await asyncio.sleep(wait)

    async def _words(self, request: Request) -> AsyncGenerator[Event, None]:
        screens = {kind: self.guardrails.screen_output() for kind in ("thought", "answer")}
        async with aclosing(self.planner.stream(request)) as pieces:
            async for piece in pieces:
                if isinstance(piece, PlanResult):
                    self.plan = piece
                    continue
                screen = screens[piece.kind]
                if text := screen.feed(piece.text):
                    yield self._said(piece.kind, text)
                if screen.blocked:
                    self.finding = screen.finding
                    return
        for kind, screen in screens.items():
            if text := screen.rest():
                yield self._said(kind, text)

    def _said(self, kind: str, text: str) -> Event:
        if kind == "thought":
            return self.emit(Type.THOUGHT_DELTA, content=text, step=self.step)
        self.said.append(text)
        return self.emit(Type.DELTA, content=text, step=self.step)

    def _waits(self, error: AgentError, wait: float, attempt: int) -> Event:
        return self.emit(
            Type.STATUS,
            kind="retry",
            message=str(error),
            seconds=round(wait, 1),
            attempt=attempt + 1,
            step=self.step,
        )
