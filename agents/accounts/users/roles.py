"""Roles as one choice: user, reviewer or administrator."""

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import Any

from django.apps import apps
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, Permission, User
from django.db import transaction
from django.db.migrations import Migration
from django.db.models import Q, QuerySet
from django.utils.translation import gettext_lazy as _

from agents.access.api_keys import service_accounts
from agents.access.audit import request_context
from agents.access.visitors import visitor_accounts
from agents.models.catalog.rights import Role

from .group_switches import REVIEWING, opens_console

# Granted individually by a superuser; no role includes them.
INDIVIDUAL_PERMISSIONS = {
    "see_personal_data": _("View personal data in other users' runs"),
    "use_stdio_servers": _("Set up MCP servers that run on this machine (stdio)"),
}
APP_LABELS = (
    "agents",
    "review",
    "experiments",
    "dashboard",
    "problems",
    "suggestions",
    "alerts",
    "chat",
    "people",
    "auth",
)


DESCRIPTIONS = {
    Role.PERSON: _("Chats with agents."),
    Role.REVIEWER: _("Reviews other users' runs, with personal data masked."),
    Role.ADMINISTRATOR: _("Manages everything in this console."),
}


EVERYONE = frozenset(Role)
REVIEWERS = frozenset({Role.REVIEWER, Role.ADMINISTRATOR})
ADMINISTRATORS = frozenset({Role.ADMINISTRATOR})
# What each role can do, as a table.
ABILITIES = (
    (_("Chat with the agents that are open to their groups"), EVERYONE),
    (_("Upload files, share chats and create projects"), EVERYONE),
    (_("See and rate their own runs"), EVERYONE),
    (_("Review other users' runs, with personal data masked"), REVIEWERS),
    (_("Flag, annotate and correct answers"), REVIEWERS),
    (_("See the problems, dashboard and evaluation of the agents they review"), REVIEWERS),
    (_("Set up agents, models, tools, guardrails and workflows"), ADMINISTRATORS),
    (_("Manage the installation's documents"), ADMINISTRATORS),
    (_("Invite users, change roles, groups and usage limits"), ADMINISTRATORS),
    (_("Change settings, read the audit log and check the system's health"), ADMINISTRATORS),
)


def get_role(user: User) -> Role:
    if user.is_superuser:
        return Role.ADMINISTRATOR
    names = {group.name for group in user.groups.all()}
    privileged = [role for role in (Role.ADMINISTRATOR, Role.REVIEWER) if role in names]
    return privileged[0] if privileged else Role.PERSON


@transaction.atomic
def set_role(user: User, role: Role) -> None:
    """Set this role and remove others; superusers stay superusers."""
    other_roles = Group.objects.filter(name__in=Role.values).exclude(name=role)
    user.groups.remove(*other_roles)
    user.groups.add(role_group(role))
    update_console_access(user)


def update_console_access(user: User) -> None:
    """Open the console to administrators, and to members of groups that open it."""
    groups = list(user.groups.all())
    is_administrator = any(group.name == Role.ADMINISTRATOR for group in groups)
    user.is_staff = (
        user.is_superuser or is_administrator or any(opens_console(group) for group in groups)
    )
    user.save(update_fields=["is_staff"])


def role_group(role: Role) -> Group:
    """Return the group of a role."""
    group, is_new = Group.objects.get_or_create(name=role.value)
    if is_new:
        group.permissions.set(_permissions(role))
    return group


def administrators() -> QuerySet:
    """Return active administrators."""
    people = get_user_model()._default_manager.filter(is_active=True)
    members = people.filter(groups__name=Role.ADMINISTRATOR).values("pk")
    return people.filter(Q(is_superuser=True) | Q(pk__in=members))


def is_last_administrator(user: User) -> bool:
    """Whether this is the last administrator who can sign in.

    Call it in the changing transaction, so that two can't leave at once.
    """
    people = administrators().exclude(pk__in=service_accounts().values("pk"))
    rows = people.select_for_update().order_by("pk")
    administrator_ids = set(rows.values_list("pk", flat=True))
    return administrator_ids == {user.pk}


def sync_groups(
    sender: Any,
    using: str = "default",
    plan: Sequence[tuple[Migration, bool]] = (),
    **_signal: Any,
) -> None:
    """Create the role groups with current permissions, and give everyone but visitors a role.

    Called after each app's migration; only after the last one are all permissions there.
    """
    if sender.label != _last_migrated_app() or using != "default":
        return
    if any(is_backwards for _migration, is_backwards in plan):
        return  # tables that this version needs are gone
    without = get_user_model()._default_manager.exclude(groups__name__in=Role.values)
    without = without.exclude(pk__in=visitor_accounts().values("pk"))
    with request_context.as_system():
        for role in Role:
            role_group(role).permissions.set(_permissions(role))
        role_group(Role.PERSON).user_set.add(*without.filter(is_superuser=False))


def _last_migrated_app() -> str:
    return [config.label for config in apps.get_app_configs() if config.models_module][-1]


def _permissions(role: Role) -> QuerySet[Permission]:
    if role == Role.PERSON:
        return Permission.objects.none()
    if role == Role.REVIEWER:
        names = [name.split(".") for name in REVIEWING]
        rights = [Q(content_type__app_label=app, codename=name) for app, name in names]
        return Permission.objects.filter(reduce(or_, rights))
    ours = Permission.objects.filter(content_type__app_label__in=APP_LABELS)
    # Editing permissions would allow granting oneself any.
    return ours.exclude(codename__in=INDIVIDUAL_PERMISSIONS).exclude(
        content_type__model="permission"
    )
