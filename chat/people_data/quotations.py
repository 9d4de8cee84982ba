"""Finds and replaces a user's text in other users' rows.

Text is found as written, as JSON, and where it was cut off; sentences of longer text are found
too. Short text isn't distinctive, and neither is text that someone else also wrote.
"""

import json
import os.path
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from types import MappingProxyType
from typing import Any

import re2
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import JSONField, Model, Q, QuerySet, TextField
from django.db.models.functions import Cast

from agents.access import masking
from agents.accounts.models import Profile
from agents.alerts.models import Delivery, Notification
from agents.engine.events import DELTA_TYPES
from agents.engine.loop import AskPersonTool
from agents.experiments.models import ExperimentResult
from agents.models import (
    Agent,
    AgentDraft,
    AgentStep,
    AgentVersion,
    Approval,
    Chunk,
    DocumentPart,
    Experience,
    GuardrailPattern,
    HistorySummary,
    Memory,
    Project,
    Run,
    RunAttachment,
    RunEvent,
    Schedule,
    StyleSignal,
    WorkflowVersion,
)
from agents.problems.models import Problem
from agents.review.models import Comment, Example, Label, Note, Rating, Review, SavedView
from agents.suggestions.models import Suggestion
from chat.models import Attachment, ChatSession, Message, Prompt, PublicLink

REDACTED = "‹…›"
# Shorter text may be anyone's; longer text isn't repeated by chance.
MIN_TEXT_CHARS, MIN_SENTENCE_CHARS, MIN_DISTINCTIVE_CHARS = 12, 30, 40
PREFIX_CHARS = 40  # enough of the start to recognize text that was cut off
PATTERN_BATCH, PAGE_SIZE = 1_000, 500
MAX_REGEX_BYTES = 64 << 20
SENTENCE_BREAK = re.compile(r"(?<=[.!?。！？])\s*|\n+")
MASK_PATTERN = re.compile(r"‹[^›]*›")

# All columns that contain users' text.
TEXT_COLUMNS: dict[type[Model], tuple[str, ...]] = {
    Message: ("text",),
    Attachment: ("name",),
    ChatSession: ("title",),
    PublicLink: ("snapshot",),
    Run: (
        "query",
        "history",
        "files",
        "answer",
        "output",
        "detail",
        "advice",
        "overrides",
        "parameters",
    ),
    RunEvent: ("data",),
    AgentStep: (
        *("thought", "action_input", "observation", "request", "notes"),
        *("attachments", "sources"),
    ),
    RunAttachment: ("text", "name"),
    Approval: ("arguments", "new_arguments", "reason"),
    Rating: ("comment",),
    Comment: ("text",),
    Note: ("text",),
    Label: ("name",),
    Review: ("why", "correction"),
    Example: ("name", "question", "history", "observations", "expected", "checks", "tags"),
    ExperimentResult: ("name", "checks", "divergence", "problem"),
    SavedView: ("name", "query"),
    Schedule: ("parameters", "trouble"),
    AgentVersion: ("note",),
    Profile: ("about_me", "answer_style"),
    Prompt: ("title", "text"),
    Memory: ("subject", "text"),
    Experience: ("question", "text"),
    StyleSignal: ("quote",),
    HistorySummary: ("text",),
    Project: ("name", "description", "instructions"),
    LogEntry: ("object_repr", "change_message"),
    Problem: ("message",),
    Suggestion: ("text",),
    Delivery: ("subject", "text", "html", "payload"),
    Notification: ("text",),
}
# Configuration belongs to the installation: matches are only reported.
CONFIG_COLUMNS: dict[type[Model], tuple[str, ...]] = {
    Agent: ("description", "instructions", "example_questions"),
    AgentDraft: ("values", "replaced"),
    AgentVersion: ("snapshot",),
    WorkflowVersion: ("text",),
    GuardrailPattern: ("rubric",),
    Chunk: ("text",),
    DocumentPart: ("text",),
}
# Keys and kinds that rows depend on; these are never replaced.
STRUCTURAL_KEYS = {
    *("role", "type", "kind", "status", "id", "tool_call_id", "call_id", "model", "digest"),
    *("name", "tool", "effect", "agent", "why", "action", "stopped_reason", "limit"),
}


