"""The form of a group: its members, what they can use, its limit and its permissions."""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, cast

from django import forms
from django.contrib.auth.models import Group, Permission, User
from django.db.models import Q, QuerySet
from django.urls import reverse
from django.utils.translation import gettext as _now
from django.utils.translation import gettext_lazy as _

from agents.console.metering.budget_form import shown_amount
from agents.metering.budgets.measures import MEASURES
from agents.models import Agent, Collection, LanguageModel, Quota, ToolRegistration
from agents.models.catalog.rights import Restricted
from agents.models.types import LazyText

from .forms import ACCESS_PERMISSIONS, can_edit_user, granted_permissions
from .group_switches import SWITCHES, Switch, permissions_of, switches_on

Key = tuple[bool, str]  # whether the members share it, and the window
COST = Quota.Measure.COST
SHARED = "shared"


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """Something that groups can be given, as a row of its list."""

    pk: int
    name: str
    note: str
    url: str
    is_on: bool
    is_for_everyone: bool
    is_only_here: bool  # without this group it would be for everyone


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessKind:
    """A kind of what groups can be given: a field of the form."""

    field: str
    label: LazyText
    model: Any
    permission: str

    @property
    def is_restricted(self) -> bool:
        """Whether it is for everyone unless it has groups."""
        return issubclass(self.model, Restricted)

    def rows(self) -> QuerySet[Any]:
        if self.model is Collection:
            return Collection.objects.library().filter(owner=None, deleted_at=None)
        rows = self.model.objects.all()
        return rows.select_related("server") if self.model is ToolRegistration else rows

    def listed(self, group: Group) -> list[Opened]:
        """Return all rows with what this group has of them."""
        rows = self.rows().prefetch_related("groups")
        return [self._opened(row, group) for row in rows]

    def _opened(self, row: Any, group: Group) -> Opened:
        groups = [allowed.pk for allowed in row.groups.all()]
        server = getattr(row, "server", None)
        meta = self.model._meta
        return Opened(
            pk=row.pk,
            name=str(row),
            note=str(server or ""),
            url=reverse(f"admin:{meta.app_label}_{meta.model_name}_change", args=[row.pk]),
            is_on=group.pk in groups,
            is_for_everyone=not groups if self.is_restricted else row.is_open,
            is_only_here=self.is_restricted and groups == [group.pk],
        )


ACCESS = (
    AccessKind(
        field="agents", label=_("Agents"), model=Agent, permission=ACCESS_PERMISSIONS[Agent]
    ),
    AccessKind(
        field="models",
        label=_("Models"),
        model=LanguageModel,
        permission=ACCESS_PERMISSIONS[LanguageModel],
    ),
    AccessKind(
        field="tools",
        label=_("Tools"),
        model=ToolRegistration,
        permission=ACCESS_PERMISSIONS[ToolRegistration],
    ),
    AccessKind(
        field="collections",
        label=_("Collections"),
        model=Collection,
        permission=ACCESS_PERMISSIONS[Collection],
    ),
)


class AccessField(forms.ModelMultipleChoiceField):
    """Rows that a group can be given; `shown_of` lets the page detect concurrent changes."""

    def shown_of(self, group: Group) -> list[int]:
        rows = cast(QuerySet[Any], self.queryset)
        return sorted(rows.filter(groups=group).values_list("pk", flat=True))


class NamesField(forms.Field):
    """Usernames and email addresses: one or more per input, separated by commas."""

    widget = forms.MultipleHiddenInput

    def to_python(self, value: Any) -> list[str]:
        texts = ",".join(value or ()).replace("\0", "").replace("\n", ",").split(",")
        return list(dict.fromkeys(filter(None, map(str.strip, texts))))

    def has_changed(self, initial: Any, data: Any) -> bool:
        return bool(self.to_python(data))


class SwitchesField(forms.MultipleChoiceField):
    def shown_of(self, group: Group) -> list[str]:
        return sorted(permissions_of(group))


class LimitField(forms.DecimalField):
    def shown_of(self, group: Group) -> Any:
        row = main_limit(group)
        return row and (row.limit, row.is_shared, row.window)


