"""Problems in the console: a list with bulk actions, and a page per problem."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

from django.contrib import admin, messages
from django.contrib.admin.views.main import ChangeList
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from agents.access.names import display_name
from agents.access.requests import signed_in_user
from agents.console.agent_filter import ReviewedAgentFilter
from agents.console.read_only import ReadOnlyAdmin
from agents.problems import presentation, status
from agents.problems.models import CHANGE_PERMISSION, VIEW_PERMISSION, Problem
from agents.web.presentation import dates
from agents.web.presentation.badges import badge
from agents.web.presentation.icons import icon

from . import details, listing

if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations

LIST_URL, PAGE_URL = "admin:problems_problem_changelist", "admin:problems_problem_change"
DIR = "admin/problems/problem"
PEOPLE_PERMISSION = "agents.review_runs"


class RowFigures(TypedDict):
    trend: list[int]
    people: int


ListedProblem: TypeAlias = "WithAnnotations[Problem, RowFigures]"


class ProblemAdmin(ReadOnlyAdmin):
    list_display = ["summary", "trend", "count", "people", "last", "first", "state"]
    list_display_links = None
    list_filter = [
        *(listing.TabFilter, "kind", listing.SubjectFilter),
        ("agent", ReviewedAgentFilter),
    ]
    list_select_related = ["assignee__profile"]
    search_fields = ["message", "subject", "agent_name"]
    sortable_by = ["count", "last", "first"]
    list_per_page = 50
    actions = ["resolve", "resolve_next", "ignore", "ignore_until_spike", "reopen", "take"]
    change_list_template = f"{DIR}/change_list.html"

    def get_urls(self) -> list[URLPattern]:
        decide = self.admin_site.admin_view(self.decide_view)
        own = [path("<int:pk>/decide/", decide, name="problems_problem_decide")]
        return [*own, *super().get_urls()]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Problem]:
        return Problem.objects.for_user(request.user)

    def has_decide_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.has_perm(CHANGE_PERMISSION))

    # List

    def get_changelist(self, request: HttpRequest, **options: Any) -> type[ChangeList]:
        return listing.ProblemList

    def get_list_display(self, request: HttpRequest) -> Any:
        """Leave out how many people are affected for those who can't review runs."""
        names = list(self.list_display)
        is_reviewer = request.user.has_perm(PEOPLE_PERMISSION)
        return names if is_reviewer else [name for name in names if name != "people"]

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        if not request.user.has_perm(VIEW_PERMISSION):
            raise PermissionDenied
        context = {"tabs": listing.tabs(request, self.get_queryset(request))}
        response: HttpResponse = super().changelist_view(
            request, context | (extra_context or {})
        )
        return response

    @admin.display(description=_("problem"))
    def summary(self, problem: Problem) -> SafeString:
        parts = [problem.agent_name, presentation.subject_label(problem)]
        kind = problem.get_kind_display()
        return format_html(
            '<a class="problem-title" href="{}">{}<span>{}</span></a><small>{}</small>',
            reverse(PAGE_URL, args=[problem.pk]),
            icon(presentation.icon_name(problem)),
            presentation.title(problem),
            " · ".join([str(kind), *(part for part in parts if part)]),
        )

    @admin.display(description=_("last 14 days"))
    def trend(self, problem: ListedProblem) -> SafeString:
        return presentation.trend_chart(problem.trend)

    @admin.display(description=_("people"))
    def people(self, problem: ListedProblem) -> int:
        return problem.people

    @admin.display(description=_("last seen"), ordering="last_seen")
    def last(self, problem: Problem) -> SafeString:
        return dates.timestamp(problem.last_seen)

    @admin.display(description=_("first seen"), ordering="first_seen")
    def first(self, problem: Problem) -> SafeString:
        return dates.timestamp(problem.first_seen)

    @admin.display(description=_("status"))
    def state(self, problem: Problem) -> SafeString:
        tone = presentation.TONES[Problem.Status(problem.status)]
        status_badge = badge(problem.get_status_display(), tone)
        if problem.assignee is None:
            return status_badge
        name = display_name(problem.assignee)
        return format_html('{} <small class="assignee">{}</small>', status_badge, name)

    # Bulk actions

    @admin.action(description=_("Resolve"), permissions=["decide"])
    def resolve(self, request: HttpRequest, queryset: QuerySet[Problem]) -> None:
        self._apply(request, queryset, status.resolve)

    @admin.action(description=_("Resolve in the next version"), permissions=["decide"])
    def resolve_next(self, request: HttpRequest, queryset: QuerySet[Problem]) -> None:
        self._apply(request, queryset, status.resolve_in_next_version)

    @admin.action(description=_("Ignore"), permissions=["decide"])
    def ignore(self, request: HttpRequest, queryset: QuerySet[Problem]) -> None:
        self._apply(request, queryset, status.ignore)

    @admin.action(description=_("Ignore until it spikes"), permissions=["decide"])
    def ignore_until_spike(self, request: HttpRequest, queryset: QuerySet[Problem]) -> None:
        self._apply(request, queryset, _ignore_until_spike)

    @admin.action(description=_("Open again"), permissions=["decide"])
    def reopen(self, request: HttpRequest, queryset: QuerySet[Problem]) -> None:
        self._apply(request, queryset, status.reopen)

    @admin.action(description=_("Assign to me"), permissions=["decide"])
    def take(self, request: HttpRequest, queryset: QuerySet[Problem]) -> None:
        self._apply(request, queryset, _assign_to_self)

    def _apply(
        self, request: HttpRequest, rows: Iterable[Problem], change: Callable[..., None]
    ) -> None:
        user, done, refused = signed_in_user(request), 0, set()
        for problem in rows:
            try:
                change(user, problem)
                done += 1
            except status.ChangeRejected as reason:
                refused.add(str(reason))
        if done:
            changed = ngettext("%(n)s problem changed.", "%(n)s problems changed.", done)
            messages.success(request, changed % {"n": done})
        for sentence in sorted(refused):
            messages.error(request, sentence)

    # Page

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: Any = None,
    ) -> HttpResponse:
        problem = self._get_problem(request, object_id)
        may_decide = self.has_decide_permission(request)
        context = {
            **self.admin_site.each_context(request),
            "title": presentation.title(problem),
            "opts": self.opts,
            "problem": problem,
            "view": details.ProblemView(problem, signed_in_user(request), request.session),
            "may_decide": may_decide,
            "people": status.assignable_people() if may_decide else [],
        }
        return render(request, f"{DIR}/change_form.html", context)

    def _get_problem(self, request: HttpRequest, object_id: str) -> Problem:
        if not request.user.has_perm(VIEW_PERMISSION):
            raise PermissionDenied
        is_number = object_id.isascii() and object_id.isdigit() and len(object_id) < 18
        rows = self.get_queryset(request).select_related("assignee__profile", "agent")
        return get_object_or_404(rows, pk=int(object_id) if is_number else 0)

    def decide_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Change a problem's status or assignee, or merge it into another."""
        problem = self._get_problem(request, str(pk))
        if not self.has_decide_permission(request):
            raise PermissionDenied
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        # The status that the page displayed: another person may have changed it.
        problem.status = request.POST.get("seen") or problem.status
        user, target = signed_in_user(request), problem
        try:
            match request.POST.get("action"):
                case "resolve":
                    status.resolve(user, problem)
                case "resolve_next":
                    status.resolve_in_next_version(user, problem)
                case "ignore":
                    status.ignore(user, problem)
                case "ignore_until_spike":
                    status.ignore(user, problem, until_spike=True)
                case "reopen":
                    status.reopen(user, problem)
                case "assign":
                    status.assign(user, problem, self._chosen_person(request))
                case "merge":
                    target = self._chosen_target(request, problem)
                    status.merge(user, problem, target)
                case _:
                    raise status.ChangeRejected(_("Choose what to do with this problem."))
            messages.success(request, _("Saved."))
        except status.ChangeRejected as reason:
            messages.error(request, str(reason))
            target = problem
        return redirect(PAGE_URL, target.pk)

    def _chosen_person(self, request: HttpRequest) -> User | None:
        chosen = request.POST.get("person", "")
        if not chosen:
            return None
        found = [one for one in status.assignable_people() if str(one.pk) == chosen]
        if not found:
            raise status.ChangeRejected(_("This user can't work on this problem."))
        return found[0]

    def _chosen_target(self, request: HttpRequest, problem: Problem) -> Problem:
        chosen = request.POST.get("into", "")
        same = details.merge_targets(problem, signed_in_user(request))
        found = next((one for one in same if str(one.pk) == chosen), None)
        if found is None:
            raise status.ChangeRejected(_("Choose another problem to merge into."))
        return found


def _ignore_until_spike(user: User, problem: Problem) -> None:
    status.ignore(user, problem, until_spike=True)


def _assign_to_self(user: User, problem: Problem) -> None:
    status.assign(user, problem, user)


admin.site.register(Problem, ProblemAdmin)
