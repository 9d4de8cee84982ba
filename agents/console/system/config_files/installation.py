"""Settings of the installation, and groups with their quotas, in configuration files."""

from collections.abc import Iterator
from typing import Any

from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.db import models
from django.utils.translation import gettext as _

from agents.db.fast_writes import concrete_field
from agents.db.installation.configured import SETTINGS
from agents.db.installation.setting import save
from agents.metering.budgets.limits import KEYS
from agents.models import InstallationSetting, Quota
from agents.models.catalog.rights import Role

from .columns import unknown_key_message
from .kind import ResourceKind, ResourceValues, ValidationIssue
from .permissions import ConfigUser

QUOTA_PERMISSION = "agents.change_quota"
MAX_LIMIT = 2**63 - 1
QUOTA_NAMES = {f"{measure}_per_{window}": (measure, window) for measure, window in KEYS}


class SettingKind(ResourceKind):
    """Settings that differ from their default; money is in millionths of a dollar."""

    named = "key"

    def describe(self, row: Any) -> ResourceValues:
        return {"value": row.value}

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
            save(setting, values.get("value"))
        except ValidationError as error:
            return [ValidationIssue(("value",), sentence) for sentence in error.messages]
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
        quotas = {(q.measure, q.window): q.limit for q in Quota.objects.of(row)}
        limits = {name: quotas[key] for name, key in QUOTA_NAMES.items() if key in quotas}
        return {"quotas": limits}

    def allowed_keys(self, values: ResourceValues) -> list[str]:
        return ["quotas"]

    def mismatches(self, values: ResourceValues) -> Iterator[ValidationIssue]:
        quotas = values.get("quotas", {})
        if not isinstance(quotas, dict):
            yield ValidationIssue(("quotas",), _("Must map quotas to their limits."))
            return
        for name, limit in quotas.items():
            if name not in QUOTA_NAMES:
                yield ValidationIssue(("quotas", name), unknown_key_message(str(name)))
            elif limit is not None and (type(limit) is not int or not 0 <= limit <= MAX_LIMIT):
                yield ValidationIssue(("quotas", name), _("Must be a whole number or null."))

    def differs(self, current: ResourceValues, values: ResourceValues) -> bool:
        return "quotas" in values and current.get("quotas") != values["quotas"]

    def bare(self, name: str, values: ResourceValues) -> Any:
        concrete_field(Group, "name").clean(name, None)
        if name in Role.values:
            raise ValidationError(_("This name belongs to a role."))
        return Group.objects.create(name=name)

    def keep(self, row: Any, values: ResourceValues, user: ConfigUser) -> list[ValidationIssue]:
        limits = {QUOTA_NAMES[name]: limit for name, limit in values["quotas"].items()}
        current = {(q.measure, q.window): q.limit for q in Quota.objects.of(row)}
        if limits != current and not user.has_perm(QUOTA_PERMISSION):
            return [
                ValidationIssue(("quotas",), _("You don't have permission to change this."))
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
