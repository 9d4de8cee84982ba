"""The page that creates HTTP tools from an OpenAPI document."""

import json
from dataclasses import dataclass, replace
from typing import Any

from asgiref.sync import async_to_sync
from django import forms
from django.contrib import messages
from django.core import signing
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext
from django.views.decorators.debug import sensitive_post_parameters

from agents.catalog import mcp_servers
from agents.catalog.tools.openapi_import import (
    ImportItem,
    ImportOutcome,
    ImportPlan,
    ItemState,
    apply_import,
    origin,
    plan_import,
    suggest_base_url,
)
from agents.db.sentences import translate
from agents.models.types import LazyText
from agents.tools.egress import EgressFailed, EgressRefused, fetch, validate_url
from agents.tools.openapi import (
    MAX_DOCUMENT_BYTES,
    ApiDocument,
    BadDocument,
    SecurityScheme,
    read_document,
)
from agents.web.presentation.formats.text_diff import TextDiff, TextDiffer

from ..admin_classes.pages import render_page
from ..uploaded_text import read_uploaded_text
from . import circuit_breakers

FETCH_TIMEOUT_SECONDS = 15.0
MAX_PACKED_CHARS = 900_000  # what a form can send back
PACKED_SECONDS = 24 * 60 * 60
MAX_SECRET_CHARS = 5_000
MAX_PICKED_READS = 20
MAX_LISTED_NAMES = 20
IMPORTED_AT_ONCE = 20
SALT = "agents.console.tool_admin.openapi_import"
TEMPLATE = "admin/agents/toolregistration/openapi.html"

TITLE = _("Import from OpenAPI")
DOCUMENT_REQUIRED = _("Choose a file, enter a URL or paste the document.")
TOO_LARGE = _("The document is too large. The limit is %(limit)s MB.")
STALE_DOCUMENT = _("This page has expired. Choose the document again.")
NOTHING_PICKED = _("Select at least one operation.")
BASE_URL_REQUIRED = _("Enter the API's base URL, e.g. https://api.example.com/v1.")
KEYLESS = _(
    "The API's URL changed, so the headers of %(names)s were removed. Enter them again."
)
NEXT_STEP = _('To use the new tools, add them to <a href="{}">an agent</a>.')
PRIVATE_ADDRESS = _(
    "The API is on a private network. Its tools can't reach it until you add %(place)s to "
    "ASHIATO_EGRESS_ALLOW."
)


class DocumentForm(forms.Form):
    """The first step: a document from a file, a URL or a text."""

    file = forms.FileField(
        label=_("File"),
        required=False,
        widget=forms.FileInput(attrs={"accept": ".yaml,.yml,.json"}),
    )
    url = forms.CharField(
        label=_("Or its URL"),
        required=False,
        max_length=2_000,
        widget=forms.URLInput(attrs={"placeholder": "https://api.example.com/openapi.json"}),
    )
    text = forms.CharField(
        label=_("Or paste it"),
        required=False,
        strip=False,
        widget=forms.Textarea(
            attrs={"class": "vLargeTextField code", "rows": 10, "spellcheck": "false"}
        ),
        help_text=_("OpenAPI 3.0 or 3.1, or Swagger 2.0, as JSON or YAML."),
    )

    def clean_file(self) -> str:
        limit = MAX_DOCUMENT_BYTES // 10**6
        too_large = forms.ValidationError(TOO_LARGE, params={"limit": limit})
        return read_uploaded_text(self.cleaned_data["file"], MAX_DOCUMENT_BYTES, too_large)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if self.errors:
            return cleaned
        text = cleaned.get("file") or (cleaned.get("text") or "").strip()
        try:
            source, url = (text, "") if text else ("", cleaned.get("url", ""))
            if url:
                source = fetch_document(url)
            if not source:
                raise forms.ValidationError(DOCUMENT_REQUIRED)
            self.document = read_document(source, url)
            self.packed = pack(source, url)
        except (BadDocument, EgressRefused, EgressFailed) as error:
            raise forms.ValidationError(translate(str(error))) from error
        return cleaned


def fetch_document(url: str) -> str:
    """Fetch a document through the egress policy; raise EgressRefused or EgressFailed."""
    policy = replace(
        mcp_servers.egress(), timeout=FETCH_TIMEOUT_SECONDS, most_bytes=MAX_DOCUMENT_BYTES
    )
    accept = {"Accept": "application/json, application/yaml, text/*"}
    response = async_to_sync(fetch)("GET", url, policy=policy, headers=accept)
    if response.status != 200:
        host = validate_url(url).host
        raise EgressFailed(f"{host} returned HTTP {response.status}.")
    return response.content.decode("utf-8-sig", errors="replace")


