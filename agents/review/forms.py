"""What people fill in about runs."""

from collections.abc import Iterable
from dataclasses import asdict
from uuid import uuid4

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from .reruns import AS_THE_AGENT, Setup, Wish, may_change

MOST_INSTRUCTIONS = 50_000
AS_SET_UP = {"instructions", "model", "fallback", "guardrails"}
AS_WRITTEN = {"instructions", "tools"}  # a workflow itself says what it does, and with what


class RerunForm(forms.Form):
    """What is to be different this time; filled in as the run had it."""

    # Made with the page: sent twice, it is one run that is wanted.
    token = forms.RegexField(
        r"\A[0-9a-f-]{8,64}\Z",
        initial=uuid4,
        widget=forms.HiddenInput,
        error_messages=dict.fromkeys(
            ["required", "invalid"], _("The page sent something that cannot be read.")
        ),
    )
    instructions = forms.CharField(
        label=_("Instructions"),
        max_length=MOST_INSTRUCTIONS,
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 10, "spellcheck": "false"}),
    )
    model = forms.ChoiceField(label=_("Model"))
    fallback = forms.ChoiceField(label=_("If it cannot be used"), required=False)
    tools = forms.MultipleChoiceField(
        label=_("Tools"), required=False, widget=forms.CheckboxSelectMultiple
    )
    guardrails = forms.MultipleChoiceField(
        label=_("Guardrails"), required=False, widget=forms.CheckboxSelectMultiple
    )

    def __init__(self, setup: Setup, user, data=None) -> None:
        self.now, before = setup.now, setup.before
        super().__init__(data, initial=asdict(before), label_suffix="")
        models = dict.fromkeys([*setup.models, *before.fallback.split()])
        self.fields["model"].choices = _choices(setup.models)
        self.fields["fallback"].choices = [
            (AS_THE_AGENT, _as_the_agent(setup)),
            ("", _("No other model is asked")),
            *_choices(name for name in models if name != AS_THE_AGENT),
        ]
        self.fields["tools"].choices = _choices(setup.tools)
        self.fields["guardrails"].choices = _choices(setup.guardrails)
        fixed = set() if may_change(user) else AS_SET_UP
        for name in fixed | (AS_WRITTEN if setup.run.workflow_id else set()):
            del self.fields[name]

    @property
    def wish(self) -> Wish:
        offered = [name for name in Wish.__slots__ if name in self.fields]
        said = asdict(self.now) | {name: self.cleaned_data[name] for name in offered}
        # A browser sends lines as the web does, and the run had them as Unix does.
        return Wish(**said | {"instructions": said["instructions"].replace("\r\n", "\n")})


def _choices(names: Iterable[str]) -> list[tuple[str, str]]:
    return [(name, name) for name in names]


def _as_the_agent(setup: Setup) -> str:
    models = ", ".join(setup.agent.fallback_models.split())
    as_it_is = gettext("As the agent has it")
    return f"{as_it_is} ({models})" if models else as_it_is
