"""The audit log: list, search, export and verification."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypedDict

from django.contrib import admin, messages
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import URLPattern
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST

from agents.access import audit, masking
from agents.access.audit import hash_chain, request_context
from agents.access.audit import messages as audit_messages
from agents.db.sanitize import parse_id
from agents.engine.text import shorten
from agents.models import AuditEntry, AuditPerson, PeriodicJob
from agents.models.types import AnyUser, LazyText
from agents.web.downloads import csv_line, download
from agents.web.presentation.formats.dates import timestamp

from ..admin_classes.read_only import ReadOnlyAdmin

if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations

VERIFY_TASK = "verify_audit"
MAX_VERIFIED = 20_000
PAGE_SIZE = 500
MAX_PEOPLE = 100
MAX_SUMMARY_CHARS = 120
EXPORT_FORMATS = {"csv": "text/csv; charset=utf-8", "jsonl": "application/jsonl"}


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryView:
    """An entry as this user can read it."""

    number: int
    time: str
    person: str
    action: str
    subject: str
    sentence: str
    detail: str
    shortly: str
    address: str
    browser: str
    seal: str

    @classmethod
    def all(cls, entries: list[AuditEntry], user: AnyUser) -> Iterator[Self]:
        people = audit_messages.person_names(entries)
        sees_all = user.has_perm(masking.UNMASK_PERMISSION)
        for entry in entries:
            client = json.loads(entry.person.decrypt(entry.place) or "{}")
            address = client.get("address", "")
            detail = entry.detail
            yield cls(
                number=entry.number,
                time=entry.at.isoformat(),
                person=str(entry.person),
                action=entry.action,
                subject=entry.subject,
                sentence=audit_messages.sentence(entry, people),
                detail=audit_messages.format_detail(detail, people) if detail else "",
                shortly=audit_messages.summarize_detail(detail, people, entry.subject),
                address=address if sees_all else request_context.mask_address(address),
                browser=client.get("browser", "") if sees_all else "",
                seal=entry.seal,
            )


class EntryDisplay(TypedDict):
    """Attributes that are added to an entry before it is rendered."""

    view: EntryView
    people: dict[str, str]


ListedEntry: TypeAlias = "WithAnnotations[AuditEntry, EntryDisplay]"


class KindFilter(admin.SimpleListFilter):
    title = _("type")
    parameter_name = "about"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return list(audit_messages.CATEGORY_LABELS.items())

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        category = self.value()
        if category not in audit_messages.CATEGORY_LABELS:
            return queryset
        return queryset.filter(action__startswith=f"{category}.")


class PersonFilter(admin.SimpleListFilter):
    """Filters by person, by their tokens."""

    title = _("user")
    parameter_name = "who"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        people = AuditPerson.objects.exclude(name="").order_by("name")[:MAX_PEOPLE]
        return [(person.token, person.name) for person in people]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        token = self.value() or ""
        if not token.isalnum():
            return queryset
        return queryset.filter(Q(person__token=token) | Q(subject=f"person:{token}"))


class EntryChangeList(ChangeList):
    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        rows = list(self.result_list)
        for row, view in zip(rows, EntryView.all(rows, request.user), strict=True):
            row.view = view
        self.result_list = rows


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin):
    """A read-only list of entries."""

    list_display = ["time", "sentence", "shortly", "address"]
    list_display_links = ["sentence"]
    list_filter = [KindFilter, PersonFilter, "at"]
    list_select_related = ["person"]
    search_fields = ["person__name", "subject", "action"]
    date_hierarchy = "at"
    show_full_result_count = False
    fieldsets = [
        (None, {"fields": ["time", "who", "about", "what", "particulars"]}),
        (_("Client"), {"fields": ["address", "browser"]}),
        (_("Raw entry"), {"fields": ["number", "action", "subject", "raw", "seal"]}),
    ]

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        return {}

    def get_changelist(self, request: HttpRequest, **options: Any) -> type[ChangeList]:
        return EntryChangeList

    def get_object(self, request: HttpRequest, object_id: str, from_field: Any = None) -> Any:
        entry = super().get_object(request, object_id, from_field)
        if entry is not None:
            [entry.view] = EntryView.all([entry], request.user)
            entry.people = audit_messages.person_names([entry])
        return entry

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Search each word in all columns; SQLite stores escaped characters in JSON."""
        queryset = queryset.alias(words=Cast("detail", TextField()))
        for term in search_term.replace("\0", "").split()[:8]:
            people = AuditPerson.objects.filter(name__icontains=term)[:MAX_PEOPLE]
            matches = (
                Q(person__name__icontains=term)
                | Q(action__icontains=term)
                | Q(subject__in=[person.subject for person in people])
                | Q(subject__icontains=term)
                | Q(words__icontains=json.dumps(term)[1:-1])
                | Q(words__icontains=term)
            )
            if number := parse_id(term):
                matches |= Q(number=number)
            queryset = queryset.filter(matches)
        return queryset, False

    # Columns

    @admin.display(description=_("time"), ordering="number")
    def time(self, entry: AuditEntry) -> SafeString:
        """Return the time to the second, because the order matters."""
        return timestamp(entry.at, "exact")

    @admin.display(description=_("type"))
    def about(self, entry: AuditEntry) -> LazyText:
        kind = entry.action.partition(".")[0]
        return audit_messages.CATEGORY_LABELS.get(kind, kind)

    @admin.display(description=_("target"))
    def what(self, entry: ListedEntry) -> str:
        return audit_messages.subject_label(entry, entry.people)

    @admin.display(description=_("what happened"))
    def sentence(self, entry: ListedEntry) -> str:
        return entry.view.sentence

    @admin.display(description=_("user"))
    def who(self, entry: AuditEntry) -> str:
        return audit_messages.actor_name(entry)

    @admin.display(description=_("IP address"))
    def address(self, entry: ListedEntry) -> str:
        return entry.view.address or "—"

    @admin.display(description=_("browser"))
    def browser(self, entry: ListedEntry) -> str:
        return entry.view.browser or "—"

    @admin.display(description=_("details"))
    def shortly(self, entry: ListedEntry) -> str:
        return shorten(entry.view.shortly, MAX_SUMMARY_CHARS)

    @admin.display(description=_("details"))
    def particulars(self, entry: ListedEntry) -> SafeString | str:
        lines = audit_messages.detail_lines(entry.detail, entry.people, entry.subject)
        items = format_html_join("", "<li>{}</li>", ((line,) for line in lines))
        return format_html('<ul class="facts">{}</ul>', items) if items else "—"

    @admin.display(description=_("details"))
    def raw(self, entry: ListedEntry) -> SafeString | str:
        if not entry.view.detail:
            return "—"
        return format_html('<pre class="definition">{}</pre>', entry.view.detail)

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **options: Any
    ) -> HttpResponse:
        """Use the entry's sentence as the heading."""
        context["subtitle"] = context["original"].view.sentence
        return super().render_change_form(request, context, *args, **options)

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        row = PeriodicJob.objects.filter(name=VERIFY_TASK).first()
        verified = row and {"at": row.started_at, **row.result}
        verdict = row and audit_messages.verification_sentence(load_verification(row.result))
        context = {"title": _("Audit log"), "verified": verified, "verdict": verdict}
        context |= extra_context or {}
        return super().changelist_view(request, context)

    # Pages

    def get_urls(self) -> list[URLPattern]:
        export_route = "export.<slug:file_format>"
        return [
            self.admin_path("verify/", self.verify_view, "agents_auditentry_verify"),
            self.admin_path(export_route, self.export_view, "agents_auditentry_export"),
            *super().get_urls(),
        ]

    @method_decorator(require_POST)
    def verify_view(self, request: HttpRequest) -> HttpResponse:
        """Verify the newest entries, as many as finish quickly."""
        self._require_view(request)
        verification = hash_chain.verify(newest=MAX_VERIFIED)
        save_verification(verification)
        details = {"holds": verification.holds, "checked": verification.checked}
        audit.record(request.user, audit.LOG_VERIFIED, "audit", **details)
        add_message = messages.success if verification.holds else messages.error
        add_message(request, audit_messages.verification_sentence(verification))
        return redirect("admin:agents_auditentry_changelist")

    @method_decorator(require_POST)
    def export_view(self, request: HttpRequest, file_format: str) -> HttpResponseBase:
        """Export everything the list displays with these filters."""
        self._require_view(request)
        if file_format not in EXPORT_FORMATS:
            return redirect("admin:agents_auditentry_changelist")
        rows = self.get_changelist_instance(request).get_queryset(request)
        context = {"form": file_format, "filter": request.GET.urlencode()}
        audit.record(request.user, audit.LOG_EXPORTED, "audit", **context)
        pieces = export_lines(rows.order_by(), request.user, file_format)
        return download(
            pieces,
            f"audit-{timezone.now():%Y-%m-%d}.{file_format}",
            EXPORT_FORMATS[file_format],
        )

    def _require_view(self, request: HttpRequest) -> None:
        if not self.has_view_permission(request):
            raise PermissionDenied


