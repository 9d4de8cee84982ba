"""The form of an agent: what can be published, with the rules for every field."""

import re
from typing import Any, cast

from django import forms
from django.utils.translation import gettext_lazy as _

from agents.catalog.language_models import model_setups
from agents.db.sentences import translate
from agents.llm import model_info
from agents.models import Agent, AgentVersion, LanguageModel
from agents.models.catalog.agent_tools import links_of, replace_tools

from ..admin_classes.json_field import JsonObjectField
from ..admin_classes.model_admin import GroupsField
from ..guardrail_admin.personal_data import PersonalDataSelect
from ..language_models.model_field import ModelInput
from .agent_editor.layout import COLUMNS
from .agent_tools import ToolsField

MODEL_PATTERN = re.compile(r"[^\s/]+/\S*[^\s/]|demo")

MANY_FIELDS = ("handoffs", "experts", "collections", "groups")


class AgentForm(forms.ModelForm):
    given = ToolsField(
        label=_("Tools"),
        required=False,
        help_text=_(
            "Leave a setting empty to use the tool's default and the limits below. "
            "Changes here apply to this agent only."
        ),
    )
    note = forms.CharField(
        label=_("Change note"),
        max_length=AgentVersion._meta.get_field("note").max_length,
        required=False,
        help_text=_("What you changed and why. Appears in the version history."),
    )

    class Meta:
        model = Agent
        fields = COLUMNS
        field_classes = {
            "output_schema": JsonObjectField,
            "experts": GroupsField,
            "groups": GroupsField,
        }
        widgets = {
            "description": forms.TextInput,
            "model": ModelInput(attrs={"autocomplete": "off"}),
            "personal_data": PersonalDataSelect,
            "icon": forms.RadioSelect,
            "example_questions": forms.Textarea(attrs={"rows": 4}),
            "fallback_models": forms.Textarea(attrs={"class": "code", "rows": 3}),
            "instructions": forms.Textarea(attrs={"rows": 14}),
            **dict.fromkeys(MANY_FIELDS, forms.CheckboxSelectMultiple),
        }
        help_texts = {
            "name": _("Letters, digits, - and _. Other agents use this name to hand off."),
            "description": _(
                "What this agent is good at. Helps users and other agents choose it."
            ),
            "instructions": _("Leave empty to use the default instructions."),
            "model": _(
                "The label of a configured model, a LiteLLM name such as "
                "anthropic/claude-sonnet-4-5, or demo. Leave empty to use the "
                "default model."
            ),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "handoffs" in self.fields:
            handoffs = cast(forms.ModelChoiceField, self.fields["handoffs"])
            handoffs.queryset = Agent.objects.exclude(pk=self.instance.pk)
        for field in self.fields.values():
            if isinstance(field.widget, forms.CheckboxInput):
                field.widget.attrs["class"] = "switch"
        if self.instance.pk:
            self.initial["given"] = list(links_of(self.instance))

    def clean_model(self) -> str:
        """Accept a label that doesn't exist yet with a warning; reject unknown providers."""
        name: str = self.cleaned_data["model"]
        labels = LanguageModel.objects.filter(label=name)
        is_named = "/" in name or model_info.is_listed(name)
        if is_named and not labels.exists() and (sentence := model_setups.name_problem(name)):
            raise forms.ValidationError(translate(sentence))
        return name

    def clean_fallback_models(self) -> str:
        lines = self.cleaned_data["fallback_models"].splitlines()
        names = {number: line.strip() for number, line in enumerate(lines, 1) if line.strip()}
        if not names:
            return ""
        labels = {*LanguageModel.objects.values_list("label", flat=True)}
        unlabelled = [(line, name) for line, name in names.items() if name not in labels]
        wrong = [(line, name) for line, name in unlabelled if not MODEL_PATTERN.fullmatch(name)]
        if wrong:
            raise forms.ValidationError(
                [
                    _("Line %(line)d (%(name)s): use the form provider/model, without spaces.")
                    % {"line": line, "name": name}
                    for line, name in wrong
                ]
            )
        mistaken = {
            line: model_setups.name_problem(name) for line, name in unlabelled if "/" in name
        }
        if any(mistaken.values()):
            raise forms.ValidationError(
                [
                    _("Line %(line)d: %(why)s") % {"line": line, "why": translate(why)}
                    for line, why in mistaken.items()
                    if why
                ]
            )
        return "\n".join(dict.fromkeys(names.values()))

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        tools = {link.tool.name for link in cleaned.get("given") or ()}
        for sub_agent in cleaned.get("handoffs") or ():
            if sub_agent.handoff_tool_name in tools:
                names = {"tool": sub_agent.handoff_tool_name, "agent": sub_agent.name}
                self.add_error("handoffs", TOOL_NAME_TAKEN % names)
        if cleaned.get("mode") == Agent.Mode.PANEL:
            if "handoffs" in cleaned and not cleaned["handoffs"]:
                self.add_error("handoffs", MEMBERS_REQUIRED)
            is_synthesis = cleaned.get("merge") == Agent.Merge.SYNTHESIS
            if cleaned.get("output_schema") is not None and not is_synthesis:
                self.add_error("output_schema", SCHEMA_NEEDS_SYNTHESIS)
        return cleaned

    def _save_m2m(self) -> None:
        super()._save_m2m()  # type: ignore[misc]  # missing in django-stubs
        if "given" in self.cleaned_data:
            replace_tools(self.instance, self.cleaned_data["given"])

    def clean_name(self) -> str:
        """Reject a name that collides with a tool of an agent that hands off to this one."""
        renamed = Agent(name=self.cleaned_data["name"])
        callers = self.instance.asked_by.all() if self.instance.pk else Agent.objects.none()
        if not callers:
            return renamed.name
        if caller := callers.filter(tools__name=renamed.handoff_tool_name).first():
            names = {"tool": renamed.handoff_tool_name, "agent": caller.name}
            raise forms.ValidationError(CALLER_HAS_TOOL, params=names)
        return renamed.name


TOOL_NAME_TAKEN = _(
    "This agent already has a tool named %(tool)s, so it can't hand "
    "off to %(agent)s. Rename one of them."
)
MEMBERS_REQUIRED = _("A panel needs members. Select at least one agent.")
SCHEMA_NEEDS_SYNTHESIS = _(
    "Structured output requires synthesis. The other merge methods take the format of the "
    "members' answers."
)
CALLER_HAS_TOOL = _(
    "%(agent)s hands off to this agent and already has a tool named "
    "%(tool)s. Choose another name."
)
