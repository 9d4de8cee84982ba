"""The admin console: Django's admin with our own menu and pages."""

from typing import Any, cast

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

# Django's Japanese puts spaces around names; our catalog has its own wording for these.
DJANGO_MESSAGES = (
    gettext_noop("Add %s"),
    gettext_noop("Change %s"),
    gettext_noop("View %s"),
    gettext_noop("Delete selected %(verbose_name_plural)s"),
    gettext_noop("Successfully deleted %(count)d %(items)s."),
    gettext_noop("The {name} “{obj}” was added successfully."),
    gettext_noop("The {name} “{obj}” was changed successfully."),
    gettext_noop("The {name} “{obj}” was changed successfully. You may edit it again below."),
    gettext_noop("The %(name)s “%(obj)s” was deleted successfully."),
    gettext_noop("None available"),
    gettext_noop("permissions"),
    gettext_noop(":"),
)


REVIEW_PERMISSION = "agents.review_runs"
# Reviewers aren't staff: they read these pages for the agents in their scope.
REVIEWER_PAGES = {
    "admin:problems_problem_changelist",
    "admin:problems_problem_change",
    "dashboard:overview",
    "dashboard:versions",
    "dashboard:export",
    "admin:review_exampleset_changelist",
    "admin:review_exampleset_page",
    "admin:review_example_changelist",
    "admin:review_example_change",
    "admin:experiments_experiment_changelist",
    "admin:experiments_experiment_change",
}


class Console(admin.AdminSite):
    """Django's admin with our own menu and pages, and restricted lookups in all lists.

    They are imported late: pages register with the site, so it has to exist first.
    """

    site_header = site_title = "Ashiato"
    index_title = _("Admin console")
    empty_value_display = "—"

    def register(self, model_or_iterable: Any, admin_class: Any = None, **options: Any) -> None:
        """Register pages, also those of packages, with restricted lookups."""
        from agents.console.admin_classes.lookups import restrict_lookups

        restricted_class = restrict_lookups(admin_class or admin.ModelAdmin)
        super().register(model_or_iterable, restricted_class, **options)

    def has_permission(self, request: HttpRequest) -> bool:
        if super().has_permission(request):
            return True
        match = request.resolver_match
        is_open = match is not None and match.view_name in REVIEWER_PAGES
        return is_open and request.user.is_active and request.user.has_perm(REVIEW_PERMISSION)

    def get_urls(self) -> list[Any]:
        from agents.console import navigation
        from agents.review.experiments.pages import guardrail_backtest

        own = [*navigation.urls(self), *guardrail_backtest.urls(self)]
        return [*own, *super().get_urls()]

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        """Add the menu's description of the current page, and the tabs beside it."""
        from agents.console import navigation

        context = super().each_context(request)
        page_context = navigation.current_page(context["available_apps"])
        return {**context, "home_url": reverse("admin:index"), **page_context}

    def index(self, request: HttpRequest, extra_context: Any = None) -> Any:
        from agents.console.home import home_context

        return super().index(request, {**home_context(request), **(extra_context or {})})

    def autocomplete_view(self, request: HttpRequest) -> HttpResponse:
        from agents.console.admin_classes.lookups import DeclaredAutocomplete

        view = DeclaredAutocomplete.as_view(admin_site=self)
        return cast(HttpResponse, view(request))

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        from agents.console import navigation

        if app_label:
            return super().get_app_list(request, app_label)
        # Not sorted by name, which takes a while: the menu has an order of its own.
        return navigation.build_menu([*self._build_app_dict(request).values()], request)
