"""Example sets: their trend, how to run them, and their files."""

from collections.abc import Callable
from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import PermissionDenied
from django.db.models import Count, OuterRef, Q, QuerySet, Subquery
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from agents.access import audit, masking
from agents.access.requests import signed_in_user
from agents.console.admin_classes.agent_filter import ReviewedAgentFilter
from agents.console.admin_classes.model_admin import ConsoleAdmin
from agents.db import database
from agents.db.sanitize import parse_id
from agents.models import Agent
from agents.review.experiments import estimate, reading, service, trend
from agents.review.experiments.errors import ExperimentRejected
from agents.review.experiments.models import Experiment
from agents.review.experiments.scoring import checks
from agents.review.experiments.sources import set_files, sources
from agents.review.models import Example, ExampleSet

from .forms import RunSetForm
from .reader_admin import OpenToReviewers

ADD_PERMISSION = "experiments.add_experiment"
MAX_LISTED = 20
DIR = "admin/review/exampleset"


class ExperimentStarted(HttpResponse):
    """A redirect to an experiment that the event loop starts."""

    status_code = 302

    def __init__(self, experiment: Experiment) -> None:
        super().__init__()
        self.experiment = experiment
        url = reverse("admin:experiments_experiment_change", args=[experiment.pk])
        self["Location"] = url


async def run_admin_view(
    site: admin.AdminSite, view: Callable[..., HttpResponse], request: HttpRequest, *args: Any
) -> HttpResponse:
    """Return the response of an admin page; what it started runs on the server's loop."""
    response: HttpResponse = await database.run(site.admin_view(view), request, *args)
    if isinstance(response, ExperimentStarted):
        await service.advance(response.experiment.pk)
    return response


class SetChangeList(ChangeList):
    """The list of sets links to their pages, not to their settings."""

    def url_for_result(self, result: Any) -> str:
        return reverse("admin:review_exampleset_page", args=[result.pk])


