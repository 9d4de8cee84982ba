"""The admin class of read-only records."""

from django.http import HttpRequest

from .model_admin import ConsoleAdmin


class ReadOnlyAdmin(ConsoleAdmin):
    """Records that can be viewed, but neither changed nor deleted."""

    tells_values = False
    can_restore = False

    def has_add_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False
