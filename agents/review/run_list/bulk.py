"""Actions on several runs of the trace list: export, flag, save as examples."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.access import masking
from agents.engine.text import shorten_line
from agents.models import Run
from agents.web.downloads import csv_line

from ..annotations import examples, feedback
from ..filters.filter_language import Filter
from ..models import Example, Review
from .columns import Column
from .listing import RunSearch, load_rows

CHUNK = 200
MAX_SELECTED = 500
FORMATS = {"csv": "text/csv; charset=utf-8", "jsonl": "application/jsonl"}
MAX_EXAMPLE_NAME_CHARS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The selected runs or, without numbers, all that match a filter."""

    user: User
    run_filter: Filter
    pks: Sequence[int] = ()

    def chunks(self) -> Iterator[list[int]]:
        """Yield the runs this user can see, newest first."""
        if self.pks:
            runs = Run.objects.for_user(self.user).filter(pk__in=self.pks)
            yield list(runs.order_by("-pk").values_list("pk", flat=True))
            return
        yield from RunSearch(self.user, self.run_filter).chunks(CHUNK)

    def first(self, limit: int) -> tuple[list[int], bool]:
        """Return up to this many, and whether there are more."""
        run_ids: list[int] = []
        for chunk in self.chunks():
            run_ids += chunk
            if len(run_ids) > limit:
                break
        return run_ids[:limit], len(run_ids) > limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What an action did: how many runs, and why it left out others."""

    done: int = 0
    problems: tuple[tuple[str, int], ...] = ()
    is_cut: bool = False

    def sentences(self, done: str) -> list[str]:
        sentences = [done]
        sentences += [
            ngettext("%(count)d run skipped: %(why)s", "%(count)d runs skipped: %(why)s", count)
            % {"count": count, "why": why}
            for why, count in self.problems
        ]
        if self.is_cut:
            sentence = _("Only the newest %(count)d runs were included.")
            sentences.append(sentence % {"count": MAX_SELECTED})
        return sentences


def export(selection: Selection, columns: Sequence[Column], file_format: str) -> Iterator[str]:
    """Yield the selected runs with these columns, as the list displays them."""
    if file_format == "csv":
        yield csv_line([*_id_cell(columns, "run"), *(column.name for column in columns)])
    names = {column.name for column in columns}
    for pks in selection.chunks():
        for row in load_rows(pks, selection.user, names):
            pk = row.view.run.pk
            values = {column.name: column.value(row) for column in columns}
            for name, value in values.items():
                if isinstance(value, float):
                    values[name] = round(value, 6)  # binary fractions have more digits
            if file_format == "csv":
                yield csv_line([*_id_cell(columns, str(pk)), *values.values()])
            else:
                yield json.dumps({"run": pk} | values, ensure_ascii=False) + "\n"


def flag(selection: Selection, why: str, queue: int | None = None) -> Outcome:
    """Request a review of each run; those in the queue stay as they are.

    With a queue, those that wait in another one are moved to it.
    """
    pks, is_cut = selection.first(MAX_SELECTED)
    allowed = Run.objects.in_scope(selection.user).filter(pk__in=pks).order_by("pk")
    open_reviews = Review.objects.open().filter(run__in=pks)
    if queue is not None:
        open_reviews = open_reviews.filter(queue=queue or None)
    waiting = set(open_reviews.values_list("run", flat=True))
    tally = _Tally()
    for run in allowed:
        if run.pk in waiting:
            tally.skip(_("already in the review queue"))
        elif run.is_live:
            tally.skip(_("still in progress"))
        else:
            tally.attempt(lambda run=run: feedback.flag(selection.user, run, why, queue))
    return tally.outcome(is_cut)


def save_examples(selection: Selection, session: Any) -> Outcome:
    """Save each run as an example, named after its question."""
    pks, is_cut = selection.first(MAX_SELECTED)
    runs = feedback.reviewable_runs(selection.user).filter(pk__in=pks).order_by("pk")
    tally = _Tally(missing=len(pks))
    for run in masking.load_origins(runs):
        tally.missing -= 1
        tally.attempt(lambda run=run: _save_example(selection.user, run, session))
    if tally.missing:
        tally.skip(_("only reviewers can save examples"), tally.missing)
    return tally.outcome(is_cut)


def _save_example(user: User, run: Run, session: Any) -> None:
    if run.agent_id is None:
        raise feedback.FeedbackRejected(_("its agent was deleted"))
    is_masked = masking.is_masked_for(run, user, session)
    visible_run = masking.mask_row(run) if is_masked else run
    name = shorten_line(visible_run.query, MAX_EXAMPLE_NAME_CHARS)
    if run.examples.exists():
        raise feedback.FeedbackRejected(_("already saved as an example"))
    if Example._base_manager.filter(name=name).exists():
        name = f"{name} #{run.pk}"
    # An expected answer that is masked could never be met.
    expected = "" if is_masked and visible_run.answer != run.answer else run.answer
    examples.save(user, run, name, expected)


class _Tally:
    """Counts what was done, and what wasn't by reason."""

    def __init__(self, missing: int = 0) -> None:
        self.done = 0
        self.missing = missing
        self.problems: dict[str, int] = {}

    def skip(self, why: str, count: int = 1) -> None:
        self.problems[why] = self.problems.get(why, 0) + count

    def attempt(self, action: Any) -> None:
        try:
            action()
        except feedback.FeedbackRejected as problem:
            self.skip(str(problem))
        else:
            self.done += 1

    def outcome(self, is_cut: bool) -> Outcome:
        return Outcome(done=self.done, problems=tuple(self.problems.items()), is_cut=is_cut)


def _id_cell(columns: Iterable[Column], text: str) -> list[str]:
    """Return a first cell that names the run, unless a column does."""
    return [] if any(column.name == "id" for column in columns) else [text]
