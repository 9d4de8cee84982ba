"""Made-up runs as events, and a recount of them that reads nothing but events and feedback."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from agents.engine.events import Event, EventType
from agents.models import Run, RunEvent
from agents.review.models import Rating, Review
from agents.runs import event_store

LATE = "database didn't respond within 30 s."


def earlier_today() -> datetime:
    """Return an hour ago; in the first hour of a day, its beginning."""
    now = datetime.now(UTC)
    return max(now - timedelta(hours=1), now.replace(hour=0, minute=0, second=0, microsecond=0))


@dataclass
class Script:
    """What happens in a run; `calls` are tools with how they end."""

    agent: str = "helper"
    version: int | None = 1
    model: str = "demo/one"
    called: list[str] = field(default_factory=list)  # a model for each cost, instead of it
    user: Any = None
    began: datetime = field(default_factory=earlier_today)
    reason: str = "completed"
    calls: list[tuple[str, str]] = field(default_factory=list)  # done, failed, late, rejected
    costs: list[float | None] = field(default_factory=lambda: [0.25])
    cached_tokens: int = 0
    plans: int = 0
    hits: list[str] = field(default_factory=list)
    is_late: bool = False
    falls_back: bool = False
    words: int = 1
    seconds: float = 2.0

    def save(self, **columns: Any) -> Run:
        run = Run.objects.create(
            topic=columns.pop("topic", f"chat.{Run.objects.count()}"),
            agent_name=self.agent,
            agent_version=self.version,
            model=self.model,
            user=self.user,
            query="?",
            **columns,
        )
        Run.objects.filter(pk=run.pk).update(started_at=self.began)
        event_store.save([(run.pk, event) for event in _Events(self).all()])
        run.refresh_from_db()
        return run


class _Events:
    def __init__(self, script: Script) -> None:
        self.script, self.now, self.seq, self.step = script, script.began, 0, 0

    def all(self) -> list[Event]:
        script = self.script
        tools = [{"function": {"name": name}} for name, _ending in script.calls]
        started = {"query": "?", "model": script.model, "tools": tools}
        events = [self._emit(EventType.RUN_STARTED, **started)]
        events += [e for n in range(script.plans) for e in self._plan(n + 1)]
        events += [self._hit(action) for action in script.hits]
        events += [e for call in script.calls for e in self._call(*call)]
        return [*events, *self._answer(), self._finish()]

    def _emit(self, type: EventType, /, **data: Any) -> Event:
        self.seq += 1
        self.now += timedelta(seconds=self.script.seconds / 10)
        return Event(type=type, data=data, agent=self.script.agent, time=self.now, seq=self.seq)

    def _usage(self, cost: float | None, **about: Any) -> Event:
        more = {"cache_read_tokens": self.script.cached_tokens, "reasoning_tokens": 3}
        tokens = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
        return self._emit(EventType.USAGE, step=self.step, cost=cost, **tokens, **more, **about)

    def _plan(self, version: int) -> list[Event]:
        self.step += 1
        about = {"step": self.step, "turn": 0, "kind": "plan", "name": "plan", "plan": version}
        events = [self._emit(EventType.TASK, **about), self._usage(0.5)]
        ended = {"step": self.step, "kind": "plan", "status": "done"}
        return [*events, self._emit(EventType.STEP, **ended)]

    def _hit(self, action: str) -> Event:
        self.step += 1
        details = {"matches": 1, "observed": action == "observe"}
        done = "block" if action == "observe" else action
        about = {"step": self.step, "turn": 0, "action": done, "reason": "x"}
        return self._emit(EventType.GUARDRAIL, details=details, **about)

    def _call(self, tool: str, ending: str) -> list[Event]:
        self.step += 1
        about = {"step": self.step, "turn": 1, "started": self.now.isoformat()}
        call = {"id": f"c{self.step}", "function": {"name": tool, "arguments": "{}"}}
        events = [self._emit(EventType.TOOL_CALL, **call, **about)]
        content = {"late": LATE, "failed": "It broke."}.get(ending, "fine")
        rescued = {"failed_tool": tool} if ending == "rescued" else {}
        if ending != "rejected":
            response = {"content": content, "attempts": 1, **rescued}
            events.append(self._emit(EventType.TOOL_RESPONSE, **response, **about))
        status = {"late": "failed", "rescued": "done"}.get(ending, ending)
        used = {"called": tool, "action": "backup"} if rescued else {}
        step = {"kind": "tool", "status": status, **used}
        return [*events, self._emit(EventType.STEP, **step, **about)]

    def _answer(self) -> list[Event]:
        self.step += 1
        about = {"step": self.step, "turn": 1, "kind": "thought", "request": {}}
        events = [self._emit(EventType.STEP_STARTED, **about)]
        if self.script.falls_back:
            note = {"kind": "model_fallback", "from": "a", "to": "b", "message": "x"}
            events.append(self._emit(EventType.STATUS, step=self.step, **note))
        if self.script.is_late:
            error = {"message": "late", "type": "ModelTimeout", "step": self.step}
            return [*events, self._emit(EventType.ERROR, **error)]
        for _n in range(self.script.words):
            events.append(self._emit(EventType.DELTA, content="so ", step=self.step))
        models = self.script.called or [self.script.model] * len(self.script.costs)
        for cost, model in zip(self.script.costs, models, strict=True):
            events.append(self._usage(cost, model=model))
        done = {"step": self.step, "kind": "answer", "status": "done"}
        return [*events, self._emit(EventType.STEP, **done)]

    def _finish(self) -> Event:
        about = {"answer": "so", "detail": "", "advice": "", "turns": 1, "tool_calls": 0}
        return self._emit(
            EventType.RUN_FINISHED, stopped_reason=self.script.reason, output=None, **about
        )


OUTCOMES = {
    "completed": "completed",
    "tool_failure_degraded": "completed",
    "error": "failed",
    "blocked": "blocked",
    "cancelled": "cancelled",
    "budget_exceeded": "over_budget",
    "interrupted": "interrupted",
}


def recount(runs) -> tuple[Counter, dict[str, list[float]]]:
    """Count these runs again, from their events, ratings and corrections."""
    found: Counter = Counter()
    times: dict[str, list[float]] = {"active": [], "first": []}
    for run in runs:
        _recount_run(run, list(run.events.order_by("seq")), found, times)
        ratings = list(Rating.objects.filter(run=run))
        found["ratings_up"] += sum(one.is_good for one in ratings)
        found["ratings_down"] += sum(not one.is_good for one in ratings)
        found["rated"] += bool(ratings)
        found["corrected"] += Review.objects.filter(run=run).exclude(correction="").exists()
    return found, times


def _recount_run(run: Run, events: list[RunEvent], found: Counter, times) -> None:
    own: Counter = Counter()
    calls, plan_steps = {}, set()
    for event in events:
        data = event.data
        match event.type:
            case "usage":
                own["model_calls"] += 1
                own["input_tokens"] += data["prompt_tokens"]
                own["output_tokens"] += data["completion_tokens"]
                own["cache_read_tokens"] += data.get("cache_read_tokens", 0)
                own["reasoning_tokens"] += data.get("reasoning_tokens", 0)
                line = "replan_cost" if data["step"] in plan_steps else "answer_cost"
                own[line] += round((data["cost"] or 0) * 1e9)
                own["unpriced_calls"] += data["cost"] is None
            case "task":
                own["plans"] += 1
                if data["plan"] > 1:
                    own["replans"] += 1
                    plan_steps.add(data["step"])
            case "tool_response":
                calls[data["step"]] = data["content"]
                own["tool_calls"] += "failed_tool" in data
                own["tool_errors"] += "failed_tool" in data
            case "step" if data["kind"] == "tool":
                own["tool_calls"] += data["status"] in ("done", "failed")
                own["tool_errors"] += data["status"] == "failed"
                own["tool_timeouts"] += calls.get(data["step"]) == LATE
            case "guardrail" if not data["details"]["observed"]:
                own["guardrail_hits"] += 1
                own["guardrail_blocks"] += data["action"] == "block"
            case "status":
                own["fallbacks"] += data["kind"] == "model_fallback"
            case "error":
                own["late"] += data["type"] == "ModelTimeout"
            case "delta" if not own["spoken"]:
                own["spoken"] = 1
                times["first"].append((event.time - run.started_at).total_seconds())
            case "run_finished":
                found[OUTCOMES.get(data["stopped_reason"], "limited")] += 1
                times["active"].append((event.time - run.started_at).total_seconds())
    own |= Counter(
        runs=1,
        planned=int(own["plans"] > 0),
        replanned=int(own["replans"] > 0),
        timed_out=int(own["late"] + own["tool_timeouts"] > 0),
        unpriced=int(own["unpriced_calls"] > 0),
        guarded=int(own["guardrail_hits"] > 0),
    )
    for name in ("plans", "late", "spoken"):
        del own[name]
    found.update(own)


def exact_percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[max(1, -(-len(ordered) * share // 1)).__int__() - 1]
