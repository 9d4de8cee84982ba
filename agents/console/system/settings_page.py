"""Console page with the settings of the installation."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.auth.decorators import permission_required
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST

from agents.access import audit
from agents.db.installation.setting import save
from agents.models import InstallationSetting

from ..admin_classes.model_admin import ConsoleAdmin
from ..admin_classes.pages import render_page
from .settings_form import PAGE_SETTINGS, SettingsForm

VIEW = "agents.view_installationsetting"
CHANGE = "agents.change_installationsetting"


def urls(site: admin.AdminSite) -> list[URLPattern]:
    return [
        path("settings/", site.admin_view(page), name="agents_settings"),
        path("settings/<slug:key>/reset/", site.admin_view(reset), name="agents_setting_reset"),
    ]


@permission_required(VIEW, raise_exception=True)
def page(request: HttpRequest) -> HttpResponse:
    may_change = request.user.has_perm(CHANGE)
    if request.method != "POST":
        return _render(request, SettingsForm(may_change=may_change))
    form = SettingsForm(request.POST, may_change=may_change)
    if not form.is_valid():
        return _render(request, form, status=422)
    count = _save_all(request, form.changed_values())
    done = ngettext("%(count)d setting saved.", "%(count)d settings saved.", count)
    messages.success(request, done % {"count": count} if count else _("Nothing to save."))
    return redirect("admin:agents_settings")


@require_POST
@permission_required(CHANGE, raise_exception=True)
def reset(request: HttpRequest, key: str) -> HttpResponse:
    """Set a setting to its default."""
    setting = PAGE_SETTINGS.get(key)
    if setting is None:
        raise Http404
    if not setting.is_fixed:
        _save_all(request, {key: setting.default})
        name = {"name": setting.label, "value": setting.display(setting.default)}
        messages.success(request, _("%(name)s is back to its default (%(value)s).") % name)
    return redirect(f"{reverse('admin:agents_settings')}#setting-{key}")


@transaction.atomic
def _save_all(request: HttpRequest, values: dict[str, Any]) -> int:
    """Save the values that differ, with an audit entry for each; return how many."""
    count = 0
    for key, value in values.items():
        setting = PAGE_SETTINGS[key]
        changes = {"value": [setting.value, value]}
        if save(setting, value):
            audit.record(request.user, audit.SETTING_CHANGED, f"setting:{key}", changes=changes)
            count += 1
    return count


def _render(request: HttpRequest, form: SettingsForm, status: int = 200) -> HttpResponse:
    context = {
        "title": _("Settings"),
        "form": form,
        "sections": list(form.sections()),
        "may_change": request.user.has_perm(CHANGE),
        "changed": sum(setting.is_changed for setting in PAGE_SETTINGS.values()),
    }
    return render_page(request, "admin/agents/settings.html", context, status=status)


@admin.register(InstallationSetting)
class InstallationSettingAdmin(ConsoleAdmin):
    """Leads to the page; its form is what configuration files are checked with."""

    can_restore = False
    fields = ["key", "value"]
    list_display = ["key", "value"]

    def has_module_permission(self, request: HttpRequest) -> bool:
        return False  # the page has its own entry

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def change_view(
        self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        return redirect("admin:agents_settings")
