"""What a person said about a call, read back from what the model is told of it."""

import re

from agents.engine.loop import ApprovalDecision

_THEIRS = "\0"


def changed(observation: str) -> tuple[str, str] | None:
    """The arguments that a person gave the call instead of its own, and what came of it."""
    # The line may be all there is: without a result its end is gone too.
    found = _CHANGED.match(f"{observation}\n")
    return (found[1], observation[found.end() :]) if found else None


def declined(observation: str) -> str | None:
    """What the person said who declined the call."""
    return _said(_DECLINED, observation)


def lost(observation: str) -> str | None:
    """What the person said who knew of the call that it was made."""
    return _said(_LOST, observation)


def _said(forms: list[re.Pattern[str]], observation: str) -> str | None:
    found = next(filter(None, (form.fullmatch(observation) for form in forms)), None)
    return "".join(found.groups()) if found else None


def _form(told: str) -> re.Pattern[str]:
    """The engine's words, with a group where the person's stand."""
    return re.compile(re.escape(told).replace(_THEIRS, "(.*?)"), re.DOTALL)


_CHANGED = _form(ApprovalDecision(is_approved=True, arguments=_THEIRS).told(""))
_NO = [ApprovalDecision(is_approved=False, reason=reason) for reason in (_THEIRS, "")]
_DECLINED = [_form(no.refusal) for no in _NO]
_LOST = [_form(no.outcome) for no in _NO]
