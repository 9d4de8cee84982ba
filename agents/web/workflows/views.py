"""Pages for workflows: everyone sees and starts them, administrators edit them."""

from dataclasses import dataclass
from typing import Any

from django.contrib.auth.decorators import permission_required
from django.db.models import Count, Max
from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.functional import cached_property
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from agents.access.requests import UserRequest
from agents.db.sentences import translate
from agents.engine.plans import ExecutionStep, PlanDefinition, PlanProblem, read_definition
from agents.models import Run, Schedule, Workflow, WorkflowVersion
from agents.models.catalog.workflows import CHANGE_PERMISSION
from agents.web.presentation import RunView
from agents.web.presentation.plans import plan_graph
from agents.web.workflows.examples import EXAMPLES

from . import acceptance, dry_run, reference, resources, start, versions

MAX_RUNS = 10
MAX_VERSIONS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class EditorProblem:
    """A problem on a page, linked to its line."""

    line: int
    column: int
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterField:
    """A parameter in a form."""

    name: str
    value: str
    kind: str
    is_required: bool

    @property
    def key(self) -> str:
        return f"{start.FIELD_PREFIX}{self.name}"

    @property
    def is_on(self) -> bool:
        return self.value.lower() in start.TRUE_WORDS


class WorkflowPreview:
    """A text in the editor: its content, problems and dry run."""

    def __init__(
        self, text: str, typed: dict[str, str] | None = None, *, editor: str | None = ""
    ) -> None:
        self.text = text
        self.typed = typed or {}
        self.editor = editor  # where its lines are visible, or None

    @cached_property
    def definition(self) -> PlanDefinition:
        return read_definition(self.text)

    @cached_property
    def problems(self) -> list[EditorProblem]:
        return [_to_problem(problem) for problem in self.definition.problems]

    @cached_property
    def missing_resources(self) -> list[EditorProblem]:
        """What it needs and doesn't exist, which can be added later."""
        problems = resources.available().find_missing(self.definition.plan)
        return [_to_problem(self.definition.locate(problem)) for problem in problems]

    @cached_property
    def graph(self) -> SafeString:
        lines = dict[str, int]()
        for index, step in enumerate(self.definition.plan.steps):
            problem = PlanProblem(message="", path=("steps", index))
            lines[step.name] = self.definition.locate(problem).line

        def href(step: ExecutionStep, state: plan_graph.StepState) -> str:
            return "" if self.editor is None else f"{self.editor}#line-{lines[step.name]}"

        label = _("Workflow steps")
        return plan_graph.render_graph(self.definition.plan, {}, href, label=label)

    @cached_property
    def fields(self) -> list[ParameterField]:
        kinds = {bool: "flag", int: "whole", float: "number", list: "json", dict: "json"}
        fields = []
        for name, default in self.definition.plan.parameters.items():
            value = "" if default is None else start.format_value(default)
            field = ParameterField(
                name=name,
                value=self.typed.get(name, value),
                kind=kinds.get(type(default), "text"),
                is_required=default is None,
            )
            fields.append(field)
        return fields

    @cached_property
    def step_previews(self) -> list[dry_run.StepPreview]:
        """Return the dry run with the typed parameters; invalid ones keep their default."""
        return dry_run.simulate(self.definition.plan, self._parameters[0])

    @property
    def complaint(self) -> str:
        """Why it couldn't start with the typed parameters."""
        return self._parameters[1]

    @cached_property
    def _parameters(self) -> tuple[dict[str, Any], str]:
        declared = self.definition.plan.parameters
        values = {name: text for name, text in self.typed.items() if name in declared}
        try:
            return start.resolve_parameters(self.definition, values), ""
        except start.WorkflowNotStarted as reason:
            return {}, str(reason)


