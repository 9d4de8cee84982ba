"""What a person is asked, as it is shown."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth import get_user_model
from django.utils.functional import cached_property
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from agents.meaning import decoded
from agents.models import Approval
from agents.prose import render_exact
from agents.readable import unfolded

from .places import chat_url


@dataclass(frozen=True)
class ApprovalView:
    """What a person is asked about a call, and what they said."""

    approval: Approval
    may_decide: bool = True
    is_inside: bool = True  # False for one who is asked, and sees nothing else of the run
    typed: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.approval, name)

    @property
    def chat_url(self) -> str:
        return chat_url(self.approval.run)

    @property
    def why_label(self) -> str:
        return self.approval.get_why_display()

    @property
    def verdict_label(self) -> str:
        words = {
            Approval.Verdict.APPROVED: _("to be made again"),
            Approval.Verdict.REJECTED: _("it was done"),
        }
        if self.approval.is_unknown and self.approval.verdict in words:
            return words[self.approval.verdict]
        return self.approval.get_verdict_display()

    @property
    def question(self) -> str:
        """What a person is asked, in the words of the agent."""
        asked = decoded(self.approval.arguments)
        return str(asked.get("question", "")) if isinstance(asked, dict) else self.readable

    @property
    def asker_name(self) -> str:
        asker = self.approval.run.user
        return asker.get_username() if asker else ""

    @cached_property
    def is_anybody_there(self) -> bool:
        """Whether anybody is known for what is asked for; else it is left to whoever asked."""
        people = get_user_model().objects.filter(is_active=True)
        return people.filter(groups__name__iexact=self.approval.role).exists()

    @cached_property
    def readable(self) -> str:
        """The arguments, whole: nobody can agree to what is left out."""
        return unfolded(decoded(self.approval.arguments))

    @property
    def editable(self) -> str:
        return self.typed.get("arguments") or self.readable

    @property
    def is_changed(self) -> bool:
        return self.editable != self.readable

    @property
    def exact(self) -> SafeString:
        return render_exact(self.readable)

    @property
    def decided_by_name(self) -> str:
        person = self.approval.decided_by
        return person.get_username() if person else ""
