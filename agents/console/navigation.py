"""The console's menu, ordered by an administrator's tasks."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from . import caches
from .activity import recently_deleted
from .admin_classes.pages import render_page
from .system import branding_page, configuration, health, settings_page
from .tool_admin import circuit_breakers

Entry = dict[str, Any]  # in the format of Django's templates


@dataclass(frozen=True, slots=True)
class Tab:
    """A page of an entry: a model's list, or a page of our own that its permission opens."""

    page: str  # a model's label or a view
    name: str | Promise
    about: str | Promise
    permission: str = ""

    def menu_entry(self) -> Entry:
        """Return a page without a model in the format of Django's templates."""
        return {
            "object_name": self.page.partition(":")[2],
            "admin_url": reverse(self.page),
            "add_url": None,
            "view_only": True,
        }


@dataclass(frozen=True, slots=True)
class MenuEntry:
    """An entry of the menu; it leads to the first of its tabs that the user can open."""

    key: str
    name: str | Promise
    icon: str
    tabs: tuple[Tab, ...]
    starts_group: bool = False


HOME = "admin:index"
MENU = (
    MenuEntry(
        "home",
        _("Home"),
        "home",
        (
            Tab(HOME, _("Overview"), _("What needs attention, and the main figures.")),
            Tab(
                "dashboard:overview",
                _("Dashboard"),
                _("Cost, quality and speed of agents over time."),
                "dashboard.view_dashboard",
            ),
        ),
    ),
    MenuEntry(
        "agents",
        _("Agents"),
        "footprints",
        (
            Tab(
                "agents.Agent",
                _("Agents"),
                _("Instructions, model, tools and limits of each agent."),
            ),
            Tab(
                "agents.Workflow",
                _("Workflows"),
                _("Plans with fixed steps that run the same way every time."),
            ),
            Tab(
                "agents.Schedule",
                _("Schedules"),
                _("When workflows and agents start automatically."),
            ),
            Tab(
                "agents.Trigger",
                _("Triggers"),
                _("Agents and workflows that other services start with a webhook."),
            ),
            Tab(
                "agents.Embed",
                _("Embedding"),
                _("Chats with agents in your website, intranet or product."),
            ),
        ),
    ),
    MenuEntry(
        "models",
        _("Models"),
        "chip",
        (
            Tab(
                "agents.LanguageModel",
                _("Models"),
                _("State, prices and limits of each model."),
            ),
            Tab(
                "agents.ModelConnection",
                _("Connections"),
                _("Providers and servers, their keys, and which of their models are on."),
            ),
            Tab(
                "admin:agents_languagemodel_defaults",
                _("Defaults"),
                _("The model for each purpose: chat, search, sound and images."),
                "agents.view_languagemodel",
            ),
        ),
    ),
    MenuEntry(
        "tools",
        _("Tools"),
        "tool",
        (
            Tab(
                "agents.ToolRegistration",
                _("Tools"),
                _("What agents can use, and what requires approval."),
            ),
            Tab(
                "agents.DatabaseConnection",
                _("Databases"),
                _("Databases that agents can query with SQL."),
            ),
            Tab("agents.McpServer", _("MCP servers"), _("Connect more tools over MCP.")),
        ),
    ),
    MenuEntry(
        "knowledge",
        _("Knowledge"),
        "book",
        (
            Tab("agents.Document", _("Documents"), _("Documents the search tool uses.")),
            Tab(
                "agents.Collection",
                _("Collections"),
                _("Documents for everyone, or for some groups."),
            ),
        ),
    ),
    MenuEntry(
        "guardrails",
        _("Guardrails"),
        "guardrail",
        (
            Tab(
                "agents.GuardrailPattern",
                _("Rules"),
                _("Rules that warn about, mask or block text."),
            ),
            Tab(
                "admin:agents_guardrail_hits",
                _("Hits"),
                _("Hits of all rules, and whether they were correct."),
                "agents.review_runs",
            ),
        ),
    ),
    MenuEntry(
        "people",
        _("Users"),
        "people",
        (
            Tab("auth.User", _("Users"), _("Who can sign in, and what they can do.")),
            Tab(
                "people.Invitation",
                _("Invitations"),
                _("Links that create accounts with a role and groups."),
            ),
            Tab(
                "agents.OAuthApp",
                _("Connected apps"),
                _("Apps that act for users, and which are blocked."),
            ),
            Tab("auth.Group", _("Groups"), _("Users with the same permissions or role.")),
            Tab(
                "admin:people_roles", _("Roles"), _("What each role can do."), "auth.view_user"
            ),
            Tab(
                "agents.ApiKey",
                _("API keys"),
                _("Keys of users and services: what they may do, and when they were used."),
            ),
            Tab(
                "agents.ReviewScope",
                _("Reviewer access"),
                _("Which runs each reviewer can see."),
            ),
            Tab(
                "agents.MemoryExclusion",
                _("Groups without memory"),
                _("Groups for which agents save no memories."),
            ),
        ),
        starts_group=True,
    ),
    MenuEntry(
        "limits",
        _("Limits"),
        "cost",
        (
            Tab(
                "agents.Quota",
                _("Usage limits"),
                _("How much users, groups, agents, models, tools and API keys can use."),
            ),
        ),
    ),
    MenuEntry(
        "problems",
        _("Problems"),
        "flag",
        (
            Tab(
                "problems.Problem",
                _("Problems"),
                _("Failures, blocks and bad ratings, grouped by their cause."),
            ),
            Tab(
                "suggestions.Suggestion",
                pgettext_lazy("improvements", "Suggestions"),
                _("Changes that would improve agents, with evidence."),
            ),
        ),
        starts_group=True,
    ),
    MenuEntry(
        "evaluation",
        _("Evaluation"),
        "evaluation",
        (
            Tab(
                "review.ExampleSet",
                _("Example sets"),
                _("Questions with expected answers, run and scored together."),
            ),
            Tab("review.Example", _("Examples"), _("The examples of all example sets.")),
            Tab(
                "experiments.Experiment",
                _("Experiments"),
                _("Runs of example sets and backtests."),
            ),
            Tab(
                "review.ReviewQueue",
                _("Review queues"),
                _("Who reviews which runs, and by which criteria."),
            ),
            Tab(
                "agents.Experience",
                _("Learning"),
                _("Lessons from feedback, including those pending review."),
            ),
        ),
    ),
    MenuEntry(
        "alerts",
        _("Alerts"),
        "bell",
        (
            Tab(
                "alerts.AlertRule",
                _("Rules"),
                _("When to send alerts, e.g. for new or spiking problems."),
            ),
            Tab("alerts.AlertChannel", _("Channels"), _("Where alerts and summaries go.")),
            Tab(
                "alerts.SummarySchedule",
                _("Summaries"),
                _("The main figures, sent every day, week or month."),
            ),
            Tab(
                "alerts.Delivery",
                _("Deliveries"),
                _("What was sent to each channel, and what failed."),
            ),
            Tab(
                "alerts:notifications",
                _("Your notifications"),
                _("Alerts sent to you."),
                "alerts.view_alertrule",
            ),
        ),
    ),
    MenuEntry(
        "audit",
        _("Audit log"),
        "document",
        (
            Tab(
                "agents.AuditEntry",
                _("Audit log"),
                _("Who did what, and who viewed whose data."),
            ),
        ),
    ),
    MenuEntry(
        "health",
        _("Health"),
        "pulse",
        (
            Tab(
                "admin:agents_health",
                _("Health"),
                _("Current status, and how to fix problems."),
                "agents.view_serverprocess",
            ),
            Tab(
                "admin:agents_circuits",
                _("Circuit breakers"),
                _("Models and tools that are paused because they keep failing."),
                "agents.change_agent",
            ),
            Tab(
                "admin:agents_caches",
                _("Caches"),
                _("Cached tool results and model responses: size, hits and savings."),
                caches.PERMISSION,
            ),
        ),
        starts_group=True,
    ),
    MenuEntry(
        "settings",
        _("Settings"),
        "settings",
        (
            Tab(
                "admin:agents_settings",
                _("Settings"),
                _("Timeouts, retention and default limits of the installation."),
                settings_page.VIEW,
            ),
            Tab(
                "admin:agents_branding",
                _("Branding"),
                _("Name, logo, color, banner and start page of the installation."),
                settings_page.VIEW,
            ),
            Tab(
                "admin:agents_configuration",
                _("Configuration file"),
                _("Export, compare and import all settings as one file."),
                configuration.PERMISSION,
            ),
        ),
    ),
)
RAW_DATA = _("Raw data")


