"""Backtests of a guardrail, from the form of the rule: on the runs or texts of the past."""

from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, path
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from agents.access import audit
from agents.access.requests import signed_in_user
from agents.catalog.agent_factory import pattern_from
from agents.console.guardrail_admin.guardrail_forms import JudgeDraftForm, PatternDraftForm
from agents.console.guardrail_admin.guardrail_testers import REVIEW_PERMISSION
from agents.console.guardrail_admin.guardrail_testing import judge_testing
from agents.db import database
from agents.db.sentences import translate
from agents.engine.errors import BadPattern, QuotaExceeded
from agents.metering.budgets import check_calls
from agents.models import GuardrailPattern, Run
from agents.review.experiments import service
from agents.review.experiments.errors import ExperimentRejected
from agents.review.experiments.guardrail_presentation import GuardrailView
from agents.review.experiments.models import Experiment
from agents.review.experiments.sources import sources

DIR = "admin/agents/guardrailpattern"
# Most patterns are done by then; the others continue in the background.
WAIT_SECONDS = 2.0


def urls(site: admin.AdminSite) -> list[URLPattern]:
    """Return the URL of the backtest, which belongs to the pages of guardrails."""

    async def view(request: HttpRequest) -> HttpResponse:
        started = await database.run(site.admin_view(require_POST(_start)), request)
        if not isinstance(started, BacktestStarted):
            return started
        await service.advance(started.experiment.pk, seconds=WAIT_SECONDS)
        return await database.run(_render_started, request, started.experiment.pk)

    route = "agents/guardrailpattern/backtest/"
    return [path(route, view, name="agents_guardrail_backtest")]


class BacktestStarted(HttpResponse):
    """The event loop continues with this experiment."""

    def __init__(self, experiment: Experiment) -> None:
        super().__init__()
        self.experiment = experiment


def _start(request: HttpRequest) -> HttpResponse:
    user = signed_in_user(request)
    is_model_check = request.POST.get("kind") == GuardrailPattern.Kind.MODEL
    # Reviewers who see rules may; asking a model costs and needs more.
    needed = {"add", "change"} if is_model_check else {"add", "change", "view"}
    may = any(user.has_perm(f"agents.{action}_guardrailpattern") for action in needed)
    if not may or not user.has_perm(REVIEW_PERMISSION):
        raise PermissionDenied
    form = JudgeDraftForm(request.POST) if is_model_check else PatternDraftForm(request.POST)
    context: dict[str, Any] = {"form": form, "target": "backtest"}
    if form.is_valid():
        try:
            if isinstance(form, JudgeDraftForm):
                return _start_check(request, form, context)
            data = form.cleaned_data
            rule = form.row()
            pattern_from(rule).try_out()
            questions = sources.checked_runs(user, data["runs"], data["agents"])
            return BacktestStarted(service.start_guardrail(rule, questions, user))
        except (BadPattern, QuotaExceeded, ExperimentRejected) as error:
            context["problem"] = translate(str(error))
    return render(request, f"{DIR}/_judged.html", context)


def _start_check(
    request: HttpRequest, form: JudgeDraftForm, context: dict[str, Any]
) -> HttpResponse:
    """Say what the backtest of a model check costs; with a confirmation, start it."""
    user = signed_in_user(request)
    data = form.cleaned_data
    rule = form.row()
    questions = sources.checked_texts(user, data["runs"], pattern_from(rule), data["agents"])
    if not questions:
        context["problem"] = _("There are no texts to check yet.")
    elif data["confirmed"]:
        check_calls(user)
        return BacktestStarted(service.start_guardrail(rule, questions, user))
    else:
        texts = [question.text for question in questions]
        context["estimate"] = judge_testing.estimate(rule, texts)
    return render(request, f"{DIR}/_judged.html", context)


def _render_started(request: HttpRequest, pk: int) -> HttpResponse:
    return render_part(request, Experiment.objects.get(pk=pk))


def render_part(request: HttpRequest, experiment: Experiment) -> HttpResponse:
    return render(request, f"{DIR}/_backtest.html", backtest_context(request, experiment))


def backtest_context(request: HttpRequest, experiment: Experiment) -> dict[str, Any]:
    """Return what the page displays; which runs it shows parts of is in the audit log."""
    user = signed_in_user(request)
    view = GuardrailView(experiment, user)
    if not experiment.is_running:
        runs = Run.objects.filter(pk__in=[example.run for example in view.examples])
        audit.record_views(user, runs, "backtest")
    return {"experiment": experiment, "view": view}
