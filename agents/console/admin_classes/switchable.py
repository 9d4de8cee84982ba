"""Lists whose rows can be enabled and disabled together."""

from typing import Any

from django.contrib import admin, messages
from django.db import transaction
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from .model_admin import ConsoleAdmin


class SwitchableAdmin(ConsoleAdmin):
    actions = ["enable", "disable"]

    @admin.action(description=_("Enable"), permissions=["change"])
    def enable(self, request: HttpRequest, queryset: Any) -> None:
        self.set_all(request, queryset, enabled=True)

    @admin.action(description=_("Disable"), permissions=["change"])
    def disable(self, request: HttpRequest, queryset: Any) -> None:
        self.set_all(request, queryset, enabled=False)

    def set_all(self, request: HttpRequest, queryset: Any, **values: bool) -> None:
        """Change these fields of the rows that have other values, and say how many."""
        rows = [row for row in queryset if any(getattr(row, n) != v for n, v in values.items())]
        for row in rows:
            with transaction.atomic():  # one by one: other writers wait for its end
                self.set_values(request, row, **values)
        messages.success(request, self.changed_message(len(rows), values))

    def changed_message(self, count: int, values: dict[str, bool]) -> str:
        """Say how many rows were changed."""
        raise NotImplementedError
