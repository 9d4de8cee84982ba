"""Budgets: all limits of every scope in one list, with what is used and left."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.db.models import F, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import cached_property
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.metering import budgets
from agents.metering.budgets import BudgetState, scopes
from agents.metering.budgets.limits import DEFAULTS
from agents.metering.budgets.measures import counted_amount
from agents.metering.budgets.windows import window_start
from agents.models import Quota

from ..admin_classes.model_admin import ConsoleAdmin
from .budget_form import BudgetForm

WARNING = 80  # percent
FULL = 100
NEAR = "near"
REACHED = "reached"
RELATED = ("user", "group", "agent", "language_model", "tool", "api_key")


@dataclass(frozen=True)
class BudgetRow:
    """A row with what is used and left; each user's own has neither."""

    row: Quota
    state: BudgetState | None = None

    @property
    def title(self) -> str:
        return scopes.title(self.row)

    @property
    def scope_label(self) -> str:
        return str(scopes.SCOPES[scopes.scope_of(self.row)])

    @property
    def limit(self) -> str:
        if self.row.limit is None:
            return _("No limit")
        amount = counted_amount(self.row.measure, self.row.limit) or 0
        return budgets.format_limit(self.row.measure, amount, self.row.window)

    @property
    def is_counted(self) -> bool:
        return self.state is not None and self.row.limit is not None

    @property
    def percent(self) -> int:
        return 0 if self.state is None else round(100 * self.state.share)

    @property
    def tone(self) -> str:
        if not self.is_counted or self.percent < WARNING:
            return "green"
        return "red" if self.percent >= FULL else "amber"

    @property
    def spent(self) -> str:
        return self._amount(self.state.spent if self.state else 0)

    @property
    def amount(self) -> str:
        amount = self.state.held if self.state else 0
        return self._amount(amount) if amount else ""

    @property
    def left(self) -> str:
        return self._amount((self.state.left if self.state else 0) or 0)

    @property
    def resets_at(self) -> Any:
        return self.state.resets_at if self.state else None

    def _amount(self, amount: int) -> str:
        return budgets.format_amount(self.row.measure, amount)

    @cached_property
    def runs_url(self) -> str:
        """The list of the runs behind it, in its window."""
        scope = scopes.scope_of(self.row)
        name = scopes.owner_name(self.row)
        since = timezone.localtime(window_start(self.row.window)).date()
        terms = [f"after:{since:%Y-%m-%d}"]
        if scope in {"user", "agent", "model", "tool", "key"}:
            terms.insert(0, f'{scope}:"{name}"' if " " in name else f"{scope}:{name}")
        elif scope not in {"all", "default"}:
            return ""  # runs can't be filtered by group
        query = urlencode({"q": " ".join(terms), "sort": "-cost"})
        return f"{reverse('trace:list')}?{query}"


def budget_rows(rows: Iterable[Quota]) -> list[BudgetRow]:
    """Return rows with what is used of them, read together."""
    rows = list(rows)
    limits = {row.pk: limit for row in rows if (limit := scopes.counted_limit(row))}
    states = dict(zip(limits, budgets.read_limits(list(limits.values())), strict=True))
    return [BudgetRow(row, states.get(row.pk)) for row in rows]


def applying_to(request: HttpRequest, **owner: Any) -> dict[str, Any]:
    """Return the limits of an agent, a model, a tool or an API key, for its page.

    Without the right to see them, or for something that isn't saved yet, there are none.
    """
    owner_field = next(iter(owner))
    if owner[owner_field] is None or not request.user.has_perm("agents.view_quota"):
        return {}
    rows = Quota.objects.filter(**owner).select_related(*RELATED)
    scope = next(scope for scope, field in scopes.OWNER_FIELDS.items() if field == owner_field)
    query = urlencode({"scope": scope, owner_field: owner[owner_field].pk})
    add_url = f"{reverse('admin:agents_quota_add')}?{query}"
    return {"budget_rows": budget_rows(rows), "add_budget_url": add_url}


class ScopeFilter(admin.SimpleListFilter):
    title = gettext_lazy("scope")
    parameter_name = "scope"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Any:
        return list(scopes.SCOPES.items())

    def queryset(self, request: HttpRequest, queryset: QuerySet[Quota]) -> QuerySet[Quota]:
        value = self.value()
        if value not in scopes.SCOPES:
            return queryset
        if field := scopes.OWNER_FIELDS.get(value):
            owned = queryset.filter(**{f"{field}__isnull": False})
            is_group = field == "group"
            return owned.filter(is_shared=value == scopes.SHARED) if is_group else owned
        free = {f"{name}__isnull": True for name in RELATED}
        return queryset.filter(is_shared=value == "all", **free)


