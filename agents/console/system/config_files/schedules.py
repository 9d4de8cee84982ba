"""Schedules of agents and workflows in configuration files: lists, as they have no names."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib import admin
from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.db import models
from django.db.models import Q, QuerySet
from django.forms import modelform_factory
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.engine.plans import ValuePath
from agents.models import Schedule
from agents.models.types import LazyText
from agents.web.workflows import acceptance

from .columns import ConfigColumn, normalize_newlines, not_found_message, unknown_key_message
from .kind import ResourceValues, ValidationIssue
from .permissions import ConfigUser, has_model_perm, user_or_none

KEY = "schedules"
USER = "user"
CHANNEL = "result_channel"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleList:
    """The schedules of one kind of target: the keys that they have and need."""

    target: str  # the column of what they start
    needed: Mapping[str, type]
    optional: Mapping[str, Any]  # with their defaults
    sentence: LazyText  # if one of the needed is missing

    @property
    def keys(self) -> list[str]:
        return [*self.needed, *self.optional]

    def describe(self, rows: Iterable[Schedule]) -> list[ResourceValues]:
        """Return the schedules as a file has them; the rows have their users and channels."""
        return _sort(
            {key: normalize_newlines(_column(key).of(row)) for key in self.keys} for row in rows
        )

    def mismatches(self, values: ResourceValues) -> Iterator[ValidationIssue]:
        schedules = values.get(KEY, [])
        if not isinstance(schedules, list):
            yield ValidationIssue((KEY,), _("Must be a list of schedules."))
            return
        for number, schedule in enumerate(schedules):
            path = (KEY, number)
            if not isinstance(schedule, dict) or not self.needed.keys() <= schedule.keys():
                yield ValidationIssue(path, str(self.sentence))
                continue
            for key, value in schedule.items():
                if key not in self.keys:
                    yield ValidationIssue((*path, key), unknown_key_message(key))
                elif not self._fits(key, value):
                    yield ValidationIssue((*path, key), _("This value has the wrong type."))

    def _fits(self, key: str, value: Any) -> bool:
        if key == CHANNEL:
            return value is None or isinstance(value, str)
        return isinstance(value, self.needed.get(key) or type(self.optional[key]))

    def complete(self, values: ResourceValues) -> ResourceValues:
        """Return the values with the defaults of what their schedules leave out."""
        if not isinstance(schedules := values.get(KEY), list):
            return values
        completed = [
            {**self.optional, **schedule} if isinstance(schedule, dict) else schedule
            for schedule in schedules
        ]
        return {**values, KEY: completed}

    def differ(self, current: ResourceValues, values: ResourceValues) -> bool:
        current_schedules: list[ResourceValues] = current.get(KEY, [])
        return _sort(values.get(KEY, current_schedules)) != current_schedules

    def missing_references(self, values: ResourceValues) -> Iterator[ValidationIssue]:
        people = get_user_model()._default_manager
        for number, schedule in enumerate(values.get(KEY, [])):
            name = schedule[USER]
            if not people.filter(**{people.model.USERNAME_FIELD: name}).exists():
                message = not_found_message(_("user"), name)
                yield ValidationIssue((KEY, number, USER), message)
            for message in _column(CHANNEL).missing_names(schedule.get(CHANNEL)):
                yield ValidationIssue((KEY, number, CHANNEL), message)

    def keep(self, row: Any, values: ResourceValues, user: ConfigUser) -> list[ValidationIssue]:
        """Save the schedules if they differ; otherwise return the problems."""
        if KEY not in values:
            return []
        current = {KEY: self.describe(row.schedules.all())}
        return list(self._save(row, values, user)) if self.differ(current, values) else []

    def _save(
        self, row: Any, values: ResourceValues, user: ConfigUser
    ) -> Iterator[ValidationIssue]:
        """Replace the schedules; one with the same user and time keeps its row."""
        if not all(
            has_model_perm(user, verb, Schedule) for verb in ("add", "change", "delete")
        ):
            message = _("You don't have permission to change schedules.")
            yield ValidationIssue((KEY,), message)
            return
        existing: dict[Any, list[Schedule]] = defaultdict(list)
        for schedule in row.schedules.select_related("user", CHANNEL):
            existing[schedule.user.get_username(), schedule.cron].append(schedule)
        for number, schedule_values in enumerate(values[KEY]):
            same = existing[schedule_values[USER], schedule_values["cron"]]
            schedule = same.pop() if same else Schedule(**{self.target: row})
            yield from self._save_one(number, schedule, schedule_values, user)
            if schedule.pk:
                acceptance.update_acceptance(schedule, user_or_none(user))
        for remaining in existing.values():
            for schedule in remaining:
                schedule.delete()

    def _save_one(
        self, number: int, schedule: Schedule, values: ResourceValues, user: ConfigUser
    ) -> Iterator[ValidationIssue]:
        model_admin = admin.site.get_model_admin(Schedule)
        json_class = model_admin.formfield_overrides[models.JSONField]["form_class"]
        form_class = modelform_factory(
            Schedule,
            model_admin.form,
            [self.target, *self.keys],
            field_classes={"parameters": json_class},
        )
        data = {key: _column(key).form_value(values[key]) for key in self.keys}
        data[self.target] = getattr(schedule, f"{self.target}_id")
        data[CHANNEL] = data[CHANNEL] or unnamed_channel(schedule)
        form = form_class(data, instance=schedule)
        if (editor := user_or_none(user)) is not None:
            restrict_channels(form, editor)
        if form.is_valid():
            form.save()
            return
        for name, sentences in form.errors.items():
            path: ValuePath = (KEY, number, name) if name in self.keys else (KEY, number)
            yield from (ValidationIssue(path, str(sentence)) for sentence in sentences)


OF_WORKFLOWS = ScheduleList(
    target="workflow",
    needed={USER: str, "cron": str},
    optional={
        "parameters": {},
        "overlap": Schedule.Overlap.SKIP.value,
        CHANNEL: None,
        "enabled": True,
    },
    sentence=gettext_lazy("A schedule needs user and cron."),
)
OF_AGENTS = ScheduleList(
    target="agent",
    needed={USER: str, "cron": str, "question": str},
    optional={
        "overlap": Schedule.Overlap.SKIP.value,
        "into_chat": False,
        CHANNEL: None,
        "enabled": True,
    },
    sentence=gettext_lazy("A schedule needs user, cron and question."),
)


def described_rows() -> QuerySet[Schedule]:
    """Return schedules with what their descriptions need."""
    return Schedule.objects.select_related(USER, CHANNEL)


def restrict_channels(form: Any, editor: User) -> None:
    """Let a form send answers only where its editor may, or where the row does already."""
    channels = form.fields[CHANNEL].queryset
    usable = Q(pk__in=channels.usable_by(editor).values("pk"))
    form.fields[CHANNEL].queryset = channels.filter(
        usable | Q(pk=form.instance.result_channel_id)
    )


def unnamed_channel(row: Any) -> Any:
    """Return the webhook of a user that a row sends answers to: files can't name it."""
    channel = row.result_channel
    return channel.pk if channel is not None and channel.name is None else ""


def _column(key: str) -> ConfigColumn:
    return ConfigColumn(field=Schedule._meta.get_field(key))


def _sort(schedules: Iterable[ResourceValues]) -> list[ResourceValues]:
    return sorted(schedules, key=lambda schedule: json.dumps(schedule, sort_keys=True))
