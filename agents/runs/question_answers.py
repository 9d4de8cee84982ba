"""Answers to the questions of running calls: read from a form, checked and saved once."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from math import isfinite, nan
from typing import Any, Literal
from urllib.parse import urlsplit

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.access import audit, masking
from agents.catalog import agent_factory
from agents.db import database, errors
from agents.engine.question_form import MAX_TEXT_CHARS, FormField, read_fields
from agents.models import Agent, Approval, Run
from agents.models.types import AnyUser

from . import executor
from .approvals import DecisionRejected
from .projection import VERDICT_BY_ACTION

Action = Literal["accept", "decline", "cancel"]
Typed = Mapping[int, Sequence[str]]  # what was typed, by field number

INTEGER = re.compile(r"[+-]?\d{1,18}")


class InvalidAnswer(DecisionRejected):
    """Raised when fields are wrong; `problems` says what, by field number."""

    def __init__(self, problems: Mapping[int, str]) -> None:
        super().__init__(_("Not sent. Fix the marked fields."))
        self.problems = problems


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A user's answer. `digest` identifies the question that was displayed."""

    digest: str
    action: Action
    typed: Typed = field(default_factory=dict)


async def submit_answer(user: AnyUser, pk: int, answer: Answer) -> Run:
    """Save the answer and wake the call that waits for it.

    Raises Approval.DoesNotExist if this user can't answer.
    """
    try:
        run = await database.run(_save, user, pk, answer)
    except audit.NotRecorded as reason:
        raise DecisionRejected(str(reason)) from reason
    await executor.current().questions.deliver()
    return run


def form_fields(approval: Approval) -> tuple[FormField, ...]:
    """Return the fields of the question's form."""
    return read_fields(json.loads(approval.arguments).get("schema", {}))


def read_answer(fields: Sequence[FormField], typed: Typed) -> dict[str, Any]:
    """Return the content of a form; raise InvalidAnswer."""
    content = dict[str, Any]()
    problems = dict[int, str]()
    for number, form_field in enumerate(fields):
        try:
            value = _read_field(form_field, typed.get(number, ()))
        except ValueError as error:
            problems[number] = str(error)
        else:
            if value is not None:
                content[form_field.name] = value
    if problems:
        raise InvalidAnswer(problems)
    return content


def _save(user: AnyUser, pk: int, answer: Answer) -> Run:
    answerable = Approval.objects.for_user(user).filter(why=Approval.Why.ELICITATION)
    is_accepted = answer.action == "accept"
    with errors.reraise_as(DecisionRejected):
        row = answerable.select_related("run__agent").get(pk=pk)
        content = read_answer(form_fields(row), answer.typed) if is_accepted else {}
    if agent_factory.personal_data_policy(row.run) == Agent.PersonalData.UNKEPT:
        content = masking.mask_value(content)
    with errors.reraise_as(DecisionRejected), transaction.atomic():
        run = Run.objects.select_for_update().get(pk=row.run_id)
        approval = answerable.get(pk=pk)  # again, now that the run is locked
        if not approval.is_waiting:
            raise DecisionRejected(_("This question is already closed."))
        if answer.digest != approval.digest:
            raise DecisionRejected(
                _("This request has changed since you opened the page. Reload the page.")
            )
        if run.status != Run.Status.RUNNING:
            raise DecisionRejected(_("The run has ended, so your answer is no longer needed."))
        Approval.objects.filter(pk=pk).update(
            verdict=VERDICT_BY_ACTION[answer.action],
            new_arguments=json.dumps(content, ensure_ascii=False) if content else "",
            decided_by=user,
            decided_at=timezone.now(),
        )
        details = {"step": row.step, "tool": row.tool, "approved": is_accepted}
        audit.record(user, audit.DECIDED, run, changed=False, **details)
    return run


