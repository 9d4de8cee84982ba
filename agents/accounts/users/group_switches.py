"""The permissions of a group as a few named switches, instead of Django's list.

Switches only add to the role. A group can have other permissions; they stay as they are.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from django.contrib.auth.models import Group, Permission
from django.utils.translation import gettext_lazy as _

from agents.models.types import LazyText

PERMISSION_COLUMNS = ("content_type__app_label", "codename")
# What reviewers have, who don't need the console for it.
REVIEWING = ("agents.review_runs", "problems.view_problem", "dashboard.view_dashboard")
DEFAULT_ACTIONS = ("add", "change", "delete", "view")


@dataclass(frozen=True, kw_only=True)
class Switch:
    """A switch: all permissions for some models, and single ones."""

    key: str
    name: LazyText
    about: LazyText
    models: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    opens_console: bool = True

    @cached_property
    def permissions(self) -> frozenset[str]:
        """The names of its permissions, as in `has_perm`."""
        of_models = {
            f"{app}.{action}_{model}"
            for app, _dot, model in (label.partition(".") for label in self.models)
            for action in DEFAULT_ACTIONS
        }
        return frozenset(of_models | {*self.others})


SWITCHES = (
    Switch(
        key="agents",
        name=_("Set up agents"),
        about=_("Agents, workflows, schedules, triggers and embedded chats."),
        models=(
            *("agents.agent", "agents.workflow", "agents.schedule"),
            *("agents.trigger", "agents.embed"),
        ),
    ),
    Switch(
        key="models",
        name=_("Models and connections"),
        about=_("Models, API keys, prices and rate limits."),
        models=("agents.languagemodel", "agents.modelconnection"),
    ),
    Switch(
        key="tools",
        name=_("Tools and MCP servers"),
        about=_("Tools, databases and MCP servers, except those that run on this machine."),
        models=("agents.toolregistration", "agents.databaseconnection", "agents.mcpserver"),
    ),
    Switch(
        key="knowledge",
        name=_("Knowledge"),
        about=_("All documents and collections of the installation."),
        models=("agents.document", "agents.collection"),
    ),
    Switch(
        key="guardrails",
        name=_("Guardrails"),
        about=_("Rules that warn about, mask or block text."),
        models=("agents.guardrailpattern",),
    ),
    Switch(
        key="users",
        name=_("Users and groups"),
        about=_("Invite users, and grant what the members can do themselves."),
        models=(
            "auth.user",
            "auth.group",
            "people.invitation",
            "agents.reviewscope",
            "agents.memoryexclusion",
        ),
    ),
    Switch(
        key="api_keys",
        name=_("API keys"),
        about=_("All users’ keys and connected apps, and service keys."),
        models=("agents.apikey", "agents.oauthapp"),
    ),
    Switch(
        key="limits",
        name=_("Limits"),
        about=_("Usage limits, and approving more for runs that reached one."),
        models=("agents.quota",),
        others=("agents.raise_budgets",),
    ),
    Switch(
        key="review",
        name=_("See problems and dashboard"),
        about=_("Like reviewers: also other users’ runs, with personal data masked."),
        others=REVIEWING,
        opens_console=False,
    ),
    Switch(
        key="evaluation",
        name=_("Evaluation"),
        about=_("Example sets, experiments, review queues, lessons and suggestions."),
        models=(
            "review.exampleset",
            "review.example",
            "review.reviewqueue",
            "experiments.experiment",
            "agents.experience",
        ),
        others=("suggestions.view_suggestion", "suggestions.change_suggestion"),
    ),
    Switch(
        key="alerts",
        name=_("Alerts"),
        about=_("Alert rules, channels and summaries."),
        models=(
            "alerts.alertrule",
            "alerts.alertchannel",
            "alerts.quietperiod",
            "alerts.summaryschedule",
        ),
        others=("alerts.view_delivery",),
    ),
    Switch(
        key="audit",
        name=_("Audit log"),
        about=_("Read who did what, and who viewed whose data."),
        others=("agents.view_auditentry",),
    ),
    Switch(
        key="system",
        name=_("System settings"),
        about=_("Settings of the installation, and its health."),
        models=("agents.installationsetting",),
        others=("agents.view_serverprocess",),
    ),
)


def switches_on(permissions: Iterable[str]) -> list[Switch]:
    """Return the switches whose permissions are all among these."""
    names = set(permissions)
    return [switch for switch in SWITCHES if switch.permissions <= names]


def permissions_of(group: Group) -> set[str]:
    """Return the names of a group's permissions."""
    rows = group.permissions.order_by().values_list(*PERMISSION_COLUMNS)
    return {f"{app}.{codename}" for app, codename in rows}


def opens_console(group: Group) -> bool:
    """Whether the members of a group can open the console, whatever their role."""
    return any(switch.opens_console for switch in switches_on(permissions_of(group)))


def set_switches(group: Group, keys: Iterable[str]) -> None:
    """Turn on exactly these switches; permissions that no switch stands for stay."""
    chosen = {*keys}
    before = permissions_of(group)
    removed: set[str] = set()
    added: set[str] = set()
    for switch in SWITCHES:
        if switch.key in chosen:
            added |= switch.permissions
        elif switch.permissions <= before:
            removed |= switch.permissions
    after = (before - removed) | added
    if after != before:
        group.permissions.set(_rows(after))


def _rows(names: set[str]) -> list[int]:
    codenames = {name.partition(".")[2] for name in names}
    rows = Permission.objects.filter(codename__in=codenames).order_by()
    return [
        pk
        for pk, app, codename in rows.values_list("pk", *PERMISSION_COLUMNS)
        if f"{app}.{codename}" in names
    ]