def pack(text: str, url: str) -> str:
    """Return the document as the next step sends it back: compressed and signed."""
    packed = signing.dumps([text, url], salt=SALT, compress=True)
    if len(packed) > MAX_PACKED_CHARS:
        raise forms.ValidationError(TOO_LARGE, params={"limit": MAX_DOCUMENT_BYTES // 10**6})
    return packed


def unpack(packed: str) -> ApiDocument:
    """Return the document of the last step; raise BadSignature."""
    text, url = signing.loads(packed, salt=SALT, max_age=PACKED_SECONDS)
    return read_document(text, url)


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemeInput:
    """An input for one way to sign in."""

    number: int
    scheme: SecurityScheme

    @property
    def label(self) -> str:
        return str(SCHEME_LABELS[self.scheme.kind] % {"name": self.scheme.name})

    @property
    def help(self) -> LazyText | str:
        if self.scheme.kind == "token":
            return TOKEN_HELP
        return self.scheme.description


SCHEME_LABELS = {
    "header": _("API key (header %(name)s)"),
    "query": _("API key (query parameter %(name)s)"),
    "cookie": _("API key (cookie %(name)s)"),
    "bearer": _("Bearer token"),
    "basic": _("User name and password (name:password)"),
    "token": _("Access token"),
}
TOKEN_HELP = _("This API uses OAuth or OpenID Connect. Get an access token there and paste it.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemView:
    """An operation in the list."""

    item: ImportItem
    is_picked: bool
    changes: tuple[tuple[str, TextDiff], ...] = ()

    @property
    def reason(self) -> str:
        return translate(self.item.reason)

    @property
    def notes(self) -> list[str]:
        return [translate(note) for note in self.item.operation.notes]

    @property
    def can_pick(self) -> bool:
        return self.item.state != ItemState.REFUSED


@sensitive_post_parameters()
def page(request: HttpRequest, console: Any) -> HttpResponse:
    """Take a document, list its operations, and create the picked ones."""
    if not console.has_add_permission(request):
        raise PermissionDenied
    if request.method == "POST" and request.POST.get("document"):
        return _review(request, console)
    is_sent = request.method == "POST"
    form = DocumentForm(request.POST, request.FILES) if is_sent else DocumentForm()
    if is_sent and form.is_valid():
        plan = plan_import(form.document, suggest_base_url(form.document))
        return _render_plan(request, console, plan, form.packed)
    context = {"title": TITLE, "opts": console.opts, "form": form}
    return render_page(request, TEMPLATE, context)


def _review(request: HttpRequest, console: Any) -> HttpResponse:
    """Preview again, or import what was picked."""
    packed = request.POST["document"]
    try:
        document = unpack(packed)
    except (signing.BadSignature, BadDocument, ValueError):
        messages.error(request, STALE_DOCUMENT)
        return redirect("admin:agents_toolregistration_openapi")
    base_url = request.POST.get("base_url", "").strip().rstrip("/")
    plan = plan_import(document, base_url)
    picked = {*request.POST.getlist("pick")}
    disabled_pks = {int(pk) for pk in request.POST.getlist("disable") if pk.isdecimal()}
    if "import" not in request.POST:
        return _render_plan(request, console, plan, packed, picked)
    if problem := _base_url_problem(base_url):
        return _render_plan(request, console, plan, packed, picked, problem)
    usable = {item.operation.key for item in plan.items if item.state != ItemState.REFUSED}
    if not (picked & usable or disabled_pks):
        messages.error(request, NOTHING_PICKED)
        return _render_plan(request, console, plan, packed, picked)
    is_update = any(item.row and item.operation.key in picked for item in plan.items)
    if (is_update or disabled_pks) and not console.has_change_permission(request):
        raise PermissionDenied
    _import(request, console, plan, picked, disabled_pks)
    return redirect("admin:agents_toolregistration_changelist")


def _base_url_problem(base_url: str) -> str:
    if not base_url:
        return str(BASE_URL_REQUIRED)
    try:
        validate_url(base_url)
    except EgressRefused as refusal:
        return translate(str(refusal))
    return str(BASE_URL_REQUIRED) if "?" in base_url or "#" in base_url else ""


def _import(
    request: HttpRequest,
    console: Any,
    plan: ImportPlan,
    picked: set[str],
    disabled_pks: set[int],
) -> None:
    secrets = {
        scheme.key: request.POST.get(f"secret-{number}", "")[:MAX_SECRET_CHARS].strip()
        for number, scheme in enumerate(plan.document.schemes)
    }
    outcome = ImportOutcome()
    keys = sorted(picked)
    pks = sorted(disabled_pks)
    for start in range(0, max(len(keys), len(pks)), IMPORTED_AT_ONCE):
        batch = slice(start, start + IMPORTED_AT_ONCE)
        with transaction.atomic():  # in batches: other writers wait for its end
            batch_outcome = apply_import(plan, keys[batch], secrets, pks[batch])
            for row in batch_outcome.created:
                console.log_addition(request, row, [{"added": {}}])
            changed_rows: list[Any] = [
                (item.row, {name: [old, new] for name, old, new in item.changes})
                for item in batch_outcome.updated
            ]
            changed_rows += [
                (row, {"enabled": [True, False]}) for row in batch_outcome.disabled
            ]
            for changed_row, changes in changed_rows:
                vars(request)["changes"] = changes
                console.log_change(
                    request, changed_row, [{"changed": {"fields": sorted(changes)}}]
                )
        outcome += batch_outcome
    for item in outcome.updated:
        circuit_breakers.reset_tool(item.draft.name)
    _add_messages(request, plan, outcome)


def _add_messages(request: HttpRequest, plan: ImportPlan, outcome: ImportOutcome) -> None:
    created = [row.name for row in outcome.created]
    updated = [item.draft.name for item in outcome.updated]
    disabled = [row.name for row in outcome.disabled]
    for names, count in (
        (created, ngettext("%d tool created", "%d tools created", len(created))),
        (updated, ngettext("%d tool updated", "%d tools updated", len(updated))),
        (disabled, ngettext("%d tool disabled", "%d tools disabled", len(disabled))),
    ):
        if names:
            listed = ", ".join(names[:MAX_LISTED_NAMES])
            ellipsis = ", …" if len(names) > MAX_LISTED_NAMES else ""
            messages.success(request, f"{count % len(names)}: {listed}{ellipsis}")
    for name, reason in outcome.failed:
        messages.error(request, f"{name}: {translate(reason)}")
    if created:
        agents_url = reverse("admin:agents_agent_changelist")
        messages.info(request, format_html(str(NEXT_STEP), agents_url))
    if outcome.keyless:
        messages.warning(request, KEYLESS % {"names": ", ".join(outcome.keyless)})
    if exemption := mcp_servers.egress().required_exemption(plan.base_url):
        messages.warning(request, PRIVATE_ADDRESS % {"place": exemption})


def _render_plan(
    request: HttpRequest,
    console: Any,
    plan: ImportPlan,
    packed: str,
    picked: set[str] | None = None,
    problem: str = "",
) -> HttpResponse:
    operations = [item.operation for item in plan.items]
    used_schemes = {
        key for operation in operations for keys in operation.security for key in keys
    }
    servers = {operation.server for operation in operations if operation.server}
    other_hosts = {origin(url)[1] for url in servers if origin(url) != origin(plan.base_url)}
    views = []
    differ = TextDiffer()
    reads = [item for item in plan.of(ItemState.NEW) if item.operation.is_read]
    for item in plan.items:
        is_default = item.state == ItemState.CHANGED or (
            item in reads
            and len(reads) <= MAX_PICKED_READS
            and not item.operation.is_deprecated
        )
        changes = tuple(
            (name, differ.compare(_as_text(old), _as_text(new)))
            for name, old, new in item.changes
        )
        views.append(
            ItemView(
                item=item,
                is_picked=is_default if picked is None else item.operation.key in picked,
                changes=changes,
            )
        )
    context = {
        "title": TITLE,
        "opts": console.opts,
        "plan": plan,
        "packed": packed,
        "views": views,
        "schemes": [
            SchemeInput(number=number, scheme=scheme)
            for number, scheme in enumerate(plan.document.schemes)
            if scheme.key in used_schemes
        ],
        "problem": problem,
        "has_rows": any(item.row for item in plan.items),
        "elsewhere": sorted(other_hosts),
    }
    return render_page(request, TEMPLATE, context)


def _as_text(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False, indent=2)
