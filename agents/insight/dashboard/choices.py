"""What the dashboard's filters offer: names that runs of the last months have."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from urllib.parse import urlencode

from django.contrib.auth.models import Group, User
from django.utils import timezone
from django.utils.translation import gettext as _

from agents.metering.figures.models import UNKNOWN_TOOL, DailyFigures, RunSummary
from agents.metering.figures.selection import DRAFT, Selection, Viewer
from agents.metering.figures.summaries import day_of
from agents.models.catalog.rights import Role
from agents.models.types import LazyText

from .tables import DIMENSIONS

RECENT = timedelta(days=180)
MAX_CHOICES = 200
Grain = DailyFigures.Grain
SETUP = ("agent_name", "agent_version", "model")
CALLED_SETUP = ("agent_name", "agent_version", "models__model")


@dataclass(frozen=True, slots=True, kw_only=True)
class Menu:
    """A filter as a select box."""

    name: str
    label: LazyText
    options: list[tuple[str, str]]
    chosen: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """A filter in use, and the parameters without it."""

    label: LazyText
    text: str
    without: str


def build(viewer: Viewer, selection: Selection) -> list[Menu]:
    setups = _recent(viewer)
    agents = {agent for agent, _version, _model in setups}
    versions = {version for agent, version, _model in setups if agent == selection.agent}
    models = {model for agent, _v, model in setups if model and selection.agent in ("", agent)}
    options = {
        "agent": [(name, name) for name in sorted(agents)],
        "version": [
            (str(number), _("version %(number)s") % {"number": number})
            if number
            else (DRAFT, _("No version"))
            for number in sorted(versions, reverse=True)
        ],
        "model": [(name, name) for name in sorted(models)],
        "tool": _tools(viewer),
    }
    if not selection.agent:
        del options["version"]  # a number says nothing without its agent
    if viewer.sees_people:
        groups = Group.objects.exclude(name__in=Role.values).order_by("name")[:MAX_CHOICES]
        people = User.objects.filter(is_active=True).order_by("username")
        names = people.values_list("pk", "username", "profile__display_name")[:MAX_CHOICES]
        options["group"] = [(str(group.pk), group.name) for group in groups]
        options["person"] = [(str(pk), display or user) for pk, user, display in names]
    menus = []
    values = selection.query()
    for name, choices in options.items():
        chosen = values.get(name, "")
        if chosen and chosen not in dict(choices):
            choices.insert(0, (chosen, chosen))
        if choices or name in values:
            menu = Menu(name=name, label=DIMENSIONS[name], options=choices, chosen=chosen)
            menus.append(menu)
    return menus


def versions_by_agent(viewer: Viewer) -> list[tuple[str, list[int]]]:
    """Return agents with at least two versions in use, and these, the newest first."""
    versions: dict[str, set[int]] = {}
    for agent, version, _model in _recent(viewer):
        if version:
            versions.setdefault(agent, set()).add(version)
    return [
        (agent, sorted(numbers, reverse=True))
        for agent, numbers in sorted(versions.items())
        if len(numbers) > 1
    ]


def chips(menus: Iterable[Menu], parameters: Mapping[str, str]) -> list[Chip]:
    menu_chips = []
    for menu in menus:
        if menu.chosen:
            hidden = {menu.name, "version"} if menu.name == "agent" else {menu.name}
            without = {name: value for name, value in parameters.items() if name not in hidden}
            text = dict(menu.options).get(menu.chosen, menu.chosen)
            menu_chips.append(Chip(label=menu.label, text=text, without=urlencode(without)))
    return menu_chips


def _recent(viewer: Viewer) -> set[tuple[str, int, str]]:
    """Return agents, versions and called models; of a scoped viewer's runs from summaries."""
    since = day_of(timezone.now() - RECENT)
    if viewer.is_scoped:
        visible = RunSummary.objects.filter(run__in=viewer.visible_runs(), is_hidden=False)
        return set(visible.filter(day__gte=since).values_list(*CALLED_SETUP).distinct())
    rolled = DailyFigures.objects.filter(grain=Grain.MODEL, day__gte=since)
    newest = RunSummary.objects.filter(day__gte=_not_added_up(), is_hidden=False)
    return {
        *rolled.values_list(*SETUP).order_by().distinct(),
        *newest.values_list(*CALLED_SETUP).order_by().distinct(),
    }


def _not_added_up() -> date:
    """Return yesterday: shortly after midnight its figures aren't added up yet."""
    return day_of(timezone.now() - timedelta(days=1))


def _tools(viewer: Viewer) -> list[tuple[str, str]]:
    since = day_of(timezone.now() - RECENT)
    if viewer.is_scoped:
        rows = RunSummary.objects.filter(day__gte=since, run__in=viewer.visible_runs())
        names = set(rows.values_list("tools__tool", flat=True).distinct())
    else:
        rolled = DailyFigures.objects.filter(grain=Grain.TOOL, day__gte=since)
        recent = RunSummary.objects.filter(day__gte=_not_added_up())
        names = {
            *rolled.values_list("tool", flat=True).order_by().distinct(),
            *recent.values_list("tools__tool", flat=True).order_by().distinct(),
        }
    tools = sorted(filter(None, names - {UNKNOWN_TOOL}))[:MAX_CHOICES]
    unknown = [(UNKNOWN_TOOL, _("unknown tool"))] if UNKNOWN_TOOL in names else []
    return [*((name, name) for name in tools), *unknown]
