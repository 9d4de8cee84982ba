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
from dataclasses import dataclass, replace
from functools import lru_cache
from time import monotonic
from typing import Any, Literal, Protocol, Self

from agents.engine.attachments import AttachmentStore, MemoryAttachmentStore
from agents.engine.errors import AgentError, EmptyReply, ModelError, ProviderFailed
from agents.engine.guardrails.checks import TokenCounter, estimate_tokens, max_token_count
from agents.engine.json_text import json_text
from agents.engine.material.delimiters import wrap_untrusted
from agents.engine.privacy.pseudonyms import ALIAS_INSTRUCTIONS, PlanRestorer, Pseudonymizer
from agents.engine.prompt_parts import TOOL_INPUT, TOOLS_HEADING, PromptPart
from agents.engine.resilience.rate_limiter import RateLimiter
from agents.engine.state import AgentState, Message
from agents.engine.tool import TEXT_INPUT_SCHEMA, Tool, specification
from agents.engine.turn.assembly import Chunk, PlanResult, ToolCall
from agents.engine.turn.reasoning import message_for_model

from . import message_attachments, schema_reply
from .context_window import fit
from .message_attachments import Sense
from .model_request import ModelRequest
from .react_history import attachment_refs, react_history
from .reply_readers import NativeReader, ReactReader, TextDelta, join_deltas, read_batch
from .stream_batches import Deadlines, batched, open_stream, read_all

Dialect = Literal["native", "react"]
DEFAULT_ANSWER_TOKENS = 4_096
# What a history message says about its text; a model reads marks instead.
PROVENANCE_FIELDS = {"untrusted", "sources", "is_suspect"}
# Described, not shown: weak models call whatever stands behind "Action:" in an example.
REACT_INSTRUCTIONS = f"""\
<how_to_reply>
{TOOLS_HEADING}
{{tools}}

To use a tool, write three lines and then stop. The first begins with "Thought:" and says what
you know and what you need next. The second begins with "Action:" and has nothing else but the
name of one of the tools above. The third begins with "Action Input:" and has the tool's input
as JSON. You will then be given a line that begins with "Observation:".

When you know enough, write a line that begins with "Thought:" and says why you are done, and
then "Final Answer:" with the answer, for the person who asked.
</how_to_reply>"""
SCHEMA_INSTRUCTIONS = f"""\
<how_to_reply>
{TOOLS_HEADING}
{{tools}}

Reply with one JSON object. Its "thought" says what you know and what you need next. To use a
tool, it also has "action", which is the name of one of the tools above, and "action_input",
which is the tool's input. You will then be given a line that begins with "Observation:".

When you know enough, it has "final_answer" instead: the answer, for the person who asked.
</how_to_reply>"""
# When a server rejected a request with a schema, by its address and the model.
SCHEMA_REFUSALS: dict[tuple[str, str], float] = {}
REFUSAL_SECONDS = 3_600  # then it may have been updated


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


def for_short_reply(llm: LLM) -> LLM:
    """Return the client in its mode for a reply that isn't displayed, if it has one."""
    change = getattr(llm, "for_short_reply", None)
    return llm if change is None else change()


