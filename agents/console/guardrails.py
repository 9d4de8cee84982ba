"""Guardrails in the console: one page with the rules in order, ready-made sets and privacy."""

from collections.abc import Iterable
from typing import Any, cast

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.dispatch import receiver
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.decorators import method_decorator
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST

from agents.models import Agent, GuardrailPattern

from . import deleted_rows
from .guardrail_forms import EXAMPLES, RuleFormMixin, fieldsets, rule_kind
from .guardrail_testers import REVIEW_PERMISSION, TEMPLATE_DIR, TesterPages, int_value
from .guardrail_testing import judge_testing, pattern_sets, rule_list, rule_order
from .guardrail_testing.backtest import SAMPLE_SIZES
from .guardrail_testing.tester import MAX_SAMPLE_CHARS
from .model_field import ModelInput

LIST_URL = "admin:agents_guardrailpattern_changelist"
MAX_LISTED = 1_000
MOVES = {"up": -1, "down": 1, "first": -MAX_LISTED, "last": MAX_LISTED}


@admin.register(GuardrailPattern)
class GuardrailPatternAdmin(TesterPages):
    list_display = ["name"]
    list_filter = ["kind", "stage", "action", "is_observed", "enabled", "agents"]
    search_fields = ["name", "pattern", "rubric", "message"]
    list_per_page = MAX_LISTED
    list_max_show_all = MAX_LISTED
    ordering = ["position", "pk"]
    sortable_by = ()
    actions = ["enable", "disable", "observe"]
    change_form_template = f"{TEMPLATE_DIR}/change_form.html"
    change_list_template = f"{TEMPLATE_DIR}/change_list.html"

    def get_urls(self) -> list[URLPattern]:
        def admin_path(route: str, view: Any, name: str) -> URLPattern:
            return path(
                route, self.admin_site.admin_view(view), name=f"agents_guardrail_{name}"
            )

        own = [
            admin_path("try/", self.try_view, "try"),
            admin_path("ask/", self.ask_view, "ask"),
            admin_path("check/", self.check_view, "check"),
            admin_path("order/", self.order_view, "order"),
            admin_path("switch/<int:pk>/", self.switch_view, "switch"),
            admin_path("backtest/", self.backtest_view, "backtest"),
            admin_path("hits/", self.hits_view, "hits"),
            admin_path("hits/<int:pk>/", self.judge_view, "judge"),
            admin_path("sets/", self.sets_view, "sets"),
        ]
        return [*own, *super().get_urls()]

    # Form

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        return fieldsets(rule_kind(request, obj))

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **options: Any
    ) -> Any:
        form_class = super().get_form(request, obj, change, **options)
        return type("Form", (RuleFormMixin, form_class), {"rule_kind": rule_kind(request, obj)})

    def formfield_for_dbfield(self, db_field: Any, request: Any, **options: Any) -> Any:
        field = super().formfield_for_dbfield(db_field, request, **options)
        if db_field.name == "pattern" and field is not None:
            attrs = {"class": "vLargeTextField code", "spellcheck": "false"}
            field.widget = forms.TextInput(attrs=attrs)
            cast(forms.CharField, field).strip = False
        if db_field.name == "agents" and field is not None:
            field.widget.can_add_related = False
        if db_field.name == "model" and field is not None:
            field.widget = ModelInput(attrs={"spellcheck": "false", "autocomplete": "off"})
        return field

    def formfield_for_manytomany(self, db_field: Any, request: Any, **options: Any) -> Any:
        options["widget"] = forms.CheckboxSelectMultiple
        return super().formfield_for_manytomany(db_field, request, **options)

    def render_change_form(
        self, request: HttpRequest, context: Any, *args: Any, **about: Any
    ) -> HttpResponse:
        kind = rule_kind(request, about.get("obj"))
        context |= {
            "is_model_check": kind == GuardrailPattern.Kind.MODEL,
            "examples": EXAMPLES,
            "sizes": judge_testing.SAMPLE_SIZES
            if kind == GuardrailPattern.Kind.MODEL
            else SAMPLE_SIZES,
            "most": MAX_SAMPLE_CHARS,
            "may_review": request.user.has_perm(REVIEW_PERMISSION),
        }
        return super().render_change_form(request, context, *args, **about)

    # List

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """Display the rules in order, with tester, sets and privacy on the same page."""
        response = super().changelist_view(request, extra_context)
        if isinstance(response, TemplateResponse) and response.context_data:
            changelist = response.context_data.get("cl")
            if changelist is not None:
                rights = self._rights(request)
                response.context_data |= rule_list.page_context(changelist, rights)
        return response

    def _rights(self, request: HttpRequest) -> rule_list.Rights:
        return rule_list.Rights(
            change=self.has_change_permission(request),
            add=self.has_add_permission(request),
            review=request.user.has_perm(REVIEW_PERMISSION),
        )

    @admin.action(description=_("Enable"), permissions=["change"])
    def enable(self, request: HttpRequest, queryset: Any) -> None:
        self._set_all(request, queryset, enabled=True)

    @admin.action(description=_("Disable"), permissions=["change"])
    def disable(self, request: HttpRequest, queryset: Any) -> None:
        self._set_all(request, queryset, enabled=False)

    @admin.action(description=_("Observe only"), permissions=["change"])
    def observe(self, request: HttpRequest, queryset: Any) -> None:
        self._set_all(request, queryset, is_observed=True)

    def _set_all(self, request: HttpRequest, queryset: Any, **values: bool) -> None:
        rows = [row for row in queryset if any(getattr(row, n) != v for n, v in values.items())]
        for row in rows:
            with transaction.atomic():  # one by one: other writers wait for its end
                self._set(request, row, **values)
        changed = ngettext("%(n)s rule changed.", "%(n)s rules changed.", len(rows))
        messages.success(request, changed % {"n": len(rows)})

    def _set(self, request: HttpRequest, row: GuardrailPattern, **values: bool) -> None:
        """Change these fields of a rule, with entries in its history and the audit log."""
        vars(request)["changes"] = {n: [getattr(row, n), v] for n, v in values.items()}
        vars(row).update(values)
        row.save(update_fields=list(values))
        self.log_change(request, row, [{"changed": {"fields": list(values)}}])

    @method_decorator(require_POST)
    def switch_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Enable or disable a rule, and return its row."""
        row = get_object_or_404(GuardrailPattern, pk=pk)
        if not self.has_change_permission(request, row):
            raise PermissionDenied
        with transaction.atomic():
            self._set(request, row, enabled=f"enabled-{pk}" in request.POST)
        return self._render_rules(request, "")

    @method_decorator(require_POST)
    def order_view(self, request: HttpRequest) -> HttpResponse:
        """Save a new order, and return the rows."""
        if not self.has_change_permission(request):
            raise PermissionDenied
        pk = int_value(request.POST.get("pk", ""))
        direction = request.POST.get("by", "")
        with transaction.atomic():
            if pk is not None and direction in MOVES:
                moved = rule_order.move(pk, MOVES[direction])
            else:
                pks = map(int_value, request.POST.get("order", "").split(","))
                moved = rule_order.reorder([n for n in pks if n is not None])
            if moved:
                self.log_changes(request, moved, [{"changed": {"fields": ["position"]}}])
        name = next((row.name for row in moved if row.pk == pk), "")
        position = next((row.position for row in moved if row.pk == pk), 0)
        sentence = _("%(name)s is now number %(n)s.") % {"name": name, "n": position}
        return self._render_rules(request, str(sentence if position else _("Order saved.")))

    def _render_rules(self, request: HttpRequest, said: str) -> HttpResponse:
        rows = rule_list.build_rows(GuardrailPattern.objects.all())
        context = {"rules": rows, "may": self._rights(request), "is_sorted": True, "said": said}
        return render(request, f"{TEMPLATE_DIR}/_rules.html", context)

    def sets_view(self, request: HttpRequest) -> HttpResponse:
        """Turn a ready-made set on or off; missing rules are added."""
        if request.method != "POST":
            return redirect(f"{reverse(LIST_URL)}#sets")
        if not self.has_add_permission(request) or not self.has_change_permission(request):
            raise PermissionDenied
        key = request.POST.get("set", "")
        if key not in pattern_sets.SETS:
            raise Http404
        if request.POST.get("state") == "off":
            self._switch_set(request, key, is_on=False)
        else:
            self._turn_on_set(request, key)
        return redirect(f"{reverse(LIST_URL)}#sets")

    def _turn_on_set(self, request: HttpRequest, key: str) -> None:
        with transaction.atomic():
            self._switch_set(request, key, is_on=True)
            rows = pattern_sets.add(key)
            for row in rows:
                self.log_addition(request, row, [{"added": {}}])
        message = ngettext("%(n)s rule added.", "%(n)s rules added.", len(rows))
        messages.success(request, message % {"n": len(rows)})

    def _switch_set(self, request: HttpRequest, key: str, *, is_on: bool) -> None:
        with transaction.atomic():
            rows = pattern_sets.switch(key, is_on=is_on)
            for row in rows:
                vars(request)["changes"] = {"enabled": [not is_on, is_on]}
                self.log_change(request, row, [{"changed": {"fields": ["enabled"]}}])
        if rows:
            on = ngettext("%(n)s rule enabled.", "%(n)s rules enabled.", len(rows))
            off = ngettext("%(n)s rule disabled.", "%(n)s rules disabled.", len(rows))
            messages.success(request, (on if is_on else off) % {"n": len(rows)})


@receiver(deleted_rows.about_to_delete, sender=Agent)
def _rules_to_disable(sender: type[Agent], rows: Iterable[Agent], **more: Any) -> Any:
    """Return the rules that deleting these agents disables, so that an undo enables them."""
    return deleted_rows.rules_to_disable(GuardrailPattern, rows)
