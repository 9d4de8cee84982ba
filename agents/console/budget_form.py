"""The form of a limit: what it is for, what it counts, and how much."""

from decimal import Decimal
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from agents.budgets.scopes import GROUP, OWNER_FIELDS, SCOPES, SHARED_SCOPES, scope_of
from agents.installation.setting import MICROS
from agents.models import Quota

COST = Quota.Measure.COST
MONEY_DIGITS = Decimal("0.000001")
# Runs and messages belong to people; a model or a tool is only called.
CALL_SCOPES = ("model", "tool")
STARTED = (Quota.Measure.RUNS, Quota.Measure.MESSAGES)


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
        help_text=_("For a user or group that the default shouldn't limit."),
    )

    class Meta:
        model = Quota
        fields = [*OWNER_FIELDS.values(), "measure", "window"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        row = self.instance
        if row.pk:
            self.fields.pop("scope", None)
            initial = None if row.limit is None else _shown_amount(row.measure, row.limit)
            self.initial.update(amount=initial, unlimited=row.limit is None)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if not self.instance.pk:
            self._clean_owner(cleaned)
            self._clean_measure(cleaned)
            self._clean_unique(cleaned)
        self._clean_amount(cleaned)
        return cleaned

    def _clean_owner(self, cleaned: dict[str, Any]) -> None:
        """Keep the owner that belongs to the scope, and none of the others."""
        scope = cleaned.get("scope", "")
        wanted = OWNER_FIELDS.get(scope, "")
        for name in OWNER_FIELDS.values():
            if name != wanted and name in cleaned:
                cleaned[name] = None
        if wanted and wanted in cleaned and cleaned[wanted] is None:
            self.add_error(wanted, _("Choose one."))
        self.instance.is_shared = scope in SHARED_SCOPES

    def _clean_measure(self, cleaned: dict[str, Any]) -> None:
        if cleaned.get("scope") in CALL_SCOPES and cleaned.get("measure") in STARTED:
            self.add_error("measure", _("Models and tools are limited by calls."))

    def _clean_unique(self, cleaned: dict[str, Any]) -> None:
        """Say that there is such a limit, before the database does."""
        if self.errors:
            return
        names = [*OWNER_FIELDS.values(), "measure", "window"]
        same = {name: cleaned.get(name) for name in names}
        if Quota.objects.filter(is_shared=self.instance.is_shared, **same).exists():
            raise ValidationError(_("There is already such a limit. Edit that one instead."))

    def _clean_amount(self, cleaned: dict[str, Any]) -> None:
        measure = cleaned.get("measure") or self.instance.measure
        scope = cleaned.get("scope") or (scope_of(self.instance) if self.instance.pk else "")
        amount: Decimal | None = cleaned.get("amount")
        if cleaned.get("unlimited"):
            if scope not in {"user", GROUP}:
                self.add_error("unlimited", _("Only users and groups can have no limit."))
            self.instance.limit = None
        elif amount is None:
            if "amount" not in self.errors:
                self.add_error("amount", _("Enter a number."))
        elif measure != COST and amount != int(amount):
            self.add_error("amount", _("Enter a whole number."))
        else:
            self.instance.limit = round(amount * MICROS) if measure == COST else int(amount)


def _shown_amount(measure: str, limit: int) -> Decimal:
    if measure != COST:
        return Decimal(limit)
    dollars = (Decimal(limit) / MICROS).quantize(MONEY_DIGITS).normalize()
    cents = dollars.quantize(Decimal("0.01"))
    return cents if cents == dollars else dollars
