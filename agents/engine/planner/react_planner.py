"""Asks a model what to do next, with native tool calls or ReAct text."""

import json
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Collection,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import aclosing
from copy import copy
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import chain
from typing import Any, Literal, Protocol, Self

from agents.engine.attachments import AttachmentStore, MemoryAttachmentStore, refs_of
from agents.engine.errors import (
    AgentError,
    EmptyReply,
    ModelError,
    PlanParseError,
    ProviderFailed,
    TruncatedReply,
)
from agents.engine.guardrails.checks import TokenCounter, estimate_tokens
from agents.engine.guardrails.invisible import strip_invisible_message, strip_invisible_value
from agents.engine.privacy.pseudonyms import ALIAS_INSTRUCTIONS, PlanRestorer, Pseudonymizer
from agents.engine.resilience.rate_limiter import RateLimiter
from agents.engine.state import OBSERVATION_PREFIX, AgentState, Message
from agents.engine.tool import TEXT_INPUT_SCHEMA, Tool, specification
from agents.engine.turn.assembly import (
    Assembler,
    Chunk,
    PlanResult,
    ToolCall,
    Turn,
    VisibleText,
)
from agents.engine.turn.reasoning import message_for_model

from . import message_attachments
from .context_window import fit
from .message_attachments import Sense
from .react_parser import ReactParser, parse_react
from .stream_batches import Deadlines, adapter_error, batched, open_stream

__all__ = [
    "LLM",
    "PlanResult",
    "ReActPlanner",
    "ModelRequest",
    "TextDelta",
    "SlowNotice",
    "parse_react",
]

Dialect = Literal["native", "react"]
MAX_REPLY_CHARS = 2_000_000
DEFAULT_ANSWER_TOKENS = 4_096

# Finish reasons for an aborted reply or an unparsable tool call.
FAILED_REASONS = {
    "error",
    "finish_reason_unspecified",
    "insufficient_system_resource",
    "network_error",
}
MALFORMED_REASON = "malformed_function_call"
WITHHELD = "The model's provider blocked the answer."
REPHRASE_ADVICE = "Rephrase your question, or choose another model."
OUTPUT_LIMIT_REACHED = "The model reached its output limit before it answered."
UNREADABLE_CALL = (
    "The tool call couldn't be parsed. Call the tool again with a single JSON object as its "
    "input."
)

REACT_INSTRUCTIONS = """\
You can use these tools:
{tools}

Write in exactly this form and then stop:
Thought: what you know and what you need next
Action: the name of one tool
Action Input: its input as JSON

You will then be given a line that begins with "Observation:". When you know enough, write:
Thought: why you are done
Final Answer: the answer, for the person who asked"""


class LLM(Protocol):
    """Any client that streams chat completion chunks in OpenAI's format."""

    def stream(
        self,
        *,
        model: str,
        messages: list[Message],
        tools: list[dict[str, Any]] | None = None,
        **parameters: Any,
    ) -> AsyncIterator[Chunk]: ...


@dataclass(frozen=True, slots=True)
class TextDelta:
    """Streamed text of the model. What looks like an answer may turn out to be a thought."""

    kind: Literal["thought", "answer"]
    text: str


@dataclass(frozen=True, slots=True)
class SlowNotice:
    """Nothing was received for this many seconds, and the wait goes on."""

    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """Exactly what the model is sent, without invisible characters.

    `unsent` is how many of the latest attachments it isn't sent, by reason.
    """

    messages: list[Message]
    tools: list[dict[str, Any]] | None
    parameters: Mapping[str, Any]
    dropped: int = 0
    shortened: int = 0
    unsent: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        put = partial(object.__setattr__, self)
        put("messages", list(map(strip_invisible_message, self.messages)))
        put("tools", strip_invisible_value(self.tools))
        put("parameters", strip_invisible_value(self.parameters))


