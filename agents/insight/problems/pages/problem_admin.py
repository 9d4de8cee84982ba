"""Problems in the console: a list with bulk actions, and a page per problem."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

from django.contrib import admin, messages
from django.contrib.admin.views.main import ChangeList
from django.contrib.auth.models import User
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext, pgettext_lazy

from agents.access.names import display_name
from agents.access.requests import signed_in_user
from agents.console.admin_classes.agent_filter import ReviewedAgentFilter
from agents.insight.problems import presentation, status
from agents.insight.problems.models import CHANGE_PERMISSION, Problem

from . import details, listing
from .status_admin import ALL, OPEN, StatusAdmin, TabFilter

if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations

MINE = "mine"
PEOPLE_PERMISSION = "agents.review_runs"


class RowFigures(TypedDict):
    trend: list[int]
    people: int


ListedProblem: TypeAlias = "WithAnnotations[Problem, RowFigures]"


class ProblemAdmin(StatusAdmin):
    list_display = ["summary", "trend", "count", "people", "last", "first", "state"]
    list_filter = [TabFilter, "kind", listing.SubjectFilter, ("agent", ReviewedAgentFilter)]
    list_select_related = ["assignee__profile"]
    search_fields = ["message", "subject", "agent_name"]
    sortable_by = ["count", "last", "first"]
    actions = ["resolve", "resolve_next", "ignore", "ignore_until_spike", "reopen", "take"]
    change_list_template = "admin/problems/problem/change_list.html"
    tab_labels = {
        OPEN: pgettext_lazy("problem", "Open"),
        MINE: _("Mine"),
        Problem.Status.RESOLVED: _("Resolved"),
        Problem.Status.IGNORED: _("Ignored"),
        ALL: _("All"),
    }
    tones = presentation.TONES
    related = ("assignee__profile", "agent")

    def has_decide_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.has_perm(CHANGE_PERMISSION))

    # List

    def tab_filter(self, tab: str, request: HttpRequest) -> Q:
        if tab == MINE:
            return Q(assignee=request.user.pk, status=Problem.Status.OPEN)
        return super().tab_filter(tab, request)

    def get_changelist(self, request: HttpRequest, **options: Any) -> type[ChangeList]:
        return listing.ProblemList

    def get_list_display(self, request: HttpRequest) -> Any:
        """Leave out how many people are affected for those who can't review runs."""
        names = list(self.list_display)
        is_reviewer = request.user.has_perm(PEOPLE_PERMISSION)
        return names if is_reviewer else [name for name in names if name != "people"]

    @admin.display(description=_("problem"))
    def summary(self, problem: Problem) -> SafeString:
        cause = presentation.subject_label(problem)
        facts = [str(problem.get_kind_display()), problem.agent_name, cause]
        return self.link(
            problem,
            presentation.icon_name(problem),
            presentation.title(problem),
            " · ".join(filter(None, facts)),
        )

    @admin.display(description=_("last 14 days"))
    def trend(self, problem: ListedProblem) -> SafeString:
        return presentation.trend_chart(problem.trend)

    @admin.display(description=_("users"))
    def people(self, problem: ListedProblem) -> int:
        return problem.people

    @admin.display(description=_("status"))
    def state(self, problem: Problem) -> SafeString:
        status_badge = super().state(problem)
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
        self._apply(request, queryset, partial(status.ignore, until_spike=True))

    @admin.action(description=_("Open again"), permissions=["decide"])
    def reopen(self, request: HttpRequest, queryset: QuerySet[Problem]) -> None:
        self._apply(request, queryset, status.reopen)

    @admin.action(description=_("Assign to me"), permissions=["decide"])
    def take(self, request: HttpRequest, queryset: QuerySet[Problem]) -> None:
        assign_to_self = partial(status.assign, person=signed_in_user(request))
        self._apply(request, queryset, assign_to_self)

    def _apply(
        self, request: HttpRequest, rows: Iterable[Problem], change: Callable[..., None]
    ) -> None:
        user = signed_in_user(request)
        done = 0
        refused = set()
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

    def page_context(self, request: HttpRequest, problem: Problem) -> dict[str, Any]:
        people = status.assignable_people() if self.has_decide_permission(request) else []
        return {
            "title": presentation.title(problem),
            "view": details.ProblemView(problem, signed_in_user(request), request.session),
            "people": people,
        }

    def decide(self, request: HttpRequest, problem: Problem) -> tuple[Any, Problem]:
        """Change a problem's status or assignee, or merge it into another."""
        # The status that the page displayed: another person may have changed it.
        problem.status = request.POST.get("seen") or problem.status
        user = signed_in_user(request)
        target = problem
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
                status.assign(user, problem, _chosen_person(request.POST.get("person", "")))
            case "merge":
                targets = details.merge_targets(problem, user)
                chosen = request.POST.get("into", "")
                target = next((row for row in targets if str(row.pk) == chosen), problem)
                status.merge(user, problem, target)
            case _:
                raise status.ChangeRejected(_("Choose what to do with this problem."))
        return _("Saved."), target


def _chosen_person(chosen: str) -> User | None:
    if not chosen:
        return None
    for person in status.assignable_people():
        if str(person.pk) == chosen:
            return person
    raise status.ChangeRejected(_("This user can't work on this problem."))


admin.site.register(Problem, ProblemAdmin)
