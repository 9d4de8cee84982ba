"""Finds and replaces a user's text in other users' rows.

Text that someone else also wrote isn't replaced.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import JSONField, Model, Q, QuerySet, TextField
from django.db.models.functions import Cast

from agents.engine.events import DELTA_TYPES
from agents.models import (
    Run,
    RunEvent,
)
from agents.review.models import Example, Label
from chat.models import ChatSession, Message, PublicLink

from .quotation_matcher import REDACTED, QuotationMatcher, batches
from .text_columns import CONFIG_COLUMNS, TEXT_COLUMNS

PAGE_SIZE = 500

Rows = Iterable[tuple[type[Model], QuerySet[Any]]]


def redact_rows(
    matcher: QuotationMatcher,
    rows: Rows,
    excluded: Mapping[type[Model], Q],
    runs: set[int] | None = None,
) -> Counter:
    """Replace the texts in these rows, except `excluded`; return the counts by kind.

    Runs that contained them are added to `runs`, because their answers were also streamed.
    """
    counts: Counter = Counter()
    matching_runs: set[int] = set() if runs is None else runs
    for model, queryset in rows:
        for page in _pk_pages(
            queryset.exclude(excluded[model]) if model in excluded else queryset
        ):
            counts[model] += _redact_page(matcher, model, page, matching_runs)
    return counts


def redact_deltas(matcher: QuotationMatcher, runs: Iterable[int]) -> int:
    """Replace texts that span several deltas.

    The first delta then has the whole text and the others none, so no event is missing.
    """
    count = 0
    for run in runs:
        with transaction.atomic():
            deltas = RunEvent.objects.filter(run=run, type__in=DELTA_TYPES).order_by("seq")
            by_step = sorted(
                deltas, key=lambda delta: (delta.type, delta.data.get("step", 0), delta.seq)
            )
            for _key, group in groupby(
                by_step, lambda delta: (delta.type, delta.data.get("step", 0))
            ):
                step_deltas = list(group)
                text = "".join(str(delta.data.get("content", "")) for delta in step_deltas)
                redacted = matcher.without(text)
                if redacted == text:
                    continue
                for index, delta in enumerate(step_deltas):
                    data = delta.data | {"content": redacted if index == 0 else ""}
                    RunEvent.objects.filter(pk=delta.pk).update(data=data)
                count += len(step_deltas)
    return count


def count_in_config(matcher: QuotationMatcher) -> Counter:
    """Count configuration that contains these texts, which stays."""
    counts: Counter = Counter()
    for model, columns in CONFIG_COLUMNS.items():
        for page in _pk_pages(model._base_manager.all()):
            counts[model] += sum(
                matcher.matches(text) for _pk, text in _row_texts(model, page, columns)
            )
    return +counts


def run_rows(runs: Sequence[int]) -> Rows:
    """Yield all rows of these runs and the feedback on them."""
    for batch in batches(runs, PAGE_SIZE):
        for model in TEXT_COLUMNS:
            names = {field.name for field in model._meta.get_fields()}
            if model is Run:
                yield model, Run.objects.filter(pk__in=batch)
            elif model is RunEvent:
                yield (
                    model,
                    RunEvent.objects.filter(run__in=batch).exclude(type__in=DELTA_TYPES),
                )
            elif "run" in names and model is not Message:
                yield model, model._base_manager.filter(run__in=batch)


def session_rows(sessions: Sequence[int]) -> Rows:
    """Yield the messages, titles and public copies of these chats."""
    for batch in batches(sessions, PAGE_SIZE):
        yield ChatSession, ChatSession.objects.filter(pk__in=batch)
        yield PublicLink, PublicLink.objects.filter(session__in=batch)
        yield Message, Message.objects.filter(session__in=batch)


def all_rows(last_pks: Mapping[type[Model], int]) -> Rows:
    """Yield all rows with text, or those after these ids."""
    for model in TEXT_COLUMNS:
        rows = model._base_manager.filter(pk__gt=last_pks.get(model, 0))
        yield model, rows.exclude(type__in=DELTA_TYPES) if model is RunEvent else rows


def latest_pks() -> dict[type[Model], int]:
    """Return the highest id of each kind."""
    querysets = {model: model._base_manager.order_by("-pk") for model in TEXT_COLUMNS}
    return {
        model: querysets[model].values_list("pk", flat=True).first() or 0 for model in querysets
    }


def _redact_page(
    matcher: QuotationMatcher, model: type[Model], page: list[int], runs: set[int]
) -> int:
    columns = TEXT_COLUMNS[model]
    matching_pks = [
        pk for pk, text in _row_texts(model, page, columns) if matcher.may_match(text)
    ]
    if not matching_pks:
        return 0
    count = 0
    with transaction.atomic():
        for row in model._base_manager.filter(pk__in=matching_pks).order_by("pk"):
            old = {name: getattr(row, name) for name in columns}
            new = {name: matcher.without(value) for name, value in old.items()}
            changed = {name: value for name, value in new.items() if value != old[name]}
            if changed:
                for name, value in changed.items():
                    max_length = getattr(model._meta.get_field(name), "max_length", None)
                    if max_length and isinstance(value, str):
                        changed[name] = value[:max_length]
                if model is Example and "name" in changed:  # must be unique
                    changed["name"] = f"{REDACTED} {row.pk}"
                rows = model._base_manager.filter(pk=row.pk)
                if model is Label and "name" in changed:
                    rows.delete()
                else:
                    rows.update(**changed)
                count += 1
                run = row.pk if model is Run else getattr(row, "run_id", None)
                runs.update([run] if run else [])
    return count


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
    rows = model._base_manager.filter(pk__in=page).annotate(**as_text)
    for pk, *texts in rows.order_by("pk").values_list("pk", *plain, *as_text):
        yield pk, "\n".join(text for text in texts if text)


def _pk_pages(rows: QuerySet[Any]) -> Iterator[list[int]]:
    ordered = rows.order_by("pk").values_list("pk", flat=True)
    last = 0
    while page := list(ordered.filter(pk__gt=last)[:PAGE_SIZE]):
        yield page
        last = page[-1]


def texts_by_others(user: User, texts: Iterable[str]) -> set[str]:
    """Return which of these texts someone else also wrote, exactly."""
    by_others: set[str] = set()
    for batch in batches(texts, PAGE_SIZE):
        messages = Message.objects.exclude(author=user).filter(text__in=batch)
        runs = Run.objects.exclude(Q(user=user) | Q(user=None)).filter(query__in=batch)
        by_others.update(messages.values_list("text", flat=True))
        by_others.update(runs.values_list("query", flat=True))
    return by_others