class ReActPlanner:
    """Asks one model. `plan` returns its decision, `stream` its text as well."""

    def __init__(
        self,
        llm: LLM,
        model: str,
        *,
        dialect: Dialect = "native",
        instructions: str = "",
        parameters: Mapping[str, Any] | None = None,
        deadlines: Deadlines | None = None,
        batch_seconds: float = 0,
        window: int | None = None,
        count_tokens: TokenCounter = estimate_tokens,
        rate_limiter: RateLimiter | None = None,
        pseudonymizer: Pseudonymizer | None = None,
        senses: Collection[Sense] = (),
    ) -> None:
        """With a pseudonymizer, which belongs to one run, personal data is replaced.

        `senses` are the attachments that the model can be sent.
        """
        self.llm = llm
        self.model = model
        self.dialect = dialect
        self.instructions = instructions
        self.parameters = dict(parameters or {})
        self.deadlines = deadlines or Deadlines()
        self.batch_seconds = batch_seconds
        self.window = window
        self.count_tokens = lru_cache(maxsize=512)(count_tokens)
        self.rate_limiter = rate_limiter
        self.pseudonymizer = pseudonymizer
        self.senses = frozenset(senses)

    @property
    def provider_info(self) -> dict[str, str]:
        """The provider's name of the model, if it differs from ours."""
        name = getattr(self.llm, "model", "")
        return {"provider_model": name} if name and name != self.model else {}

    def with_instructions(self, instructions: str) -> Self:
        """Return the same planner with other instructions."""
        other = copy(self)
        other.instructions = instructions
        return other

    async def plan(
        self, query: str, state: AgentState, available_tools: Sequence[str | Tool]
    ) -> PlanResult:
        request = self.request(query, state, available_tools)
        async for piece in self.stream(request):
            if isinstance(piece, PlanResult):
                return piece
        raise EmptyReply

    def request(
        self, query: str, state: AgentState, available_tools: Sequence[str | Tool]
    ) -> ModelRequest:
        history = state.get_messages()
        if not any(m["role"] == "user" and m["content"] == query for m in history):
            history.append({"role": "user", "content": query})
        tools = [_tool_specification(tool) for tool in available_tools]
        is_react = self.dialect == "react"
        form = (
            REACT_INSTRUCTIONS.format(tools="\n".join(map(_tool_line, tools))) if tools else ""
        )
        system = _system_messages(*self._system_instructions(), form if is_react else "")
        # An image can't be masked, so it isn't sent where text would be.
        history, unsent = message_attachments.select(
            history, self.senses, hides_data=self.pseudonymizer is not None
        )
        fitted = fit(
            self.pseudonymize(history), self._history_tokens(system, tools), self.count_tokens
        )
        stop = {"stop": ["\nObservation:"]} if is_react and tools else {}
        return ModelRequest(
            messages=system + self._format_history(fitted.messages),
            tools=None if is_react else tools or None,
            parameters={**self.parameters, **stop},
            dropped=fitted.dropped,
            shortened=fitted.shortened,
            unsent=unsent,
        )

    def pseudonymize(self, messages: list[Message]) -> list[Message]:
        """Return the messages with personal data replaced."""
        return (
            messages
            if self.pseudonymizer is None
            else self.pseudonymizer.pseudonymize(messages)
        )

    def aliases(self, messages: Sequence[Message]) -> dict[str, str]:
        """Return the replaced values in these messages, by alias."""
        return {} if self.pseudonymizer is None else self.pseudonymizer.aliases(messages)

    def message(self, plan: PlanResult, calls: Sequence[ToolCall] = ()) -> Message:
        """Return the decision as a history message: `state.add_message(**message)`."""
        if self.dialect == "react":
            return replace(plan.turn, content=plan.thought, kept={}).message(calls)
        message = plan.turn.message(calls)
        return (
            {**message, "model": self.model}
            if _has_provider_fields(plan.turn, calls)
            else message
        )

    async def stream(
        self, request: ModelRequest, attachments: AttachmentStore | None = None
    ) -> AsyncGenerator[TextDelta | SlowNotice | PlanResult, None]:
        """Yield the reply as it streams, then the plan; aliases are replaced by values.

        The request's attachments are loaded from the store.
        """
        store = attachments or MemoryAttachmentStore()
        messages = await message_attachments.load(request.messages, store)
        chunks = open_stream(
            self.llm.stream,
            model=self.model,
            messages=messages,
            tools=request.tools,
            **request.parameters,
        )
        reader = _ReactReader() if self.dialect == "react" else _NativeReader()
        restorer = None if self.pseudonymizer is None else PlanRestorer(self.pseudonymizer)
        try:
            async with aclosing(batched(chunks, self.deadlines, self.batch_seconds)) as batches:
                async for batch in batches:
                    if not batch:
                        yield SlowNotice(self.deadlines.slow)
                    for delta in _restore(_read_batch(reader, batch), restorer):
                        yield delta
                    if reader.is_done:
                        break
            for delta in _restore(_join_deltas([reader.rest()]), restorer):
                yield delta
            plan = reader.result()
        except AgentError:
            # Held text belongs to the output so far.
            for delta in restorer.rest() if restorer else ():
                yield delta
            raise
        for delta in restorer.rest() if restorer else ():
            yield delta
        yield restorer.plan(plan) if restorer else plan

    def _system_instructions(self) -> tuple[str, ...]:
        if self.pseudonymizer is None:
            return (self.instructions,)
        return self.pseudonymizer.hide(self.instructions), ALIAS_INSTRUCTIONS

    def _format_history(self, history: Sequence[Message]) -> list[Message]:
        if self.dialect == "react":
            return _react_history(history)
        messages = [_format_message(message, self.model) for message in history]
        return message_attachments.add_user_messages(messages)

    def _history_tokens(self, system: list[Message], tools: list[dict[str, Any]]) -> int | None:
        """Return the tokens left for the history, besides the fixed parts and the answer."""
        if self.window is None:
            return None
        tokens = self.count_tokens(json.dumps([system, tools], ensure_ascii=False))
        answer: int = self.parameters.get("max_tokens", DEFAULT_ANSWER_TOKENS)
        return max(0, self.window - tokens - answer)


