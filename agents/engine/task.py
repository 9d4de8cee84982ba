"""One step of a plan on its way: a row of its own, and all that is done for it."""

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal

from .acting import MOST_OBSERVATION, PREVIEW, Acting
from .approval import AskPerson
from .braid import Braid
from .events import Event, Stamp, Type
from .expressions import BadExpression, filled, parse
from .handoff import ASKS
from .mending import doubt, mend
from .monitor import Check, Finding
from .past import Past
from .plan import ExecutionStep
from .state import AgentState
from .tool import ToolResult
from .toolbox import Toolbox
from .trail import Trail, retrace
from .turn import ToolCall

if TYPE_CHECKING:
    from .runtime import AgentRuntime

MOST_ITEMS = 1_000
MOST_AT_ONCE = 100
PAUSE = 0.5

Events = AsyncGenerator[Event, None]
Names = Mapping[str, Any]
Status = Literal["done", "failed", "skipped", "unreached"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a step. `number` is its row; `finding` what a check said of its output."""

    status: Status
    output: Any = None
    reason: str = ""
    number: int | None = None
    finding: Finding | None = None

    @property
    def is_well(self) -> bool:
        return self.status in {"done", "skipped"}

    @property
    def facts(self) -> dict[str, Any]:
        """What expressions can ask of it."""
        return {"output": self.output, "status": self.status, "error": self.reason}

    @property
    def text(self) -> str:
        return text_of(self.output) if self.status == "done" else self.reason


@dataclass(frozen=True, slots=True)
class Site:
    """What all the work on one plan shares: who does it, and what was done of it before."""

    agent: "AgentRuntime"
    trail: Trail
    past: Past
    version: int = 1
    most_at_once: int = MOST_AT_ONCE

    def trail_of(self, step: int, *calls: ToolCall) -> Trail:
        """Where the work that is a part of this step stands."""
        ours, past = self.trail, self.past.tree(step)
        stamp = ours.emit.under(ours.emit.agent, step)
        trail = retrace(past, stamp, AgentState(), calls)
        trail.path, trail.budgets, trail.progress = ours.path, ours.budgets, ours.progress
        trail.turn = self.version
        return trail

    def at(self, parent: int | None) -> Stamp:
        stamp = self.trail.emit
        return stamp if parent == stamp.parent else stamp.under(stamp.agent, parent or 0)


class Task:
    """A step of a plan, being done. Afterwards there is an `outcome`, unless a person is
    waited for. What was done of it before is not done again.
    """

    def __init__(
        self, site: Site, step: ExecutionStep, names: Names, parent: int | None
    ) -> None:
        self.site = site
        self.step = step
        self.names = names
        self.parent = parent
        self.outcome: Outcome | None = None
        self.number = self._known()
        self._rows: dict[int, Event] = {}
        self._last = ToolResult()
        self._finding: Finding | None = None

    async def events(self) -> Events:
        if self.number is None:
            self.number = self.site.trail.emit.next_step()
            yield self._begun()
        async with aclosing(self._in_time(self._work())) as work:
            async for event in work:
                yield event
        if self.outcome is not None:
            yield self._ended(self.outcome)

    def skip(self, reason: str) -> Iterator[Event]:
        """Told, but not done."""
        self.number = self.site.trail.emit.next_step()
        self.outcome = Outcome(status="skipped", reason=reason, number=self.number)
        yield self._begun()
        yield self._ended(self.outcome)

    def _known(self) -> int | None:
        """Its row, where it was begun before."""
        for event in self.site.past.under(self.parent, Type.TASK):
            told = event.data
            if (told["name"], told["plan"]) == (self.step.name, self.site.version):
                number: int = told["step"]
                return number
        return None

    def _begun(self) -> Event:
        step = self.step
        return self.site.at(self.parent)(
            Type.TASK,
            step=self.number,
            turn=self.site.version,
            plan=self.site.version,
            kind="task",
            name=step.name,
            work=step.kind,
            what=step.tool or step.agent or step.ask,
            expected=step.expected_outcome,
        )

    def _ended(self, outcome: Outcome) -> Event:
        finding = outcome.finding and outcome.finding.to_dict()
        return self.site.at(self.parent)(
            Type.STEP,
            step=self.number,
            turn=self.site.version,
            kind="task",
            status=outcome.status,
            action=self.step.name,
            observation=outcome.text[:PREVIEW],
            output=outcome.output,
            reason=outcome.reason,
            finding=finding,
        )

    async def _work(self) -> Events:
        try:
            if self.step.for_each is not None:
                course = self._each(self._items())
            elif self.step.plan is not None:
                course = self._nested()
            else:
                course = self._rounds()
            async with aclosing(course):
                async for event in course:
                    yield event
        except BadExpression as error:
            self._fail(str(error))

    def _items(self) -> list[Any]:
        wanted = self.step.for_each
        items = parse(wanted).value(self.names) if isinstance(wanted, str) else wanted
        items = filled(items, self.names)
        if not isinstance(items, list | tuple):
            raise BadExpression(f"for_each of “{self.step.name}” needs a list.")
        if len(items) > MOST_ITEMS:
            raise BadExpression(f"for_each takes at most {MOST_ITEMS:,} items.")
        return list(items)

    async def _each(self, items: list[Any]) -> Events:
        """The same for every item: side by side, or one after the other."""
        tasks = {f"{at}": self._item(at, item) for at, item in enumerate(items)}
        waiting, braid = list(tasks), Braid()
        most = self.site.most_at_once if self.step.parallel else 1
        try:
            while waiting or len(braid):
                while waiting and len(braid) < most:
                    name = waiting.pop(0)
                    braid.add(name, tasks[name].unended())
                _, event = await braid.next()
                if event is not None:
                    yield event
        finally:
            await braid.close()
        self._gather([task.outcome for task in tasks.values()])

    def _item(self, at: int, item: Any) -> "Task":
        one = replace(self.step, for_each=None, name=f"{self.step.name}[{at}]")
        names = {**self.names, "item": item, "index": at}
        return Task(self.site, one, names, self.number)

    async def unended(self) -> Events:
        """Its events, unless it was seen to its end before."""
        if (outcome := self.ended()) is not None:
            self.outcome = outcome
            return
        async with aclosing(self.events()) as events:
            async for event in events:
                yield event

    def ended(self) -> Outcome | None:
        """What became of it, where that is on record."""
        end = self.site.past.end(self.number) if self.number is not None else None
        if end is None:
            return None
        data = end.data
        found = data.get("finding")
        return Outcome(
            status=data["status"],
            output=data.get("output"),
            reason=data.get("reason", ""),
            number=self.number,
            finding=Finding.from_dict(found) if found else None,
        )

    def _gather(self, outcomes: list[Outcome | None]) -> None:
        if None in outcomes:
            return
        ended = [outcome for outcome in outcomes if outcome is not None]
        failed = [outcome for outcome in ended if not outcome.is_well]
        outputs = [outcome.output for outcome in ended]
        if failed:
            self._fail(f"{len(failed)} of {len(ended)} failed: {failed[0].reason}", outputs)
        else:
            self._succeed(outputs)

    async def _nested(self) -> Events:
        from .execution import Execution  # a plan has steps, and a step may have a plan

        assert self.step.plan is not None
        execution = Execution(self.site, self.step.plan, outer=self.names, parent=self.number)
        async with aclosing(execution.events()) as events:
            async for event in events:
                yield event
        if execution.is_waiting:
            return
        if execution.failures:
            name, outcome = next(iter(execution.failures.items()))
            self._fail(f"“{name}”: {outcome.reason}", execution.output)
        else:
            self._succeed(execution.output)

    async def _rounds(self) -> Events:
        """Again until it is true, where that is asked for; else once."""
        until = parse(self.step.until) if self.step.until else None
        for at in range(self.step.rounds if until else 1):
            async with aclosing(self._attempts(at)) as attempts:
                async for event in attempts:
                    yield event
            if self.outcome is not None or self._is_waiting:
                return
            output = output_of(self._last)
            if until is None or until.value({**self.names, "output": output}):
                self._succeed(output)
                return
        self._fail(f"“{self.step.until}” did not come true in {self.step.rounds} rounds.")

    _is_waiting = False

    async def _attempts(self, at: int) -> Events:
        """Until it works and gives what is expected; at the end of them it has failed."""
        for attempt in range(self.step.retry + 1):
            number = at * (self.step.retry + 1) + attempt + 1
            if attempt and not self._is_recorded(number):
                await asyncio.sleep(PAUSE * 2 ** (attempt - 1))
            async with aclosing(self._attempt(number)) as events:
                async for event in events:
                    yield event
            is_well = not self._last.is_error and (not self._finding or self._finding.is_met)
            if is_well or self._is_waiting:
                return
        finding = self._finding
        why = finding.reason if finding else self._last.error or ""
        self._fail(why, output_of(self._last), finding)

    def _is_recorded(self, attempt: int) -> bool:
        return self._response(self._call_id(attempt)) is not None

    def _call_id(self, attempt: int) -> str:
        return f"task_{self.number}_{attempt}"

    def _response(self, id: str) -> Mapping[str, Any] | None:
        for event in self.site.past.under(self.number, Type.TOOL_RESPONSE):
            if event.data["tool_call_id"] == id:
                return event.data
        return None

    async def _attempt(self, number: int) -> Events:
        self._finding = None
        async with aclosing(self._call(number)) as call:
            async for event in call:
                yield event
        if self._is_waiting or self._last.is_error or not self.step.expected_outcome:
            return
        check = Check(self.site, self.step, output_of(self._last), self.number or 0, number)
        async with aclosing(check.events()) as checking:
            async for event in checking:
                yield event
        self._finding = check.finding

    async def _call(self, attempt: int) -> Events:
        """One call of its tool, or of whoever is asked, by the road that all calls go."""
        agent, id = self.site.agent, self._call_id(attempt)
        name, arguments = self._wanted()
        written = json.dumps(arguments, ensure_ascii=False, default=str)
        call = ToolCall(id=id, name=name, arguments=written)
        trail = self.site.trail_of(self.number or 0, call)
        for event in mend(trail):
            yield event
        if (known := self._response(id)) is not None:
            self._last = _result(known)
            return
        doubt(trail, agent.tools)
        toolbox = Toolbox(agent.tools, agent.fallback, circuits=agent.circuits)
        async with aclosing(Acting(trail, toolbox, agent.asking).events()) as acting:
            async for event in acting:
                if event.type is Type.RUN_PAUSED:
                    self._is_waiting = True
                    return
                if event.type is Type.TOOL_RESPONSE and event.data["tool_call_id"] == id:
                    self._last = _result(event.data)
                yield event

    def _wanted(self) -> tuple[str, dict[str, Any]]:
        """The tool that does it, and what it is given."""
        step, arguments = self.step, filled(dict(self.step.arguments), self.names)
        if step.ask:
            about = {"role": step.role} if step.role else {}
            approves = {"approves": True} if step.approves else {}
            return AskPerson.name, {"question": filled(step.ask, self.names), **about, **approves}
        if step.agent:
            task = arguments.get("task") or step.name
            return f"{ASKS}{step.agent}", {"task": text_of(task)}
        return step.tool, arguments

    def _succeed(self, output: Any) -> None:
        finding = self._finding
        self.outcome = Outcome(
            status="done", output=output, number=self.number, finding=finding
        )

    def _fail(self, reason: str, output: Any = None, finding: Finding | None = None) -> None:
        self.outcome = Outcome(
            status="failed", output=output, reason=reason, number=self.number, finding=finding
        )

    async def _in_time(self, course: Events) -> Events:
        """The course, until its time is up; then what is under way is ended, and told."""
        timeout = self.step.timeout
        end = monotonic() + timeout if timeout else None
        async with aclosing(course):
            while True:
                left = None if end is None else max(0.0, end - monotonic())
                try:
                    async with asyncio.timeout(left) as limit:
                        event = await anext(course)
                except StopAsyncIteration:
                    return
                except TimeoutError:
                    if not limit.expired():
                        raise
                    break
                self._note(event)
                yield event
        late = f"It took longer than {timeout:g} seconds."
        for event in self._given_up(late):
            yield event
        self._fail(late)

    def _note(self, event: Event) -> None:
        """Which rows are open, in case that they have to be closed from here."""
        if event.type in {Type.TASK, Type.STEP_STARTED, Type.TOOL_CALL}:
            self._rows[event.data["step"]] = event
        elif event.type is Type.STEP:
            self._rows.pop(event.data["step"], None)

    def _given_up(self, late: str) -> Iterator[Event]:
        for begun in reversed(self._rows.values()):
            data = begun.data
            emit = self.site.trail.emit.under(begun.agent, data["parent"])
            about = {"step": data["step"], "turn": data["turn"]}
            kind = "tool" if begun.type is Type.TOOL_CALL else data["kind"]
            if kind == "tool":
                yield emit(Type.TOOL_RESPONSE, **_unanswered(data, late), **about)
            yield emit(Type.STEP, kind=kind, status=_fate(data, kind), **about)


def _unanswered(call: Mapping[str, Any], late: str) -> dict[str, Any]:
    is_unsure = call.get("effect") == "at_most_once"
    said = f"Error: {late}" + (" It may have been done, or not." if is_unsure else "")
    return {
        "tool_call_id": call["id"],
        "name": call["function"]["name"],
        "content": said,
        "content_preview": said[:PREVIEW],
        "is_error": True,
        "attempts": 1,
        "started": call["started"],
    }


def _fate(data: Mapping[str, Any], kind: str) -> str:
    if kind == "tool" and data.get("effect") == "at_most_once":
        return "unknown"
    return "cancelled" if kind == "thought" else "failed"


def _result(response: Mapping[str, Any]) -> ToolResult:
    content: str = response["content"]
    if response["is_error"]:
        return ToolResult(error=content.removeprefix("Error: "))
    return ToolResult(content)


def output_of(result: ToolResult) -> Any:
    """What later steps refer to: data where it is JSON, else the text."""
    text = result.output
    if len(text) <= MOST_OBSERVATION and text.lstrip()[:1] in {"{", "["}:
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    return text


def text_of(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