CONTENT_KEYS = ("content", "content_preview", "observation")

Rows = Iterable[tuple[type[Model], QuerySet[Any]]]


class QuotationMatcher:
    """A user's texts, to be found in other rows."""

    def __init__(
        self,
        texts: Iterable[str],
        phrases: Iterable[str] = (),
        answers: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """`phrases` match at any length; `answers` are the answers by call."""
        quoted = {text.strip() for text in texts} - {"", REDACTED}
        self._answers = {call: text for call, text in answers.items() if text}
        self.short = {text for text in quoted if len(text) < MIN_TEXT_CHARS}
        whole = quoted - self.short
        self._all = "\n".join(whole)
        pieces = {piece for text in whole for piece in _text_variants(text)} | {*phrases}
        self._forms: dict[str, list[str]] = {}
        for form in {form for piece in pieces for form in _json_encodings(piece)}:
            self._forms.setdefault(form[:PREFIX_CHARS], []).append(form)
        keys = sorted(self._forms, key=len, reverse=True)
        self._patterns = [_compile_pattern(some) for some in _batches(keys, PATTERN_BATCH)]

    def __bool__(self) -> bool:
        return bool(self._patterns or self.short or self._answers)

    def matches(self, text: str) -> bool:
        return any(pattern.search(text) for pattern in self._patterns)

    def may_match(self, text: str) -> bool:
        """Whether a row is worth parsing: short text is only recognized by its place."""
        has_place = '"role"' in text or f'"{AskPersonTool.name}"' in text
        is_answer = any(call in text for call in self._answers)
        return bool(self.short and has_place) or is_answer or self.matches(text)

    def without(self, value: Any) -> Any:
        """Return the value with the texts replaced in all its strings."""
        if isinstance(value, str):
            return self._redact_text(value)
        if isinstance(value, list):
            return [self.without(item) for item in value]
        if isinstance(value, dict):
            return {name: self._redact_field(value, name, item) for name, item in value.items()}
        return value

    def _redact_field(self, about: dict[str, Any], name: str, item: Any) -> Any:
        if name in STRUCTURAL_KEYS and isinstance(item, str):
            return item
        if isinstance(item, str) and item in self.short and _is_user_text(about, name):
            return REDACTED
        if name in CONTENT_KEYS and isinstance(item, str):
            answer = self._answers.get(str(about.get("tool_call_id", "")))
            item = item.replace(answer, REDACTED) if answer else item
        if name == "replaced" and isinstance(item, dict):
            # Pseudonyms of a request: aliases and their values.
            return {alias: self._redact_alias(value) for alias, value in item.items()}
        return self.without(item)

    def _redact_alias(self, value: Any) -> Any:
        is_theirs = isinstance(value, str) and value and value in self._all
        return REDACTED if is_theirs else self.without(value)

    def _redact_text(self, text: str) -> str:
        for pattern in self._patterns:
            parts, done = [], 0
            for found in pattern.finditer(text):
                if found.start() >= done:
                    parts += [text[done : found.start()], REDACTED]
                    done = found.start() + self._match_length(text[found.start() :], found[0])
            text = "".join([*parts, text[done:]])
        return text

    def _match_length(self, text: str, key: str) -> int:
        """Return how far the text continues like one of these."""
        forms = self._forms[key]
        agreed = max((os.path.commonprefix([text, form]) for form in forms), key=len)
        if agreed in forms:
            return len(agreed)
        # Half a JSON escape would break the JSON around it.
        escape = agreed.rfind("\\", max(len(agreed) - 6, 0))
        return len(agreed) if escape < 0 else max(escape, 1)


def _is_user_text(about: dict[str, Any], name: str) -> bool:
    """Whether text in this place was written by a user."""
    is_asked = name == "observation" and about.get("tool") == AskPersonTool.name
    return is_asked or (name == "content" and about.get("role") == "user")


def _text_variants(text: str) -> Iterator[str]:
    """Yield a text, its lines and sentences, also with personal data masked."""
    yield text
    yield " ".join(text.split())
    sentences = [part.strip() for part in SENTENCE_BREAK.split(text)]
    yield from (part for part in sentences if _weighted_length(part) >= MIN_SENTENCE_CHARS)
    masked = masking.mask_text(text)
    if masked != text:
        parts = [part.strip() for part in MASK_PATTERN.split(masked)]
        yield from (part for part in parts if len(part) >= MIN_TEXT_CHARS)


def _json_encodings(text: str) -> Iterator[str]:
    """Yield the text as it is, in JSON, and in nested JSON."""
    yield text
    for is_ascii in (True, False):
        once = json.dumps(text, ensure_ascii=is_ascii)[1:-1]
        yield from (once, json.dumps(once, ensure_ascii=is_ascii)[1:-1])


def _compile_pattern(keys: Iterable[str]) -> Any:
    options = re2.Options()
    options.max_mem, options.log_errors = MAX_REGEX_BYTES, False
    return re2.compile("|".join(map(re2.escape, keys)), options)


def is_distinctive(text: str) -> bool:
    """Whether the text is too long to be repeated by chance."""
    return _weighted_length(text) >= MIN_DISTINCTIVE_CHARS


def _weighted_length(text: str) -> int:
    """Return the length in letters; a Japanese character counts as two."""
    return len(text) + sum(ord(sign) > 0x2E80 for sign in text)


def redact_rows(
    words: QuotationMatcher,
    rows: Rows,
    but: Mapping[type[Model], Q],
    runs: set[int] | None = None,
) -> Counter:
    """Replace the texts in these rows, except `but`; return the counts by kind.

    Runs that contained them are added to `runs`, because their answers were also streamed.
    """
    counts: Counter = Counter()
    hit: set[int] = set() if runs is None else runs
    for model, queryset in rows:
        for page in _pk_pages(queryset.exclude(but[model]) if model in but else queryset):
            counts[model] += _redact_page(words, model, page, hit)
    return counts


def redact_deltas(words: QuotationMatcher, runs: Iterable[int]) -> int:
    """Replace texts that span several deltas.

    The first delta then has the whole text and the others none, so no event is missing.
    """
    count = 0
    for run in runs:
        with transaction.atomic():
            bits = RunEvent.objects.filter(run=run, type__in=DELTA_TYPES).order_by("seq")
            by_step = sorted(bits, key=lambda bit: (bit.type, bit.data.get("step", 0), bit.seq))
            for _place, found in groupby(by_step, lambda b: (b.type, b.data.get("step", 0))):
                count += _redact_delta_group(words, list(found))
    return count


def count_in_config(words: QuotationMatcher) -> Counter:
    """Count configuration that contains these texts, which stays."""
    counts: Counter = Counter()
    for model, columns in CONFIG_COLUMNS.items():
        for page in _pk_pages(model._default_manager.all()):
            counts[model] += sum(
                words.matches(text) for _pk, text in _row_texts(model, page, columns)
            )
    return +counts


def run_rows(runs: Sequence[int]) -> Rows:
    """Yield all rows of these runs and the feedback on them."""
    for some in _batches(runs, PAGE_SIZE):
        for model in TEXT_COLUMNS:
            names = {field.name for field in model._meta.get_fields()}
            if model is Run:
                yield model, Run.objects.filter(pk__in=some)
            elif model is RunEvent:
                yield model, RunEvent.objects.filter(run__in=some).exclude(type__in=DELTA_TYPES)
            elif "run" in names and model is not Message:
                yield model, model._default_manager.filter(run__in=some)


def session_rows(sessions: Sequence[int]) -> Rows:
    """Yield the messages, titles and public copies of these chats."""
    for some in _batches(sessions, PAGE_SIZE):
        yield ChatSession, ChatSession.objects.filter(pk__in=some)
        yield PublicLink, PublicLink.objects.filter(session__in=some)
        yield Message, Message.objects.filter(session__in=some)


def all_rows(after: Mapping[type[Model], int]) -> Rows:
    """Yield all rows with text, or those after these ids."""
    for model in TEXT_COLUMNS:
        rows = model._default_manager.filter(pk__gt=after.get(model, 0))
        yield model, rows.exclude(type__in=DELTA_TYPES) if model is RunEvent else rows


def latest_pks() -> dict[type[Model], int]:
    """Return the highest id of each kind."""
    rows = {model: model._default_manager.order_by("-pk") for model in TEXT_COLUMNS}
    return {model: rows[model].values_list("pk", flat=True).first() or 0 for model in rows}


def _redact_page(
    words: QuotationMatcher, model: type[Model], page: list[int], runs: set[int]
) -> int:
    columns = TEXT_COLUMNS[model]
    hit = [pk for pk, text in _row_texts(model, page, columns) if words.may_match(text)]
    if not hit:
        return 0
    count = 0
    with transaction.atomic():
        for row in model._default_manager.filter(pk__in=hit).order_by("pk"):
            old = {name: getattr(row, name) for name in columns}
            new = {name: words.without(value) for name, value in old.items()}
            changed = {name: value for name, value in new.items() if value != old[name]}
            if changed:
                _save_row(model, row.pk, changed)
                count += 1
                run = row.pk if model is Run else getattr(row, "run_id", None)
                runs.update([run] if run else [])
    return count


def _save_row(model: type[Model], pk: int, changed: dict[str, Any]) -> None:
    for name, value in changed.items():
        most = getattr(model._meta.get_field(name), "max_length", None)
        if most and isinstance(value, str):
            changed[name] = value[:most]
    if model is Example and "name" in changed:  # must be unique
        changed["name"] = f"{REDACTED} {pk}"
    if model is Label and "name" in changed:
        model._default_manager.filter(pk=pk).delete()
        return
    model._default_manager.filter(pk=pk).update(**changed)


def _row_texts(
    model: type[Model], page: list[int], columns: tuple[str, ...]
) -> Iterator[tuple[int, str]]:
    """Yield each row as one text: parsing it takes longer, and it rarely matches."""
    fields = {name: model._meta.get_field(name) for name in columns}
    as_text = {
        f"text_of_{name}": Cast(name, TextField())
        for name, field in fields.items()
        if isinstance(field, JSONField)
    }
    plain = [name for name, field in fields.items() if not isinstance(field, JSONField)]
    rows = model._default_manager.filter(pk__in=page).annotate(**as_text)
    for pk, *texts in rows.order_by("pk").values_list("pk", *plain, *as_text):
        yield pk, "\n".join(text for text in texts if text)


def _pk_pages(rows: QuerySet[Any]) -> Iterator[list[int]]:
    last, ordered = 0, rows.order_by("pk").values_list("pk", flat=True)
    while page := list(ordered.filter(pk__gt=last)[:PAGE_SIZE]):
        yield page
        last = page[-1]


def _redact_delta_group(words: QuotationMatcher, bits: list[RunEvent]) -> int:
    text = "".join(str(bit.data.get("content", "")) for bit in bits)
    left = words.without(text)
    if left == text:
        return 0
    for at, bit in enumerate(bits):
        data = bit.data | {"content": left if at == 0 else ""}
        RunEvent.objects.filter(pk=bit.pk).update(data=data)
    return len(bits)


def texts_by_others(user: User, texts: Iterable[str]) -> set[str]:
    """Return which of these texts someone else also wrote, exactly."""
    found: set[str] = set()
    for some in _batches(texts, PAGE_SIZE):
        theirs = Message.objects.exclude(author=user).filter(text__in=some)
        runs = Run.objects.exclude(Q(user=user) | Q(user=None)).filter(query__in=some)
        found |= {
            *theirs.values_list("text", flat=True),
            *runs.values_list("query", flat=True),
        }
    return found


def _batches(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    left = iter(items)
    while some := list(islice(left, size)):
        yield some
