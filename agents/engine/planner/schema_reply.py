"""Replies as JSON, where a server enforces a schema: calls in text can't be misspelled then.

{"thought": …, "action": the tool's name, "action_input": {…}}
{"thought": …, "final_answer": …}
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic_core import from_json

from agents.engine.errors import PlanParseError
from agents.engine.state import OBSERVATION_PREFIX
from agents.engine.turn.assembly import PlanResult, ToolCall, Turn, VisibleText
from agents.engine.turn.prompt_echo import PromptEchoFilter

from ..sentences import Sentence as _
from . import react_action
from .react_parser import ReactParser

# A weak model that thinks for too long has no tokens left for its answer.
_THOUGHT = {"type": "string", "maxLength": 200}
FIELDS: dict[str, Literal["thought", "answer"]] = {
    "thought": "thought",
    "final_answer": "answer",
}
# What JSON begins with, bare or in a fence, and what may become that.
_OPENING = re.compile(r"\s*(?:```(?:json)?\s*)?(?=\{)")
_PARTIAL_OPENING = re.compile(r"\s*(?:`{1,3}|```j(?:s(?:on?)?)?\s*)?")
_RESULT_LABEL = OBSERVATION_PREFIX.strip()  # weak models copy it with the result
_DECODER = json.JSONDecoder(strict=False)
# A growing text is parsed again when it has grown by this part of itself.
_GROWTH = 200
_NEITHER = _(
    'The response has to be one JSON object with "thought", and either "action" and '
    '"action_input", or "final_answer".'
)


def response_format(tools: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the schema of a reply: a call of one of the tools, or the answer.

    Without tools it is nothing but the answer, because there is little left to think about.
    """
    calls = [
        _object(
            thought=_THOUGHT,
            action={"enum": [tool["function"]["name"]]},
            action_input=_input_schema(tool["function"]["parameters"]),
        )
        for tool in tools
    ]
    thought = {"thought": _THOUGHT} if tools else {}
    answer = _object(**thought, final_answer={"type": "string", "minLength": 1})
    schema = {"type": "object", "anyOf": [*calls, answer]}
    json_schema = {"name": "reply", "schema": schema, "strict": True}
    return {"type": "json_schema", "json_schema": json_schema}


def _object(**fields: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": fields,
        "required": list(fields),
        "additionalProperties": False,
    }


def _input_schema(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema of a tool's input; references would point out of it."""
    return {"type": "object"} if "$ref" in json.dumps(schema) else schema


class SchemaParser:
    """Parses a reply piece by piece and returns the text to display, as `ReactParser` does.

    A server that ignores the schema can send ReAct text, which is read as such. Repetitions of
    our own prompts are left out.
    """

    def __init__(self) -> None:
        self._text = ""
        self._react: ReactParser | None = None
        self._is_json = False
        self._echo_filter = PromptEchoFilter()
        self._read = {"thought": "", "answer": ""}
        self._answer: list[str] = []
        self._next_size = 0

    @property
    def is_done(self) -> bool:
        return self._react is not None and self._react.is_done

    def feed(self, text: str) -> list[VisibleText]:
        """Parse the next piece and return what can be displayed."""
        if self._react is not None:
            return self._react.feed(self._echo_filter.feed(text))
        self._text += text
        if not self._is_json:
            self._is_json = bool(_OPENING.match(self._text))
            if not self._is_json and not _PARTIAL_OPENING.fullmatch(self._text):
                self._react = ReactParser()
                return self._react.feed(self._echo_filter.feed(self._text))
        return self._new_text() if len(self._text) >= self._next_size else []

    def finish(self) -> list[VisibleText]:
        """End the reply and return the text still held back."""
        if self._react is None and not self._is_json:
            self._react = ReactParser()
            self._react.feed(self._text)
        if self._react is not None:
            return self._react.feed(self._echo_filter.rest()) + self._react.finish()
        pieces = self._new_text(is_whole=True)
        if rest := self._echo_filter.rest():
            self._answer.append(rest)
            pieces.append(("answer", rest))
        return pieces

    def result(self) -> PlanResult:
        """Return the plan, as if the reply ended here."""
        if self._react is not None:
            return self._react.result()
        turn = Turn(content=self._text)
        reply = self._read_object()
        thought = _text_of(reply, "thought").strip()
        if answer := "".join(self._answer).strip():
            return PlanResult(thought=thought, final_answer=answer, turn=turn)
        name = _text_of(reply, "action").strip()
        if not name or not self._is_whole():
            raise PlanParseError(_NEITHER)
        value = reply.get("action_input")
        if react_action.is_no_action(name):
            if answer := react_action.answer_text(value):
                return PlanResult(thought=thought, final_answer=answer, turn=turn)
            raise PlanParseError(_NEITHER)
        call = ToolCall(id="react", name=name, arguments=react_action.to_arguments(value))
        return PlanResult(
            thought=thought, action=name, action_input=value, calls=(call,), turn=turn
        )

    def _new_text(self, *, is_whole: bool = False) -> list[VisibleText]:
        self._next_size = len(self._text) + len(self._text) // _GROWTH
        reply = self._read_object()
        pieces: list[VisibleText] = []
        for field, kind in FIELDS.items():
            text = _text_of(reply, field)
            if not is_whole and _RESULT_LABEL.startswith(text):
                continue  # it may become the label
            text = text.removeprefix(_RESULT_LABEL).lstrip()
            piece = text[len(self._read[kind]) :]
            self._read[kind] += piece
            if kind == "answer":
                piece = self._echo_filter.feed(piece)
                self._answer.append(piece)
            if piece:
                pieces.append((kind, piece))
        return pieces

    def _read_object(self) -> Mapping[str, Any]:
        """Return what there is of the object; strings can be incomplete."""
        body = _OPENING.sub("", self._text, count=1)
        try:
            value = from_json(body, allow_partial="trailing-strings")
        except ValueError:
            # Line breaks in strings, or text after the object.
            try:
                value = _DECODER.raw_decode(body)[0]
            except (ValueError, RecursionError):
                return {}
        return value if isinstance(value, dict) else {}

    def _is_whole(self) -> bool:
        try:
            _DECODER.raw_decode(_OPENING.sub("", self._text, count=1))
        except (ValueError, RecursionError):
            return False
        return True


def _text_of(reply: Mapping[str, Any], field: str) -> str:
    value = reply.get(field)
    return value.lstrip() if isinstance(value, str) else ""
