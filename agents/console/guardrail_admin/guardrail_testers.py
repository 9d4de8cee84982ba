"""Testing guardrails in the console: samples, hits and verdicts on them."""

from typing import Any

from django import forms
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.decorators import method_decorator
from django.utils.http import urlencode
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET, require_POST

from agents.access.requests import UserRequest
from agents.catalog.agent_factory import pattern_from
from agents.db.sanitize import parse_id
from agents.db.sentences import translate
from agents.engine.errors import QuotaExceeded
from agents.metering.budgets import check_calls
from agents.models import GuardrailHit, GuardrailPattern

from ..admin_classes.model_admin import ConsoleAdmin
from ..admin_classes.pages import render_page
from .guardrail_forms import JudgeDraftForm, PatternDraftForm, RuleTestForm
from .guardrail_testing import hits, judge_testing, rule_tester
from .guardrail_testing.tester import MAX_SAMPLE_CHARS, check_sample
from .guardrail_testing.trends import trend_of

REVIEW_PERMISSION = "agents.review_runs"
TEMPLATE_DIR = "admin/agents/guardrailpattern"


class TesterPages(ConsoleAdmin):
    """The pages and fragments that test rules and list their hits."""

    @method_decorator(require_POST)
    def check_view(self, request: HttpRequest) -> HttpResponse:
        """Test a text with all enabled rules, at every stage."""
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        form = RuleTestForm(request.POST)
        context: dict[str, Any] = {"form": form}
        if form.is_valid() and (text := form.cleaned_data["text"]):
            agent = form.cleaned_data["agent"]
            context["results"] = rule_tester.check_text(text, agent.pk if agent else None)
            context["checks"] = rule_tester.model_checks(agent.pk if agent else None)
            context["is_cut"] = len(text) > MAX_SAMPLE_CHARS
        return render(request, f"{TEMPLATE_DIR}/_check.html", context)

    @method_decorator(require_POST)
    def try_view(self, request: HttpRequest) -> HttpResponse:
        """Display the sample with the form pattern's matches."""
        if not (
            self.has_view_or_change_permission(request) or self.has_add_permission(request)
        ):
            raise PermissionDenied
        form = PatternDraftForm(request.POST)
        trial = (
            check_sample(pattern_from(form.row()), form.cleaned_data["sample"])
            if form.is_valid()
            else None
        )
        return render(request, f"{TEMPLATE_DIR}/_trial.html", {"trial": trial, "form": form})

    @method_decorator(require_POST)
    def ask_view(self, request: UserRequest) -> HttpResponse:
        """Have the form's model check judge the sample, after saying what that costs."""
        # Asking a model costs, so the right to view rules isn't enough.
        if not (self.has_change_permission(request) or self.has_add_permission(request)):
            raise PermissionDenied
        form = JudgeDraftForm(request.POST)
        context: dict[str, Any] = {"form": form}
        if form.is_valid() and (sample := form.cleaned_data["sample"].strip()):
            row = form.row()
            sample = sample[:MAX_SAMPLE_CHARS]
            context |= {"estimate": judge_testing.estimate(row, [sample]), "target": "judged"}
            if form.cleaned_data["confirmed"]:
                try:
                    check_calls(request.user)
                except QuotaExceeded as error:
                    context["problem"] = translate(str(error))
                else:
                    context["judged"] = judge_testing.judge_sample(request.user, row, sample)
        elif form.is_valid():
            context["problem"] = _("Enter a sample text first.")
        return render(request, f"{TEMPLATE_DIR}/_judged.html", context)

    @method_decorator(require_GET)
    def hits_view(self, request: HttpRequest) -> HttpResponse:
        """List guardrail hits, newest first."""
        self._require_reviewer(request)
        form = HitFilterForm(request.GET)
        chosen = form.chosen()
        matching = hits.filter_hits(request.user, chosen)
        context = {
            "title": _("Guardrail hits"),
            "opts": self.opts,
            "form": form,
            "pattern": chosen.pattern,
            "page": hits.list_hits(matching, parse_id(request.GET.get("before"))),
            "precision": hits.precision(matching),
            "trend": trend_of(matching),
            "query": form.query,
        }
        return render_page(request, f"{TEMPLATE_DIR}/hits.html", context)

    @method_decorator(require_POST)
    def judge_view(self, request: UserRequest, pk: int) -> HttpResponse:
        """Save a reviewer's verdict on a hit, and return its row."""
        self._require_reviewer(request)
        visible = GuardrailHit.objects.for_user(request.user).select_related("pattern", "run")
        hit = get_object_or_404(visible, pk=pk)
        verdict = request.POST.get("word", "")
        if verdict not in hits.VERDICTS:
            raise Http404
        hits.judge(request.user, hit, hits.VERDICTS[verdict])
        if not request.htmx:
            return redirect("admin:agents_guardrail_hits")
        same = hits.filter_hits(request.user, hits.HitFilter(pattern=hit.pattern))
        [updated] = hits.list_hits(same, before_pk=hit.pk + 1).hits[:1]
        return render(request, f"{TEMPLATE_DIR}/_hit.html", {"hit": updated})

    def _require_reviewer(self, request: HttpRequest) -> None:
        may = self.has_view_or_change_permission(request) and request.user.has_perm(
            REVIEW_PERMISSION
        )
        if not may:
            raise PermissionDenied


class HitFilterForm(forms.Form):
    """Which hits are listed; what can't be read is ignored."""

    pattern = forms.ModelChoiceField(
        GuardrailPattern.objects.all(), required=False, empty_label=_("All rules")
    )
    stage = forms.ChoiceField(
        choices=[("", _("All stages")), *GuardrailPattern.Stage.choices], required=False
    )
    action = forms.ChoiceField(
        choices=[("", _("All actions")), *GuardrailPattern.Action.choices], required=False
    )
    verdict = forms.ChoiceField(
        choices=[
            ("", _("All verdicts")),
            ("open", _("not reviewed")),
            ("right", _("correct")),
            ("wrong", _("wrong")),
        ],
        required=False,
    )
    days = forms.TypedChoiceField(
        choices=[("", _("Any time")), ("7", _("last 7 days")), ("30", _("last 30 days"))],
        coerce=int,
        empty_value=None,
        required=False,
    )

    def chosen(self) -> hits.HitFilter:
        self.is_valid()
        return hits.HitFilter(**{name: self.cleaned_data.get(name) for name in self.fields})

    @property
    def query(self) -> str:
        """The address without the page, for the link to older hits."""
        return urlencode({name: self.data[name] for name in self.fields if self.data.get(name)})
