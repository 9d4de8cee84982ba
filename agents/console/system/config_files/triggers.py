"""Triggers in configuration files: without their addresses and secrets, which are made here."""

from typing import Any

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from agents.db.fast_writes import concrete_field
from agents.models import Trigger

from .columns import ConfigColumn, editable_columns
from .kind import ResourceKind, ResourceValues, ValidationIssue
from .permissions import ConfigUser, user_or_none
from .schedules import CHANNEL, USER, restrict_channels, unnamed_channel

# What a trigger has done.
STATE_COLUMNS = ("last_run_at", "trouble")
SECRET = "secret"


class TriggerKind(ResourceKind):
    """Triggers have their owners' permissions: only owners import them, or a terminal."""

    only_first = (USER, SECRET)

    def columns(self, values: ResourceValues) -> list[ConfigColumn]:
        return editable_columns(self.model, (SECRET,), (self.named, *STATE_COLUMNS))

    def bare(self, name: str, values: ResourceValues) -> Any:
        concrete_field(self.model, self.named).clean(name, None)
        [owner] = (column for column in self.columns({}) if column.name == USER)
        if problems := owner.missing_names(values.get(USER)):
            raise ValidationError(problems)
        if not values.get(USER):
            raise ValidationError(_("A trigger needs a user."))
        return Trigger.objects.create(name=name, user_id=owner.form_value(values[USER]))

    def keep(self, row: Any, values: ResourceValues, user: ConfigUser) -> list[ValidationIssue]:
        owner = row.user.get_username()
        editor = user_or_none(user)
        if values.get(USER, owner) != owner or (editor is not None and editor != row.user):
            return [ValidationIssue((USER,), _("Only its owner can change a trigger."))]
        return super().keep(row, values, user)

    def form(self, row: Any, values: ResourceValues, user: ConfigUser, **options: Any) -> Any:
        form = super().form(row, values, user, **options)
        if (editor := user_or_none(user)) is not None:
            restrict_channels(form, editor)
        return form

    def data(self, row: Any, values: ResourceValues) -> ResourceValues:
        data = super().data(row, values)
        return data | {CHANNEL: data.get(CHANNEL) or unnamed_channel(row)}
