"""The forms of new API keys: of a user, and of a service."""

from collections.abc import Iterable
from datetime import datetime, time, timedelta
from typing import Any, cast

from django import forms
from django.contrib.auth.models import User
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext, pgettext_lazy

from agents.access import api_keys
from agents.console.admin_classes.model_admin import GroupsField
from agents.db.installation import configured
from agents.db.installation.setting import MICROS
from agents.db.sanitize import visible_name
from agents.metering.budgets.limits import Key
from agents.models import ApiKey, Quota
from agents.models.catalog.rights import Role
from agents.models.types import LazyText

from . import roles
from .api_keys import (
    SCOPE_DESCRIPTIONS,
    SERVICE_DESCRIPTIONS,
    NewKey,
    offered_scopes,
    personal_keys,
)
from .forms import can_edit_user, grantable_groups, grantable_roles

DAYS = (30, 90, 365)
DEFAULT_DAYS = 90
NEVER = "never"
OWN_DATE = "date"
MAX_KEYS = 50  # that work, of one user
COST_PER_MONTH: Key = (Quota.Measure.COST.value, Quota.Window.MONTH.value)
TOKENS_PER_MONTH: Key = (Quota.Measure.TOKENS.value, Quota.Window.MONTH.value)


class ApiKeyForm(forms.Form):
    """A new key of the user who fills it in."""

    descriptions = SCOPE_DESCRIPTIONS

    name = forms.CharField(
        label=_("Name"),
        max_length=80,
        error_messages={"required": _("Enter a name.")},
        help_text=_("Where you use it, e.g. “Nightly report” or “n8n”."),
    )
    scopes = forms.MultipleChoiceField(
        label=_("Scopes"),
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": _("Choose at least one.")},
    )
    expiry = forms.ChoiceField(label=pgettext_lazy("API key", "Expires"))
    expires_on = forms.DateField(
        label=_("Last day"),
        required=False,
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
    )
    requests_per_minute = forms.IntegerField(
        label=_("Requests per minute"), required=False, min_value=1, max_value=100_000
    )
    cost = forms.DecimalField(
        label=_("Cost per month (USD)"),
        required=False,
        min_value=0,
        max_digits=12,
        decimal_places=2,
    )
    tokens = forms.IntegerField(
        label=_("Tokens per month"), required=False, min_value=1, max_value=10**12
    )

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user
        scopes = self._choosable_scopes()
        self._choices("scopes", [(scope.value, scope.label) for scope in scopes])
        self.fields["scopes"].initial = [ApiKey.Scope.ASK.value, ApiKey.Scope.READ.value]
        self._choices("expiry", expiry_choices())
        days = [choice for choice, _label in expiry_choices() if choice.isdigit()]
        self.fields["expiry"].initial = (
            str(DEFAULT_DAYS) if str(DEFAULT_DAYS) in days else days[-1]
        )
        most = configured.API_REQUESTS_PER_MINUTE.value
        self.fields["requests_per_minute"].widget.attrs["placeholder"] = str(most)

    def _choices(self, name: str, choices: Iterable[tuple[Any, Any]]) -> None:
        cast(forms.ChoiceField, self.fields[name]).choices = list(choices)

    def _choosable_scopes(self) -> list[ApiKey.Scope]:
        return offered_scopes(self.user)

    def scope_rows(self) -> list[tuple[Any, LazyText]]:
        """Return each scope's box with what it allows."""
        boxes = self["scopes"].subwidgets
        return [(box, self.descriptions[box.data["value"]]) for box in boxes]

    @property
    def limit_fields(self) -> list[forms.BoundField]:
        return [self[name] for name in ("requests_per_minute", "cost", "tokens")]

    @property
    def has_limits(self) -> bool:
        """Whether limits are filled in, or one is wrong."""
        return any(field.value() or field.errors for field in self.limit_fields)

    def clean_name(self) -> str:
        name = visible_name(self.cleaned_data["name"])
        if not name:
            raise forms.ValidationError(_("Enter a name."))
        return name

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if cleaned.get("expiry") == OWN_DATE and "expires_on" in cleaned:
            self._check_date(cleaned["expires_on"])
        if self._has_all_keys():
            sentence = _("You already have %(most)d keys. Revoke those you don’t need.")
            self.add_error(None, sentence % {"most": MAX_KEYS})
        return cleaned

    def _has_all_keys(self) -> bool:
        return personal_keys(self.user).usable().count() >= MAX_KEYS

    def _check_date(self, day: Any) -> None:
        limit = configured.API_KEY_DAYS.value
        today = timezone.localdate()
        if day is None or day < today:
            self.add_error("expires_on", _("Enter a date from today on."))
        elif limit and day >= today + timedelta(days=limit):
            sentence = ngettext(
                "Keys can last %(most)d day at most.",
                "Keys can last %(most)d days at most.",
                limit,
            )
            self.add_error("expires_on", sentence % {"most": limit})

    def new_key(self) -> NewKey:
        """Return what was filled in."""
        values = self.cleaned_data
        limits: dict[Key, int] = {}
        if values["cost"] is not None:
            limits[COST_PER_MONTH] = round(values["cost"] * MICROS)
        if values["tokens"]:
            limits[TOKENS_PER_MONTH] = values["tokens"]
        return NewKey(
            name=values["name"],
            scopes=tuple(values["scopes"]),
            expires_at=self._expires_at(),
            requests_per_minute=values["requests_per_minute"],
            limits=limits,
        )

    def _expires_at(self) -> datetime | None:
        expiry = self.cleaned_data["expiry"]
        if expiry == NEVER:
            return None
        if expiry != OWN_DATE:
            return timezone.now() + timedelta(days=int(expiry))
        midnight = datetime.combine(
            self.cleaned_data["expires_on"] + timedelta(days=1), time.min
        )
        return timezone.make_aware(midnight)


