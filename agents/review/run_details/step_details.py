"""All details of one step: request, response and cost."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.db.models import QuerySet

from agents.access import masking
from agents.access.masking import Row
from agents.catalog.agent_factory import DRAFT_KEY
from agents.engine import prompt_parts
from agents.engine.events import DELTA_TYPES, EventType, StatusKind
from agents.engine.state import Message
from agents.models import Agent, AgentStep, AgentVersion, Run, RunEvent
from agents.web.presentation.formats.formatting import format_json, parse_json_text

from .prompt_sources import PromptSource, prompt_sources, used_experiences
from .tool_choice import ToolChoice

HEAD_CHARS = 12_000
TAIL_CHARS = 4_000
MAX_EVENTS = 200


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A text: whole, or its beginning and end."""

    head: str
    tail: str
    size: int

    @classmethod
    def of(cls, text: str) -> "Excerpt":
        if len(text) <= HEAD_CHARS + TAIL_CHARS:
            return cls(text, "", len(text))
        return cls(text[:HEAD_CHARS], text[-TAIL_CHARS:], len(text))

    @property
    def left_out(self) -> int:
        return self.size - len(self.head) - len(self.tail)


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """One message as sent to the model."""

    role: str
    text: Excerpt
    is_new: bool = False

    @classmethod
    def of(cls, message: Message, is_new: bool = False) -> "PromptMessage":
        """Return the message with its text and calls."""
        content = message.get("content")
        text = content if isinstance(content, str) else format_json(content) if content else ""
        calls = message.get("tool_calls")
        text = "\n\n".join(filter(None, [text, format_json(calls) if calls else ""]))
        return cls(str(message.get("role", "")), Excerpt.of(text), is_new)


@dataclass(frozen=True, slots=True)
class Prompt:
    """A request to a model, and how it differs from the previous one."""

    messages: list[Message]
    kept: int
    trimmed: list[Message]

    @property
    def new(self) -> list[PromptMessage]:
        return [
            PromptMessage.of(message, is_new=True) for message in self.messages[self.kept :]
        ]

    @property
    def left_out(self) -> list[PromptMessage]:
        return [PromptMessage.of(message) for message in self.trimmed]

    @property
    def all(self) -> list[PromptMessage]:
        return [
            PromptMessage.of(message, is_new=index >= self.kept)
            for index, message in enumerate(self.messages)
        ]


