"""The sources of an answer: a run's observations, split into passages."""

import json
import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from agents.access.names import display_name
from agents.db.compiled_queries import compiled_query
from agents.engine.events import StatusKind
from agents.engine.loop import HANDOFF_PREFIX, AskPersonTool
from agents.engine.material import PASSAGE_HEAD, Passage, parse_passages, recorded_passages
from agents.engine.text import shorten_line
from agents.models import AgentStep, DocumentPart, Run
from agents.tools.calculator import CalculatorTool
from agents.tools.database import DatabaseTool
from agents.tools.search import SearchTool

from ..formats.formatting import format_compact, one_line
from ..formats.structured_output import field_label

# Limits per answer. Beyond them nothing is linked, and nothing is called unsupported.
MAX_SOURCES = 100
MAX_SOURCE_CHARS = 20_000  # characters of one observation
MAX_TOTAL_CHARS = 100_000
EXCERPT_CHARS = 240
MAX_CALL_CHARS = 160
LIST_KEYS = ("results", "items", "documents", "passages", "hits", "data")
# Markdown that a reader of an excerpt doesn't need.
MARKUP = re.compile(r"\*\*|__|`+|^#{1,6} |^> ", re.MULTILINE)
LABEL_KEYS = ("title", "name", "url", "source", "id")
QUERY = re.compile(
    r'(?:\{"\w+": ")?\s*(?:select\b|with\b.{1,80}\bas\b)', re.IGNORECASE | re.DOTALL
)
MAX_RESULT_CHARS = 40  # of a calculation
PLACE_CHARS = 60


class Observation(NamedTuple):
    """What a tool returned in a run, or one passage of it."""

    step: int
    tool: str
    text: str
    number: int = 0  # of a passage in its observation, as the model cites it
    label: str = ""  # where a passage comes from
    asked: str = ""  # what the tool was called with
    passage: Passage | None = None  # set for a passage of a document
    url: str = ""  # of a page that a search listed
    is_text: bool = False  # whether it is a text of its own, not a row of data

    @property
    def key(self) -> tuple[int | str, int]:
        """What tells it from the other sources of an answer."""
        if self.passage is not None:
            return "", self.number
        return (self.label, self.number) if self.is_text else (self.step, self.number)

    @property
    def of_figures(self) -> "Observation":
        """The source of its figures: a text, or else the whole result."""
        return self if self.is_text else self._replace(number=0, label="")

    @property
    def title(self) -> str:
        """The document, the page or the tool."""
        if self.passage is not None:
            return self.passage.title
        return self.label or _tool_title(self.tool)

    @property
    def detail(self) -> str:
        """Where in its document it is, or what the tool was asked."""
        if self.page:
            return " · ".join(filter(None, (_host(self.page), self.place)))
        if self.passage is not None:
            return self.place or f"“{shorten_line(self.excerpt, PLACE_CHARS)}”"
        if self.label:
            return _host(self.url) or _tool_title(self.tool)
        if self.icon == "calculator" and len(self.text) <= MAX_RESULT_CHARS:
            return one_line(f"{self.asked} = {self.text}")
        return one_line(self.asked)

    @property
    def icon(self) -> str:
        """The symbol of its kind."""
        if self.url or self.page:
            return "globe"
        if self.passage is not None:
            return "document"
        if self.tool == CalculatorTool.name:
            return "calculator"
        return "database" if QUERY.match(self.asked) else "tool"

    @property
    def page(self) -> str:
        """The address of the web page that a passage is from; empty for documents."""
        url = self.passage.url if self.passage is not None else ""
        return url if url.startswith(("http://", "https://")) else ""

    @property
    def place(self) -> str:
        """Where in its document a passage is: its heading and its page, slide or sheet."""
        if self.passage is None:
            return ""
        texts = (self.passage.heading, part_name(self.passage), self.passage.published)
        return " · ".join(filter(None, texts))

    @property
    def excerpt(self) -> str:
        text = self.text[: 2 * EXCERPT_CHARS]
        text = text if self.passage is None else MARKUP.sub("", text)
        return shorten_line(text, EXCERPT_CHARS)


Sources = tuple[Observation, ...]


def sources_of(
    run: Run, visible_row: Callable[[AgentStep], AgentStep] | None = None
) -> Sources:
    """Return a run's observations and passages, as the viewer may see them."""
    steps = _tool_steps(run.pk)
    return observed(map(visible_row, steps) if visible_row else steps)


