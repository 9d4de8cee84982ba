"""The one menu of the console, in the order of what an administrator wants to do."""

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

Entry = dict[str, Any]  # as Django's templates take it


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolePage:
    """A page of our own; whoever has the permission finds it in the menu."""

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
    """A heading, and under it rows by their labels, with what they are for, and pages."""

    key: str
    name: str | Promise
    rows: Mapping[str, str | Promise]
    pages: tuple[ConsolePage, ...] = ()


MENU = (
    MenuSection(
        key="answers",
        name=_("Who answers"),
        rows={
            "agents.Agent": _("Instructions, model, tools and limits of each agent."),
            "agents.LanguageModel": _("What agents think with: key, price and limits."),
            "agents.ToolRegistration": _("What agents may use, and when they have to ask."),
            "agents.McpServer": _("Where more tools come from."),
            "agents.Document": _("What the search tool finds its answers in."),
            "agents.Workflow": _("Plans that are carried out just as they were written."),
            "agents.Schedule": _("When workflows start by themselves."),
        },
    ),
    MenuSection(
        key="rules",
        name=_("What is allowed"),
        rows={
            "agents.GuardrailPattern": _("What is warned of, masked or blocked in texts."),
            "auth.User": _("Who may sign in, and what for."),
            "auth.Group": _("People who have the same rights or the same role."),
            "agents.ReviewScope": _("Whose runs a reviewer may read."),
        },
        pages=(
            ConsolePage(
                name=_("Ready-made patterns"),
                about=_("Sets for personal data, secrets and injected instructions."),
                view="admin:agents_guardrail_sets",
                permission="agents.add_guardrailpattern",
            ),
            ConsolePage(
                name=_("Where patterns fired"),
                about=_("Hits of all patterns, and whether they were right."),
                view="admin:agents_guardrail_hits",
                permission="agents.review_runs",
            ),
        ),
    ),
    MenuSection(
        key="happened",
        name=_("What happened"),
        rows={
            "agents.AuditEntry": _("Who did what, and who looked at whose."),
            "agents.Run": _("Every question and what became of it."),
            "agents.Approval": _("What people were asked, and what they decided."),
            "chat.ChatSession": _("Conversations."),
            "review.Example": _("Questions whose answers are checked again and again."),
        },
    ),
    MenuSection(
        key="operation",
        name=_("How it runs"),
        rows={},
        pages=(
            ConsolePage(
                name=_("Health"),
                about=_("How everything is at this moment, and what to do about it."),
                view="admin:agents_health",
                permission="agents.view_serverprocess",
            ),
            ConsolePage(
                name=_("Circuits"),
                about=_("Models and tools that failed lately and are left alone."),
                view="admin:agents_circuits",
                permission="agents.change_agent",
            ),
            ConsolePage(
                name=_("Configuration"),
                about=_("All that is set up as one file, to keep, compare and bring back."),
                view="admin:agents_configuration",
                permission=configuration.PERMISSION,
            ),
        ),
    ),
)
OTHER_SECTION = MenuSection(key="rows", name=_("Single rows"), rows={})


def urls(site: admin.AdminSite) -> list[URLPattern]:
    """The pages of our own."""
    return [*health.urls(site), *circuit_breakers.urls(site), *configuration.urls(site)]


def build_menu(apps: list[Entry], request: HttpRequest) -> list[Entry]:
    """All that this person may open, under our headings instead of those of Django's apps."""
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
    """Where one is: of pages below one another, the one whose address says most."""
    around = [entry for entry in entries if path.startswith(entry["admin_url"] or path + "/")]
    for entry in sorted(around, key=lambda entry: len(entry["admin_url"]))[-1:]:
        entry["is_here"] = True


def _model_label(entry: Entry) -> str:
    return entry["model"]._meta.label


def _pop_entries(part: MenuSection, models: dict[str, Entry]) -> Iterator[Entry]:
    """The rows of this part; what nobody takes comes last, so that nothing is out of reach."""
    for label, about in part.rows.items():
        if entry := models.pop(label, None):
            yield {**entry, "name": capfirst(entry["name"]), "about": about}


def _page_entries(part: MenuSection, request: HttpRequest) -> list[Entry]:
    return [page.menu_entry() for page in part.pages if request.user.has_perm(page.permission)]


def _section_entry(part: MenuSection, entries: list[Entry]) -> Entry:
    address = f"{reverse('admin:index')}#{part.key}"
    return {"app_label": part.key, "name": part.name, "app_url": address, "models": entries}
