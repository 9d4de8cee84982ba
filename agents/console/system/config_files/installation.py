"""Settings of the installation, and groups with their limits, in configuration files."""

from collections.abc import Iterator
from typing import Any

from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.db import models
from django.utils.translation import gettext as _

from agents.db.fast_writes import concrete_field
from agents.db.installation import default_models
from agents.db.installation.configured import SETTINGS
from agents.db.installation.setting import Kind, save
from agents.metering.budgets.limits import KEYS
from agents.models import InstallationSetting, Quota
from agents.models.catalog.rights import Role

from .amounts import from_file, is_amount, to_file
from .columns import unknown_key_message
from .kind import ResourceKind, ResourceValues, ValidationIssue
from .permissions import ConfigUser

QUOTA_PERMISSION = "agents.change_quota"
LIMIT_NAMES = {f"{measure}_per_{window}": (measure, window) for measure, window in KEYS}


class SettingKind(ResourceKind):
    """Settings that differ from their default."""

    named = "key"

    def rows(self) -> models.QuerySet[Any]:
        return super().rows().filter(file=None)  # a logo isn't text

    def describe(self, row: Any) -> ResourceValues:
        if model := default_models.MODELS.get(row.key):
            return {"value": model.to_file(row.value)}
        return {"value": to_file(row.value, is_money=_is_money(row.key))}

    def allowed_keys(self, values: ResourceValues) -> list[str]:
        return ["value"]

    def mismatches(self, values: ResourceValues) -> Iterator[ValidationIssue]:
        return iter(())

    def differs(self, current: ResourceValues, values: ResourceValues) -> bool:
        return "value" in values and current.get("value") != values["value"]

    def bare(self, name: str, values: ResourceValues) -> Any:
        if name not in SETTINGS:
            raise ValidationError(unknown_key_message(name))
        return InstallationSetting(key=name)

    def keep(self, row: Any, values: ResourceValues, user: ConfigUser) -> list[ValidationIssue]:
        setting = SETTINGS.get(row.key)
        try:
            if setting is None:
                raise ValidationError(unknown_key_message(row.key))
            value = values.get("value")
            if _is_money(row.key) and is_amount(value):
                value = from_file(value, is_money=True)
            if isinstance(setting, default_models.ModelSetting):
                value = setting.from_file(value)
            save(setting, value)
        except ValidationError as error:
            return [ValidationIssue(("value",), sentence) for sentence in error.messages]
        except ValueError:
            return [ValidationIssue(("value",), _("Must have at most 6 decimal places."))]
        return []

    def needs(self, row: Any, values: ResourceValues) -> list[str]:
        return []  # no secrets


class GroupKind(ResourceKind):
    """Groups without roles; members aren't part of a file."""

    def rows(self) -> models.QuerySet[Any]:
        return super().rows().exclude(name__in=Role.values).prefetch_related("quotas")

    def named_rows(self, *, locked: bool = False) -> dict[str, Any]:
        return {row.name: row for row in self.rows()}

    def describe(self, row: Any) -> ResourceValues:
        saved = {(q.measure, q.window): q.limit for q in Quota.objects.of(row)}
        limits = {
            name: to_file(saved[key], is_money=key[0] == Quota.Measure.COST)
            for name, key in LIMIT_NAMES.items()
            if key in saved
        }
        return {"limits": limits}

    def allowed_keys(self, values: ResourceValues) -> list[str]:
        return ["limits"]

    def mismatches(self, values: ResourceValues) -> Iterator[ValidationIssue]:
        limits = values.get("limits", {})
        if not isinstance(limits, dict):
            yield ValidationIssue(("limits",), _("Must map limit names to their values."))
            return
        for name, limit in limits.items():
            if name not in LIMIT_NAMES:
                yield ValidationIssue(("limits", name), unknown_key_message(str(name)))
            elif limit is not None and _limit(name, limit) is None:
                sentence = _("Must be a whole number or null.")
                if LIMIT_NAMES[name][0] == Quota.Measure.COST:
                    sentence = _("Must be an amount in USD or null.")
                yield ValidationIssue(("limits", name), sentence)

    def differs(self, current: ResourceValues, values: ResourceValues) -> bool:
        return "limits" in values and current.get("limits") != values["limits"]

    def bare(self, name: str, values: ResourceValues) -> Any:
        concrete_field(Group, "name").clean(name, None)
        if name.lower() in Role.values:
            raise ValidationError(_("This name belongs to a role."))
        if Group.objects.filter(name__iexact=name).exists():
            raise ValidationError(_("A group with this name exists already."))
        return Group.objects.create(name=name)

    def keep(self, row: Any, values: ResourceValues, user: ConfigUser) -> list[ValidationIssue]:
        limits = {
            LIMIT_NAMES[name]: None if limit is None else _limit(name, limit)
            for name, limit in values["limits"].items()
        }
        current = {(q.measure, q.window): q.limit for q in Quota.objects.of(row)}
        if limits != current and not user.has_perm(QUOTA_PERMISSION):
            return [
                ValidationIssue(("limits",), _("You don't have permission to change this."))
            ]
        for quota in Quota.objects.of(row):
            if (quota.measure, quota.window) not in limits:
                quota.delete()
        for (measure, window), limit in limits.items():
            Quota.objects.update_or_create(
                {"limit": limit}, group=row, measure=measure, window=window
            )
        return []

    def needs(self, row: Any, values: ResourceValues) -> list[str]:
        return []


def _is_money(key: str) -> bool:
    return key in SETTINGS and SETTINGS[key].kind == Kind.MONEY


def _limit(name: str, value: Any) -> int | None:
    """Return a limit as it is saved; None if the value is none."""
    if not is_amount(value):
        return None
    try:
        return from_file(value, is_money=LIMIT_NAMES[name][0] == Quota.Measure.COST)
    except ValueError:
        return None
