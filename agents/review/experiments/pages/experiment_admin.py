"""Experiments: progress, results, comparison, and the backtest of an agent."""

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import URLPattern, path
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods, require_POST

from agents.access.requests import signed_in_user
from agents.console.admin_classes.agent_filter import ReviewedAgentFilter
from agents.console.admin_classes.read_only import ReadOnlyAdmin
from agents.console.guardrail_admin.guardrail_testers import REVIEW_PERMISSION
from agents.db.sanitize import parse_id
from agents.models import Agent
from agents.review.experiments import estimate, service
from agents.review.experiments.errors import ExperimentRejected
from agents.review.experiments.models import VIEW_PERMISSION, Experiment
from agents.review.experiments.presentation import ExperimentView
from agents.review.experiments.scoring import targets
from agents.review.experiments.sources import sources
from agents.web.presentation.formats.badges import badge_column

from . import guardrail_backtest
from .forms import BacktestForm
from .reader_admin import OpenToReviewers, ReadableSetFilter
from .set_admin import ADD_PERMISSION, ExperimentStarted, run_admin_view

BACKTEST_PERMISSION = "agents.change_agent"
# Any of them; which experiments a user sees is another question.
PERMISSIONS = (
    VIEW_PERMISSION,
    ADD_PERMISSION,
    BACKTEST_PERMISSION,
    REVIEW_PERMISSION,
)
DIR = "admin/experiments"
MAX_LISTED = 10
TONES = {"running": "blue", "finished": "green", "failed": "red"}


@admin.register(Experiment)
class ExperimentAdmin(OpenToReviewers, ReadOnlyAdmin):
    list_display = ["started_at", "kind", "agent", "example_set"]
    list_display += [badge_column("state", _("state"), TONES), "score", "cost"]
    list_filter = [
        *("kind", "state"),
        ("agent", ReviewedAgentFilter),
        ("example_set", ReadableSetFilter),
    ]
    list_select_related = ["agent", "example_set"]
    search_fields = ["agent__name", "example_set__name"]

    def get_urls(self) -> list[URLPattern]:
        own = [
            path("backtest/<int:pk>/", self.backtest_view, name="agents_agent_backtest"),
            path("<int:pk>/cancel/", self.cancel_view, name="experiments_experiment_cancel"),
        ]
        return [*own, *super().get_urls()]

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Show everyone who can open the console at least what they started."""
        return super().has_view_permission(request, obj) or (
            obj is not None and obj.started_by_id == request.user.pk
        )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Experiment]:
        related = ("agent", "example_set", "started_by")
        return Experiment.objects.for_user(request.user).select_related(*related)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: Any = None,
    ) -> HttpResponse:
        """Display the results; while it runs, the page asks for them again."""
        experiment = self._get_experiment(request, object_id)
        is_part = request.headers.get("HX-Request")
        if experiment.kind == Experiment.Kind.GUARDRAIL:
            if is_part:
                return guardrail_backtest.render_part(request, experiment)
            context = {
                **self.admin_site.each_context(request),
                "title": _("Backtest %(name)s") % {"name": experiment.spec["name"]},
                "opts": self.opts,
                **guardrail_backtest.backtest_context(request, experiment),
            }
            return render(request, f"{DIR}/experiment.html", context)
        comparable: list[Experiment] = []
        if experiment.example_set_id is not None:
            same_set = self.get_queryset(request).filter(example_set=experiment.example_set_id)
            scored = same_set.exclude(pk=experiment.pk).exclude(score=None)
            comparable = list(scored[:MAX_LISTED])
        chosen = request.GET.get("against", "")
        against = next((row for row in comparable if str(row.pk) == chosen), None)
        context = {
            **self.admin_site.each_context(request),
            "title": _experiment_title(experiment),
            "opts": self.opts,
            "experiment": experiment,
            "view": ExperimentView(
                experiment, signed_in_user(request), dict(request.session), against
            ),
            "against": against,
            "others": comparable,
            "may_cancel": self._may_cancel(request, experiment),
        }
        template = f"{DIR}/_results.html" if is_part else f"{DIR}/experiment.html"
        return render(request, template, context)

    def _get_experiment(self, request: HttpRequest, object_id: str) -> Experiment:
        if not any(map(request.user.has_perm, PERMISSIONS)):
            raise PermissionDenied
        return get_object_or_404(self.get_queryset(request), pk=parse_id(object_id) or 0)

    def _may_cancel(self, request: HttpRequest, experiment: Experiment) -> bool:
        is_own = experiment.started_by_id == request.user.pk
        may = is_own or request.user.has_perm("experiments.change_experiment")
        return experiment.is_running and may

    async def cancel_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        return await run_admin_view(self.admin_site, require_POST(self._cancel), request, pk)

    def _cancel(self, request: HttpRequest, pk: int) -> HttpResponse:
        experiment = self._get_experiment(request, str(pk))
        if self._may_cancel(request, experiment):
            service.request_cancel(experiment)
            messages.info(request, _("Canceled. The results so far are saved."))
            return ExperimentStarted(experiment)  # the event loop stops its runs
        return redirect("admin:experiments_experiment_change", pk)

    async def backtest_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        view = require_http_methods(["GET", "HEAD", "POST"])(self._backtest)
        return await run_admin_view(self.admin_site, view, request, pk)

    def _backtest(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Display what a backtest would repeat and cost, or start it."""
        if not request.user.has_perm(BACKTEST_PERMISSION):
            raise PermissionDenied
        agent = Agent.objects.filter(pk=pk).first()
        if agent is None:
            raise Http404
        user = signed_in_user(request)
        parameters = request.POST or request.GET
        form = BacktestForm(parameters or None, agent=agent, user=user)
        context: dict[str, Any] = {"form": form, "agent": agent}
        if form.is_valid():
            try:
                spec, target, version = form.tested()
                source = form.chosen_source()
                if request.method == "POST":
                    options = service.Options(target=target, version=version)
                    experiment = service.start_backtest(agent, spec, source, user, options)
                    return ExperimentStarted(experiment)
                questions = sources.load(source, agent, user)
                tested = targets.tested_agent(agent.pk, spec)
                context["estimate"] = estimate.estimate(questions.chosen, agent, tested)
                context["left_out"] = [
                    sources.left_out_sentence(*pair) for pair in questions.left_out.items()
                ]
            except ExperimentRejected as reason:
                form.add_error(None, str(reason))
        past = self.get_queryset(request).filter(agent=agent, kind=Experiment.Kind.BACKTEST)
        context |= {
            **self.admin_site.each_context(request),
            "title": _("Backtest %(name)s") % {"name": agent.name},
            "opts": Agent._meta,
            "experiments": past[:MAX_LISTED],
        }
        is_part = request.headers.get("HX-Request")
        template = f"{DIR}/_backtest_form.html" if is_part else f"{DIR}/backtest.html"
        return render(request, template, context)


def _experiment_title(experiment: Experiment) -> str:
    params = {"agent": experiment.agent_name, "target": experiment.target_label}
    if experiment.kind == Experiment.Kind.BACKTEST:
        return _("Backtest of %(agent)s, %(target)s") % params
    set_name = experiment.example_set.name if experiment.example_set else _("Examples")
    return _("%(set)s with %(agent)s, %(target)s") % {"set": set_name, **params}
