"""Console page with the installation's name, logo, color, banner and start page."""

from typing import Any

from django.conf import settings
from django.contrib import admin, messages
from django.contrib.auth.decorators import permission_required
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, path
from django.utils import translation
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST

from agents.access import audit
from agents.access.requests import signed_in_user
from agents.catalog.samples import sample_questions
from agents.db.installation import branding
from agents.db.installation.setting import ROWS, save
from agents.knowledge.files.errors import FileRefused
from agents.web.branding import colors, current, from_values

from ..admin_classes.pages import render_page
from . import logo_files
from .branding_form import BrandingForm
from .settings_page import CHANGE, VIEW


def urls(site: admin.AdminSite) -> list[URLPattern]:
    return [
        path("settings/branding/", site.admin_view(page), name="agents_branding"),
        path(
            "settings/branding/preview/",
            site.admin_view(preview),
            name="agents_branding_preview",
        ),
        path(
            "settings/branding/defaults/", site.admin_view(reset), name="agents_branding_reset"
        ),
    ]


@permission_required(VIEW, raise_exception=True)
def page(request: HttpRequest) -> HttpResponse:
    may_change = request.user.has_perm(CHANGE)
    if request.method != "POST":
        return _render(request, BrandingForm(may_change=may_change))
    form = BrandingForm(request.POST, request.FILES, may_change=may_change)
    if not form.is_valid() or not _save(request, form):
        return _render(request, form, status=422)
    messages.success(request, _("Branding saved."))
    return redirect("admin:agents_branding")


@require_POST
@permission_required(VIEW, raise_exception=True)
def preview(request: HttpRequest) -> HttpResponse:
    """Render how pages would look with what is in the form."""
    form = BrandingForm(request.POST)
    return render(
        request, "admin/agents/_branding_preview.html", _preview_context(request, form)
    )


@require_POST
@permission_required(CHANGE, raise_exception=True)
@transaction.atomic
def reset(request: HttpRequest) -> HttpResponse:
    """Set everything on the page to its default."""
    for key, setting in branding.SETTINGS.items():
        _save_text(request, key, setting.default)
    for key in branding.LOGOS:
        _delete_logo(request, key)
    messages.success(request, _("Branding is back to its defaults."))
    return redirect("admin:agents_branding")


def _save(request: HttpRequest, form: BrandingForm) -> bool:
    """Save what was changed, with audit entries; a refused logo becomes the form's error."""
    logos: dict[str, logo_files.Logo] = {}
    for key in branding.LOGOS:
        try:
            if upload := form.cleaned_data.get(key):
                logos[key] = logo_files.read(upload, signed_in_user(request).pk)
        except FileRefused as refusal:
            form.add_error(key, str(refusal))
    if form.errors:
        return False
    with transaction.atomic():
        for key, value in form.changed_values().items():
            _save_text(request, key, value)
        for key in branding.LOGOS:
            if key in logos:
                _save_logo(request, key, logos[key])
            elif form.cleaned_data.get(f"{key}_removed"):
                _delete_logo(request, key)
    return True


def _save_text(request: HttpRequest, key: str, value: str) -> None:
    setting = branding.SETTINGS[key]
    changes = {"value": [setting.value, value]}
    if save(setting, value):
        audit.record(request.user, audit.SETTING_CHANGED, f"setting:{key}", changes=changes)


def _save_logo(request: HttpRequest, key: str, logo: logo_files.Logo) -> None:
    old = ROWS.get().get(key, "")
    new = logo_files.save(key, logo)
    if new != old:
        _record_logo(request, key, old, new)


def _delete_logo(request: HttpRequest, key: str) -> None:
    if old := ROWS.get().get(key, ""):
        logo_files.delete(key)
        _record_logo(request, key, old, "")


def _record_logo(request: HttpRequest, key: str, old: str, new: str) -> None:
    changes = {"value": [old, new]}
    audit.record(request.user, audit.SETTING_CHANGED, f"setting:{key}", changes=changes)


def _render(request: HttpRequest, form: BrandingForm, status: int = 200) -> HttpResponse:
    context = {
        "title": _("Branding"),
        "form": form,
        "languages": settings.LANGUAGES,
        "logos": form.logos(current()),
        "may_change": request.user.has_perm(CHANGE),
        "is_default": not {*branding.SETTINGS, *branding.LOGOS} & {*ROWS.get()},
        **_preview_context(request, form),
    }
    return render_page(request, "admin/agents/branding.html", context, status=status)


def _preview_context(request: HttpRequest, form: BrandingForm) -> dict[str, Any]:
    values = form.preview_values() if form.is_bound else ROWS.get()
    chosen = request.POST.get("preview_language", "")
    language = chosen if chosen in dict(settings.LANGUAGES) else translation.get_language()
    questions = branding.START_QUESTIONS.find(values, language)
    color = values.get(branding.COLOR_SETTING.key, "")
    shown = from_values(values, language)
    with translation.override(language):
        defaults = [translation.gettext(text) for text in sample_questions.BY_TOOL.values()]
        heading = shown.start_heading or translation.gettext("What would you like to know?")
    return {
        "preview": shown,
        "preview_language": language,
        "preview_heading": heading,
        "preview_questions": questions.splitlines() or defaults,
        "shades": colors.derive(color) if color else None,
    }
