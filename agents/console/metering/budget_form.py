"""The form of a limit: what it is for, what it counts, and how much."""

from decimal import Decimal
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from agents.metering.budgets.measures import MEASURES
from agents.metering.budgets.scopes import GROUP, OWNER_FIELDS, SCOPES, SHARED_SCOPES, scope_of
from agents.models import Quota

# What is counted when it is saved belongs to people; a model or a tool is only called.
CALL_SCOPES = ("model", "tool")


class BudgetForm(forms.ModelForm):
    """A limit; its scope and owner are fixed once it is saved."""

    scope = forms.ChoiceField(label=_("for"), choices=SCOPES.items())
    amount = forms.DecimalField(
        label=_("limit"),
        required=False,
        min_value=0,
        max_digits=18,  # in millionths of a dollar it still fits into the column
        decimal_places=6,
        help_text=_("US dollars for cost, seconds for active time, otherwise a number."),
    )
    unlimited = forms.BooleanField(
        label=_("No limit"),
        required=False,
        help_text=_("Exempts a user or group from the default limit."),
    )

    class Meta:
        model = Quota
        fields = [*OWNER_FIELDS.values(), "measure", "window"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        row = self.instance
        if row.pk:
            self.fields.pop("scope", None)
            initial = None if row.limit is None else shown_amount(row.measure, row.limit)
            self.initial.update(amount=initial, unlimited=row.limit is None)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if not self.instance.pk:
            self._clean_new(cleaned)
        measure = MEASURES.get(cleaned.get("measure") or self.instance.measure)
        scope = cleaned.get("scope") or (scope_of(self.instance) if self.instance.pk else "")
        amount: Decimal | None = cleaned.get("amount")
        if cleaned.get("unlimited"):
            if scope not in {"user", GROUP}:
                self.add_error("unlimited", _("Only users and groups can have no limit."))
            self.instance.limit = None
        elif amount is None:
            if "amount" not in self.errors:
                self.add_error("amount", _("Enter a number."))
        elif measure is not None:
            limit = amount * measure.typed
            if limit != int(limit):
                self.add_error("amount", _("Enter a whole number."))
            self.instance.limit = int(limit)
        return cleaned

    def _clean_new(self, cleaned: dict[str, Any]) -> None:
        """Check what is fixed once it is saved: owner, measure and window."""
        scope = cleaned.get("scope", "")
        owner_field = OWNER_FIELDS.get(scope, "")
        for name in OWNER_FIELDS.values():
            if name != owner_field and name in cleaned:
                cleaned[name] = None
        if owner_field and owner_field in cleaned and cleaned[owner_field] is None:
            self.add_error(owner_field, _("Choose one."))
        self.instance.is_shared = scope in SHARED_SCOPES
        measure = MEASURES.get(cleaned.get("measure") or "")
        if scope in CALL_SCOPES and measure and not measure.is_held:
            self.add_error("measure", _("Models and tools are limited by calls."))
        if self.errors:
            return
        # Say that there is such a limit, before the database does.
        names = [*OWNER_FIELDS.values(), "measure", "window"]
        same = {name: cleaned.get(name) for name in names}
        if Quota.objects.filter(is_shared=self.instance.is_shared, **same).exists():
            raise ValidationError(_("This limit already exists. Edit it instead."))


def shown_amount(measure: str, limit: int) -> Decimal:
    """Return a limit as it is entered; dollars have cents."""
    typed = MEASURES[measure].typed
    if typed == 1:
        return Decimal(limit)
    dollars = (Decimal(limit) / typed).normalize()
    cents = dollars.quantize(Decimal("0.01"))
    return cents if cents == dollars else dollars