@dataclass(frozen=True)
class StepDetails:
    run: Run
    step: AgentStep
    is_masked: bool = False  # if so, everything else loaded must be masked too
    hides_private: bool = False  # the same for the parts of the prompt about the user
    hides_rules: bool = False  # and for the names of guardrail rules

    @cached_property
    def result(self) -> str:
        step = self.step
        value: Any = ""
        if step.kind == AgentStep.Kind.TASK:
            # The whole output; its row has only the beginning.
            value = self._ended_with("output")
        if not value:
            text = step.observation or step.thought
            if not text and step.kind == AgentStep.Kind.ANSWER:
                # Text for another agent or in a form isn't the run's answer.
                text = self.run.answer if step.parent is None else self._ended_with("answer")
            value = parse_json_text(text)
        return value if isinstance(value, str) else format_json(value)

    def _ended_with(self, name: str) -> Any:
        """Return a value of the event that ended the step."""
        end_events = self.run.events.filter(type=EventType.STEP, data__step=self.step.number)
        value = (end_events.values_list("data", flat=True).last() or {}).get(name) or ""
        return masking.mask_value(value) if self.is_masked else value

    @cached_property
    def prompt(self) -> Prompt | None:
        """The whole request: rows save only its new part."""
        if not (self.step.request and "messages" in self.step.request):
            return None
        messages: list[Message] = []
        for request in self._previous_requests():
            messages = [*messages[: request["kept"]], *request["messages"]]
        unchanged = self.step.request["kept"]
        new = self.step.request["messages"]
        trimmed = [message for message in messages[unchanged:] if message not in new]
        return Prompt([*messages[:unchanged], *new], unchanged, trimmed)

    @cached_property
    def prompt_sources(self) -> list[PromptSource]:
        """Where the text of the request comes from, with token counts."""
        if self.prompt is None:
            return []
        return prompt_sources(self.prompt.messages, self.tools, self.step.notes)

    @cached_property
    def experiences(self) -> list[dict[str, Any]]:
        """What earlier runs taught the model, with the runs it comes from."""
        return used_experiences(self.step.notes)

    @cached_property
    def aliases(self) -> dict[str, str]:
        """The values the model wasn't sent, by alias; masked for others."""
        requests = [*self._previous_requests(), self.step.request or {}]
        return {
            alias: value
            for request in requests
            for alias, value in request.get("replaced", {}).items()
        }

    def _previous_requests(self) -> Iterable[dict[str, Any]]:
        """Yield earlier requests of the same agent for the same task."""
        same = {"parent": self.step.parent, "agent_name": self.step.agent_name}
        earlier = self.run.steps.filter(number__lt=self.step.number, **same).order_by("number")
        for request in earlier.values_list("request", flat=True):
            if not (request and "messages" in request):
                continue
            if self.is_masked or self.hides_private:
                request = prompt_parts.remove_personal(request)
            yield masking.mask_value(request) if self.is_masked else request

    @cached_property
    def tools(self) -> list[dict[str, Any]]:
        """The tool definitions that were sent."""
        names = set((self.step.request or {}).get("tools") or ())
        return [tool for name, tool in self._definitions.items() if name in names]

    @cached_property
    def tool_choice(self) -> ToolChoice | None:
        """Which of many tools the run's model was sent and why, if this is a request to it."""
        if self.step.request is None:
            return None
        same = {"parent": self.step.parent, "agent_name": self.step.agent_name}
        steps = self.run.steps.filter(number__lte=self.step.number, **same)
        for notes in steps.order_by("-number").values_list("notes", flat=True):
            for note in notes or ():
                if note["kind"] == StatusKind.TOOLS_SELECTED:
                    return ToolChoice.from_note(note)
        return None

    @cached_property
    def definition(self) -> dict[str, Any] | None:
        """The definition of the called tool."""
        return self._definitions.get(self.step.action)

    @cached_property
    def _definitions(self) -> Mapping[str, dict[str, Any]]:
        start_events = self.run.events.filter(
            type__in=[EventType.RUN_STARTED, EventType.HANDOFF]
        )
        start_events = start_events.filter(
            agent=self.step.agent_name, seq__lte=self.step.first_seq
        )
        start_data = start_events.order_by("-seq").values_list("data", flat=True).first() or {}
        definitions = {tool["function"]["name"]: tool for tool in start_data.get("tools", ())}
        if start_data.get("unsent_tools"):
            # The model may have called some without being sent them.
            events = self.run.events.filter(type=EventType.STATUS, agent=self.step.agent_name)
            for data in events.values_list("data", flat=True):
                if data.get("kind") == StatusKind.UNSENT_TOOL and "function" in data:
                    function = data["function"]
                    definitions[function["name"]] = {"type": "function", "function": function}
        return definitions

    @cached_property
    def parameters(self) -> str:
        return format_json((self.step.request or {}).get("parameters") or {})

    @cached_property
    def request(self) -> str:
        """The exact request, as JSON."""
        if self.prompt is None:
            return format_json(self.step.action_input) if self.step.action else ""
        request = self.step.request or {}
        body = {"model": request.get("provider_model") or request.get("model", self.run.model)}
        body |= {"messages": self.prompt.messages, "tools": self.tools}
        return format_json(body | (request.get("parameters") or {}))

    @cached_property
    def guardrails(self) -> list[AgentStep]:
        """The guardrail findings of this turn."""
        same = {"turn": self.step.turn, "parent": self.step.parent}
        guards = self.run.steps.filter(kind=AgentStep.Kind.GUARDRAIL, **same)
        return [self._mask_row(guard) for guard in guards]

    @cached_property
    def usage(self) -> dict[str, Any]:
        events = self._events.filter(type=EventType.USAGE).order_by("seq")
        return events.values_list("data", flat=True).last() or {}

    @cached_property
    def seconds_to_first_token(self) -> float | None:
        first = self._events.filter(type__in=DELTA_TYPES).order_by("seq").first()
        if first is None:
            return None
        return max(0.0, (first.time - self.step.started_at).total_seconds())

    @property
    def ms_to_first_token(self) -> float | None:
        seconds = self.seconds_to_first_token
        return None if seconds is None else seconds * 1000

    @property
    def tokens_per_second(self) -> float | None:
        if self.step.ended_at is None or not self.step.completion_tokens:
            return None
        seconds = (self.step.ended_at - self.step.started_at).total_seconds()
        seconds -= self.seconds_to_first_token or 0.0
        return self.step.completion_tokens / seconds if seconds > 0.05 else None

    @property
    def cost_share(self) -> float | None:
        return self.step.cost / self.run.cost if self.step.cost and self.run.cost else None

    @cached_property
    def raw(self) -> str:
        """The step's events; streamed text only as a count."""
        rows = self._events.exclude(type__in=DELTA_TYPES).order_by("seq")[:MAX_EVENTS]
        masked = [self._mask_row(event) for event in rows]
        events = [event.value.to_dict() for event in masked]
        return format_json(events)

    @cached_property
    def delta_count(self) -> int:
        return self._events.filter(type__in=DELTA_TYPES).count()

    def _mask_row(self, row: Row) -> Row:
        return masking.visible_row(
            row,
            is_masked=self.is_masked,
            hides_private=self.hides_private,
            hides_rules=self.hides_rules,
        )

    @property
    def _events(self) -> QuerySet[RunEvent]:
        return RunEvent.objects.filter(
            run=self.run, seq__gte=self.step.first_seq, data__step=self.step.number
        )


def count_replaced_values(run: Run) -> int:
    """Return how many values the run's models weren't sent."""
    steps = run.steps.filter(request__has_key="replaced").order_by()
    replaced_values = steps.values_list("request__replaced", flat=True)
    return len({alias for replaced in replaced_values for alias in replaced})


def is_masked_at_rest(run: Run) -> bool:
    """Whether personal data was masked before saving, by the agent's version then."""
    if run.is_draft_run:
        return run.overrides[DRAFT_KEY].get("personal_data") == Agent.PersonalData.UNKEPT
    if run.agent_version is None:
        return False
    versions = AgentVersion.objects.filter(agent=run.agent_id, number=run.agent_version)
    return versions.filter(snapshot__personal_data=Agent.PersonalData.UNKEPT).exists()
