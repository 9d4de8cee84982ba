"""What the forms of schedules and triggers share: what starts, and where its answer goes."""

from typing import Any

from django import forms
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from agents.models import Agent
from agents.models.types import AnyUser

ONE_TARGET = _("Choose a workflow or an agent.")
NO_QUESTION = _("Enter what the agent is asked.")
ONE_RESULT = _("Choose either a chat or a channel.")
ONLY_AGENTS = _("Only answers of agents can be in a chat.")


class AutomaticStartForm(forms.ModelForm):
    editor: AnyUser | None = None  # the user of the form; None for a file from the terminal

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if self.editor is None or not self.editor.is_authenticated:
            return
        choices: dict[str, Any] = self.fields
        if agents := choices.get("agent"):
            usable = Agent.objects.open_to(self.editor.pk).values("pk")
            kept = Q(pk__in=usable) | Q(pk=self.instance.agent_id)
            agents.queryset = agents.queryset.filter(kept)
        if channels := choices.get("result_channel"):
            usable = channels.queryset.usable_by(self.editor).values("pk")
            kept = Q(pk__in=usable) | Q(pk=self.instance.result_channel_id)
            channels.queryset = channels.queryset.filter(kept)

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        agent = cleaned.get("agent")
        workflow = cleaned.get("workflow")
        if not self.errors.keys() & {"agent", "workflow"} and bool(agent) == bool(workflow):
            self.add_error("workflow", str(ONE_TARGET))
        if agent and not cleaned.get("question", "").strip():
            self.add_error("question", str(NO_QUESTION))
        if cleaned.get("into_chat") and cleaned.get("result_channel"):
            self.add_error("into_chat", str(ONE_RESULT))
        if cleaned.get("into_chat") and workflow:
            self.add_error("into_chat", str(ONLY_AGENTS))
        self.instance.trouble = ""
        return cleaned
