"""The console's menu, ordered by an administrator's tasks."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse
from django.utils.functional import Promise
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _

from . import caches
from .activity import recently_deleted
from .admin_classes.pages import render_page
from .system import configuration, health, settings_page
from .tool_admin import circuit_breakers

Entry = dict[str, Any]  # in the format of Django's templates


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolePage:
    """A page without a model; its permission decides who sees it in the menu."""

    name: str | Promise
    description: str | Promise
    view: str
    permission: str

    def menu_entry(self) -> Entry:
        return {
            "name": self.name,
            "about": self.description,
            "object_name": self.view.partition(":")[2],
            "admin_url": reverse(self.view),
            "add_url": None,
            "view_only": True,
            "key": self.view,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class TabGroup:
    """Pages that are one entry of the menu; `tabs` are their labels or views, in order."""

    name: str | Promise
    tabs: Mapping[str, str | Promise]


@dataclass(frozen=True, slots=True, kw_only=True)
class MenuSection:
    """A heading with models, their descriptions, and pages before or after them."""

    key: str
    name: str | Promise
    icon: str
    rows: Mapping[str, str | Promise]
    pages: tuple[ConsolePage, ...] = ()
    has_pages_first: bool = False
    groups: tuple[TabGroup, ...] = ()


MENU = (
    MenuSection(
        key="agents",
        name=_("Agents & tools"),
        icon="tool",
        rows={
            "agents.Agent": _("Instructions, model, tools and limits of each agent."),
            "agents.LanguageModel": _("API key, prices and limits of each model."),
            "agents.ToolRegistration": _("What agents can use, and what requires approval."),
            "agents.DatabaseConnection": _("Databases that agents can query with SQL."),
            "agents.McpServer": _("Connect more tools over MCP."),
            "agents.Workflow": _("Plans with fixed steps that run the same way every time."),
            "agents.Schedule": _("When workflows start automatically."),
        },
        pages=(
            ConsolePage(
                name=_("Circuit breakers"),
                description=_("Models and tools that are paused because they keep failing."),
                view="admin:agents_circuits",
                permission="agents.change_agent",
            ),
        ),
        groups=(
            TabGroup(
                name=_("Workflows"),
                tabs={"agents.Workflow": _("Workflows"), "agents.Schedule": _("Schedules")},
            ),
        ),
    ),
    MenuSection(
        key="knowledge",
        name=_("Knowledge"),
        icon="book",
        rows={
            "agents.Document": _("Documents the search tool uses."),
            "agents.Collection": _("Documents for everyone, or for some groups."),
            "agents.Experience": _(
                "What agents learned from feedback, and what awaits a review."
            ),
            "agents.MemoryExclusion": _("Groups for which agents remember nothing."),
        },
        groups=(
            TabGroup(
                name=_("Learning & memory"),
                tabs={
                    "agents.Experience": _("Experiences"),
                    "agents.MemoryExclusion": _("Groups without memory"),
                },
            ),
        ),
    ),
    MenuSection(
        key="safety",
        name=_("Safety"),
        icon="guardrail",
        rows={"agents.GuardrailPattern": _("Rules that warn about, mask or block text.")},
        pages=(
            ConsolePage(
                name=_("Guardrail hits"),
                description=_("Hits of all rules, and whether they were correct."),
                view="admin:agents_guardrail_hits",
                permission="agents.review_runs",
            ),
        ),
    ),
    MenuSection(
        key="people",
        name=_("People & access"),
        icon="people",
        rows={
            "auth.User": _("Who can sign in, and what they can do."),
            "people.Invitation": _("Links that create accounts with a role and groups."),
            "auth.Group": _("Users with the same permissions or role."),
            "agents.ReviewScope": _("Which runs each reviewer can see."),
            "agents.Quota": _("What users, groups, agents, models and tools can use."),
            "agents.AuditEntry": _("Who did what, and who viewed whose data."),
        },
        pages=(
            ConsolePage(
                name=_("Roles"),
                description=_("What each role can do."),
                view="admin:people_roles",
                permission="auth.view_user",
            ),
        ),
        groups=(
            TabGroup(
                name=_("People"),
                tabs={
                    "auth.User": _("People"),
                    "people.Invitation": _("Invitations"),
                    "auth.Group": _("Groups"),
                    "admin:people_roles": _("Roles"),
                },
            ),
        ),
    ),
    MenuSection(
        key="activity",
        name=_("Activity"),
        icon="trace",
        has_pages_first=True,
        rows={
            "problems.Problem": _("Failures, blocks and bad ratings, grouped by their cause."),
            "suggestions.Suggestion": _("What would make agents better, with its evidence."),
            "alerts.AlertRule": _("What is announced when a problem is new, back or spiking."),
            "alerts.AlertChannel": _("Where alerts and summaries go."),
            "alerts.SummarySchedule": _("The main figures, sent every day, week or month."),
            "alerts.Delivery": _("What was sent to each channel, and what failed."),
            "review.ExampleSet": _("Questions with expected answers, run and scored together."),
            "review.Example": _("Single questions, in any set."),
            "experiments.Experiment": _("Example sets and backtests that were run."),
        },
        pages=(
            ConsolePage(
                name=_("Dashboard"),
                description=_("Cost, quality and speed of agents over time."),
                view="dashboard:overview",
                permission="dashboard.view_dashboard",
            ),
            ConsolePage(
                name=_("Runs"),
                description=_("Every run and its result, step by step."),
                view="trace:list",
                permission="agents.view_run",
            ),
            ConsolePage(
                name=_("Approvals"),
                description=_("Requests that wait for a decision."),
                view="runs:approvals",
                permission="agents.view_approval",
            ),
            ConsolePage(
                name=_("Review"),
                description=_("Runs that were flagged, and what reviewers said."),
                view="trace:review",
                permission="agents.review_runs",
            ),
            ConsolePage(
                name=_("Notifications"),
                description=_("Alerts that were sent to you."),
                view="alerts:notifications",
                permission="alerts.view_alertrule",
            ),
        ),
        groups=(
            TabGroup(
                name=_("Alerts"),
                tabs={
                    "alerts.AlertRule": _("Rules"),
                    "alerts.AlertChannel": _("Channels"),
                    "alerts.SummarySchedule": _("Summaries"),
                    "alerts.Delivery": _("Deliveries"),
                    "alerts:notifications": _("Your notifications"),
                },
            ),
            TabGroup(
                name=_("Evaluation"),
                tabs={
                    "review.ExampleSet": _("Example sets"),
                    "review.Example": _("Examples"),
                    "experiments.Experiment": _("Experiments"),
                },
            ),
        ),
    ),
    MenuSection(
        key="system",
        name=_("System"),
        icon="settings",
        rows={},
        pages=(
            ConsolePage(
                name=_("Health"),
                description=_("Current status, and how to fix problems."),
                view="admin:agents_health",
                permission="agents.view_serverprocess",
            ),
            ConsolePage(
                name=_("Caches"),
                description=_("Saved results of tools and models: size, hits and savings."),
                view="admin:agents_caches",
                permission=caches.PERMISSION,
            ),
            ConsolePage(
                name=_("Settings"),
                description=_(
                    "Limits, timeouts, retention and default quotas of the installation."
                ),
                view="admin:agents_settings",
                permission=settings_page.VIEW,
            ),
            ConsolePage(
                name=_("Configuration"),
                description=_("Export, compare and import all settings as one file."),
                view="admin:agents_configuration",
                permission=configuration.PERMISSION,
            ),
        ),
    ),
)
RAW_DATA = _("Raw data")
# Instead of the model's own.
OWN_NAMES = {
    "auth.User": _("People"),
    "agents.Experience": _("Learning"),
    "agents.Quota": _("Budgets"),
}


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
    ]


# What reviewers, who aren't staff, can open.
REVIEWER_ENTRIES = {"problems.Problem", "dashboard:overview", "trace:review"}


def build_menu(apps: list[Entry], request: HttpRequest) -> list[Entry]:
    """Return everything this user can open, under our headings instead of Django's apps."""
    models = _entries_by_label(apps)
    sections: list[Entry] = []
    for section in MENU:
        rows = list(_pop_entries(section, models))
        user = request.user
        pages = [page.menu_entry() for page in section.pages if user.has_perm(page.permission)]
        entries = [*pages, *rows] if section.has_pages_first else [*rows, *pages]
        for group in section.groups:
            entries = _grouped(entries, group)
        sections.append(
            {
                "app_label": section.key,
                "name": section.name,
                "icon": section.icon,
                "app_url": f"{reverse('admin:index')}#{section.key}",
                "models": entries,
            }
        )
    if models:
        # The page that lists the other tables is current on each of them.
        is_below = any(
            request.path.startswith(table["admin_url"] or request.path + "/")
            for table in models.values()
        )
        sections[-1]["models"].append(
            {
                "name": RAW_DATA,
                "admin_url": reverse("admin:raw_data"),
                "object_name": "raw",
                "is_below": is_below,
            }
        )
    if not request.user.is_staff:
        for entry in sections:
            entry["models"] = [e for e in entry["models"] if e.get("key") in REVIEWER_ENTRIES]
    sections = [entry for entry in sections if entry["models"]]
    _mark_current(sections, request.path)
    return sections