def observed(steps: Iterable[Any]) -> Sources:
    """Return the observations in these steps, split into passages where they are numbered.

    Results of other agents are left out: their own steps have what they saw.
    """
    sources: list[Observation] = []
    remaining_chars = MAX_TOTAL_CHARS
    for step in steps:
        if step.kind == AgentStep.Kind.ANSWER:
            sources += _earlier_passages(step)
        is_handoff = (
            step.action.startswith(HANDOFF_PREFIX) and step.action != AskPersonTool.name
        )
        is_done = step.kind == AgentStep.Kind.TOOL and step.status == AgentStep.Status.DONE
        if not is_done or is_handoff:
            continue
        text = step.observation[: min(MAX_SOURCE_CHARS, remaining_chars)]
        remaining_chars -= len(text)
        if text:
            call = (
                format_compact(step.action_input)[:MAX_CALL_CHARS] if step.action_input else ""
            )
            # A public copy of a step has no sources.
            saved = recorded_passages(getattr(step, "sources", ()))
            passages = {passage.number: passage for passage in saved}
            sources += [
                item._replace(asked=call, passage=passages.get(item.number))
                for item in _split(step.number, step.action, text)
            ]
    return tuple(sources[:MAX_SOURCES])


def _earlier_passages(step: Any) -> list[Observation]:
    """Return passages of earlier answers that this one cites."""
    notes = getattr(step, "notes", None) or ()
    values = [
        value
        for note in notes
        if note.get("kind") == StatusKind.EARLIER_SOURCES
        for value in note.get("sources") or ()
    ]
    return [
        Observation(
            step=step.number,
            tool=SearchTool.name,
            text=passage.text,
            number=passage.number,
            label=passage.title,
            passage=passage,
            is_text=True,
        )
        for passage in recorded_passages(values)
    ]


def shared_by(source: Observation, asker: int | None) -> str:
    """Return who shared the collection of a passage; empty if nobody but the asker owns it."""
    owner = source.passage.owner if source.passage else None
    if owner is None or owner == asker:
        return ""
    user = User.objects.select_related("profile").filter(pk=owner).first()
    return _("Shared by %(name)s") % {"name": display_name(user)} if user else ""


def part_name(passage: Passage) -> str:
    """Return the page, slide or sheet of a passage, for people."""
    params = {"number": passage.part, "name": passage.label}
    match passage.kind:
        case DocumentPart.Kind.PAGE:
            return _("Page %(number)s") % params
        case DocumentPart.Kind.SLIDE:
            return _("Slide %(number)s") % params
        case DocumentPart.Kind.SHEET | DocumentPart.Kind.CHAPTER | DocumentPart.Kind.CLIP:
            return passage.label or _("Part %(number)s") % params
    return ""


@compiled_query
def _tool_steps(run: int) -> QuerySet[AgentStep]:
    kinds = (AgentStep.Kind.TOOL, AgentStep.Kind.ANSWER)
    steps = AgentStep.objects.filter(run=run, kind__in=kinds).order_by("number")
    fields = ("run", "number", "kind", "status", "action", "action_input", "observation")
    return steps.only(*fields, "sources", "notes")


def _split(step: int, tool: str, text: str) -> list[Observation]:
    if PASSAGE_HEAD.match(text):
        return [
            Observation(step, tool, passage.text, passage.number, passage.title, is_text=True)
            for passage in parse_passages(text)
        ]
    items = _listed_items(text) if text.startswith(("[", "{")) else []
    observations = []
    for number, item in enumerate(items, start=1):
        texts = [text for value in item.values() if (text := _value_text(value))]
        url = item.get("url")
        url = url if isinstance(url, str) else ""
        observations.append(
            Observation(
                step,
                tool,
                "\n".join(texts),
                number,
                _item_label(item),
                url=url,
                is_text=bool(url),
            )
        )
    return observations or [Observation(step, tool, text)]


def _listed_items(text: str) -> list[dict[str, Any]]:
    """Return search results in JSON, which models cite by their position."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return []
    if isinstance(value, dict):
        value = next((value[key] for key in LIST_KEYS if isinstance(value.get(key), list)), [])
    is_list = isinstance(value, list) and 0 < len(value) <= MAX_SOURCES
    is_found = is_list and all(isinstance(i, dict) and _item_label(i) for i in value)
    return value if is_found else []


def _value_text(value: Any) -> str:
    """Return a value of a row, or the values of a list in it."""
    if isinstance(value, list):
        return ", ".join(str(item) for item in value if isinstance(item, str | int | float))
    return str(value) if isinstance(value, str | int | float) else ""


def _item_label(item: dict[str, Any]) -> str:
    labels = (item.get(key) for key in LABEL_KEYS)
    return next((label[:200] for label in labels if isinstance(label, str) and label), "")


def _tool_title(name: str) -> str:
    titles = {CalculatorTool.name: _("Calculator"), DatabaseTool.name: _("Database")}
    return titles.get(name) or field_label(name)


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
