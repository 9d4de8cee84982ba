"""Approvals: which calls wait for a person, and the decisions about them."""

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Literal, Self

from agents.engine.material.run_material import RunMaterial
from agents.engine.sentences import Sentence as _
from agents.engine.sentences import as_error
from agents.engine.tool import (
    Effect,
    Tool,
    ToolInput,
    ToolRegistry,
    ToolResult,
    specification,
)
from agents.engine.turn.assembly import ToolCall

from ..capability import Capability
from .client_tool import CLIENT, ClientTool

ApprovalReason = Literal[
    "agent",
    "tool",
    "unknown",
    "plan",
    "step",
    "question",
    "sharing",
    "elicitation",
    "untrusted",
    "budget",
    "client",
]
# When a call with side effects needs approval because of what the run has read.
UntrustedPolicy = Literal["suspicious", "always", "never"]
# A question of a running call, which waits itself: the run isn't paused.
ELICITATION: ApprovalReason = "elicitation"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalDecision:
    """A person's decision about a call; `arguments` is set if they edited them."""

    is_approved: bool
    arguments: str | None = None
    reason: str = ""
    by: str = ""

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        return cls(
            is_approved=data["is_approved"],
            arguments=data["arguments"],
            reason=data["reason"],
            by=data.get("by_name", ""),
        )

    def of(self, call: ToolCall) -> ToolCall:
        """Return the call as it was approved."""
        return call if self.arguments is None else replace(call, arguments=self.arguments)

    def annotate(self, observation: str) -> str:
        """Return an approved call's result, with a note if the arguments were edited."""
        if self.arguments is None:
            return observation
        return f"(A user changed the arguments to {self.arguments})\n{observation}"

    @property
    def refusal(self) -> str:
        """The model's message about a rejected call."""
        rejected = self._with_comment(
            _("a user rejected this call, so the tool wasn't called.")
        )
        return as_error(
            _(
                "%(sentence)s Don't repeat the call. Continue without it, or say what you "
                "need.",
                sentence=rejected,
            )
        )

    @property
    def client_result(self) -> ToolResult:
        """The result of a function that the program has called."""
        return ToolResult(self.reason) if self.is_approved else ToolResult(error=self.reason)

    def reply(self, why: "ApprovalReason") -> ToolResult:
        """Return the result of a question to a person: the answer, or that they rejected it."""
        who = self.by or _("A user")
        if not self.is_approved:
            sentence = _("%(who)s rejected this.", who=who)
            return ToolResult(error=self._with_comment(sentence), mendable=True)
        sentence = _("%(who)s approved this.", who=who)
        return ToolResult(self.reason if why == "question" else self._with_comment(sentence))

    @property
    def outcome(self) -> str:
        """The model's message about an interrupted call that a person has resolved."""
        return self._with_comment(
            _("A user confirmed that the tool was called, but the result was lost.")
        )

    def _with_comment(self, sentence: str) -> str:
        return (
            _("%(sentence)s Comment: “%(words)s”.", sentence=sentence, words=self.reason)
            if self.reason
            else sentence
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingApproval:
    """A user's permission for a tool that makes asking unnecessary; `grant` identifies it."""

    by: int | None
    by_name: str
    grant: int
    scope: str


# Returns the permission for a call of this tool, as it is now.
GrantCheck = Callable[[Tool], Awaitable[StandingApproval | None]]
# Plans, questions, sharing and interrupted calls are always decided by a person.
GRANTABLE_REASONS = ("agent", "tool")
WRITING_EFFECTS = ("idempotent", "at_most_once")


class AskPersonTool:
    """The tool with which an agent or a plan asks a person; the run waits for the answer.

    `experts` are the roles it can ask besides the run's user, who must approve that unless
    `asker_approves` is off. With `waits` off it is called like any other tool and has the
    answer.
    """

    name = "ask_person"
    waits = True
    description: str = _(
        "Ask a user and wait for the answer. Use this for facts that only users know or "
        "decisions that users have to make. Answers take a long time, so find out what you "
        "can yourself."
    )
    effect: Effect = "read"

    def __init__(self, experts: Iterable[str] = (), *, asker_approves: bool = True) -> None:
        self.experts = tuple(sorted(experts))
        self.asker_approves = asker_approves

    @property
    def parameters(self) -> Mapping[str, Any]:
        properties: dict[str, Any] = {
            "question": {
                "type": "string",
                "description": _(
                    "The question, with everything needed to answer it. The reader "
                    "hasn't seen this chat."
                ),
            }
        }
        if self.experts:
            properties["role"] = {
                "type": "string",
                "enum": list(self.experts),
                "description": _("Whose expertise is needed. Leave it out to ask the user."),
            }
        return {"type": "object", "properties": properties, "required": ["question"]}

    def match_role(self, role: str) -> str | None:
        """Return the agent's role with this name, or None."""
        return next((name for name in self.experts if name.lower() == role.lower()), None)

    async def execute(self, input: ToolInput, /) -> ToolResult:
        role = "" if isinstance(input, str) else str(input.get("role") or "")
        if not role:
            return ToolResult(error=_("There's no user to ask here."), mendable=True)
        names = ", ".join(self.experts)
        sentence = _(
            "This agent can't ask %(role)s. Leave out the role to ask the user.",
            role=repr(role),
        )
        message = _("%(sentence)s Available roles: %(names)s.", sentence=sentence, names=names)
        return ToolResult(error=message if names else sentence, mendable=True)


class Approvals(Capability):
    """What a person sees first: all calls without `auto_execute`, a plan with `shows_plan`.

    `after_untrusted` says when text from outside means that a person must see a call.
    """

    def __init__(
        self,
        *,
        auto_execute: bool = True,
        after_untrusted: UntrustedPolicy = "suspicious",
        shows_plan: bool = False,
    ) -> None:
        self.auto_execute = auto_execute
        self.after_untrusted: UntrustedPolicy = after_untrusted
        self.shows_plan = shows_plan


class Grants(Capability):
    """The user's standing permissions, which make asking unnecessary."""

    def __init__(self, check: GrantCheck) -> None:
        self.check = check


class ApprovalPolicy:
    """Decides which calls wait for a person: those of tools that require approval, or all.

    Written calls (`is_written`), such as those of a workflow, can name a role and require
    approval. A model can't, because its text may come from something it read.
    """

    def __init__(
        self,
        registry: ToolRegistry,
        approvals: Approvals | None = None,
        grants: Grants | None = None,
        *,
        is_written: bool = False,
    ) -> None:
        approvals = approvals or Approvals()
        self.registry = registry
        self.auto_execute = approvals.auto_execute
        self.is_written = is_written
        self.grants = grants
        self.after_untrusted = approvals.after_untrusted

    def why(self, call: ToolCall) -> ApprovalReason | None:
        """Return why a call waits, or None if it needs no approval or can't be made."""
        if not self.registry.has(call.name) or not isinstance(call.readable, dict):
            return None
        tool = self.registry.get(call.name)
        if getattr(tool, "is_internal", False):
            return None  # it only searches the definitions of tools
        if isinstance(tool, ClientTool):
            return CLIENT
        if isinstance(tool, AskPersonTool) and tool.waits:
            if self.is_written:
                return "step" if call.readable.get("approves") else "question"
            if not call.readable.get("role"):
                return "question"
            if not self.role(call):
                return None
            return "sharing" if tool.asker_approves or not self.auto_execute else "question"
        if not self.auto_execute:
            return "agent"
        asks: bool = getattr(tool, "needs_approval", False)
        return "tool" if asks else None

    def is_tightened(self, call: ToolCall, material: RunMaterial) -> bool:
        """Whether what the run has read means that a person must see this call.

        Standing permissions don't apply then. The calls of a workflow were written by a person.
        """
        if self.is_written or self.after_untrusted == "never":
            return False
        has_reason = bool(material.suspect_steps)
        if self.after_untrusted == "always":
            has_reason |= material.has_untrusted
        if not has_reason or not self.registry.has(call.name):
            return False
        tool = self.registry.get(call.name)
        declared = getattr(tool, "effect", "idempotent")
        # A search or an address can carry data away, although it changes nothing.
        is_risky = declared in WRITING_EFFECTS or getattr(tool, "sends_outside", False)
        return is_risky and isinstance(call.readable, dict)

    async def standing(self, call: ToolCall) -> StandingApproval | None:
        """Return the user's permission for this call, if it would wait and there is one."""
        if self.grants is None or self.is_written or self.why(call) not in GRANTABLE_REASONS:
            return None
        return await self.grants.check(self.registry.get(call.name))

    def role(self, call: ToolCall) -> str:
        """Return the role that is asked, or an empty string for the run's user."""
        tool = self.registry.get(call.name) if self.registry.has(call.name) else None
        if not isinstance(tool, AskPersonTool) or not isinstance(call.readable, dict):
            return ""
        role = str(call.readable.get("role") or "")
        return role if self.is_written else tool.match_role(role) or ""


def digest(call: ToolCall, why: ApprovalReason = "tool", seq: int = 0, tool: str = "") -> str:
    """Return the digest a decision is bound to: this request about this call and arguments.

    `seq` is the number of the request, so a decision about one never applies to another. `tool`
    is the tool's fingerprint when the request was made.
    """
    return _hash([call.id, call.name, call.arguments, why, seq, tool])


def fingerprint(tool: Tool) -> str:
    """Return a hash of the tool as it was displayed: name, parameters and destination."""
    return _hash([specification(tool), getattr(tool, "reaches", "")])


def _hash(value: Any) -> str:
    return sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
