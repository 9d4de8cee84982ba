"""Chat completions: an agent's answer to a conversation that the program keeps."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from django.http import HttpRequest, JsonResponse
from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from agents.db import database
from agents.engine.errors import BadSchema
from agents.engine.loop import OutputSchema
from agents.llm import tuning
from agents.llm.wire.json_codec import encode
from agents.models import Agent, Run
from agents.web.api import STILL_HERE, stream_response
from agents.web.api_errors import OPENAI_TYPES, ApiError
from chat.messages.run_options import RunOptions

from .. import calls, client_tools
from ..calls import Caller, Question
from . import agent_models, conversation, schemas
from .access import caller_of, trace_url
from .answer import AnswerReader, Text, Thought, pieces
from .conversation import Conversation
from .schemas import Completion, ResponseFormat, ToolChoice

TRACE_HEADER = "Ashiato-Trace"
# Clients repeat requests that failed. What an agent did shouldn't happen twice.
NO_RETRY = "x-should-retry"
EFFORTS = {"minimal": "low", "xhigh": "high"} | {effort: effort for effort in tuning.EFFORTS}


@require_POST
async def completions(request: HttpRequest) -> HttpResponseBase:
    """Answer a conversation, at once or as a stream."""
    caller = caller_of(request)
    body = await schemas.read(request, Completion)
    agent = await database.run(agent_models.find, caller, body.model)
    talk = await conversation.read(body.messages)
    run, after = await start(caller, agent, talk, body)
    answer = ChatAnswer(caller, run, body, agent, trace_url(request, run))
    if body.stream:
        response: HttpResponseBase = stream_response(answer.stream(after))
    else:
        response = await answer.whole(after)
    response[TRACE_HEADER] = answer.trace
    return response


async def start(
    caller: Caller, agent: Agent, talk: Conversation, body: Completion
) -> tuple[Run, int]:
    """Continue the run that waits for these results, or start one.

    Returns also the number of the event after which it continues.
    """
    if talk.results:
        waiting = await database.run(
            client_tools.run_of, caller, [result.call for result in talk.results]
        )
        if waiting is not None:
            return waiting, await client_tools.resume(caller, waiting, talk.results)
    overrides: dict[str, Any] = {}
    instructions = talk.instructions
    functions = [tool.function for tool in body.tools or ()]
    if body.tool_choice != "none":
        overrides |= client_tools.overrides(functions)
        instructions += chosen_tool(body.tool_choice) if functions else ""
    overrides |= output_overrides(body.response_format)
    if limit := body.max_completion_tokens or body.max_tokens:
        overrides["max_output_tokens"] = limit
    question = Question(
        text=talk.text,
        agent=agent.name,
        history=talk.history,
        overrides=overrides,
        options=RunOptions(
            effort=EFFORTS.get(body.reasoning_effort or "", ""), temperature=body.temperature
        ),
        instructions=instructions,
        files=talk.files,
    )
    return await calls.ask(caller, question), 0


def chosen_tool(choice: str | ToolChoice | None) -> str:
    """Return an instruction for a choice that models of every provider follow."""
    if choice == "required":
        return "\n\nCall one of the program's functions before you answer."
    if isinstance(choice, ToolChoice) and choice.function is not None:
        return f"\n\nCall the function {choice.function.name[:64]} before you answer."
    return ""


def output_overrides(format: ResponseFormat | None) -> dict[str, Any]:
    """Return the schema of the answer, if it is to be JSON. Raises ApiError."""
    if format is None or format.type == "text":
        return {}
    schema: dict[str, Any] = {"type": "object"}
    if format.type == "json_schema" and format.json_schema is not None:
        schema = format.json_schema.schema_
    try:
        return {"output_schema": OutputSchema(schema).schema}
    except BadSchema as reason:
        raise ApiError(
            400, str(reason), "invalid_json_schema", param="response_format"
        ) from reason


class ChatAnswer:
    """The answer to one request, as one JSON object or as chunks."""

    def __init__(
        self, caller: Caller, run: Run, body: Completion, agent: Agent, trace: str
    ) -> None:
        self.caller = caller
        self.run = run
        self.trace = trace
        format = body.response_format
        self.reader = AnswerReader(
            run, is_structured=format is not None and format.type != "text"
        )
        has_effort = body.reasoning_effort not in {None, "none"}
        self.has_thoughts = (
            has_effort if body.include_reasoning is None else body.include_reasoning
        )
        self.has_usage = body.stream_options is not None and body.stream_options.include_usage
        self.head = {
            "id": f"chatcmpl-{run.pk}-{int(time.time())}",
            "created": int(time.time()),
            "model": agent.name,
        }

    async def whole(self, after: int) -> JsonResponse:
        """Return the answer once it is complete."""
        thoughts: list[str] = []
        try:
            async with aclosing(
                pieces(self.caller, self.run, self.reader, after)
            ) as all_pieces:
                async for piece in all_pieces:
                    if isinstance(piece, Thought):
                        thoughts.append(piece.text)
        except asyncio.CancelledError:
            await stop_unread(self.caller, self.run)
            raise
        if (error := self._error()) is not None:
            response = JsonResponse({"error": error}, status=500)
            response[NO_RETRY] = "false"
            return response
        reader = self.reader
        content = self._note() or (reader.text if reader.answer is None else reader.answer)
        message: dict[str, Any] = {
            "role": "assistant",
            "content": content or None,
            "refusal": self._refusal(),
        }
        if self.has_thoughts and thoughts:
            message["reasoning_content"] = "".join(thoughts)
        if reader.calls:
            message["tool_calls"] = self._tool_calls()
        choice = {
            "index": 0,
            "message": message,
            "logprobs": None,
            "finish_reason": self._finish_reason(),
        }
        body = {"object": "chat.completion", "choices": [choice], "usage": self._usage()}
        return JsonResponse(self.head | body)

    async def stream(self, after: int) -> AsyncIterator[bytes]:
        """Yield the chunks of the answer as server-sent events."""
        try:
            yield self._chunk({"role": "assistant", "content": ""})
            async with aclosing(
                pieces(self.caller, self.run, self.reader, after)
            ) as all_pieces:
                async for piece in all_pieces:
                    match piece:
                        case Text(text):
                            yield self._chunk({"content": text})
                        case Thought(text) if self.has_thoughts:
                            yield self._chunk({"reasoning_content": text})
                        case None:
                            yield STILL_HERE
        except (asyncio.CancelledError, GeneratorExit):
            await stop_unread(self.caller, self.run)
            raise
        if (error := self._error()) is not None:
            yield _event({"error": error})
            return
        if note := self._note():
            yield self._chunk({"content": note})
        if refusal := self._refusal():
            yield self._chunk({"refusal": refusal})
        if self.reader.calls:
            numbered = [
                {"index": number} | call for number, call in enumerate(self._tool_calls())
            ]
            yield self._chunk({"tool_calls": numbered})
        yield self._chunk({}, self._finish_reason())
        if self.has_usage:
            yield _event(
                self.head
                | {"object": "chat.completion.chunk", "choices": [], "usage": self._usage()}
            )
        yield b"data: [DONE]\n\n"

    def _chunk(self, delta: dict[str, Any], finish_reason: str | None = None) -> bytes:
        choice = {
            "index": 0,
            "delta": delta,
            "logprobs": None,
            "finish_reason": finish_reason,
        }
        usage = {"usage": None} if self.has_usage else {}
        return _event(
            self.head | {"object": "chat.completion.chunk", "choices": [choice]} | usage
        )

    def _finish_reason(self) -> str:
        finish = self.reader.ending.finish if self.reader.ending else "stop"
        return "stop" if finish == "waiting" else finish

    def _note(self) -> str:
        """Return what the program reads instead of an answer that waits for a person."""
        if self.reader.ending is None or self.reader.ending.finish != "waiting":
            return ""
        return waiting_note(self.trace)

    def _refusal(self) -> str | None:
        ending = self.reader.ending
        is_blocked = ending is not None and ending.finish == "content_filter"
        return ending.detail if ending is not None and is_blocked else None

    def _error(self) -> dict[str, Any] | None:
        ending = self.reader.ending
        if ending is None or ending.finish != "error":
            return None
        is_key = ending.code == "key_revoked"
        kind = OPENAI_TYPES[401] if is_key else "server_error"
        return {"message": ending.detail, "type": kind, "param": None, "code": ending.code}

    def _tool_calls(self) -> list[dict[str, Any]]:
        return [
            conversation.function_call(call.id, call.name, call.arguments)
            for call in self.reader.calls
        ]

    def _usage(self) -> dict[str, Any]:
        used = self.reader.usage
        return {
            "prompt_tokens": used.input,
            "completion_tokens": used.output,
            "total_tokens": used.input + used.output,
            "prompt_tokens_details": {"cached_tokens": used.cached},
            "completion_tokens_details": {"reasoning_tokens": used.reasoning},
        }


def waiting_note(trace: str) -> str:
    """Return the sentence for a run that still waits for a decision."""
    return _("This run is pending approval. Decide here: %(url)s") % {"url": trace}


async def stop_unread(caller: Caller, run: Run) -> None:
    """Stop a run whose program has left: nobody would read its answer."""
    await asyncio.shield(calls.stop(caller, run))


def _event(value: dict[str, Any]) -> bytes:
    return b"data: %b\n\n" % encode(value)