def raw_tables(apps: list[Entry]) -> list[Entry]:
    """Return the tables that have no page of their own in the menu."""
    models = _entries_by_label(apps)
    for section in MENU:
        list(_pop_entries(section, models))
    return sorted(models.values(), key=lambda entry: str(entry["name"]))


def raw_data(request: HttpRequest) -> HttpResponse:
    """List the tables behind the product; their pages are read-only."""
    # Not through the site's list, which is ordered for the menu.
    apps = [{"models": app["models"]} for app in admin.site._build_app_dict(request).values()]
    context = {"title": RAW_DATA, "tables": raw_tables(apps)}
    return render_page(request, "admin/raw_data.html", context)


def current_page(sections: list[Entry]) -> dict[str, Any]:
    """Return what the shell displays of the current page: description, group and its tabs."""
    entries = [
        entry for section in sections for entry in section["models"] if entry.get("is_here")
    ]
    tabs = [tab for entry in entries for tab in entry.get("tabs", [])]
    leaf: Entry = next((tab for tab in tabs or entries if tab.get("is_here")), {})
    context = {"about": leaf.get("about", "")}
    if leaf.get("is_page"):
        context |= {"page_group": entries[0]["name"], "page_tabs": tabs}
    return context


def _mark_current(sections: list[Entry], current_path: str) -> None:
    """Mark the current page, its entry and its section: of nested URLs, the longest match."""
    matches = [
        (section, entry, page)
        for section in sections
        for entry in section["models"]
        for page in entry.get("tabs") or [entry]
        if page.get("is_below")
        or current_path.startswith(page["admin_url"] or current_path + "/")
    ]
    for section, entry, page in sorted(matches, key=lambda match: len(match[2]["admin_url"]))[
        -1:
    ]:
        section["is_here"] = entry["is_here"] = page["is_here"] = True
        page["is_page"] = page is not entry and page["admin_url"] == current_path
    if not matches and sections:
        sections[0]["is_open"] = True


def _entries_by_label(apps: list[Entry]) -> dict[str, Entry]:
    return {entry["model"]._meta.label: entry for app in apps for entry in app["models"]}


def _grouped(entries: list[Entry], group: TabGroup) -> list[Entry]:
    """Replace the group's pages by one entry, where the first of its tabs was."""
    members = {entry["key"]: entry for entry in entries if entry.get("key") in group.tabs}
    if len(members) < 2:
        return entries
    tabs = [{**members[key], "tab": tab} for key, tab in group.tabs.items() if key in members]
    result = []
    for entry in entries:
        if entry.get("key") == tabs[0]["key"]:
            result.append({**tabs[0], "name": group.name, "tabs": tabs})
        elif entry.get("key") not in members:
            result.append(entry)
    return result


def _pop_entries(section: MenuSection, models: dict[str, Entry]) -> Iterator[Entry]:
    for label, description in section.rows.items():
        if entry := models.pop(label, None):
            name = OWN_NAMES.get(label) or capfirst(entry["name"])
            yield {**entry, "name": name, "about": description, "key": label}
