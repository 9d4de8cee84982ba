"""The form of a webhook: what it sends, where, and for which agent."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.db.sentences import translate
from agents.models import Agent
from agents.models.types import AnyUser
from agents.tools.egress import EgressRefused

from . import webhooks
from .models import OWN_EVENTS, AlertChannel, Event


def check_url(url: str) -> str:
    """Return the URL of a webhook; raise ValidationError if nothing may be sent there."""
    if not url:
        raise forms.ValidationError(_("Enter the URL that receives the requests."))
    try:
        exemption = webhooks.policy().required_exemption(url)
    except EgressRefused as error:
        raise forms.ValidationError(translate(str(error))) from error
    if exemption:
        sentence = _(
            "%(place)s is a private address. An administrator can add it to "
            "ASHIATO_EGRESS_ALLOW."
        )
        raise forms.ValidationError(sentence % {"place": exemption})
    return url


def check_events(events: Any, allowed: Sequence[Event]) -> list[str]:
    """Return the chosen events in their order; raise ValidationError for an unknown one."""
    known = [event.value for event in allowed]
    if not isinstance(events, list) or not all(event in known for event in events):
        raise forms.ValidationError(
            _("Choose among these events: %(events)s.") % {"events": ", ".join(known)}
        )
    return [event for event in known if event in events]


def events_field(allowed: Sequence[Event], help_text: str = "") -> forms.MultipleChoiceField:
    return forms.MultipleChoiceField(
        choices=[(event.value, event.label) for event in allowed],
        widget=forms.CheckboxSelectMultiple,
        required=False,
        label=gettext_lazy("events"),
        help_text=help_text,
    )


class OwnWebhookForm(forms.ModelForm):
    """A user's own webhook, for their own runs."""

    description = forms.CharField(label=gettext_lazy("Name"), max_length=200)
    events = events_field(OWN_EVENTS)

    class Meta:
        model = AlertChannel
        fields = ("description", "url", "events", "agent", "with_answer", "enabled")

    def __init__(self, user: AnyUser, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        agents = Agent.objects.open_to(user.pk or 0).filter(enabled=True)
        choice = self.fields["agent"]
        assert isinstance(choice, forms.ModelChoiceField)
        choice.queryset = agents
        choice.empty_label = _("All agents")

    def clean_url(self) -> str:
        return check_url(self.cleaned_data["url"])

    def clean_events(self) -> list[str]:
        events = self.cleaned_data["events"]
        if not events:
            raise forms.ValidationError(_("Choose at least one event."))
        return check_events(events, OWN_EVENTS)
