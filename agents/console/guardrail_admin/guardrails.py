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
from django.urls import URLPattern, reverse
from django.utils.decorators import method_decorator
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST

from agents.db.sanitize import parse_id
from agents.models import Agent, GuardrailPattern

from ..admin_classes import deleted_rows
from ..admin_classes.switchable import SwitchableAdmin
from ..language_models.model_field import ModelInput
from .guardrail_forms import (
    EXAMPLES,
    RUN_COUNTS,
    TEXT_COUNTS,
    RuleFormMixin,
    fieldsets,
    rule_kind,
)
from .guardrail_testers import REVIEW_PERMISSION, TEMPLATE_DIR, TesterPages
from .guardrail_testing import pattern_sets, rule_list, rule_order
from .guardrail_testing.tester import MAX_SAMPLE_CHARS

LIST_URL = "admin:agents_guardrailpattern_changelist"
MAX_LISTED = 1_000
MOVES = {"up": -1, "down": 1, "first": -MAX_LISTED, "last": MAX_LISTED}


@admin.register(GuardrailPattern)
class GuardrailPatternAdmin(TesterPages, SwitchableAdmin):
    list_display = ["name"]
    list_filter = ["kind", "stage", "action", "is_observed", "enabled", "agents"]
    search_fields = ["name", "pattern", "rubric", "message"]
    list_per_page = MAX_LISTED
    list_max_show_all = MAX_LISTED
    ordering = ["position", "pk"]
    sortable_by = ()
    actions = [*SwitchableAdmin.actions, "observe"]
    change_form_template = f"{TEMPLATE_DIR}/change_form.html"
    change_list_template = f"{TEMPLATE_DIR}/change_list.html"

    def get_urls(self) -> list[URLPattern]:
        return [
            self.admin_path("try/", self.try_view, "agents_guardrail_try"),
            self.admin_path("ask/", self.ask_view, "agents_guardrail_ask"),
            self.admin_path("check/", self.check_view, "agents_guardrail_check"),
            self.admin_path("order/", self.order_view, "agents_guardrail_order"),
            self.admin_path("switch/<int:pk>/", self.switch_view, "agents_guardrail_switch"),
            self.admin_path("hits/", self.hits_view, "agents_guardrail_hits"),
            self.admin_path("hits/<int:pk>/", self.judge_view, "agents_guardrail_judge"),
            self.admin_path("sets/", self.sets_view, "agents_guardrail_sets"),
            *super().get_urls(),
        ]

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
        self, request: HttpRequest, context: Any, *args: Any, **options: Any
    ) -> HttpResponse:
        kind = rule_kind(request, options.get("obj"))
        context |= {
            "is_model_check": kind == GuardrailPattern.Kind.MODEL,
            "kind": kind,
            "kinds": GuardrailPattern.Kind.choices,
            "examples": EXAMPLES,
            "sizes": TEXT_COUNTS if kind == GuardrailPattern.Kind.MODEL else RUN_COUNTS,
            "most": MAX_SAMPLE_CHARS,
            "may_review": request.user.has_perm(REVIEW_PERMISSION),
        }
        return super().render_change_form(request, context, *args, **options)

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

    @admin.action(description=_("Observe only"), permissions=["change"])
    def observe(self, request: HttpRequest, queryset: Any) -> None:
        self.set_all(request, queryset, is_observed=True)

    def changed_message(self, count: int, values: dict[str, bool]) -> str:
        return ngettext("%(n)s rule changed.", "%(n)s rules changed.", count) % {"n": count}

    @method_decorator(require_POST)
    def switch_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Enable or disable a rule, and return its row."""
        row = get_object_or_404(GuardrailPattern, pk=pk)
        if not self.has_change_permission(request, row):
            raise PermissionDenied
        with transaction.atomic():
            self.set_values(request, row, enabled=f"enabled-{pk}" in request.POST)
        return self._render_rules(request, "")

    @method_decorator(require_POST)
    def order_view(self, request: HttpRequest) -> HttpResponse:
        """Save a new order, and return the rows."""
        if not self.has_change_permission(request):
            raise PermissionDenied
        pk = parse_id(request.POST.get("pk"))
        direction = request.POST.get("by", "")
        with transaction.atomic():
            if pk is not None and direction in MOVES:
                moved = rule_order.move(pk, MOVES[direction])
            else:
                pks = map(parse_id, request.POST.get("order", "").split(","))
                moved = rule_order.reorder([n for n in pks if n is not None])
            if moved:
                self.log_changes(request, moved, [{"changed": {"fields": ["position"]}}])
        name = next((row.name for row in moved if row.pk == pk), "")
        position = next((row.position for row in moved if row.pk == pk), 0)
        sentence = _("%(name)s is now number %(n)s.") % {"name": name, "n": position}
        return self._render_rules(request, str(sentence if position else _("Order saved.")))

    def _render_rules(self, request: HttpRequest, message: str) -> HttpResponse:
        rows = rule_list.build_rows(GuardrailPattern.objects.all())
        context = {"rules": rows, "may": self._rights(request), "is_sorted": True}
        context["said"] = message
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
        is_on = request.POST.get("state") != "off"
        with transaction.atomic():
            switched = pattern_sets.switch(key, is_on=is_on)
            for row in switched:
                vars(request)["changes"] = {"enabled": [not is_on, is_on]}
                self.log_change(request, row, [{"changed": {"fields": ["enabled"]}}])
            added = pattern_sets.add(key) if is_on else []
            for row in added:
                self.log_addition(request, row, [{"added": {}}])
        if switched:
            on = ngettext("%(n)s rule enabled.", "%(n)s rules enabled.", len(switched))
            off = ngettext("%(n)s rule disabled.", "%(n)s rules disabled.", len(switched))
            messages.success(request, (on if is_on else off) % {"n": len(switched)})
        if is_on:
            sentence = ngettext("%(n)s rule added.", "%(n)s rules added.", len(added))
            messages.success(request, sentence % {"n": len(added)})
        return redirect(f"{reverse(LIST_URL)}#sets")


@receiver(deleted_rows.about_to_delete, sender=Agent)
def _rules_to_disable(sender: type[Agent], rows: Iterable[Agent], **signal: Any) -> Any:
    """Return the rules that deleting these agents disables, so that an undo enables them."""
    return deleted_rows.rules_to_disable(GuardrailPattern, rows)