class GroupForm(forms.ModelForm):
    """A group on one page; members are sent as changes, because a group can have many."""

    editor: User  # the user of the form

    add = NamesField(label=_("Members"), required=False)
    remove = forms.ModelMultipleChoiceField(
        label=_("Members"), queryset=User.objects.none(), required=False
    )
    switches = SwitchesField(
        label=_("Permissions"),
        choices=[(switch.key, switch.name) for switch in SWITCHES],
        required=False,
    )
    limit = LimitField(
        label=_("Limit (USD)"),
        required=False,
        min_value=0,
        max_digits=18,  # in millionths of a dollar it still fits into the column
        decimal_places=6,
        widget=forms.NumberInput(attrs={"aria-label": _("Limit (USD)")}),
    )
    limit_window = forms.ChoiceField(
        label=_("Limit per"),
        choices=[
            (Quota.Window.DAY, Quota.Window.DAY.label),
            (Quota.Window.MONTH, Quota.Window.MONTH.label),
        ],
        initial=Quota.Window.DAY,
        required=False,
        widget=forms.RadioSelect,
    )
    limit_for = forms.ChoiceField(
        label=_("Limit for"),
        choices=[(SHARED, _("for the whole group")), ("each", _("for each member"))],
        initial=SHARED,
        required=False,
        widget=forms.RadioSelect,
    )

    class Meta:
        model = Group
        fields = ["name"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        group = self.instance
        # What the editor can't grant elsewhere isn't granted here either.
        for kind in ACCESS:
            if self.editor.has_perm(kind.permission):
                self.fields[kind.field] = AccessField(
                    label=kind.label, queryset=kind.rows(), required=False
                )
        if not self.editor.has_perm("auth.change_user"):
            del self.fields["add"], self.fields["remove"]
        if not self.editor.has_perm("agents.change_quota"):
            del self.fields["limit"], self.fields["limit_window"], self.fields["limit_for"]
        if group.pk is None:
            return
        if "remove" in self.fields:
            cast(Any, self.fields["remove"]).queryset = group.user_set.all()
        for kind in ACCESS:
            if kind.field in self.fields:
                self.initial[kind.field] = cast(Any, self.fields[kind.field]).shown_of(group)
        self.initial["switches"] = [s.key for s in switches_on(permissions_of(group))]
        self.main_limit = main_limit(group)
        if self.main_limit is not None:
            self.initial.update(
                limit=shown_amount(COST, self.main_limit.limit or 0),
                limit_window=self.main_limit.window,
                limit_for=SHARED if self.main_limit.is_shared else "each",
            )

    main_limit: Quota | None = None

    def grantable_switches(self) -> list[tuple[Switch, bool]]:
        """Return all switches, with whether the editor has what each grants."""
        if self.editor.is_superuser:
            return [(switch, True) for switch in SWITCHES]
        own = granted_permissions(self.editor)
        return [(switch, switch.permissions <= own) for switch in SWITCHES]

    def clean_name(self) -> str:
        """Return the name; questions for a group ignore its case."""
        name: str = self.cleaned_data["name"]
        others = Group.objects.filter(name__iexact=name).exclude(pk=self.instance.pk)
        if others.exists():
            raise forms.ValidationError(_("A group with this name exists already."))
        return name

    def clean_add(self) -> list[User]:
        """Return the users whose name or email address was entered."""
        added = []
        for name in self.cleaned_data["add"]:
            found = list(_find_users(name)[:2])
            if not found:
                raise forms.ValidationError(
                    _("There's no user named %(name)s."), params={"name": name}
                )
            if len(found) > 1:
                raise forms.ValidationError(
                    _("Several users have the address %(name)s. Enter a username."),
                    params={"name": name},
                )
            added.append(self._check_editable(found[0]))
        return added

    def clean_remove(self) -> list[User]:
        return [self._check_editable(person) for person in self.cleaned_data["remove"]]

    def _check_editable(self, person: User) -> User:
        if not can_edit_user(self.editor, person):
            raise forms.ValidationError(
                _("You can’t change %(name)s, who has more permissions than you."),
                params={"name": person.get_username()},
            )
        return person

    def clean_switches(self) -> list[str]:
        chosen = self.cleaned_data["switches"]
        changed = {*chosen} ^ {*self.initial.get("switches", [])}
        if changed & {switch.key for switch, may in self.grantable_switches() if not may}:
            raise forms.ValidationError(
                _("You can't grant a role or group with more permissions than you have.")
            )
        return chosen

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if self.instance.pk is not None:
            for kind in ACCESS:
                if kind.is_restricted and kind.field in cleaned:
                    self._check_still_restricted(kind, cleaned[kind.field])
        amount = cleaned.get("limit")
        if amount is not None and self.instance.pk is not None:
            key = self.limit_key()
            saved = cost_limits(self.instance)
            if key in saved and saved[key] != self.main_limit:
                self.add_error("limit", _("This limit already exists. Edit it instead."))
        return cleaned

    def _check_still_restricted(self, kind: AccessKind, chosen: Iterable[Any]) -> None:
        """Reject taking away what would then be for everyone."""
        chosen_pks = {row.pk for row in chosen}
        names = [
            row.name
            for row in kind.listed(self.instance)
            if row.is_only_here and row.pk not in chosen_pks
        ]
        if names:
            sentence = _now(
                "Only this group can use %(names)s. Without it, everyone could. "
                "Change who can use it on its own page."
            )
            self.add_error(kind.field, sentence % {"names": ", ".join(names)})

    def limit_key(self) -> Key:
        """Return the scope and window that were chosen."""
        window = self.cleaned_data.get("limit_window") or Quota.Window.DAY
        return self.cleaned_data.get("limit_for") != "each", window

    def save_limit(self) -> dict[str, list[Any]]:
        """Save the limit; return what changed."""
        if not {"limit", "limit_window", "limit_for"} & {*self.changed_data}:
            return {}
        group = self.instance
        before = self.main_limit
        amount: Decimal | None = self.cleaned_data["limit"]
        if before is not None and (amount is None or self.limit_key() != _key(before)):
            before.delete()
        changes = {}
        if before is not None:
            changes[_audit_name(_key(before))] = [before.limit, None]
        if amount is not None:
            is_shared, window = self.limit_key()
            limit = round(amount * MEASURES[COST].typed)
            Quota.objects.update_or_create(
                {"limit": limit}, group=group, is_shared=is_shared, measure=COST, window=window
            )
            name = _audit_name((is_shared, window))
            changes[name] = [changes.get(name, [None])[0], limit]
        return changes


def main_limit(group: Group) -> Quota | None:
    """Return the limit of cost that the group's page has as a sentence."""
    saved = cost_limits(group)
    keys = [
        (is_shared, window)
        for is_shared in (True, False)
        for window in (Quota.Window.DAY, Quota.Window.MONTH)
    ]
    rows = [saved[key] for key in keys if key in saved and saved[key].limit is not None]
    return rows[0] if rows else None


def cost_limits(group: Group) -> dict[Key, Quota]:
    rows = Quota.objects.filter(group=group, measure=COST)
    return {_key(row): row for row in rows}


def other_permissions(group: Group) -> list[Permission]:
    """Return the group's permissions that no switch stands for."""
    names = permissions_of(group)
    covered = {name for switch in switches_on(names) for name in switch.permissions}
    rows = group.permissions.select_related("content_type")
    return [
        row for row in rows if f"{row.content_type.app_label}.{row.codename}" not in covered
    ]


def _key(row: Quota) -> Key:
    return row.is_shared, row.window


def _audit_name(key: Key) -> str:
    is_shared, window = key
    return f"{COST}_{window}_together" if is_shared else f"{COST}_{window}"


def _find_users(name: str) -> QuerySet[User]:
    by_name = User.objects.filter(username=name)
    if "@" not in name or by_name.exists():
        return by_name
    return User.objects.filter(Q(email__iexact=name), is_active=True)