def save_verification(verification: hash_chain.ChainVerification) -> None:
    """Save the result of a verification, for display."""
    report: dict[str, Any] = {
        "checked": verification.checked,
        "since": verification.since,
        "number": verification.number,
    }
    report |= {"flaw": verification.flaw, "end": asdict(verification.end)}
    PeriodicJob.objects.update_or_create(
        {"started_at": timezone.now(), "result": {**report, "holds": verification.holds}},
        name=VERIFY_TASK,
    )


def load_verification(report: dict[str, Any]) -> hash_chain.ChainVerification:
    flaw = hash_chain.Flaw(report["flaw"]) if report["flaw"] else None
    details = {name: report[name] for name in ("checked", "since", "number")}
    return hash_chain.ChainVerification(
        end=hash_chain.Anchor(**report["end"]), flaw=flaw, **details
    )


def export_lines(rows: QuerySet[AuditEntry], user: AnyUser, file_format: str) -> Iterator[str]:
    """Yield lines from oldest to newest."""
    if file_format == "csv":
        yield csv_line(EntryView.__dataclass_fields__)
    last = 0
    rows = rows.order_by("number").select_related("person")
    while batch := list(rows.filter(number__gt=last)[:PAGE_SIZE]):
        for entry, view in zip(batch, EntryView.all(batch, user), strict=True):
            values = asdict(view)
            if file_format == "csv":
                yield csv_line(values.values())
            else:
                values |= {"detail": entry.detail}
                yield json.dumps(values, ensure_ascii=False) + "\n"
        last = batch[-1].number