@dataclass(frozen=True, slots=True)
class SlowNotice:
    """Nothing was received for this many seconds, and the wait goes on."""

    seconds: float


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
        enforces_schemas: bool = False,
    ) -> None:
        """With a pseudonymizer, which belongs to one run, personal data is replaced.

        `senses` are the attachments that the model can be sent. `enforces_schemas`: its server
        makes it follow a JSON Schema, so that calls in text have the form of one.
        """
        self.llm = llm
        self.model = model
        self.dialect = dialect
        # In the order of the prompt: providers reuse its beginning for as long as it is equal.
        self.own_instructions = instructions
        self.context = ""  # about the person and the chat, after the tools
        self.recalled = ""  # for this question: before it, after the history
        self.parameters = dict(parameters or {})
        self.deadlines = deadlines or Deadlines()
        self.batch_seconds = batch_seconds
        self.window = window
        self.count_tokens = lru_cache(maxsize=512)(count_tokens)
        self.rate_limiter = rate_limiter
        self.pseudonymizer = pseudonymizer
        self.senses = frozenset(senses)
        self.enforces_schemas = enforces_schemas

    @property
    def provider_info(self) -> dict[str, str]:
        """The provider's name of the model, if it differs from ours."""
        name = getattr(self.llm, "model", "")
        return {"provider_model": name} if name and name != self.model else {}

    @property
    def instructions(self) -> str:
        """All instructions: the agent's, about the person, and what was recalled."""
        return f"{self.own_instructions}{self.context}{self.recalled}"

    def with_instructions(self, instructions: str) -> Self:
        """Return the same planner with other instructions, and nothing besides."""
        planner = copy(self)
        planner.own_instructions = instructions
        planner.context = ""
        planner.recalled = ""
        return planner

    def with_parts(self, parts: Sequence[PromptPart]) -> Self:
        """Return the planner with more instructions: about the chat, or recalled for it."""
        planner = copy(self)
        for part in parts:
            text = "\n\n" + part.text.strip("\n")
            if part.is_recalled:
                planner.recalled += text
            else:
                planner.context += text
        return planner

    async def plan(
        self, query: str, state: AgentState, available_tools: Sequence[str | Tool]
    ) -> PlanResult:
        request = self.request(query, state, available_tools)
        async for piece in self.stream(request):
            if isinstance(piece, PlanResult):
                return piece
        raise EmptyReply

    def request(
        self,
        query: str,
        state: AgentState,
        available_tools: Sequence[str | Tool],
        *,
        must_answer: bool = False,
    ) -> ModelRequest:
        """Build the request; if the model `must_answer`, a schema allows no calls."""
        history = state.get_messages()
        if not any(m["role"] == "user" and m["content"] == query for m in history):
            history.append({"role": "user", "content": query})
        history = self._with_recalled(history, query)
        tools = [_tool_specification(tool) for tool in available_tools]
        is_react = self.dialect == "react"
        by_schema = is_react and bool(tools) and self._uses_schemas
        tool_instructions = ""
        if is_react and tools:
            lines = list[str]()
            for function in (tool["function"] for tool in tools):
                description = function["description"].replace("\n", "\n  ")
                schema = json.dumps(function["parameters"], ensure_ascii=False)
                lines.append(f"- {function['name']}: {description}{TOOL_INPUT[:-1]}{schema}")
            template = SCHEMA_INSTRUCTIONS if by_schema else REACT_INSTRUCTIONS
            tool_instructions = template.format(tools="\n".join(lines))
        system = self._system(tool_instructions)
        # An image can't be masked, so it isn't sent where text would be.
        history, unsent = message_attachments.select(
            list(map(message_attachments.add_material, history)),
            self.senses,
            hides_data=self.pseudonymizer is not None,
        )
        history = self.pseudonymize(history)
        # What fits by its bytes isn't counted: loading a tokenizer takes half a second.
        for count in (max_token_count, self.count_tokens):
            fitted = fit(history, self._history_tokens(system, tools, count), count)
            if not (fitted.dropped or fitted.shortened):
                break
        added_parameters: dict[str, Any] = {}
        if is_react and tools:
            added_parameters["stop"] = ["\nObservation:"]
        if by_schema:
            callable_tools = [] if must_answer else tools
            added_parameters["response_format"] = schema_reply.response_format(callable_tools)
        return ModelRequest(
            messages=system + self._format_history(fitted.messages, by_schema=by_schema),
            tools=None if is_react else tools or None,
            parameters={**self.parameters, **added_parameters},
            dropped=fitted.dropped,
            shortened=fitted.shortened,
            unsent=unsent,
            by_schema=by_schema,
        )

    def refuses_schema(self, request: ModelRequest, error: AgentError) -> bool:
        """Whether the server may accept the request without its schema; remember that."""
        is_refusal = request.by_schema and type(error) in (ModelError, ProviderFailed)
        if is_refusal:
            SCHEMA_REFUSALS[self._server] = monotonic()
        return is_refusal

    @property
    def _uses_schemas(self) -> bool:
        refused = SCHEMA_REFUSALS.get(self._server)
        is_refused = refused is not None and monotonic() - refused < REFUSAL_SECONDS
        return self.enforces_schemas and not is_refused

    @property
    def _server(self) -> tuple[str, str]:
        return getattr(self.llm, "base_url", None) or "", self.model

    def history_tokens(
        self, available_tools: Sequence[str | Tool], count: TokenCounter
    ) -> int | None:
        """Return how many tokens of history fit besides the rest; None if it is unknown."""
        tools = [_tool_specification(tool) for tool in available_tools]
        return self._history_tokens(self._system(), tools, count)

    def pseudonymize(self, messages: list[Message]) -> list[Message]:
        """Return the messages with personal data replaced."""
        if self.pseudonymizer is None:
            return messages
        return self.pseudonymizer.pseudonymize(messages)

    def aliases(self, messages: Sequence[Message]) -> dict[str, str]:
        """Return the replaced values in these messages, by alias."""
        return {} if self.pseudonymizer is None else self.pseudonymizer.aliases(messages)

    def message(self, plan: PlanResult, calls: Sequence[ToolCall] = ()) -> Message:
        """Return the decision as a history message: `state.add_message(**message)`."""
        if self.dialect == "react":
            return replace(plan.turn, content=plan.thought, kept={}).message(calls)
        message = plan.turn.message(calls)
        # What a provider expects back is only for its own model.
        if plan.turn.kept or any(call.kept for call in calls):
            message["model"] = self.model
        return message

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
        reader = NativeReader()
        if self.dialect == "react":
            reader = ReactReader(by_schema=request.by_schema)
        restorer = None if self.pseudonymizer is None else PlanRestorer(self.pseudonymizer)
        try:
            async with aclosing(batched(chunks, self.deadlines, self.batch_seconds)) as batches:
                async for batch in batches:
                    if not batch:
                        yield SlowNotice(self.deadlines.slow)
                    for delta in _restore(read_batch(reader, batch), restorer):
                        yield delta
                    if reader.is_done:
                        break
            for delta in _restore(join_deltas([reader.rest()]), restorer):
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

    async def reply(self, request: ModelRequest) -> PlanResult:
        """Return a short reply that isn't displayed, read in as few pieces as possible."""
        chunks = open_stream(
            for_short_reply(self.llm).stream,
            model=self.model,
            messages=request.messages,
            tools=request.tools,
            **request.parameters,
        )
        reader = NativeReader()
        read_batch(reader, await read_all(chunks, self.deadlines.first))
        reader.rest()
        plan = reader.result()
        return plan if self.pseudonymizer is None else self.pseudonymizer.restore_plan(plan)

    def _system(self, tool_instructions: str = "") -> list[Message]:
        """Return what is the same for all first, then what is the same for one person."""
        own_instructions = self.own_instructions
        context = self.context.strip("\n")
        pseudonymizer = self.pseudonymizer
        if pseudonymizer is None:
            return _system_messages(own_instructions, tool_instructions, context)
        return _system_messages(
            pseudonymizer.hide(own_instructions),
            tool_instructions,
            pseudonymizer.hide(context),
            ALIAS_INSTRUCTIONS,
        )

    def _with_recalled(self, history: list[Message], query: str) -> list[Message]:
        """Put what was recalled before the question, where it changes nothing before it."""
        text = self.recalled.strip("\n")
        if not text:
            return history
        position = max(
            position
            for position, message in enumerate(history)
            if message["role"] == "user" and message["content"] == query
        )
        material = history[position].get("material")
        question = {
            **history[position],
            "material": f"{text}\n\n{material}" if material else text,
        }
        return [*history[:position], question, *history[position + 1 :]]

    def _format_history(
        self, history: Sequence[Message], *, by_schema: bool = False
    ) -> list[Message]:
        marked = list[Message]()
        for message in history:
            if tool := message.get("untrusted"):
                content = wrap_untrusted(message["content"], tool)
                message = {k: v for k, v in message.items() if k not in PROVENANCE_FIELDS}
                message["content"] = content
            marked.append(message)
        if self.dialect == "react":
            return react_history(marked, by_schema=by_schema)
        messages = []
        for message in marked:
            formatted = message_for_model(message, self.model)
            if "attachments" in message:
                formatted |= attachment_refs(message)
            messages.append(formatted)
        return message_attachments.add_user_messages(messages)

    def _history_tokens(
        self, system: list[Message], tools: list[dict[str, Any]], count: TokenCounter
    ) -> int | None:
        """Return the tokens left for the history, besides the fixed parts and the answer."""
        if self.window is None:
            return None
        fixed_tokens = count(json_text([system, tools]))
        default_tokens = min(DEFAULT_ANSWER_TOKENS, self.window // 4)
        answer_tokens: int = self.parameters.get("max_tokens", default_tokens)
        return max(0, self.window - fixed_tokens - answer_tokens)


def _restore(deltas: list[TextDelta], restorer: PlanRestorer | None) -> Iterable[TextDelta]:
    """Replace aliases by values; text that may be half an alias is held back."""
    return deltas if restorer is None else filter(None, map(restorer.feed, deltas))


def _tool_specification(tool: str | Tool) -> dict[str, Any]:
    if not isinstance(tool, str):
        return specification(tool)
    function = {"name": tool, "description": "", "parameters": TEXT_INPUT_SCHEMA}
    return {"type": "function", "function": function}


def _system_messages(*paragraphs: str) -> list[Message]:
    text = "\n\n".join(filter(None, paragraphs))
    return [{"role": "system", "content": text}] if text else []
