"""The console's menu, ordered by an administrator's tasks."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.urls import URLPattern, reverse
from django.utils.functional import Promise
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _

from . import circuit_breakers, configuration, health

Entry = dict[str, Any]  # in the format of Django's templates


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolePage:
    """A page without a model; its permission decides who sees it in the menu."""

    name: str | Promise
    about: str | Promise
    view: str
    permission: str

    def menu_entry(self) -> Entry:
        return {
            "name": self.name,
            "about": self.about,
            "object_name": self.view.partition(":")[2],
            "admin_url": reverse(self.view),
            "add_url": None,
            "view_only": True,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class MenuSection:
    """A heading with models, their descriptions, and pages."""

    key: str
    name: str | Promise
    rows: Mapping[str, str | Promise]
    pages: tuple[ConsolePage, ...] = ()


MENU = (
    MenuSection(
        key="answers",
        name=_("Agents & models"),
        rows={
            "agents.Agent": _("Instructions, model, tools and limits of each agent."),
            "agents.LanguageModel": _("API key, prices and limits of each model."),
            "agents.ToolRegistration": _("What agents can use, and what requires approval."),
            "agents.McpServer": _("Connect more tools over MCP."),
            "agents.Collection": _("Documents for everyone, or for some groups."),
            "agents.Document": _("Documents the search tool uses."),
            "agents.Workflow": _("Plans with fixed steps that run the same way every time."),
            "agents.Schedule": _("When workflows start automatically."),
        },
    ),
    MenuSection(
        key="rules",
        name=_("Access & safety"),
        rows={
            "agents.GuardrailPattern": _("Patterns that warn about, mask or block text."),
            "auth.User": _("Who can sign in, and what they can do."),
            "auth.Group": _("Users with the same permissions or role."),
            "agents.ReviewScope": _("Which runs each reviewer can see."),
            "agents.MemoryExclusion": _("Groups for which agents remember nothing."),
        },
        pages=(
            ConsolePage(
                name=_("Prebuilt patterns"),
                about=_("Pattern sets for personal data, secrets and prompt injection."),
                view="admin:agents_guardrail_sets",
                permission="agents.add_guardrailpattern",
            ),
            ConsolePage(
                name=_("Guardrail hits"),
                about=_("Hits of all patterns, and whether they were correct."),
                view="admin:agents_guardrail_hits",
                permission="agents.review_runs",
            ),
        ),
    ),
    MenuSection(
        key="happened",
        name=_("Activity"),
        rows={
            "agents.AuditEntry": _("Who did what, and who viewed whose data."),
            "agents.Run": _("Every run and its result."),
            "agents.Approval": _("Approval requests and decisions."),
            "chat.ChatSession": _("All chats."),
            "review.Example": _("Saved questions with expected answers, for repeated testing."),
        },
    ),
    MenuSection(
        key="operation",
        name=_("System"),
        rows={},
        pages=(
            ConsolePage(
                name=_("Health"),
                about=_("Current status, and how to fix problems."),
                view="admin:agents_health",
                permission="agents.view_serverprocess",
            ),
            ConsolePage(
                name=_("Circuit breakers"),
                about=_("Models and tools that are paused because they keep failing."),
                view="admin:agents_circuits",
                permission="agents.change_agent",
            ),
            ConsolePage(
                name=_("Configuration"),
                about=_("Export, compare and import all settings as one file."),
                view="admin:agents_configuration",
                permission=configuration.PERMISSION,
            ),
        ),
    ),
)
OTHER_SECTION = MenuSection(key="rows", name=_("Raw data"), rows={})


def urls(site: admin.AdminSite) -> list[URLPattern]:
    """Return the URLs of our own pages."""
    return [*health.urls(site), *circuit_breakers.urls(site), *configuration.urls(site)]


def build_menu(apps: list[Entry], request: HttpRequest) -> list[Entry]:
    """Return everything this user can open, under our headings instead of Django's apps."""
    models = {_model_label(entry): entry for app in apps for entry in app["models"]}
    parts = [
        _section_entry(part, [*_pop_entries(part, models), *_page_entries(part, request)])
        for part in MENU
    ]
    parts = [
        part
        for part in [*parts, _section_entry(OTHER_SECTION, [*models.values()])]
        if part["models"]
    ]
    _mark_current([entry for part in parts for entry in part["models"]], request.path)
    return parts


def _mark_current(entries: list[Entry], path: str) -> None:
    """Mark the current entry: of nested URLs, the longest match."""
    around = [entry for entry in entries if path.startswith(entry["admin_url"] or path + "/")]
    for entry in sorted(around, key=lambda entry: len(entry["admin_url"]))[-1:]:
        entry["is_here"] = True


def _model_label(entry: Entry) -> str:
    return entry["model"]._meta.label


def _pop_entries(part: MenuSection, models: dict[str, Entry]) -> Iterator[Entry]:
    """Yield the models of this section; unassigned ones come last, so none is missing."""
    for label, about in part.rows.items():
        if entry := models.pop(label, None):
            yield {**entry, "name": capfirst(entry["name"]), "about": about}


def _page_entries(part: MenuSection, request: HttpRequest) -> list[Entry]:
    return [page.menu_entry() for page in part.pages if request.user.has_perm(page.permission)]


def _section_entry(part: MenuSection, entries: list[Entry]) -> Entry:
    address = f"{reverse('admin:index')}#{part.key}"
    return {"app_label": part.key, "name": part.name, "app_url": address, "models": entries}
