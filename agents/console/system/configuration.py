"""Console pages to export, compare and import the configuration."""

from dataclasses import dataclass
from typing import Any, cast

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.decorators import permission_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST

from agents.models.types import AnyUser
from agents.web.presentation.formats.text_diff import TextDiff, TextDiffer

from ..admin_classes.pages import render_page
from ..uploaded_text import read_uploaded_text
from .config_files import report
from .config_files.exporter import ExportSelection, export, readable_kinds
from .config_files.importer import (
    APPLIED_STATES,
    ImportItem,
    ImportResult,
    ImportState,
    apply_file,
    preview_file,
)
from .config_files.kinds import KINDS
from .config_files.parser import MAX_FILE_BYTES

PERMISSION = "agents.view_agent"
CODE_FIELDS = {
    "definition",
    "output_schema",
    "options",
    "parameters",
    "pattern",
    "text",
    "schedules",
}
MAX_WARNINGS = 20
PAGE_SIZE = 50  # a new agent takes 10 kB, because all its settings are listed
FILE_REQUIRED = _("Choose a file or paste its contents.")
TOO_LONG = _("The file is too large. The limit is %(limit)d bytes.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemChange:
    """A field that would change, as texts."""

    name: str
    label: str
    difference: TextDiff
    is_code: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportItemView:
    """An item on the page."""

    item: ImportItem
    page: str
    changes: tuple[ItemChange, ...]

    @property
    def kind(self) -> str:
        return capfirst(self.item.kind.label)


class ExportForm(forms.Form):
    kinds = forms.MultipleChoiceField(
        label=_("Types"), widget=forms.CheckboxSelectMultiple, required=True
    )
    names = forms.CharField(
        label=_("Filter by name"),
        required=False,
        widget=forms.TextInput(attrs={"class": "vLargeTextField", "spellcheck": "false"}),
        help_text=_("Comma-separated. Leave empty to export everything."),
    )

    def __init__(self, user: AnyUser, *args: Any) -> None:
        super().__init__(*args)
        keys = readable_kinds(user)
        cast(forms.ChoiceField, self.fields["kinds"]).choices = [
            (key, capfirst(KINDS[key].plural)) for key in keys
        ]
        self.fields["kinds"].initial = keys

    def selection(self) -> ExportSelection:
        names = [name.strip() for name in self.cleaned_data["names"].split(",")]
        return ExportSelection(kinds=self.cleaned_data["kinds"], names=[*filter(None, names)])


class ConfigImportForm(forms.Form):
    file = forms.FileField(
        label=_("File"),
        required=False,
        widget=forms.FileInput(attrs={"accept": ".yaml,.yml,.json"}),
    )
    text = forms.CharField(
        label=_("Or paste its contents"),
        required=False,
        strip=False,
        widget=forms.Textarea(
            attrs={"class": "vLargeTextField code", "rows": 12, "spellcheck": "false"}
        ),
    )
    remove = forms.BooleanField(
        label=_("Disable everything that isn't in the file"),
        required=False,
        help_text=_("Applies only to the types in the file. Nothing is deleted."),
    )

    def clean_file(self) -> str:
        too_large = forms.ValidationError(TOO_LONG, params={"limit": MAX_FILE_BYTES})
        return read_uploaded_text(self.cleaned_data["file"], MAX_FILE_BYTES, too_large)

    def clean(self) -> dict[str, Any]:
        """Return one text with normalized line ends."""
        cleaned = super().clean() or self.cleaned_data
        text = cleaned.get("file") or cleaned.get("text", "")
        if not self.errors and not text.strip():
            self.add_error("file", FILE_REQUIRED)
        return {**cleaned, "text": text.replace("\r\n", "\n").replace("\r", "\n")}


class ApplyForm(ConfigImportForm):
    """The preview, as displayed."""

    seal = forms.CharField()


def urls(site: admin.AdminSite) -> list[URLPattern]:
    views = {"export": download, "difference": difference, "apply": apply}
    return [
        path("configuration/", site.admin_view(page), name="agents_configuration"),
        *(
            path(
                f"configuration/{name}/",
                site.admin_view(view),
                name=f"agents_configuration_{name}",
            )
            for name, view in views.items()
        ),
    ]


@permission_required(PERMISSION, raise_exception=True)
def page(request: HttpRequest) -> HttpResponse:
    return _render_page(request, ExportForm(request.user), ConfigImportForm())


@require_POST
@permission_required(PERMISSION, raise_exception=True)
def download(request: HttpRequest) -> HttpResponse:
    form = ExportForm(request.user, request.POST)
    if not form.is_valid():
        return _render_page(request, form, ConfigImportForm(), status=422)
    text = export(request.user, form.selection())
    name = f"ashiato-{timezone.localdate():%Y-%m-%d}.yaml"
    response = HttpResponse(text, content_type="application/yaml; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["Cache-Control"] = "no-store"
    return response


@permission_required(PERMISSION, raise_exception=True)
def difference(request: HttpRequest) -> HttpResponse:
    """Preview a file. It is a POST, because a file is long."""
    if request.method != "POST":
        return redirect("admin:agents_configuration")
    form = ConfigImportForm(request.POST, request.FILES)
    if not form.is_valid():
        return _render_page(request, ExportForm(request.user), form, status=422)
    text = form.cleaned_data["text"]
    remove = form.cleaned_data["remove"]
    result = preview_file(text, request.user, remove=remove)
    return _render_preview(request, result, text, remove)


@require_POST
@permission_required(PERMISSION, raise_exception=True)
def apply(request: HttpRequest) -> HttpResponse:
    """Apply exactly what was previewed."""
    form = ApplyForm(request.POST)
    if not form.is_valid():
        return _render_page(request, ExportForm(request.user), form, status=422)
    text = form.cleaned_data["text"]
    remove = form.cleaned_data["remove"]
    result = apply_file(text, request.user, remove=remove, seal=form.cleaned_data["seal"])
    if not result.is_done:
        messages.warning(request, STALE_PREVIEW)
        return _render_preview(request, result, text, remove, status=409)
    count = sum(len(result.of(state)) for state in APPLIED_STATES)
    sentence = ngettext("%d change applied.", "%d changes applied.", count) % count
    messages.success(request, sentence)
    for item in [item for item in result.items if item.needs][:MAX_WARNINGS]:
        link = format_html('<a href="{}">{}</a>', _change_url(item), item.name)
        secrets = ", ".join(item.needs)
        messages.warning(request, format_html(str(SECRETS_MISSING), link, secrets))
    return redirect("admin:agents_configuration")


STALE_PREVIEW = _(
    "The settings changed in the meantime, so nothing was applied. Review the changes again."
)
SECRETS_MISSING = _("Enter the missing secrets for {}: {}.")


def _render_page(
    request: HttpRequest,
    export_form: ExportForm,
    import_form: ConfigImportForm,
    status: int = 200,
) -> HttpResponse:
    context = {
        "title": _("Configuration file"),
        "exporting": export_form,
        "importing": import_form,
    }
    return render_page(request, "admin/agents/configuration.html", context, status=status)


def _render_preview(
    request: HttpRequest, result: ImportResult, text: str, remove: bool, status: int = 200
) -> HttpResponse:
    differ = TextDiffer()
    items = [item for state in STATE_LABELS for item in result.of(state)]
    item_page = Paginator(items, PAGE_SIZE).get_page(request.POST.get("page"))
    item_views = [_item_view(item, differ) for item in item_page]
    sections = [
        (
            state,
            label,
            len(result.of(state)),
            [view for view in item_views if view.item.state == state],
        )
        for state, label in STATE_LABELS.items()
    ]
    context = {
        "title": _("Review changes"),
        "found": result,
        "parts": [section for section in sections if section[3]],
        "page": item_page,
        "same": result.of(ImportState.SAME),
        "left": result.of(ImportState.LEFT),
        "text": text,
        "remove": remove,
        "importing": ConfigImportForm(initial={"text": text, "remove": remove}),
    }
    template = "admin/agents/configuration_difference.html"
    return render_page(request, template, context, status=status)


STATE_LABELS = {
    ImportState.REFUSED: _("Errors"),
    ImportState.NEW: _("New"),
    ImportState.CHANGED: _("Changed"),
    ImportState.OFF: _("Will be disabled (not in the file)"),
}


def _item_view(item: ImportItem, differ: TextDiffer) -> ImportItemView:
    changes = []
    if item.state in (ImportState.NEW, ImportState.CHANGED):
        fields = {field.name: field for field in item.kind.model._meta.get_fields()}
        for name in item.changed_fields:
            old_text = report.format_value(item.before.get(name))
            new_text = report.format_value(item.after.get(name))
            if old_text == new_text:
                continue
            verbose_name = getattr(fields.get(name), "verbose_name", name)
            change = ItemChange(
                name=name,
                label=capfirst(verbose_name) if name in fields else name,
                difference=differ.compare(old_text, new_text),
                is_code=name in CODE_FIELDS,
            )
            changes.append(change)
    url = _change_url(item) if item.before else ""
    return ImportItemView(item=item, page=url, changes=tuple(changes))


def _change_url(item: ImportItem) -> str:
    meta = item.kind.model._meta
    return reverse(f"admin:{meta.app_label}_{meta.model_name}_change", args=[item.pk])