def urls(site: admin.AdminSite) -> list[URLPattern]:
    """Return the URLs of our own pages."""
    return [
        path("raw-data/", site.admin_view(raw_data), name="raw_data"),
        *recently_deleted.urls(site),
        *health.urls(site),
        *caches.urls(site),
        *circuit_breakers.urls(site),
        *configuration.urls(site),
        *settings_page.urls(site),
        *branding_page.urls(site),
    ]


# What reviewers, who aren't staff, can open.
REVIEWER_PAGES = {
    *("problems.Problem", "dashboard:overview"),
    *("review.ExampleSet", "review.Example", "experiments.Experiment"),
}


def build_menu(apps: list[Entry], request: HttpRequest) -> list[Entry]:
    """Return everything this user can open, under our entries instead of Django's apps."""
    models = _entries_by_label(apps)
    menu: list[Entry] = []
    for entry in MENU:
        tabs = list(_open_tabs(entry, models, request))
        if entry.key == "settings" and models and request.user.is_staff:
            tabs.append(_raw_data_tab(models, request.path))
        if tabs:
            menu.append(
                {
                    "app_label": entry.key,
                    "name": entry.name,
                    "icon": entry.icon,
                    "app_url": tabs[0]["admin_url"],
                    "models": tabs,
                    "starts_group": entry.starts_group,
                }
            )
    _mark_current(menu, request.path)
    return menu