def _read_batch(reader: "_NativeReader", batch: Sequence[Chunk]) -> list[TextDelta]:
    """Parse the chunks; malformed ones are the adapter's failure."""
    try:
        return _join_deltas(reader.feed(chunk) for chunk in batch)
    except AgentError:
        raise
    except Exception as error:
        raise adapter_error(error) from error


def _restore(deltas: list[TextDelta], restorer: PlanRestorer | None) -> Iterable[TextDelta]:
    """Replace aliases by values; text that may be half an alias is held back."""
    return deltas if restorer is None else filter(None, map(restorer.feed, deltas))


class _NativeReader:
    """Parses a model with native tool calls."""

    is_done = False

    def __init__(self) -> None:
        self._assembler = Assembler()

    def feed(self, chunk: Chunk) -> list[VisibleText]:
        pieces = self._assembler.feed(chunk)
        if self._assembler.size > MAX_REPLY_CHARS:
            raise ModelError(
                f"The model's reply is longer than {MAX_REPLY_CHARS:,} characters."
            )
        return pieces

    def rest(self) -> list[VisibleText]:
        """Return the text still held back when the stream ends."""
        return self._assembler.rest()

    def result(self) -> PlanResult:
        turn = self._finish_turn()
        if turn.tool_calls:
            return _tool_call_plan(turn)
        if not turn.content.strip():
            raise _empty_reply_error(turn)
        return PlanResult(thought=turn.reasoning, final_answer=turn.content, turn=turn)

    def _finish_turn(self) -> Turn:
        """Return the turn; raise if the provider reports that it failed."""
        turn = self._assembler.turn()
        if turn.finish_reason in FAILED_REASONS:
            raise ProviderFailed
        if turn.finish_reason == MALFORMED_REASON:
            raise PlanParseError(UNREADABLE_CALL)
        return turn


class _ReactReader(_NativeReader):
    """Parses a model that writes its calls as text."""

    def __init__(self) -> None:
        super().__init__()
        self._reader = ReactParser()

    @property
    def is_done(self) -> bool:  # type: ignore[override]
        return self._reader.is_done

    def feed(self, chunk: Chunk) -> list[VisibleText]:
        return self._parse_pieces(super().feed(chunk))

    def _parse_pieces(self, visible: Iterable[VisibleText]) -> list[VisibleText]:
        pieces: list[VisibleText] = []
        for kind, text in visible:
            pieces += [(kind, text)] if kind == "thought" else self._reader.feed(text)
        return pieces

    def rest(self) -> list[VisibleText]:
        return self._parse_pieces(super().rest()) + self._reader.finish()

    def result(self) -> PlanResult:
        turn = self._finish_turn()
        if not turn.content.strip():
            raise _empty_reply_error(turn)
        plan = self._reader.result()
        if plan.calls and turn.is_cut:
            raise TruncatedReply
        thought = _join_paragraphs(turn.reasoning, plan.turn.reasoning, plan.thought)
        return replace(plan, thought=thought, turn=turn)