class UsageFilter(admin.SimpleListFilter):
    title = gettext_lazy("usage")
    parameter_name = "usage"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Any:
        return [(NEAR, _("80 percent or more")), (REACHED, _("Used up"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Quota]) -> QuerySet[Quota]:
        min_percent = {NEAR: WARNING, REACHED: FULL}.get(self.value() or "")
        if min_percent is None:
            return queryset
        budget_list = budget_rows(queryset.select_related(*RELATED))
        pks = [b.row.pk for b in budget_list if b.is_counted and b.percent >= min_percent]
        return queryset.filter(pk__in=pks)


@admin.register(Quota)
class QuotaAdmin(ConsoleAdmin):
    form = BudgetForm
    list_display = ["scope", "limited", "used", "left", "resets", "runs"]
    list_filter = [ScopeFilter, "measure", "window", UsageFilter]
    list_select_related = RELATED
    search_fields = ["user__username", "group__name", "agent__name"]
    search_fields += ["language_model__label", "tool__name", "api_key__name"]
    autocomplete_fields = ["user", "api_key"]
    list_per_page = 100

    # Columns

    @admin.display(description=gettext_lazy("for"))
    def scope(self, row: Quota) -> SafeString:
        budget = self._budget(row)
        if not row.owner or row.group_id is not None:  # the title says it
            return format_html("<b>{}</b>", budget.title)
        return format_html(
            '<b>{}</b> <span class="help">{}</span>', budget.title, budget.scope_label
        )

    @admin.display(description=gettext_lazy("limit"), ordering=F("limit").asc(nulls_last=True))
    def limited(self, row: Quota) -> str:
        return self._budget(row).limit

    @admin.display(description=gettext_lazy("used"))
    def used(self, row: Quota) -> SafeString | str:
        return self._cell("used", row)

    @admin.display(description=gettext_lazy("left"))
    def left(self, row: Quota) -> SafeString | str:
        return self._cell("left", row)

    @admin.display(description=gettext_lazy("resets"))
    def resets(self, row: Quota) -> SafeString | str:
        return self._cell("resets", row)

    @admin.display(description=gettext_lazy("runs"))
    def runs(self, row: Quota) -> SafeString | str:
        return self._cell("runs", row)

    def _cell(self, column: str, row: Quota) -> SafeString:
        context = {"budget": self._budget(row)}
        return render_to_string(f"admin/agents/quota/_columns.html#{column}", context)

    def _budget(self, row: Quota) -> BudgetRow:
        return vars(row).get("_budget") or BudgetRow(row)

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """Read what is used of all rows of the page at once."""
        changelist = super().get_changelist_instance(request)
        changelist.result_list = list(changelist.result_list)
        for budget_row in budget_rows(changelist.result_list):
            vars(budget_row.row)["_budget"] = budget_row
        return changelist

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        # The defaults of each user that are settings, as text.
        defaults = [
            budgets.format_limit(measure, setting.value, window)
            for (measure, window), setting in DEFAULTS.items()
            if setting.value
        ]
        context = {"title": _("Usage limits"), "defaults": defaults}
        return super().changelist_view(request, context | (extra_context or {}))

    # The form

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        amounts: list[Any] = [("measure", "window"), "amount", "unlimited"]
        if obj is not None:
            return [(None, {"fields": ["scope", *amounts]})]
        owners = list(dict.fromkeys(scopes.OWNER_FIELDS.values()))
        return [(None, {"fields": ["scope", *owners, *amounts]})]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        """Only the amount can be changed: another limit is another row."""
        return ["scope", "measure", "window"] if obj is not None else []

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Let pages of agents, models, tools and API keys link to a new limit of theirs."""
        fields = {"scope", "measure", "window", *scopes.OWNER_FIELDS.values()}
        linked = {name: value for name, value in request.GET.items() if name in fields}
        return {"measure": Quota.Measure.COST, "window": Quota.Window.DAY, **linked}

    def render_change_form(
        self, request: HttpRequest, context: Any, *args: Any, **options: Any
    ) -> HttpResponse:
        row = options.get("obj")
        if row is not None and row.pk:
            context["budget"] = budget_rows([row])[0]
            context["subtitle"] = f"{context['budget'].title}: {context['budget'].limit}"
        return super().render_change_form(request, context, *args, **options)