def raw_tables(apps: list[Entry]) -> list[Entry]:
    """Return the tables that have no page of their own in the menu."""
    pages = {tab.page for entry in MENU for tab in entry.tabs}
    models = _entries_by_label(apps)
    tables = [entry for label, entry in models.items() if label not in pages]
    return sorted(tables, key=lambda entry: str(entry["name"]))


def raw_data(request: HttpRequest) -> HttpResponse:
    """List the tables behind the product; their pages are read-only."""
    # Not through the site's list, which is ordered for the menu.
    apps = [{"models": app["models"]} for app in admin.site._build_app_dict(request).values()]
    context = {"title": RAW_DATA, "tables": raw_tables(apps)}
    return render_page(request, "admin/raw_data.html", context)


def current_page(menu: list[Entry]) -> dict[str, Any]:
    """Return what the shell displays of the current page: description, entry and its tabs."""
    for entry in menu:
        for tab in entry["models"]:
            if tab.get("is_here"):
                context = {"about": tab["about"]}
                if tab.get("is_page") and len(entry["models"]) > 1:
                    context |= {"page_group": entry["name"], "page_tabs": entry["models"]}
                return context
    return {"about": ""}


def _open_tabs(
    entry: MenuEntry, models: dict[str, Entry], request: HttpRequest
) -> Iterator[Entry]:
    """Return the entry's pages that the user can open; each model is taken from `models`."""
    user = request.user
    for tab in entry.tabs:
        if "." in tab.page:
            page = models.pop(tab.page, None)
        elif tab.permission:
            page = tab.menu_entry() if user.has_perm(tab.permission) else None
        else:
            page = tab.menu_entry()
        if page is not None and (user.is_staff or tab.page in REVIEWER_PAGES):
            yield {**page, "name": tab.name, "about": tab.about, "key": tab.page}


def _raw_data_tab(models: dict[str, Entry], current_path: str) -> Entry:
    # The page that lists the other tables is current on each of them.
    is_below = any(
        current_path.startswith(table["admin_url"] or current_path + "/")
        for table in models.values()
    )
    return {
        "name": RAW_DATA,
        "about": "",
        "admin_url": reverse("admin:raw_data"),
        "object_name": "raw",
        "is_below": is_below,
    }


def _mark_current(menu: list[Entry], current_path: str) -> None:
    """Mark the current page and its entry: of nested URLs, the longest match."""
    home_url = reverse(HOME)
    matches = []
    for entry in menu:
        for tab in entry["models"]:
            url = tab["admin_url"] or current_path + "/"
            # Every page of the console is below its home.
            is_below = current_path.startswith(url) and url != home_url
            if tab.get("is_below") or is_below or url == current_path:
                matches.append((entry, tab))
    if matches:
        entry, tab = max(matches, key=lambda match: len(match[1]["admin_url"]))
        entry["is_here"] = tab["is_here"] = True
        tab["is_page"] = tab["admin_url"] == current_path


def _entries_by_label(apps: list[Entry]) -> dict[str, Entry]:
    return {entry["model"]._meta.label: entry for app in apps for entry in app["models"]}