def _empty_reply_error(turn: Turn) -> ModelError:
    """Return why the reply is empty. Only an unexplained one is worth a retry."""
    if turn.finish_reason == "content_filter":
        return ModelError(WITHHELD, advice=REPHRASE_ADVICE)
    return (
        TruncatedReply(OUTPUT_LIMIT_REACHED) if turn.finish_reason == "length" else EmptyReply()
    )


def _has_provider_fields(turn: Turn, calls: Sequence[ToolCall]) -> bool:
    return bool(turn.kept or any(call.kept for call in calls))


def _tool_call_plan(turn: Turn) -> PlanResult:
    if turn.is_cut:
        raise TruncatedReply
    first = turn.tool_calls[0]
    return PlanResult(
        thought=_join_paragraphs(turn.reasoning, turn.content),
        action=first.name,
        action_input=first.arguments,
        calls=turn.tool_calls,
        turn=turn,
    )


def _join_paragraphs(*texts: str) -> str:
    return "\n\n".join(text for text in texts if text.strip())


def _join_deltas(pieces: Iterable[Iterable[VisibleText]]) -> list[TextDelta]:
    """Join consecutive pieces of the same kind."""
    joined: list[TextDelta] = []
    for kind, text in chain.from_iterable(pieces):
        if joined and joined[-1].kind == kind:
            joined[-1] = TextDelta(kind, joined[-1].text + text)
        else:
            joined.append(TextDelta(kind, text))
    return joined


def _tool_specification(tool: str | Tool) -> dict[str, Any]:
    if not isinstance(tool, str):
        return specification(tool)
    function = {"name": tool, "description": "", "parameters": TEXT_INPUT_SCHEMA}
    return {"type": "function", "function": function}


def _tool_line(tool: Mapping[str, Any]) -> str:
    function = tool["function"]
    description = function["description"].replace("\n", "\n  ")
    schema = json.dumps(function["parameters"], ensure_ascii=False)
    return f"- {function['name']}: {description}\n  Input: {schema}"


def _system_messages(*parts: str) -> list[Message]:
    text = "\n\n".join(part for part in parts if part)
    return [{"role": "system", "content": text}] if text else []


def _react_history(history: Sequence[Message]) -> list[Message]:
    """Return the history without tool calls, for a model without them.

    Results of several tools become one message, separate from the user's next one.
    """
    messages: list[Message] = []
    follows_tool = False
    for message in history:
        role, content = _react_message(message)
        if follows_tool and message["role"] == "tool":
            messages[-1]["content"] += f"\n{content}"
            refs = refs_of(messages[-1]) + refs_of(message)
            messages[-1] |= {"attachments": refs} if refs else {}
        else:
            messages.append({"role": role, "content": content} | _attachments(message))
        follows_tool = message["role"] == "tool"
    return messages


def _format_message(message: Message, model: str) -> Message:
    formatted = message_for_model(message, model)
    return formatted | _attachments(message) if "attachments" in message else formatted


def _attachments(message: Message) -> Message:
    refs = refs_of(message)
    return {"attachments": refs} if refs else {}


def _react_message(message: Message) -> tuple[str, str]:
    content = message["content"] or ""
    if message["role"] == "tool":
        return "user", f"{OBSERVATION_PREFIX}{content}"
    if message["role"] != "assistant":
        return message["role"], content
    if calls := message.get("tool_calls"):
        lines = [f"Thought: {content}"] if content else []
        for call in calls:
            function = call["function"]
            lines += [f"Action: {function['name']}", f"Action Input: {function['arguments']}"]
        return "assistant", "\n".join(lines)
    return "assistant", f"Final Answer: {content}"
