"""Read a model's streamed reply: native tool calls, or ReAct text."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Literal

from agents.engine.errors import (
    AgentError,
    EmptyReply,
    ModelError,
    PlanParseError,
    ProviderFailed,
    TruncatedReply,
)
from agents.engine.turn.assembly import (
    CALL_AS_TEXT,
    REPETITION,
    Assembler,
    Chunk,
    PlanResult,
    Turn,
    VisibleText,
)

from ..sentences import Sentence as _
from .call_as_text import is_call_as_text
from .react_parser import ReactParser
from .schema_reply import SchemaParser
from .stream_batches import adapter_error

MAX_REPLY_CHARS = 2_000_000
# Finish reasons for an aborted reply or an unparsable tool call.
FAILED_REASONS = {
    "error",
    "finish_reason_unspecified",
    "insufficient_system_resource",
    "network_error",
}
MALFORMED_REASON = "malformed_function_call"
WITHHELD = _("The model's provider blocked the answer.")
REPHRASE_ADVICE = _("Rephrase your message, or choose another model.")
OUTPUT_LIMIT_REACHED = _("The model reached its output limit before it answered.")
REPEATED_ITSELF = _("The model repeated itself and didn't answer.")
UNREADABLE_CALL = _(
    "The tool call couldn't be parsed. Call the tool again with a "
    "single JSON object as its input."
)


@dataclass(frozen=True, slots=True)
class TextDelta:
    """Streamed text of the model. What looks like an answer may turn out to be a thought."""

    kind: Literal["thought", "answer"]
    text: str


def read_batch(reader: "NativeReader", batch: Sequence[Chunk]) -> list[TextDelta]:
    """Parse the chunks; malformed ones are the adapter's failure."""
    try:
        return join_deltas(reader.feed(chunk) for chunk in batch if not reader.is_repeating)
    except AgentError:
        raise
    except Exception as error:
        raise adapter_error(error) from error


class NativeReader:
    """Parses a model with native tool calls."""

    def __init__(self, assembler: Assembler | None = None) -> None:
        self._assembler = assembler or Assembler()

    @property
    def is_repeating(self) -> bool:
        return self._assembler.is_repeating

    @property
    def is_done(self) -> bool:
        """Whether nothing that follows can matter."""
        return self.is_repeating

    def feed(self, chunk: Chunk) -> list[VisibleText]:
        pieces = self._assembler.feed(chunk)
        if self._assembler.size > MAX_REPLY_CHARS:
            raise ModelError(
                _(
                    "The model's response is longer than %(limit)s characters.",
                    limit=f"{MAX_REPLY_CHARS:,}",
                )
            )
        return pieces

    def rest(self) -> list[VisibleText]:
        """Return the text still held back when the stream ends."""
        return self._assembler.rest()

    def result(self) -> PlanResult:
        turn = self._finish_turn()
        if turn.tool_calls:
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
        if not turn.content.strip():
            raise _empty_reply_error(turn)
        turn = _with_call_noted(turn, turn.content)
        return PlanResult(thought=turn.reasoning, final_answer=turn.content, turn=turn)

    def _finish_turn(self) -> Turn:
        """Return the turn; raise if the provider reports that it failed."""
        turn = self._assembler.turn()
        if turn.finish_reason in FAILED_REASONS:
            raise ProviderFailed
        if turn.finish_reason == MALFORMED_REASON:
            raise PlanParseError(UNREADABLE_CALL)
        return turn


class ReactReader(NativeReader):
    """Parses a model that writes its calls as text."""

    def __init__(self, *, by_schema: bool = False) -> None:
        # Between marks in JSON can be a part of its syntax, so its parser leaves them out.
        super().__init__(Assembler(keeps_echoes=by_schema))
        self._parser = SchemaParser() if by_schema else ReactParser()
        self._by_schema = by_schema

    @property
    def is_done(self) -> bool:
        return self._parser.is_done or super().is_done

    def feed(self, chunk: Chunk) -> list[VisibleText]:
        return self._parse_pieces(super().feed(chunk))

    def _parse_pieces(self, visible: Iterable[VisibleText]) -> list[VisibleText]:
        pieces: list[VisibleText] = []
        for kind, text in visible:
            pieces += [(kind, text)] if kind == "thought" else self._parser.feed(text)
        return pieces

    def rest(self) -> list[VisibleText]:
        return self._parse_pieces(super().rest()) + self._parser.finish()

    def result(self) -> PlanResult:
        turn = self._finish_turn()
        if not turn.content.strip():
            raise _empty_reply_error(turn)
        try:
            plan = self._parser.result()
        except PlanParseError:
            if not turn.is_cut:
                raise
            error = _empty_reply_error(turn)  # it may have been right so far
            # By a schema it can still be made to answer.
            raise (PlanParseError(error.args[0]) if self._by_schema else error) from None
        if plan.calls and turn.is_cut:
            raise TruncatedReply
        turn = _with_call_noted(turn, plan.final_answer or "")
        thought = _join_paragraphs(turn.reasoning, plan.turn.reasoning, plan.thought)
        return replace(plan, thought=thought, turn=turn)


def _with_call_noted(turn: Turn, answer: str) -> Turn:
    """Return the turn, which says so if the answer is only a tool call as text."""
    return replace(turn, finish_reason=CALL_AS_TEXT) if is_call_as_text(answer) else turn


def _empty_reply_error(turn: Turn) -> ModelError:
    """Return why the reply is empty. Only an unexplained one is worth a retry."""
    if turn.finish_reason == "content_filter":
        return ModelError(WITHHELD, advice=REPHRASE_ADVICE)
    if turn.finish_reason == REPETITION:
        return TruncatedReply(REPEATED_ITSELF)
    return (
        TruncatedReply(OUTPUT_LIMIT_REACHED) if turn.finish_reason == "length" else EmptyReply()
    )


def _join_paragraphs(*texts: str) -> str:
    return "\n\n".join(text for text in texts if text.strip())


def join_deltas(pieces: Iterable[Iterable[VisibleText]]) -> list[TextDelta]:
    """Join consecutive pieces of the same kind."""
    joined: list[TextDelta] = []
    for kind, text in chain.from_iterable(pieces):
        if joined and joined[-1].kind == kind:
            joined[-1] = TextDelta(kind, joined[-1].text + text)
        else:
            joined.append(TextDelta(kind, text))
    return joined
