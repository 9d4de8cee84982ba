from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from agents.access import masking
from agents.console.model_admin import ConsoleAdmin
from agents.review.models import Example

PERSONAL_FIELDS = {"question", "history", "observations"}


@admin.register(Example)
class ExampleAdmin(ConsoleAdmin):
    """Saved recordings don't change; the expected answer may."""

    tells_values = False  # they are users' text

    list_display = ["name", "agent_name", "score", "scored_at", "saved_by", "saved_at"]
    list_filter = ["agent_name"]
    list_select_related = ["saved_by"]
    search_fields = ["name", "expected"]
    fields = [
        *("name", "expected", "agent", "question", "history", "observations"),
        *("source_run", "score", "scored_at", "saved_by", "saved_at"),
    ]
    readonly_fields = [
        str(name) for name in fields if name not in {"name", "expected", "agent"}
    ]

    def get_fields(self, request: HttpRequest, obj: object = None) -> list[Any]:
        """Hide users' questions from administrators without permission to see them."""
        may_read = request.user.has_perm(masking.UNMASK_PERMISSION)
        return [name for name in self.fields if may_read or name not in PERSONAL_FIELDS]

    def has_add_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    @admin.display(description=_("run"))
    def source_run(self, example: Any) -> str:
        """Link by number, because a run's name is the user's question."""
        if example.run_id is None:
            return "—"
        url = reverse("admin:agents_run_change", args=[example.run_id])
        return format_html('<a href="{}">#{}</a>', url, example.run_id)