class ServiceKeyForm(ApiKeyForm):
    """A new key of a service, whose account is made with it."""

    descriptions = SERVICE_DESCRIPTIONS

    account: "forms.ModelChoiceField[User]" = forms.ModelChoiceField(
        label=_("Account"),
        queryset=None,
        required=False,
        empty_label=_("New account"),
        help_text=_("Another key of the same service, e.g. to replace one."),
    )
    role = forms.ChoiceField(label=_("Role"), widget=forms.RadioSelect, initial=Role.PERSON)
    groups = GroupsField(
        label=_("Groups"),
        queryset=None,
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(user, *args, **kwargs)
        self.fields["name"].help_text = _("What the service is, e.g. “CI”.")
        accounts = cast(forms.ModelChoiceField, self.fields["account"])
        accounts.queryset = api_keys.service_accounts().filter(is_active=True)
        self._choices("role", [(role.value, role.label) for role in grantable_roles(user)])
        self.fields["role"].required = False
        cast(GroupsField, self.fields["groups"]).queryset = grantable_groups(user)

    def _choosable_scopes(self) -> list[ApiKey.Scope]:
        return list(ApiKey.Scope)

    def _has_all_keys(self) -> bool:
        return False

    def role_rows(self) -> list[tuple[Any, LazyText]]:
        """Return each role's box with what it allows."""
        boxes = self["role"].subwidgets
        return [(box, roles.DESCRIPTIONS[Role(box.data["value"])]) for box in boxes]

    def clean_account(self) -> User | None:
        account: User | None = self.cleaned_data["account"]
        if account is not None and not can_edit_user(self.user, account):
            raise forms.ValidationError(_("This account has more permissions than you have."))
        return account

    def clean_role(self) -> str:
        return self.cleaned_data["role"] or Role.PERSON


def expiry_choices() -> list[tuple[str, LazyText]]:
    """Return how long a key may last, as far as the installation allows."""
    limit = configured.API_KEY_DAYS.value
    days = [number for number in DAYS if not limit or number <= limit] or [
        limit or DEFAULT_DAYS
    ]
    choices: list[tuple[str, LazyText]] = [
        (str(number), ngettext("%(count)d day", "%(count)d days", number) % {"count": number})
        for number in days
    ]
    choices.append((OWN_DATE, _("On a date…")))
    if not limit:
        choices.append((NEVER, pgettext_lazy("API key", "Never")))
    return choices