def _read_field(form_field: FormField, values: Sequence[str]) -> Any:
    """Return the value, or None if the field is empty; raise ValueError with the problem."""
    if form_field.kind == "choices":
        return _read_choices(form_field, values)
    text = values[-1].strip() if values else ""
    if not text:
        if not form_field.is_required:
            return None  # for yes or no too: without an answer, its default isn't a no
        has_options = form_field.options or form_field.kind == "boolean"
        raise ValueError(_("Choose an option.") if has_options else _("Fill in this field."))
    match form_field.kind:
        case "boolean":
            if text not in {"true", "false"}:
                raise ValueError(_("Choose an option."))
            return text == "true"
        case "choice":
            return _check_option(form_field, text)
        case "integer":
            if not INTEGER.fullmatch(text):
                raise ValueError(_("Enter a whole number."))
            return _check_range(form_field, int(text))
        case "number":
            try:
                number = float(text.replace(",", "."))
            except ValueError:
                number = nan
            if not isfinite(number):
                raise ValueError(_("Enter a number."))
            is_whole = number.is_integer() and abs(number) < 1e15
            return _check_range(form_field, int(number) if is_whole else number)
    max_chars = MAX_TEXT_CHARS
    if form_field.most is not None:
        max_chars = min(int(form_field.most), MAX_TEXT_CHARS)
    if len(text) > max_chars:
        raise ValueError(
            _("Too long: %(count)d characters (max %(most)d).")
            % {"count": len(text), "most": max_chars}
        )
    if form_field.least is not None and len(text) < form_field.least:
        raise ValueError(
            _("Too short: %(count)d characters (min %(least)d).")
            % {"count": len(text), "least": int(form_field.least)}
        )
    return FORMAT_READERS[form_field.format](text) if form_field.format else text


def _read_choices(form_field: FormField, values: Sequence[str]) -> list[str] | None:
    chosen = [_check_option(form_field, value) for value in dict.fromkeys(filter(None, values))]
    if not chosen and not form_field.is_required:
        return None
    minimum = int(form_field.least or 0) or (1 if form_field.is_required else 0)
    if len(chosen) < minimum:
        sentence = ngettext(
            "Choose at least %(count)d option.", "Choose at least %(count)d options.", minimum
        )
        raise ValueError(sentence % {"count": minimum})
    if form_field.most is not None and len(chosen) > form_field.most:
        maximum = int(form_field.most)
        sentence = ngettext(
            "Choose up to %(count)d option.", "Choose up to %(count)d options.", maximum
        )
        raise ValueError(sentence % {"count": maximum})
    return chosen


def _check_option(form_field: FormField, value: str) -> str:
    if value not in {option for option, _label in form_field.options}:
        raise ValueError(_("Choose one of the options."))
    return value


def _check_range(form_field: FormField, number: float) -> float:
    if form_field.least is not None and number < form_field.least:
        raise ValueError(_("Enter %(least)s or more.") % {"least": f"{form_field.least:g}"})
    if form_field.most is not None and number > form_field.most:
        raise ValueError(_("Enter %(most)s or less.") % {"most": f"{form_field.most:g}"})
    return number


def _read_email(text: str) -> str:
    try:
        validate_email(text)
    except ValidationError:
        raise ValueError(_("Enter an email address, e.g. ana@example.com.")) from None
    return text


def _read_uri(text: str) -> str:
    try:
        url = urlsplit(text)
    except ValueError:
        url = urlsplit("")
    if not url.scheme or not (url.netloc or url.path) or " " in text:
        raise ValueError(_("Enter a URL, e.g. https://example.com."))
    return text


def _read_date(text: str) -> str:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise ValueError(_("Enter a date, e.g. 2026-03-31.")) from None


def _read_datetime(text: str) -> str:
    """Return the time with its offset; a browser's field has none."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(_("Enter a date and time, e.g. 2026-03-31T14:30.")) from None
    aware = moment if moment.tzinfo else timezone.make_aware(moment)
    return aware.isoformat()


FORMAT_READERS: dict[str, Callable[[str], str]] = {
    "email": _read_email,
    "uri": _read_uri,
    "date": _read_date,
    "date-time": _read_datetime,
}