@require_GET
def listing(request: UserRequest) -> HttpResponse:
    rows = Workflow.objects.for_user(request.user).annotate(
        number=Max("versions__number"), run_count=Count("versions__runs", distinct=True)
    )
    context = {"workflows": rows, "examples": EXAMPLES.values(), "may_edit": _may_edit(request)}
    context |= {"held": acceptance.awaiting_acceptance(request.user)}
    return render(request, "workflows/list.html", context)


@require_GET
def workflow_page(request: UserRequest, pk: int) -> HttpResponse:
    """Display a workflow and its runs, with a form to start it."""
    workflow = get_object_or_404(Workflow.objects.for_user(request.user), pk=pk)
    newest = _get_newest(workflow)
    may_edit = _may_edit(request)
    editor = reverse("workflows:edit", args=[pk]) if may_edit else None
    runs = Run.objects.for_user(request.user).filter(workflow__workflow=workflow)
    context = {
        "workflow": workflow,
        "newest": newest,
        "sheet": WorkflowPreview(newest.text, editor=editor),
        "runs": [RunView(r) for r in runs.select_related("workflow", "user")[:MAX_RUNS]],
        "may_edit": may_edit,
        "versions": workflow.versions.select_related("author")[:MAX_VERSIONS],
        "schedules": _visible_schedules(request, workflow, newest),
        "may_schedule": request.user.is_staff and request.user.has_perm("agents.add_schedule"),
    }
    return render(request, "workflows/workflow.html", context)


@require_GET
def schedule_page(request: UserRequest, pk: int) -> HttpResponse:
    """Display what a schedule would start, to its owner only."""
    return _render_schedule(request, _own_schedule(request, pk))


@require_POST
def answer_schedule(request: UserRequest, pk: int) -> HttpResponse:
    schedule = _own_schedule(request, pk)
    is_accepted = request.POST.get("answer") == "accept"
    seal = request.POST.get("seal", "")
    try:
        acceptance.record_answer(schedule, request.user, seal, is_accepted=is_accepted)
    except acceptance.StaleAcceptance:
        return _render_schedule(request, _own_schedule(request, pk), is_changed=True)
    if schedule.workflow_id is None:
        return redirect("workflows:list")
    return redirect("workflows:workflow", schedule.workflow_id)


def _own_schedule(request: UserRequest, pk: int) -> Schedule:
    rows = Schedule.objects.filter(user=request.user)
    rows = rows.select_related("workflow", "agent", "user", "result_channel")
    return get_object_or_404(rows, pk=pk)


def _render_schedule(
    request: UserRequest, schedule: Schedule, *, is_changed: bool = False
) -> HttpResponse:
    if (offer := acceptance.build_request(schedule)) is None:
        raise Http404
    context = {"offer": offer, "schedule": schedule, "is_changed": is_changed}
    status = 409 if is_changed else 200
    return render(request, "workflows/schedule.html", context, status=status)


@require_http_methods(["GET", "POST"])
@permission_required(CHANGE_PERMISSION, raise_exception=True)
def new(request: UserRequest) -> HttpResponse:
    if request.method == "POST":
        return _save(request, None)
    example = EXAMPLES.get(request.GET.get("example", ""))
    return _render_editor(request, None, example.text if example else "")


@require_http_methods(["GET", "POST"])
def edit(request: UserRequest, pk: int) -> HttpResponse:
    workflow = get_object_or_404(Workflow.objects.for_editor(request.user), pk=pk)
    if request.method == "POST":
        return _save(request, workflow)
    newest = _get_newest(workflow)
    return _render_editor(request, workflow, newest.text, base=newest.number)


@require_POST
@permission_required(CHANGE_PERMISSION, raise_exception=True)
def check(request: UserRequest) -> HttpResponse:
    """Return the problems and dry run of an edited text."""
    preview = WorkflowPreview(_posted_text(request), start.form_parameters(request.POST))
    return render(request, "workflows/edit.html#checked", {"sheet": preview})


