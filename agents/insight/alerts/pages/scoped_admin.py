"""Pages of rows that only some may change, because their effect reaches beyond a scope."""

from typing import Any

from django.contrib.auth.models import User
from django.http import HttpRequest

from agents.console.admin_classes.model_admin import ConsoleAdmin
from agents.models import Deletion


class ScopedAdmin(ConsoleAdmin):
    """Others see these rows, but neither change nor delete them."""

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_change_permission(request, obj) and self._may_edit(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_delete_permission(request, obj) and self._may_edit(request, obj)

    def _may_edit(self, request: HttpRequest, obj: Any) -> bool:
        rows: Any = self.model._default_manager
        return obj is None or bool(rows.editable_by(request.user).filter(pk=obj.pk).exists())

    def may_restore(self, user: User, deletion: Deletion) -> bool:
        """Only who deleted a row, or a superuser: what it was limited to is deleted, too."""
        return deletion.user_id == user.pk or user.is_superuser
