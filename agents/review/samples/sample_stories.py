"""Sample runs of a fictional company, as events."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Any

from agents.engine.events import Event, EventType
from agents.engine.loop import StopReason

# Dollars per million input and output tokens.
MODELS = {
    "openai/gpt-5-mini": (0.25, 2.0),
    "anthropic/claude-sonnet-4-5": (3.0, 15.0),
    "openai/qwen3-32b": (None, None),
    "gemini/gemini-2.5-flash": (0.3, 2.5),
}
AGENTS = ["helper", "helper", "helper", "reporter", "researcher"]
TOOLS = {
    "database": ("sql", "SELECT name, total FROM orders WHERE id = {n}", '{{"total": {n}}}'),
    "search": ("query", "returns after {n} days", "Returns are accepted within 30 days."),
    "calculator": ("expression", "{n} * 1.1", "{n}.1"),
    "shop_find_order": ("order", "{n}", '{{"order": {n}, "state": "shipped"}}'),
    "weather": ("place", "Osaka", '{{"sky": "clear", "degrees": 21}}'),
}
# Question, answer and tools.
CONVERSATIONS = [
    ("What is {n} plus tax?", "With tax it comes to **{n}.1**.", ["calculator"]),
    ("Where is order {n}?", "Order {n} has been shipped.", ["shop_find_order"]),
    ("Which customers spent more than {n} dollars?", "12 customers did.", ["database"]),
    ("How do I return something after {n} days?", "Within 30 days, by post.", ["search"]),
    ("Compare order {n} with last year.", "It grew.", ["database", "database"]),
    ("Say hello in {n} words.", "Hello, and have a nice day!", []),
    ("Why was invoice {n} paid twice?", "It was a duplicate payment.", ["database", "search"]),
    ("{n}円の税込み価格はいくらですか？", "税込みで **{n}.1円** です。", ["calculator"]),
    ("注文{n}は今どこにありますか？", "注文{n}は発送済みです。", ["shop_find_order"]),
    ("{n}日後でも返品できますか？", "30日以内であれば返品できます。", ["search"]),
    ("売上が{n}円を超えた顧客を教えて。", "12名いらっしゃいます。", ["database"]),
    ("大阪の天気と注文{n}の状況は？", "晴れです。", ["weather", "shop_find_order"]),
]
FILLER = {
    True: "詳しくは担当の者からご連絡いたします。ご不明な点がありましたらお知らせください。",
    False: " If anything is missing, let us know and we'll look into it.",
}
# Weights of stop reasons.
ENDING_WEIGHTS = {
    StopReason.COMPLETED: 86,
    StopReason.ERROR: 5,
    StopReason.CANCELLED: 3,
    StopReason.MAX_STEPS: 2,
    StopReason.BLOCKED: 2,
    StopReason.DEGRADED: 1,
    StopReason.INTERRUPTED: 1,
}
ERROR_MESSAGES = [
    "The model didn't respond within 60 s.",
    "The tool database failed: too many connections.",
    "The provider's rate limit was reached.",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryCall:
    tool: str
    arguments: str
    result: str
    seconds: float
    is_error: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """A sample run, whose answer is streamed in `chunk_count` pieces."""

    query: str
    answer: str
    agent: str
    model: str
    calls: Sequence[StoryCall]
    ending: StopReason
    detail: str = ""
    history: Sequence[dict[str, Any]] = ()
    is_warned: bool = False
    thinks: float = 1.0
    chunk_count: int = 1
    prompt_tokens: int = 400

    def usage(self, completion_tokens: int) -> dict[str, Any]:
        input_price, output_price = MODELS.get(self.model, (None, None))
        cost = None
        if input_price is not None and output_price is not None:
            cost = (input_price * self.prompt_tokens + output_price * completion_tokens) / 1e6
        counts = {"prompt_tokens": self.prompt_tokens, "completion_tokens": completion_tokens}
        return counts | {"total_tokens": self.prompt_tokens + completion_tokens, "cost": cost}


def make_story(random: Random, number: int, chunk_count: int) -> Story:
    query, answer, tools = random.choices(
        CONVERSATIONS, [1 if conversation[2] else 3 for conversation in CONVERSATIONS]
    )[0]
    ending = random.choices(list(ENDING_WEIGHTS), list(ENDING_WEIGHTS.values()))[0]
    is_japanese = not query.isascii()
    full_answer = answer.format(n=number) + FILLER[is_japanese] * random.choice(
        [1, 2, 2, 3, 5, 12]
    )
    agent = random.choice(AGENTS)
    model = random.choice(list(MODELS))
    calls = []
    if ending is not StopReason.BLOCKED:
        for tool in tools:
            name, value, result = TOOLS[tool]
            calls.append(
                StoryCall(
                    tool=tool,
                    arguments=json.dumps({name: value.format(n=number)}),
                    result=result.format(n=number),
                    seconds=random.lognormvariate(-0.7, 0.9),
                    is_error=random.random() < 0.04,
                )
            )
    detail = random.choice(ERROR_MESSAGES) if ending is StopReason.ERROR else ""
    # Every third run has an earlier conversation.
    turns = random.randint(1, 4) if random.random() < 0.33 else 0
    history = []
    for earlier_query, earlier_answer, _ in random.choices(CONVERSATIONS, k=turns):
        history.append({"role": "user", "content": earlier_query.format(n=number)})
        content = earlier_answer.format(n=number) + FILLER[False]
        history.append({"role": "assistant", "content": content})
    return Story(
        query=query.format(n=number),
        answer=full_answer if ending in {StopReason.COMPLETED, StopReason.DEGRADED} else "",
        agent=agent,
        model=model,
        calls=calls,
        ending=ending,
        detail=detail,
        history=history,
        is_warned=random.random() < 0.03,
        thinks=random.lognormvariate(0.3, 0.7),
        chunk_count=chunk_count,
        prompt_tokens=random.randint(300, 6_000),
    )


class StoryEvents:
    """The events of a story, on its own clock."""

    def __init__(self, story: Story, began: datetime) -> None:
        self.story = story
        self.now = began
        self.seq = 0
        self.step = 0
        self.turn = 0

    def events(self) -> Iterator[Event]:
        story = self.story
        yield self._emit(
            EventType.RUN_STARTED,
            query=story.query,
            path=[story.agent],
            model=story.model,
            dialect="native",
            route="direct",
            max_steps=10,
            instructions="Help the shop's customers.",
            tools=[],
        )
        is_blocked = story.ending is StopReason.BLOCKED
        if story.is_warned or is_blocked:
            self.step += 1
            yield self._emit(
                EventType.GUARDRAIL,
                step=self.step,
                turn=0,
                reason="This looks like a card number.",
                action="block" if is_blocked else "warn",
                details={"pattern": "numbers"},
            )
        for call in story.calls:
            yield from self._tool_turn(call)
        if not is_blocked:
            yield from self._answer_turn()
        yield self._emit(
            EventType.RUN_FINISHED,
            answer=story.answer,
            detail=story.detail,
            advice="Try again." if story.detail else "",
            stopped_reason=story.ending.value,
            turns=self.turn,
            tool_calls=len(story.calls),
            output=None,
        )

    def _tool_turn(self, call: StoryCall) -> Iterator[Event]:
        yield self._step_start_event()
        self._advance(self.story.thinks)
        yield self._emit(EventType.USAGE, step=self.step, **self.story.usage(40))
        started = {"started": self.now.isoformat(), "step": self.step, "turn": self.turn}
        call_id = f"call_{self.step}"
        function = {"name": call.tool, "arguments": call.arguments}
        yield self._emit(EventType.TOOL_CALL, function=function, id=call_id, **started)
        self._advance(call.seconds)
        yield self._emit(
            EventType.TOOL_RESPONSE,
            tool_call_id=call_id,
            name=call.tool,
            content_preview=call.result[:200],
            content=call.result,
            is_error=call.is_error,
            attempts=1,
            **started,
        )
        status = "failed" if call.is_error else "done"
        yield self._emit(
            EventType.STEP, kind="tool", status=status, action=call.tool, **started
        )

    def _answer_turn(self) -> Iterator[Event]:
        yield self._step_start_event()
        answer = self.story.answer
        size = max(1, -(-len(answer) // self.story.chunk_count))
        for start in range(0, max(1, len(answer)), size):
            self._advance(self.story.thinks / self.story.chunk_count)
            yield self._emit(
                EventType.DELTA, content=answer[start : start + size], step=self.step
            )
        if self.story.ending is StopReason.ERROR:
            details = {"type": "ModelError", "advice": "Try again.", "step": self.step}
            yield self._emit(EventType.ERROR, message=self.story.detail, **details)
            return
        completion_tokens = max(20, len(answer) // 4)
        yield self._emit(EventType.USAGE, step=self.step, **self.story.usage(completion_tokens))
        status = "done" if answer else "cancelled"
        yield self._emit(EventType.STEP, step=self.step, kind="answer", status=status)

    def _step_start_event(self) -> Event:
        self.step += 1
        self.turn += 1
        return self._emit(
            EventType.STEP_STARTED,
            step=self.step,
            turn=self.turn,
            kind="thought",
            request={"kept": 0, "messages": [{"role": "user", "content": self.story.query}]},
        )

    def _emit(self, type: EventType, /, **data: Any) -> Event:
        self.seq += 1
        return Event(type=type, data=data, agent=self.story.agent, time=self.now, seq=self.seq)

    def _advance(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
