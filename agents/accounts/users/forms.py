"""Who can edit which users, and the form for it."""

from typing import Any, cast

from django import forms
from django.contrib.auth.models import Group, Permission, User
from django.db.models import Q, QuerySet
from django.utils.translation import gettext_lazy as _

from agents.models import Agent, Collection, LanguageModel, ToolRegistration
from agents.models.catalog.rights import Role

from . import roles
from .group_switches import PERMISSION_COLUMNS

# What groups open to their members, and who may decide that.
ACCESS_PERMISSIONS: dict[Any, str] = {
    Agent: "agents.change_agent",
    LanguageModel: "agents.change_languagemodel",
    ToolRegistration: "agents.change_toolregistration",
    Collection: "agents.change_collection",
}
NO_GROUPS_TEXT = _("No groups available. Agents and tools can be limited to certain groups.")


def can_edit_user(editor: User, person: User) -> bool:
    """Whether the editor has all of the user's permissions: they could become that user."""
    if editor.is_superuser:
        return True
    if person.is_superuser:
        return False
    return granted_permissions(editor) >= granted_permissions(person)


def granted_permissions(person: User) -> set[str]:
    """Return a user's permissions, even if deactivated: they can be activated again."""
    is_granted = Q(group__user=person) | Q(user=person)
    permissions = Permission.objects.filter(is_granted).distinct()
    names = permissions.values_list(*PERMISSION_COLUMNS).order_by()
    return {f"{app}.{name}" for app, name in names}


def grantable_groups(editor: User) -> QuerySet[Group]:
    """Return groups, except roles, that grant and open no more than the editor has."""
    groups = Group.objects.exclude(name__in=Role.values)
    if editor.is_superuser:
        return groups
    columns = ("permissions__content_type__app_label", "permissions__codename")
    permissions = groups.values_list("pk", *columns)
    own_permissions = granted_permissions(editor)
    own_groups = set(editor.groups.values_list("pk", flat=True))
    beyond = {
        pk for pk, app, name in permissions if name and f"{app}.{name}" not in own_permissions
    }
    for model, permission in ACCESS_PERMISSIONS.items():
        if permission not in own_permissions:
            opening = model.objects.filter(groups__isnull=False).values_list(
                "groups", flat=True
            )
            beyond |= set(opening) - own_groups
    return groups.exclude(pk__in=beyond)


def grantable_roles(editor: User) -> list[Role]:
    """Return the roles that include no permission which the editor lacks."""
    if editor.is_superuser:
        return list(Role)
    own_permissions = granted_permissions(editor)
    permissions = {role: roles.role_group(role).permissions for role in Role}
    role_permissions = {
        role: {f"{app}.{name}" for app, name in rows.values_list(*PERMISSION_COLUMNS)}
        for role, rows in permissions.items()
    }
    return [role for role in Role if role_permissions[role] <= own_permissions]


class PermissionsField(forms.ModelMultipleChoiceField):
    def shown_of(self, person: User) -> list[int]:
        """Return the saved values, to detect concurrent changes."""
        individual = person.user_permissions.filter(codename__in=roles.INDIVIDUAL_PERMISSIONS)
        return sorted(individual.values_list("pk", flat=True))

    def label_from_instance(self, permission: Permission) -> Any:
        return roles.INDIVIDUAL_PERMISSIONS[permission.codename]


class PersonForm(forms.ModelForm):
    editor: User  # the user of the form

    role = forms.ChoiceField(
        label=_("Role"),
        choices=Role.choices,
        initial=Role.PERSON,
        widget=forms.RadioSelect,
        help_text=_(
            "Reviewers can also review other users' runs, with personal data masked; "
            "administrators can also manage everything in this console."
        ),
    )
    apart = PermissionsField(
        label=_("Individual permissions"),
        queryset=Permission.objects.none(),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=_("Not part of any role; granted to each user separately."),
    )

    class Meta:
        model = User
        fields = ["username", "first_name", "last_name", "email", "is_active", "groups"]
        widgets = {"groups": forms.CheckboxSelectMultiple}
        help_texts = {
            "username": _("Used to sign in and visible to other users."),
            "email": _(
                "Links a single sign-on account with the same verified address to this user."
            ),
            "is_active": _("When off, the user is signed out immediately and their runs stop."),
            "groups": _("Agents and tools can be limited to certain groups."),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        person = self.instance
        fields = self.fields
        if "groups" in fields:
            self._groups_field.queryset = grantable_groups(self.editor)
            if not self._groups_field.queryset.exists():
                self._groups_field.help_text = NO_GROUPS_TEXT
        if "apart" in fields:
            cast(PermissionsField, fields["apart"]).queryset = Permission.objects.filter(
                codename__in=roles.INDIVIDUAL_PERMISSIONS
            )
        if person.pk is not None:
            self.initial["role"] = roles.get_role(person)
            self.initial["apart"] = list(person.user_permissions.values_list("pk", flat=True))
        if person.is_superuser and "role" in fields:
            fields["role"].disabled = True
            fields["role"].help_text = _("Superusers have all permissions.")

    @property
    def _groups_field(self) -> Any:
        return self.fields["groups"]

    def clean_groups(self) -> list[Group]:
        """Return the chosen groups, plus those the editor can't change."""
        chosen = list(self.cleaned_data["groups"])
        if self.instance.pk is None:
            return chosen
        fixed = self.instance.groups.exclude(pk__in=self._groups_field.queryset)
        return [*chosen, *fixed]

    def clean_role(self) -> str:
        """Reject a role with more permissions than the editor's: it could be their own."""
        role = str(self.cleaned_data["role"])
        if role != self.initial.get("role") and role not in grantable_roles(self.editor):
            raise forms.ValidationError(
                _("You can't grant a role or group with more permissions than you have.")
            )
        return role

    def clean_is_active(self) -> bool:
        is_active = self.cleaned_data["is_active"]
        if not is_active and self.instance == self.editor:
            raise forms.ValidationError(_("You can't disable your own account."))
        return is_active

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        person = self.instance
        demotes = {
            "is_active": cleaned.get("is_active") is False,
            "role": cleaned.get("role", Role.ADMINISTRATOR) != Role.ADMINISTRATOR,
        }
        names = [
            name for name, is_demotion in demotes.items() if is_demotion and name in self.fields
        ]
        if person.pk and names and roles.is_last_administrator(person):
            self.add_error(
                names[0],
                _("This is the last administrator. Make another user an administrator first."),
            )
        return cleaned
