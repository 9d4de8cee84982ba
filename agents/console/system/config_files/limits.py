"""Limits in configuration files: of groups together, agents, models, tools and all users.

Those of single users and API keys aren't part of a file, as users and keys themselves aren't;
those of each member are in their group.
"""

from collections.abc import Iterator
from typing import Any

from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.db import models
from django.utils.translation import gettext as _

from agents.metering.budgets import scopes
from agents.metering.budgets.limits import ALL, KEYS
from agents.models import Agent, LanguageModel, Quota, ToolRegistration

from .amounts import from_file, is_amount, to_file
from .columns import not_found_message
from .kind import ResourceKind, ResourceValues, ValidationIssue
from .permissions import ConfigUser

KEY_NAMES = {f"{measure}_per_{window}": (measure, window) for measure, window in KEYS}
SCOPE_NAMES = {ALL: "all", scopes.DEFAULT: "each_user", scopes.SHARED: "group"}
SCOPE_NAMES |= {name: name for name in ("agent", "model", "tool")}
OWNERS: dict[str, tuple[type[models.Model], str]] = {
    scopes.SHARED: (Group, "name"),
    "agent": (Agent, "name"),
    "model": (LanguageModel, "label"),
    "tool": (ToolRegistration, "name"),
}


class LimitKind(ResourceKind):
    """Limits; the name of one is its scope, owner and measure: agent/helper/cost_per_day."""

    def rows(self) -> models.QuerySet[Any]:
        rows = Quota.objects.filter(user=None, api_key=None)
        rows = rows.exclude(group__isnull=False, is_shared=False)
        return rows.select_related("group", "agent", "language_model", "tool")

    def named_rows(self, *, locked: bool = False) -> dict[str, Any]:
        rows = {}
        for row in self.rows():
            scope = SCOPE_NAMES[scopes.scope_of(row)]
            names = [scope, scopes.owner_name(row), f"{row.measure}_per_{row.window}"]
            rows["/".join(filter(None, names))] = row
        return rows

    def describe(self, row: Any) -> ResourceValues:
        return {"limit": to_file(row.limit, is_money=_is_money(row))}

    def allowed_keys(self, values: ResourceValues) -> list[str]:
        return ["limit"]

    def mismatches(self, values: ResourceValues) -> Iterator[ValidationIssue]:
        if not is_amount(values.get("limit", 0)):
            yield ValidationIssue(("limit",), _("Must be a whole number, or an amount in USD."))

    def differs(self, current: ResourceValues, values: ResourceValues) -> bool:
        return "limit" in values and current.get("limit") != values["limit"]

    def bare(self, name: str, values: ResourceValues) -> Any:
        scope_name, _slash, owner_and_key = name.partition("/")
        scope = next((key for key, value in SCOPE_NAMES.items() if value == scope_name), "")
        owner, _slash, key = owner_and_key.rpartition("/")
        if not scope or key not in KEY_NAMES or bool(owner) != (scope in OWNERS):
            raise ValidationError(
                _("Must look like agent/helper/cost_per_day or all/cost_per_day.")
            )
        measure, window = KEY_NAMES[key]
        row = Quota(
            measure=measure,
            window=window,
            is_shared=scope in scopes.SHARED_SCOPES,
        )
        if scope in OWNERS:
            model, field = OWNERS[scope]
            owner_row = model._default_manager.filter(**{field: owner}).first()
            if owner_row is None:
                raise ValidationError(not_found_message(model._meta.verbose_name, owner))
            setattr(row, scopes.OWNER_FIELDS[scope], owner_row)
        try:
            row.limit = from_file(values.get("limit", 0), is_money=_is_money(row))
        except ValueError:
            raise ValidationError(_("Must be a whole number, or an amount in USD.")) from None
        row.save()
        return row

    def keep(self, row: Any, values: ResourceValues, user: ConfigUser) -> list[ValidationIssue]:
        if "limit" in values:
            try:
                row.limit = from_file(values["limit"], is_money=_is_money(row))
            except ValueError:
                sentence = _("Must be a whole number, or an amount in USD.")
                return [ValidationIssue(("limit",), sentence)]
            row.save()
        return []

    def needs(self, row: Any, values: ResourceValues) -> list[str]:
        return []

    def disable(self, row: Any, user: ConfigUser) -> list[ValidationIssue]:
        row.delete()
        return []


def _is_money(row: Quota) -> bool:
    return row.measure == Quota.Measure.COST
