"""Connected apps in the console: who uses them, and blocking one for everybody."""

from typing import Any
from urllib.parse import urlsplit

from django.contrib import admin, messages
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext, pgettext_lazy

from agents.console.admin_classes.read_only import ReadOnlyAdmin
from agents.models import ApiKey, AuthorizationCode, DeviceCode, OAuthApp
from agents.web.presentation.formats.badges import badge

from . import grants


@admin.action(description=_("Block"), permissions=["block"])
def block_selected(console: Any, request: HttpRequest, apps: QuerySet[OAuthApp]) -> None:
    """End all that users granted to these apps, and let none connect them again."""
    blocked = apps.filter(blocked_at=None)
    count = 0
    for app in blocked:
        console.set_values(request, app, blocked_at=timezone.now())
        AuthorizationCode.objects.filter(app=app, used_at=None).delete()
        DeviceCode.objects.filter(app=app).delete()
        grants.revoke(ApiKey.objects.filter(app=app))
        count += 1
    done = ngettext("%(count)d app blocked.", "%(count)d apps blocked.", count)
    messages.success(request, done % {"count": count})


@admin.action(description=_("Unblock"), permissions=["block"])
def unblock_selected(console: Any, request: HttpRequest, apps: QuerySet[OAuthApp]) -> None:
    count = 0
    for app in apps.exclude(blocked_at=None):
        console.set_values(request, app, blocked_at=None)
        count += 1
    done = ngettext("%(count)d app unblocked.", "%(count)d apps unblocked.", count)
    messages.success(request, done % {"count": count})


@admin.register(OAuthApp)
class OAuthAppAdmin(ReadOnlyAdmin):
    list_display = ["name", "state", "place", "source", "users", "created_at"]
    list_filter = ["source"]
    search_fields = ["name", "client_id"]
    actions = [block_selected, unblock_selected]
    ordering = ["-pk"]
    fields = ["name", "state", "client_id", "source", "homepage"]
    fields += ["addresses", "created_at"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[OAuthApp]:
        current_time = timezone.now()
        lives = Q(api_keys__expires_at__gt=current_time)
        lives |= Q(api_keys__grant__expires_at__gt=current_time)
        users = Count(
            "api_keys__user", filter=lives & Q(api_keys__revoked_at=None), distinct=True
        )
        return super().get_queryset(request).annotate(users=users)

    def has_block_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("agents.change_oauthapp")

    @admin.display(description=_("state"), ordering="blocked_at")
    def state(self, app: OAuthApp) -> Any:
        if app.blocked_at is not None:
            return badge(pgettext_lazy("app", "blocked"), "red")
        return badge(pgettext_lazy("app", "allowed"), "green")

    @admin.display(description=_("sends users back to"))
    def place(self, app: OAuthApp) -> str:
        parts = [urlsplit(uri) for uri in app.redirect_uris]
        places = [p.netloc if p.scheme in {"http", "https"} else f"{p.scheme}:" for p in parts]
        return ", ".join(dict.fromkeys(places)) or "—"

    @admin.display(description=_("redirect URIs"))
    def addresses(self, app: OAuthApp) -> str:
        return "\n".join(app.redirect_uris) or "—"

    @admin.display(description=_("users"), ordering="users")
    def users(self, app: Any) -> int:
        return app.users
