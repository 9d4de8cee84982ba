"""Guardrails in the console: edit, test, backtest and judge."""

from typing import Any, cast

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import URLPattern, path, reverse
from django.utils.decorators import method_decorator
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_POST

from agents.access.requests import UserRequest
from agents.engine.errors import BadPattern
from agents.engine.guardrails import GuardrailAction, Pattern, try_pattern
from agents.models import GuardrailHit, GuardrailPattern
from agents.runs.engine_messages import translate

from .guardrail_testing import hits, pattern_sets
from .guardrail_testing.backtest import SAMPLE_SIZES, BacktestRunning, backtest
from .guardrail_testing.tester import MAX_SAMPLE_CHARS, check_sample
from .model_admin import ConsoleAdmin

REVIEW_PERMISSION = "agents.review_runs"
TEMPLATE_DIR = "admin/agents/guardrailpattern"


class PatternDraftForm(forms.Form):
    """A pattern as in the form, saved or not."""

    name = forms.CharField(max_length=80, required=False)
    pattern = forms.CharField(max_length=1000, required=False, strip=False)
    stage = forms.ChoiceField(choices=GuardrailPattern.Stage.choices)
    action = forms.ChoiceField(choices=GuardrailPattern.Action.choices)
    message = forms.CharField(max_length=300, required=False)
    is_observed = forms.BooleanField(required=False)
    agents = forms.TypedMultipleChoiceField(coerce=int, required=False)
    sample = forms.CharField(required=False, strip=False)
    runs = forms.TypedChoiceField(
        coerce=int,
        choices=[(size, size) for size in SAMPLE_SIZES],
        required=False,
        empty_value=cast(Any, SAMPLE_SIZES[0]),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        chosen = self.data.getlist("agents") if isinstance(self.data, QueryDict) else ()
        cast(forms.ChoiceField, self.fields["agents"]).choices = [
            (pk, pk) for pk in chosen if pk.isdecimal()
        ]

    def rule(self) -> Pattern:
        data = self.cleaned_data
        return Pattern(
            name=data["name"],
            pattern=data["pattern"],
            stage=data["stage"],
            action=GuardrailAction(data["action"]),
            message=data["message"],
            is_observed=data["is_observed"],
        )


@admin.register(GuardrailPattern)
class GuardrailPatternAdmin(ConsoleAdmin):
    list_display = [
        *("name", "short_pattern", "stage", "action", "hit_total", "precision"),
        *("is_observed", "enabled"),
    ]
    list_editable = ["is_observed", "enabled"]
    list_filter = ["stage", "action", "is_observed", "enabled", "agents"]
    search_fields = ["name", "pattern"]
    fields = [
        *("name", "pattern", "stage", "action", "message", "agents", "is_observed", "enabled"),
    ]
    change_form_template = f"{TEMPLATE_DIR}/change_form.html"
    change_list_template = f"{TEMPLATE_DIR}/change_list.html"

    def get_urls(self) -> list[URLPattern]:
        def page(way: str, view: Any, name: str) -> URLPattern:
            return path(way, self.admin_site.admin_view(view), name=f"agents_guardrail_{name}")

        own = [
            page("try/", self.try_view, "try"),
            page("backtest/", self.backtest_view, "backtest"),
            page("hits/", self.hits_view, "hits"),
            page("hits/<int:pk>/", self.judge_view, "judge"),
            page("sets/", self.sets_view, "sets"),
        ]
        return [*own, *super().get_urls()]

    def formfield_for_dbfield(self, db_field: Any, request: Any, **options: Any) -> Any:
        field = super().formfield_for_dbfield(db_field, request, **options)
        if db_field.name == "pattern" and field is not None:
            look = {"class": "vLargeTextField code", "spellcheck": "false"}
            field.widget = forms.TextInput(attrs=look)
            cast(forms.CharField, field).strip = False
        if db_field.name == "agents" and field is not None:
            field.widget.can_add_related = False
        return field

    def formfield_for_manytomany(self, db_field: Any, request: Any, **options: Any) -> Any:
        options["widget"] = forms.CheckboxSelectMultiple
        return super().formfield_for_manytomany(db_field, request, **options)

    def render_change_form(
        self, request: HttpRequest, context: Any, *args: Any, **about: Any
    ) -> HttpResponse:
        context |= {
            "sizes": SAMPLE_SIZES,
            "most": MAX_SAMPLE_CHARS,
            "may_review": request.user.has_perm(REVIEW_PERMISSION),
        }
        return super().render_change_form(request, context, *args, **about)

    def get_queryset(self, request: HttpRequest) -> Any:
        return hits.with_counts(super().get_queryset(request))

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        more = {"may_review": request.user.has_perm(REVIEW_PERMISSION)}
        return super().changelist_view(request, (extra_context or {}) | more)

    @admin.display(description=_("pattern"), ordering="pattern")
    def short_pattern(self, row: GuardrailPattern) -> SafeString:
        return format_html('<code class="pattern">{}</code>', row.pattern)

    def get_list_display(self, request: HttpRequest) -> list[Any]:
        """Link to the hits for reviewers."""
        is_led = request.user.has_perm(REVIEW_PERMISSION)
        return ["fired_where" if is_led and n == "hit_total" else n for n in self.list_display]

    @admin.display(description=_("hits"), ordering="hit_count")
    def hit_total(self, row: hits.CountedPattern) -> int:
        return row.hit_count

    @admin.display(description=_("hits"), ordering="hit_count")
    def fired_where(self, row: hits.CountedPattern) -> SafeString:
        where = f"{reverse('admin:agents_guardrail_hits')}?pattern={row.pk}"
        return format_html('<a href="{}">{}</a>', where, row.hit_count)

    @admin.display(description=_("precision"))
    def precision(self, row: hits.CountedPattern) -> str:
        found = hits.Precision(hits=row.hit_count, judged=row.judged, right=row.right)
        if found.percent is None:
            return "–"
        about = {"percent": found.percent, "right": found.right, "judged": found.judged}
        return _("%(percent)s%% (%(right)s of %(judged)s)") % about

    @method_decorator(require_POST)
    def try_view(self, request: HttpRequest) -> HttpResponse:
        """Display the sample with the form pattern's matches."""
        if not self.has_view_or_change_permission(request) and not self.has_add_permission(
            request
        ):
            raise PermissionDenied
        form = PatternDraftForm(request.POST)
        trial = (
            check_sample(form.rule(), form.cleaned_data["sample"]) if form.is_valid() else None
        )
        return render(request, f"{TEMPLATE_DIR}/_trial.html", {"trial": trial, "form": form})

    @method_decorator(require_POST)
    def backtest_view(self, request: HttpRequest) -> HttpResponse:
        """Display on how many recent runs the form's pattern would have fired."""
        self._require_reviewer(request)
        form, context = PatternDraftForm(request.POST), {}
        if form.is_valid():
            context = self._run_backtest(request, form)
        return render(request, f"{TEMPLATE_DIR}/_backtest.html", {"form": form, **context})

    def _run_backtest(self, request: HttpRequest, form: PatternDraftForm) -> dict[str, Any]:
        data = form.cleaned_data
        try:
            try_pattern(data["pattern"])
            outcome = backtest(request.user, form.rule(), data["runs"], data["agents"])
        except BadPattern as error:
            return {"problem": translate(str(error))}
        except BacktestRunning:
            return {"problem": _("Another backtest is running. Try again in a moment.")}
        return {"outcome": outcome}

    @method_decorator(require_GET)
    def hits_view(self, request: HttpRequest) -> HttpResponse:
        """List guardrail hits, newest first."""
        self._require_reviewer(request)
        pattern = self._selected_pattern(request)
        page = hits.list_hits(
            request.user, pattern.pk if pattern else None, _int_param(request, "before")
        )
        context = {
            **self.admin_site.each_context(request),
            "title": _("Guardrail hits"),
            "opts": self.opts,
            "pattern": pattern,
            "page": page,
            "precision": hits.precision(pattern) if pattern else None,
        }
        return render(request, f"{TEMPLATE_DIR}/hits.html", context)

    @method_decorator(require_POST)
    def judge_view(self, request: UserRequest, pk: int) -> HttpResponse:
        """Save a reviewer's verdict on a hit, and return its row."""
        self._require_reviewer(request)
        visible = GuardrailHit.objects.for_user(request.user).select_related("pattern", "run")
        hit = get_object_or_404(visible, pk=pk)
        word = request.POST.get("word", "")
        if word not in hits.VERDICTS:
            raise Http404
        hits.judge(request.user, hit, hits.VERDICTS[word])
        if not request.htmx:
            return redirect("admin:agents_guardrail_hits")
        [updated] = hits.list_hits(request.user, hit.pattern_id, before=hit.pk + 1).hits[:1]
        return render(request, f"{TEMPLATE_DIR}/_hit.html", {"hit": updated})

    def sets_view(self, request: HttpRequest) -> HttpResponse:
        """Display and add preset patterns."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        if request.method == "POST":
            return self._add_set(request, request.POST.get("set", ""))
        offered = [
            (key, each, pattern_sets.existing_names(each.patterns))
            for key, each in pattern_sets.SETS.items()
        ]
        context = {
            **self.admin_site.each_context(request),
            "title": _("Prebuilt patterns"),
            "opts": self.opts,
            "sets": offered,
        }
        return render(request, f"{TEMPLATE_DIR}/sets.html", context)

    def _add_set(self, request: HttpRequest, key: str) -> HttpResponse:
        if key not in pattern_sets.SETS:
            raise Http404
        with transaction.atomic():
            rows = pattern_sets.add(key)
            for row in rows:
                self.log_addition(request, row, [{"added": {}}])
        message = ngettext("%(n)s pattern added.", "%(n)s patterns added.", len(rows))
        messages.success(request, message % {"n": len(rows)})
        return redirect("admin:agents_guardrail_sets")

    def _require_reviewer(self, request: HttpRequest) -> None:
        may = self.has_view_or_change_permission(request) and request.user.has_perm(
            REVIEW_PERMISSION
        )
        if not may:
            raise PermissionDenied

    def _selected_pattern(self, request: HttpRequest) -> GuardrailPattern | None:
        pk = _int_param(request, "pattern")
        return None if pk is None else get_object_or_404(GuardrailPattern, pk=pk)


def _int_param(request: HttpRequest, name: str) -> int | None:
    text = request.GET.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else None