@admin.register(ExampleSet)
class ExampleSetAdmin(OpenToReviewers, ConsoleAdmin):
    list_display = ["name", "example_count", "agent", "last_score", "last_run"]
    list_filter = [("agent", ReviewedAgentFilter)]
    list_select_related = ["agent"]
    search_fields = ["name", "description"]
    fields = ["name", "description", "agent"]

    def get_urls(self) -> list[URLPattern]:
        def admin_view(view: Any) -> Any:
            return self.admin_site.admin_view(view)

        own = [
            path("<int:pk>/run/", self.run_view, name="review_exampleset_run"),
            path(
                "<int:pk>/import/",
                admin_view(self.import_view),
                name="review_exampleset_import",
            ),
            path(
                "<int:pk>/export.<str:file_format>",
                admin_view(self.export_view),
                name="review_exampleset_export",
            ),
            path("<int:pk>/", admin_view(self.set_view), name="review_exampleset_page"),
        ]
        return [*own, *super().get_urls()]

    def get_changelist(self, request: HttpRequest, **options: Any) -> type[ChangeList]:
        return SetChangeList

    def get_queryset(self, request: HttpRequest) -> QuerySet[ExampleSet]:
        rows = super().get_queryset(request)
        examples = Count("examples")
        if self.is_reader(request):
            user = signed_in_user(request)
            rows = reading.sets_in_scope(rows, user)
            visible = reading.examples_in_scope(Example.objects.all(), user)
            examples = Count("examples", filter=Q(examples__in=visible))
        experiments = self._experiments(request)
        done = experiments.filter(example_set=OuterRef("pk"), score__isnull=False)
        newest = done.order_by("-pk")
        return rows.annotate(
            example_total=examples,
            newest_score=Subquery(newest.values("score")[:1]),
            newest_at=Subquery(newest.values("started_at")[:1]),
        )

    @admin.display(description=_("examples"), ordering="example_total")
    def example_count(self, row: Any) -> int:
        return int(row.example_total)

    @admin.display(description=_("last score"), ordering="newest_score")
    def last_score(self, row: Any) -> str:
        return "—" if row.newest_score is None else f"{row.newest_score:.0%}"

    @admin.display(description=_("last run"), ordering="newest_at")
    def last_run(self, row: Any) -> Any:
        return row.newest_at

    def response_add(self, request: HttpRequest, obj: ExampleSet, *args: Any) -> HttpResponse:
        super().response_add(request, obj, *args)  # for its message
        return redirect("admin:review_exampleset_page", obj.pk)

    def response_change(self, request: HttpRequest, obj: ExampleSet) -> HttpResponse:
        super().response_change(request, obj)
        return redirect("admin:review_exampleset_page", obj.pk)

    def _get_set(self, request: HttpRequest, pk: int) -> ExampleSet:
        if not self.has_view_permission(request):
            raise PermissionDenied
        example_set = self.get_object(request, str(pk))
        if example_set is None:
            raise Http404
        return example_set

    def set_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Display the set: its trend, its experiments and how to fill it."""
        example_set = self._get_set(request, pk)
        of_set = self._experiments(request).filter(
            example_set=example_set, kind=Experiment.Kind.EXAMPLES
        )
        experiments = list(of_set.select_related("agent", "started_by")[: trend.MAX_POINTS])
        context = {
            **self._context(request, example_set, "overview"),
            "experiments": experiments[:MAX_LISTED],
            "trend": trend.build(experiments),
        }
        return render(request, f"{DIR}/overview.html", context)

    def _context(
        self, request: HttpRequest, example_set: ExampleSet, tab: str
    ) -> dict[str, Any]:
        return {
            **self.admin_site.each_context(request),
            "title": example_set.name,
            "opts": self.opts,
            "example_set": example_set,
            "tab": tab,
            "example_count": self._examples(request, example_set).count(),
            "may_export": not self.is_reader(request),
            "may_run": request.user.has_perm(ADD_PERMISSION),
            "may_change": self.has_change_permission(request),
            "may_add_examples": request.user.has_perm("review.add_example"),
        }

    def _experiments(self, request: HttpRequest) -> QuerySet[Experiment]:
        rows = Experiment.objects.all()
        return rows.for_user(request.user) if self.is_reader(request) else rows

    def _examples(self, request: HttpRequest, example_set: ExampleSet) -> QuerySet[Example]:
        rows = Example.objects.filter(example_set=example_set)
        if self.is_reader(request):
            rows = reading.examples_in_scope(rows, signed_in_user(request))
        return rows

    async def run_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        view = require_http_methods(["GET", "HEAD", "POST"])(self._run_set)
        return await run_admin_view(self.admin_site, view, request, pk)

    def _run_set(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Display the form with the estimated cost, or start the experiment."""
        example_set = self._get_set(request, pk)
        if not request.user.has_perm(ADD_PERMISSION):
            raise PermissionDenied
        parameters = request.POST or request.GET
        agent = _chosen_agent(parameters.get("agent_name", ""), example_set)
        checked = example_set.examples.exclude(checks=[])
        form = RunSetForm(
            parameters or None,
            agent=agent,
            has_judge=any(
                check["kind"] == checks.JUDGE for example in checked for check in example.checks
            ),
            unrecorded=example_set.examples.filter(observations=[]).count(),
            count=example_set.examples.count(),
        )
        context = {**self._context(request, example_set, "run"), "form": form}
        if request.method == "POST" and form.is_valid():
            try:
                started = self._start(request, example_set, form, context)
            except ExperimentRejected as reason:
                form.add_error(None, str(reason))
            else:
                if started is not None:
                    return started
        if agent is not None:
            questions = sources.load(example_set, agent, signed_in_user(request)).chosen
            context["estimate"] = estimate.estimate(questions, agent, agent)
        template = f"{DIR}/run.html"
        if request.headers.get("HX-Request"):
            template = f"{DIR}/_run_form.html"
        if not request.POST and parameters:
            form.errors.clear()  # the form was only filled in
        return render(request, template, context)

    def _start(
        self,
        request: HttpRequest,
        example_set: ExampleSet,
        form: RunSetForm,
        context: dict[str, Any],
    ) -> HttpResponse | None:
        """Start it; None if it would run tools with side effects and wasn't confirmed."""
        spec, target, version = form.tested()
        options = form.options
        writing = service.writing_tools(spec) if options["is_live"] else []
        if writing and not request.POST.get("confirmed"):
            context["writing_tools"] = writing
            return None
        agent = form.agent
        if agent is None:
            raise ExperimentRejected(str(_("Choose an agent.")))
        experiment_options = service.Options(target=target, version=version, **options)
        user = signed_in_user(request)
        return ExperimentStarted(
            service.start_examples(example_set, agent, spec, user, experiment_options)
        )

    def import_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Add examples from a file, with a result per row."""
        example_set = self._get_set(request, pk)
        if not request.user.has_perm("review.add_example"):
            raise PermissionDenied
        context = self._context(request, example_set, "import")
        if request.method == "POST":
            upload: Any = request.FILES.get("file")
            user = signed_in_user(request)
            try:
                if upload is None:
                    raise set_files.InvalidFile(_("Choose a CSV or JSONL file."))
                if upload.size > set_files.MAX_BYTES:
                    raise set_files.InvalidFile(
                        _("The file is larger than %(most)d MB.")
                        % {"most": set_files.MAX_BYTES // 10**6}
                    )
                result = set_files.import_file(example_set, upload.name, upload.read(), user)
            except set_files.InvalidFile as problem:
                context["problem"] = str(problem)
            else:
                audit.record(user, audit.CHANGED, example_set, added=result.added)
                context |= {"result": result, "example_count": example_set.examples.count()}
        return render(request, f"{DIR}/import.html", context)

    def export_view(self, request: HttpRequest, pk: int, file_format: str) -> HttpResponse:
        """Return the set as a file; recorded questions are masked without permission."""
        example_set = self._get_set(request, pk)
        if self.is_reader(request):
            raise PermissionDenied
        if file_format not in {"csv", "jsonl"}:
            raise Http404
        is_unmasked = request.user.has_perm(masking.UNMASK_PERMISSION)
        rows = example_set.examples.order_by("pk")
        text = set_files.export(rows, file_format, is_unmasked=is_unmasked)
        content_types = {"csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson"}
        response = HttpResponse(text, content_type=content_types[file_format])
        response["Content-Disposition"] = f'attachment; filename="examples-{pk}.{file_format}"'
        return response


def _chosen_agent(text: str, example_set: ExampleSet) -> Agent | None:
    enabled = Agent.objects.filter(enabled=True)
    if (pk := parse_id(text)) is not None:
        return enabled.filter(pk=pk).first()
    if example_set.agent is not None and example_set.agent.enabled:
        return example_set.agent
    used = example_set.examples.exclude(agent=None).values_list("agent", flat=True)
    return enabled.filter(pk__in=used).first() or enabled.filter(is_default=True).first()
