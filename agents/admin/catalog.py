import re
from typing import Any

from django import forms
from django.contrib import admin
from django.db import models
from django.db.models import Count, QuerySet
from django.http import HttpRequest
from django.urls import URLPattern
from django.utils.translation import gettext_lazy as _

from agents import versions
from agents.models import Agent, AgentVersion

from . import circuits, health
from .console import ConsoleAdmin
from .given_tools import ToolsField
from .json_field import ObjectField, example

MODEL = re.compile(r"[^\s/]+/\S*[^\s/]|demo")
OUTPUT = {
    "type": "object",
    "properties": {
        "product": {"type": "string"},
        "revenue": {"type": "number"},
        "reasons": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["product", "revenue"],
}


class AgentForm(forms.ModelForm):
    given = ToolsField(
        label=_("tools"),
        required=False,
        help_text=_(
            "Empty settings are as the tool is set up, and as under Limits. What is set here "
            "holds for this agent alone."
        ),
    )
    note = forms.CharField(
        label=_("what is changed, and why"),
        max_length=AgentVersion._meta.get_field("note").max_length,
        required=False,
        widget=forms.TextInput(attrs={"class": "vLargeTextField"}),
        help_text=_("Kept with the version that this makes, for whoever reads its history."),
    )

    class Meta:
        widgets = {
            "description": forms.TextInput(attrs={"class": "vLargeTextField"}),
            "fallback_models": forms.Textarea(
                attrs={"class": "vLargeTextField code", "rows": 3}
            ),
        }
        help_texts = {
            "name": _("Letters, digits, - and _: the name that other agents ask it by."),
            "description": _("What it is good at: people and other agents choose it by this."),
            "instructions": _("Empty takes the instructions of this installation."),
            "output_schema": example(
                _("A JSON Schema that the answer has to fit. Empty: the answer is text."),
                OUTPUT,
            ),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "handoffs" in self.fields:
            others = Agent.objects.exclude(pk=self.instance.pk)
            self.fields["handoffs"].queryset = others
        if self.instance.pk:
            self.initial["given"] = list(self.instance.links.select_related("tool"))

    def clean_fallback_models(self) -> str:
        lines = self.cleaned_data["fallback_models"].splitlines()
        names = {number: line.strip() for number, line in enumerate(lines, 1) if line.strip()}
        wrong = [at for at in names.items() if not MODEL.fullmatch(at[1])]
        if wrong:
            raise forms.ValidationError(
                [
                    _("Line %(line)d, %(name)s: write it as provider/model, without spaces.")
                    % {"line": line, "name": name}
                    for line, name in wrong
                ]
            )
        return "\n".join(dict.fromkeys(names.values()))

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        tools = {link.tool.name for link in cleaned.get("given") or ()}
        for colleague in cleaned.get("handoffs") or ():
            if colleague.asked_as in tools:
                names = {"tool": colleague.asked_as, "agent": colleague.name}
                self.add_error("handoffs", TAKEN % names)
        self._check_panel(cleaned)
        return cleaned

    def _save_m2m(self) -> None:
        super()._save_m2m()
        if "given" in self.cleaned_data:
            self.instance.give(self.cleaned_data["given"])

    def _check_panel(self, cleaned: dict[str, Any]) -> None:
        if cleaned.get("mode") != Agent.Mode.PANEL:
            return
        if "handoffs" in cleaned and not cleaned["handoffs"]:
            self.add_error("handoffs", NO_MEMBERS)
        is_own = cleaned.get("merge") == Agent.Merge.SYNTHESIS
        if cleaned.get("output_schema") is not None and not is_own:
            self.add_error("output_schema", NOT_ITS_OWN)

    def clean_name(self) -> str:
        """Those that may ask it know it by its name, and may have a tool that is called so."""
        renamed = Agent(name=self.cleaned_data["name"])
        callers = self.instance.asked_by.all() if self.instance.pk else Agent.objects.none()
        if caller := callers.filter(tools__name=renamed.asked_as).first():
            names = {"tool": renamed.asked_as, "agent": caller.name}
            raise forms.ValidationError(TAKEN_THERE, params=names)
        return renamed.name


TAKEN = _("%(tool)s is a tool of this agent already, so it could not ask %(agent)s.")
NO_MEMBERS = _("A panel needs members: choose the agents that it asks.")
NOT_ITS_OWN = _(
    "A vote and a judge give the answer of a member as it is. "
    "Only a synthesis can have a form of its own."
)
TAKEN_THERE = _("%(agent)s, which may ask it, has a tool named %(tool)s already.")


@admin.register(Agent)
class AgentAdmin(ConsoleAdmin):
    form = AgentForm
    list_display = ["name", "description", "thinks_with", "tool_count", "asks_first"]
    list_display += ["enabled", "is_default"]
    list_filter = ["enabled", "dialect"]
    search_fields = ["name", "description"]
    filter_horizontal = ["handoffs", "groups"]
    formfield_overrides = {models.JSONField: {"form_class": ObjectField}}
    fieldsets = [
        (
            _("Who it is"),
            {"fields": ["name", "description", "instructions", "enabled", "is_default"]},
        ),
        (
            _("How it works"),
            {"fields": ["mode", "shows_plan", "max_replans", "merge", "roles"]},
        ),
        (_("Model"), {"fields": ["model", "fallback_models", "dialect"]}),
        (_("Tools"), {"fields": ["given", "auto_execute_tools"]}),
        (_("Colleagues"), {"fields": ["handoffs"]}),
        (
            _("Limits"),
            {
                "fields": [
                    *("max_steps", "max_duplicate_tool_calls", "max_tool_calls_per_tool"),
                    *("max_seconds", "max_run_tokens", "max_cost"),
                    *("max_input_tokens", "max_output_tokens"),
                ]
            },
        ),
        (_("Form of the answer"), {"fields": ["output_schema"]}),
        (_("Who may use it"), {"fields": ["groups"]}),
        (_("This version"), {"fields": ["note"]}),
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Agent]:
        return super().get_queryset(request).annotate(has_tools=Count("tools"))

    def get_urls(self) -> list[URLPattern]:
        own = [*circuits.urls(self.admin_site), *health.urls(self.admin_site)]
        return [*own, *super().get_urls()]

    def save_related(
        self, request: HttpRequest, form: Any, formsets: Any, change: bool
    ) -> None:
        """Last of all that is saved, also where it is changed in the list."""
        super().save_related(request, form, formsets, change)
        versions.keep(form.instance, request.user, form.cleaned_data.get("note", ""))

    def formfield_for_manytomany(self, db_field: Any, request: Any, **options: Any) -> Any:
        field = super().formfield_for_manytomany(db_field, request, **options)
        if db_field.name == "handoffs":
            field.widget.verbose_name = _("colleagues")
        return field

    @admin.display(description=_("model"), ordering="model")
    def thinks_with(self, agent: Agent) -> str:
        return agent.model or _("of this installation")

    @admin.display(description=_("tools"), ordering="has_tools")
    def tool_count(self, agent: Agent) -> int:
        return agent.has_tools

    @admin.display(description=_("asks first"), ordering="auto_execute_tools")
    def asks_first(self, agent: Agent) -> str:
        return _("as its tools say") if agent.auto_execute_tools else _("before every call")
