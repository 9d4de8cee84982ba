"""API keys in the console: everyone's, and new ones of services."""

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import URLPattern, reverse
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext, pgettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_POST

from agents.access.requests import signed_in_user
from agents.console.admin_classes.read_only import ReadOnlyAdmin
from agents.console.metering import budgets
from agents.models import ApiKey
from agents.models.catalog.rights import Role
from agents.models.types import LazyText
from agents.web.presentation.formats.badges import badge
from agents.web.presentation.formats.dates import timestamp

from . import api_key_examples, api_keys, service_accounts
from .api_key_form import ServiceKeyForm

KINDS: dict[str, LazyText] = {
    "personal": pgettext_lazy("API key", "personal"),
    "service": pgettext_lazy("API key", "service"),
    "app": pgettext_lazy("API key", "connected app"),
}
ADD = "agents.add_apikey"
REVOKE = "agents.change_apikey"


class StateFilter(admin.SimpleListFilter):
    title = _("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Any:
        return [(state, label) for state, (label, _tone) in api_keys.STATES.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        state = self.value()
        return (
            queryset.filter(api_keys.in_state(state)) if state in api_keys.STATES else queryset
        )


class KindFilter(admin.SimpleListFilter):
    title = _("type")
    parameter_name = "kind"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Any:
        return list(KINDS.items())

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() == "service":
            return queryset.filter(is_service=True)
        if self.value() == "app":
            return queryset.exclude(app=None)
        if self.value() == "personal":
            return queryset.filter(is_service=False, app=None)
        return queryset


@admin.action(description=_("Revoke"), permissions=["revoke"])
def revoke_selected(console: Any, request: HttpRequest, keys: QuerySet[ApiKey]) -> None:
    count = api_keys.revoke(signed_in_user(request), keys)
    done = ngettext("%(count)d key revoked.", "%(count)d keys revoked.", count)
    messages.success(request, done % {"count": count})


@admin.register(ApiKey)
class ApiKeyAdmin(ReadOnlyAdmin):
    change_list_template = "admin/people/api_keys.html"
    change_form_template = "admin/people/api_key.html"
    list_display = [
        "title",
        "owner",
        "may",
        "state",
        "created_at",
        "expires",
        "used",
        "buttons",
    ]
    list_display_links = ["title"]
    list_filter = [StateFilter, KindFilter]
    search_fields = ["name", "prefix", "user__username"]
    list_select_related = ["user", "app"]
    actions = [revoke_selected]
    ordering = ["-pk"]
    fields = ["title", "owner", "may", "state", "requests_per_minute"]
    fields += ["created_at", "expires", "used", "revoked_at"]

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm(REVOKE)

    @admin.display(description=_("name"), ordering="name")
    def title(self, key: ApiKey) -> Any:
        kind = "service" if key.is_service else "app" if key.app_id else "personal"
        tag = "" if kind == "personal" else badge(KINDS[kind], "blue")
        return format_html("{} <code>{}</code> {}", key.name, key.beginning, tag)

    @admin.display(description=_("user"), ordering="user__username")
    def owner(self, key: ApiKey) -> str:
        return key.user.get_username()

    @admin.display(description=_("scopes"))
    def may(self, key: ApiKey) -> str:
        return " · ".join(api_keys.scope_labels(key)) or "—"

    @admin.display(description=_("state"))
    def state(self, key: ApiKey) -> Any:
        return badge(*api_keys.STATES[api_keys.state_of(key)])

    @admin.display(description=_("expires"), ordering="expires_at")
    def expires(self, key: ApiKey) -> Any:
        if key.expires_at is None:
            return pgettext_lazy("API key", "Never")
        return timestamp(key.expires_at, "day")

    @admin.display(description=_("last used"), ordering="last_used_at")
    def used(self, key: ApiKey) -> str:
        return timestamp(key.last_used_at)

    @admin.display(description="")
    def buttons(self, key: ApiKey) -> Any:
        if key.revoked_at is not None:
            return ""
        html = (
            '<details class="key-revoke"><summary class="button" aria-label="{}">{}</summary>'
            '<button class="button danger" formmethod="post" formaction="{}">{}</button>'
            "</details>"
        )
        url = reverse("admin:agents_apikey_revoke", args=[key.pk])
        label = _("Revoke %(name)s") % {"name": key.name}
        return format_html(html, label, _("Revoke"), url, _("Revoke key"))

    def get_list_display(self, request: HttpRequest) -> list[Any]:
        columns = super().get_list_display(request)
        if self.has_revoke_permission(request):
            return columns
        return [column for column in columns if column != "buttons"]

    def get_urls(self) -> list[URLPattern]:
        own = [
            self.admin_path("new/", never_cache(self.new_key), "agents_apikey_new"),
            self.admin_path(
                "<int:pk>/revoke/", require_POST(self.revoke), "agents_apikey_revoke"
            ),
        ]
        return [*own, *super().get_urls()]

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        context = {"may_add": request.user.has_perm(ADD)}
        return super().changelist_view(request, context | (extra_context or {}))

    def render_change_form(
        self, request: HttpRequest, context: Any, *args: Any, **options: Any
    ) -> HttpResponse:
        if (key := options.get("obj")) is not None:
            context |= {"title": str(key), "subtitle": None}
            context |= budgets.applying_to(request, api_key=key)
        return super().render_change_form(request, context, *args, **options)

    @sensitive_variables("token", "context")
    def new_key(self, request: HttpRequest) -> HttpResponse:
        """Make a key of a service, and display its secret once."""
        if not request.user.has_perm(ADD):
            raise PermissionDenied
        user = signed_in_user(request)
        form = ServiceKeyForm(user, request.POST if request.method == "POST" else None)
        if request.method != "POST" or not form.is_valid():
            return self._render_form(request, form)
        values = form.cleaned_data
        try:
            key, token = service_accounts.make_key(
                user, form.new_key(), values["account"], Role(values["role"]), values["groups"]
            )
        except service_accounts.ScopeNotAllowed as reason:
            form.add_error("scopes", str(reason))
            return self._render_form(request, form)
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": _("API key created"),
            "row": api_keys.KeyRow(key=key),
            "token": token,
            "addresses": api_key_examples.addresses(request),
            "examples": api_key_examples.examples(request, key, token),
        }
        return render(request, "admin/people/api_key_made.html", context)

    def _render_form(self, request: HttpRequest, form: ServiceKeyForm) -> HttpResponse:
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": _("New service key"),
            "form": form,
        }
        status = 422 if form.errors else 200
        return render(request, "admin/people/new_service_key.html", context, status=status)

    def revoke(self, request: HttpRequest, pk: int) -> HttpResponse:
        if not self.has_revoke_permission(request):
            raise PermissionDenied
        key = get_object_or_404(ApiKey, pk=pk)
        if api_keys.revoke(signed_in_user(request), [key]):
            messages.success(request, _("Key revoked. Programs that use it are now rejected."))
        return redirect("admin:agents_apikey_changelist")
