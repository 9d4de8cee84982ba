"""What an agent does with personal data, as a self-explanatory choice."""

from typing import Any

from django import forms
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from agents.models import Agent

Rule = Agent.PersonalData

EXPLANATIONS = {
    Rule.SHOWN: _(
        "The model sees it and the trace stores it. Reviewers see it masked, and "
        "each access is logged."
    ),
    Rule.HIDDEN: _(
        "The provider receives placeholders such as ‹email 1›, also from agents this "
        "one hands off to. Tools and the user get the real values. The trace stores "
        "both."
    ),
    Rule.UNKEPT: _(
        "Messages, steps and answers are stored and displayed masked, also for the user. "
        "This can't be undone. The model receives the original message, but a run that "
        "waited (for approval, in the queue or for a worker) or resumed after a restart "
        "has only the masked text. Edits to a tool call during approval are stored as "
        "entered."
    ),
}


class PersonalDataSelect(forms.RadioSelect):
    def create_option(
        self, name: str, value: Any, label: Any, *args: Any, **options: Any
    ) -> Any:
        template = '<span>{} <span class="explained">{}</span></span>'
        explained = format_html(template, label, EXPLANATIONS.get(value, ""))
        return super().create_option(name, value, explained, *args, **options)
