"""What an agent does with personal data, as a choice that explains itself."""

from typing import Any

from django import forms
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from agents.models import Agent

Rule = Agent.PersonalData

EXPLANATIONS = {
    Rule.SHOWN: _(
        "The model reads it and the trace keeps it. Reviewers see it masked, and that they "
        "looked is recorded."
    ),
    Rule.HIDDEN: _(
        "The provider is sent placeholders such as ‹email 1›, also by the agents that this one "
        "asks. Tools are called with the values, the person reads them, and the trace keeps "
        "both."
    ),
    Rule.UNKEPT: _(
        "Questions, steps and answers are kept and shown without it, to the person as well, "
        "and it cannot be brought back. The model is sent the question as it was asked; but a "
        "run that waited for an approval, in the queue or for a worker, or was taken over "
        "after a restart, knows only what was kept. What somebody writes into a call that "
        "waits for approval is kept as they wrote it."
    ),
}


class PersonalDataSelect(forms.RadioSelect):
    def create_option(self, name: str, value: Any, label: Any, *more: Any, **about: Any) -> Any:
        form = '<span>{} <span class="explained">{}</span></span>'
        explained = format_html(form, label, EXPLANATIONS.get(value, ""))
        return super().create_option(name, value, explained, *more, **about)
