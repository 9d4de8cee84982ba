"""A panel for display: answers, agreement and result."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from django.utils.functional import cached_property
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext

from agents.db.sentences import translate
from agents.models import Agent, AgentStep

from ..markdown import render_markdown

MemberStance = Literal["chosen", "agrees", "differs", "silent"]


def is_panel(step: AgentStep) -> bool:
    """Whether this row compares a panel's answers."""
    facts = step.action_input
    if step.kind != AgentStep.Kind.EVALUATION or not isinstance(facts, dict):
        return False
    return (facts.get("merge") or facts.get("what")) in Agent.Merge.values


def summary(step: AgentStep) -> str:
    """Return the row's summary."""
    return translate(step.observation) or _("Comparing the answers")


@dataclass(frozen=True)
class PanelMemberView:
    """One member and its position among the others."""

    name: str
    stance: MemberStance
    label: str
    text: str
    problem: str

    @property
    def answer(self) -> SafeString:
        return render_markdown(self.text)


@dataclass(frozen=True)
class PanelView:
    """How a panel merged its answers, from the row that compares them."""

    facts: Mapping[str, Any]
    sentence: str

    @property
    def title(self) -> str:
        merge = Agent.Merge(self.facts["merge"]).label
        count = len(self.facts["heads"])
        panel = ngettext("Panel of %(count)d agent", "Panel of %(count)d agents", count)
        return f"{panel % {'count': count}} · {merge}"

    @property
    def groups(self) -> list[str]:
        """The members of each group with equal answers."""
        return [", ".join(group) for group in self.facts["groups"]]

    @property
    def differences(self) -> list[str]:
        return self.facts["differences"]

    @property
    def workings(self) -> list[dict[str, str]]:
        """How the sum or the average of each field was worked out."""
        return self._arithmetic.get("results", [])

    @property
    def _arithmetic(self) -> Mapping[str, Any]:
        return self.facts.get("arithmetic") or {}

    @cached_property
    def members(self) -> list[PanelMemberView]:
        members = []
        for facts in self.facts["heads"]:
            name = facts["name"]
            problem = translate(facts["problem"])
            stance: MemberStance = "silent"
            label = _("no answer")
            if not problem:
                stance, label = self._position(name)
            members.append(PanelMemberView(name, stance, label, facts["answer"], problem))
        return members

    def _position(self, name: str) -> tuple[MemberStance, str]:
        if self._arithmetic:
            if name in self._arithmetic["left_out"]:
                return "differs", _("no clear number")
            return "agrees", self._arithmetic["numbers"].get(name) or pgettext(
                "panel", "counted"
            )
        groups: list[list[str]] = self.facts["groups"]
        group = next((group for group in groups if name in group), [])
        peers = ", ".join(member for member in group if member != name)
        if self.facts["chosen"] == name and len(groups) > 1:
            is_judged = self.facts["merge"] == Agent.Merge.JUDGE
            return "chosen", _("chosen by the judge") if is_judged else _("in the majority")
        if peers:
            return "agrees", _("agrees with %(names)s") % {"names": peers}
        return ("differs", _("differs")) if len(groups) > 1 else ("agrees", _("answered"))


def from_step(step: AgentStep) -> PanelView | None:
    """Return the panel, or None for other rows and while answers are compared."""
    facts = step.action_input
    if not facts or not is_panel(step) or "heads" not in facts:
        return None
    return PanelView(facts, translate(step.observation))
