"""Forms about runs."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import cast
from uuid import uuid4

from django import forms
from django.contrib.auth.models import User
from django.http import QueryDict
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from .reruns import AGENT_DEFAULT, RerunOptions, RerunSetup, can_override

MAX_INSTRUCTIONS_CHARS = 50_000
PRIVILEGED_FIELDS = {"instructions", "model", "fallback", "guardrails"}
# A workflow defines its own steps and tools.
WORKFLOW_FIELDS = {"instructions", "tools"}


class RerunForm(forms.Form):
    """What to change in a rerun; prefilled from the run."""

    # Created with the page, so that a form sent twice creates one run.
    token = forms.RegexField(
        r"\A[0-9a-f-]{8,64}\Z",
        initial=uuid4,
        widget=forms.HiddenInput,
        error_messages=dict.fromkeys(
            ["required", "invalid"],
            _("The page sent an invalid request. Reload it and try again."),
        ),
    )
    instructions = forms.CharField(
        label=_("Instructions"),
        max_length=MAX_INSTRUCTIONS_CHARS,
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 10, "spellcheck": "false"}),
    )
    model = forms.ChoiceField(label=_("Model"))
    fallback = forms.ChoiceField(label=_("Fallback model"), required=False)
    tools = forms.MultipleChoiceField(
        label=_("Tools"), required=False, widget=forms.CheckboxSelectMultiple
    )
    guardrails = forms.MultipleChoiceField(
        label=_("Guardrails"), required=False, widget=forms.CheckboxSelectMultiple
    )

    def __init__(self, setup: RerunSetup, user: User, data: QueryDict | None = None) -> None:
        self.current = setup.now
        original = setup.before
        super().__init__(data, initial=asdict(original), label_suffix="")
        models = dict.fromkeys([*setup.models, *original.fallback.split()])
        fallback_label = gettext("Agent default")
        if agent_models := ", ".join(setup.agent.fallback_models.split()):
            fallback_label = f"{fallback_label} ({agent_models})"
        cast(forms.ChoiceField, self.fields["model"]).choices = _choices(setup.models)
        cast(forms.ChoiceField, self.fields["fallback"]).choices = [
            (AGENT_DEFAULT, fallback_label),
            ("", _("No fallback")),
            *_choices(name for name in models if name != AGENT_DEFAULT),
        ]
        cast(forms.ChoiceField, self.fields["tools"]).choices = _choices(setup.tools)
        cast(forms.ChoiceField, self.fields["guardrails"]).choices = _choices(setup.guardrails)
        fixed = set() if can_override(user) else PRIVILEGED_FIELDS
        for name in fixed | (WORKFLOW_FIELDS if setup.run.workflow_id else set()):
            del self.fields[name]

    @property
    def options(self) -> RerunOptions:
        offered = [name for name in RerunOptions.__slots__ if name in self.fields]
        values = asdict(self.current) | {name: self.cleaned_data[name] for name in offered}
        # Browsers send CRLF, and the run had LF.
        return RerunOptions(
            **values | {"instructions": values["instructions"].replace("\r\n", "\n")}
        )


def _choices(names: Iterable[str]) -> list[tuple[str, str]]:
    return [(name, name) for name in names]
