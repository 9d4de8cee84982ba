import re
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db import models
from django.db.models import Count, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from agents import planners
from agents.models import Agent
from agents.sentences import told

from .console import ConsoleAdmin
from .json_field import ObjectField, example
from .model_field import ModelInput
from .personal_data import PersonalDataSelect

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
    class Meta:
        widgets = {
            "description": forms.TextInput(attrs={"class": "vLargeTextField"}),
            "model": ModelInput(attrs={"class": "vLargeTextField", "autocomplete": "off"}),
            "personal_data": PersonalDataSelect,
            "fallback_models": forms.Textarea(
                attrs={"class": "vLargeTextField code", "rows": 3}
            ),
        }
        help_texts = {
            "name": _("Letters, digits, - and _: the name that other agents ask it by."),
            "description": _("What it is good at: people and other agents choose it by this."),
            "instructions": _("Empty takes the instructions of this installation."),
            "model": _(
                "The label of a model that is set up here, a LiteLLM name such as "
                "anthropic/claude-sonnet-4-5, or demo. Empty takes the model of this "
                "installation."
            ),
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

    def clean_fallback_models(self) -> str:
        lines = self.cleaned_data["fallback_models"].splitlines()
        names = {number: line.strip() for number, line in enumerate(lines, 1) if line.strip()}
        labels = planners.labels()
        known = [number for number, name in names.items() if name in labels]
        wrong = [
            at for at in names.items() if at[0] not in known and not MODEL.fullmatch(at[1])
        ]
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
        tools = {tool.name for tool in cleaned.get("tools") or ()}
        for colleague in cleaned.get("handoffs") or ():
            if colleague.asked_as in tools:
                names = {"tool": colleague.asked_as, "agent": colleague.name}
                self.add_error("handoffs", TAKEN % names)
        self._check_panel(cleaned)
        return cleaned

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
    filter_horizontal = ["tools", "handoffs"]
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
        (_("Tools and colleagues"), {"fields": ["tools", "auto_execute_tools", "handoffs"]}),
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
        (_("Personal data"), {"fields": ["personal_data"]}),
        (_("Form of the answer"), {"fields": ["output_schema"]}),
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Agent]:
        return super().get_queryset(request).annotate(has_tools=Count("tools"))

    def formfield_for_manytomany(self, db_field: Any, request: Any, **options: Any) -> Any:
        field = super().formfield_for_manytomany(db_field, request, **options)
        if db_field.name == "handoffs":
            field.widget.verbose_name = _("colleagues")
        return field

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        for name in planners.models_of(obj):
            if error := planners.trouble(name):
                messages.warning(request, told(str(error)))

    @admin.display(description=_("model"), ordering="model")
    def thinks_with(self, agent: Agent) -> str:
        return agent.model or _("of this installation")

    @admin.display(description=_("tools"), ordering="has_tools")
    def tool_count(self, agent: Agent) -> int:
        return agent.has_tools

    @admin.display(description=_("asks first"), ordering="auto_execute_tools")
    def asks_first(self, agent: Agent) -> str:
        return _("as its tools say") if agent.auto_execute_tools else _("before every call")