@require_GET
def completions(request: UserRequest) -> JsonResponse:
    """Return completions for `/workflow` in the composer."""
    mine = Workflow.objects.for_user(request.user).filter(enabled=True)
    rows = mine.values_list("name", "description")
    suggestions = [{"name": name, "about": description} for name, description in rows]
    return JsonResponse({"workflows": suggestions})


@require_GET
def version_page(request: UserRequest, pk: int, number: int) -> HttpResponse:
    """Display a version and its changes."""
    workflow = get_object_or_404(Workflow.objects.for_editor(request.user), pk=pk)
    version = _get_version(workflow, number)
    earlier = workflow.versions.filter(number__lt=version.number).order_by("-number").first()
    context = {
        "workflow": workflow,
        "version": version,
        "before": earlier,
        "newest": _get_newest(workflow),
        "lines": list(versions.diff_lines(earlier.text, version.text)) if earlier else [],
    }
    return render(request, "workflows/version.html", context)


@require_POST
def restore(request: UserRequest, pk: int, number: int) -> HttpResponse:
    workflow = get_object_or_404(Workflow.objects.for_editor(request.user), pk=pk)
    old = _get_version(workflow, number)
    try:
        versions.restore(workflow, old.number, request.user)
    except versions.WorkflowNotSaved as reason:
        return _render_editor(
            request, workflow, old.text, base=_get_newest(workflow).number, reason=reason
        )
    return redirect("workflows:workflow", pk)


def _save(request: UserRequest, workflow: Workflow | None) -> HttpResponse:
    text = _posted_text(request)
    base = request.POST.get("base", "")
    number = int(base) if base.isdecimal() and len(base) < 9 else 0
    try:
        saved = versions.save(text, request.user, workflow=workflow, base=number)
    except versions.WorkflowNotSaved as reason:
        return _render_editor(request, workflow, text, base=number, reason=reason)
    return redirect("workflows:workflow", saved.pk)


def _render_editor(
    request: UserRequest,
    workflow: Workflow | None,
    text: str,
    *,
    base: int = 0,
    reason: versions.WorkflowNotSaved | None = None,
) -> HttpResponse:
    newest = reason.newest if isinstance(reason, versions.VersionConflict) else None
    context = {
        "workflow": workflow,
        "sheet": WorkflowPreview(text, start.form_parameters(request.POST)),
        # Saving now overwrites a version the user has seen.
        "base": newest.number if newest else base,
        "reason": reason,
        "newest": newest,
        "lines": list(versions.diff_lines(newest.text, text)) if newest else [],
        "examples": () if text else EXAMPLES.values(),
        "reference": reference,
    }
    status = 200 if reason is None else 409 if newest else 422
    return render(request, "workflows/edit.html", context, status=status)


def _visible_schedules(
    request: UserRequest, workflow: Workflow, newest: WorkflowVersion
) -> list[Schedule]:
    """Return all schedules for editors, and their own for others."""
    rows = workflow.schedules.filter(enabled=True).select_related("user")
    schedules = list(rows if _may_edit(request) else rows.filter(user=request.user))
    for row in schedules:
        vars(row)["held"] = acceptance.why_held(row, newest)
    return schedules


def _may_edit(request: UserRequest) -> bool:
    return request.user.has_perm(CHANGE_PERMISSION)


def _get_newest(workflow: Workflow) -> WorkflowVersion:
    newest = workflow.newest
    if newest is None:
        raise Http404
    return newest


def _get_version(workflow: Workflow, number: int) -> WorkflowVersion:
    rows = workflow.versions.select_related("author")
    return get_object_or_404(rows, number=min(number, 2**31 - 1))


def _posted_text(request: UserRequest) -> str:
    return versions.clean_text(request.POST.get("text", ""))


def _to_problem(problem: PlanProblem) -> EditorProblem:
    return EditorProblem(
        line=problem.line, column=problem.column, sentence=translate(problem.message)
    )
