"""A pattern on a text that somebody types: what it matches, and what would become of it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from django.utils.translation import gettext as _

from agents.engine.errors import BadPattern
from agents.engine.guardrails.checks import (
    WHERE,
    GuardrailAction,
    Guardrails,
    Pattern,
    try_pattern,
)
from agents.engine.guardrails.stream_filter import found_in
from agents.models import GuardrailPattern
from agents.runs.engine_messages import told

MOST_CHARACTERS = 20_000
Stage = GuardrailPattern.Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    text: str
    is_match: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What happens at a stage, in words, and the text as it goes on where it is another."""

    stage: str
    words: str
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    problem: str = ""
    pieces: Sequence[Piece] = ()
    matches: int = 0
    verdicts: Sequence[Verdict] = ()
    streaming: str = ""
    is_cut: bool = False


def tried(rule: Pattern, sample: str) -> Trial:
    """What the rule does to the sample; why it cannot be used, where it cannot."""
    try:
        try_pattern(rule.pattern)
    except BadPattern as error:
        return Trial(problem=told(str(error)) if rule.pattern else "")
    text = sample[:MOST_CHARACTERS]
    found = found_in(text, [replace(rule, action=GuardrailAction.WARN)])
    pieces = list(_pieces(text, [(match.start, match.end) for match in found]))
    return Trial(
        pieces=pieces,
        matches=len(found),
        verdicts=[_verdict(rule, text, stage) for stage in WHERE if rule.watches(stage)],
        streaming=_streaming(rule),
        is_cut=len(sample) > MOST_CHARACTERS,
    )


def _pieces(text: str, places: Sequence[tuple[int, int]]) -> Iterator[Piece]:
    at = 0
    for start, end in places:
        if start > at:
            yield Piece(text=text[at:start])
        yield Piece(text=text[start:end], is_match=True)
        at = end
    if at < len(text):
        yield Piece(text=text[at:])


def _verdict(rule: Pattern, text: str, stage: str) -> Verdict:
    label = str(Stage(stage).label)
    inspected = Guardrails(blocked_patterns=[rule]).at_any_length().inspect(text, stage)
    if rule.is_exception:
        return Verdict(stage=label, words=_("No other rule sees what is marked."))
    if not inspected.findings:
        return Verdict(stage=label, words=_("Nothing matches: it goes on as it is."))
    if rule.is_observed:
        nothing = _("Nothing changes.")
        return Verdict(stage=label, words=f"{told(rule.reason)} {nothing}")
    if inspected.is_blocked:
        return Verdict(stage=label, words=BLOCKED[stage]() % {"why": told(rule.reason)})
    if rule.marker:
        return Verdict(stage=label, words=_("It goes on like this:"), text=inspected.text)
    return Verdict(stage=label, words=_("It goes on as it is, and a warning is recorded."))


BLOCKED = {
    "input": lambda: _("The run ends. The person is told: %(why)s"),
    "output": lambda: _("The answer is withheld. The person is told: %(why)s"),
    "tool_input": lambda: _("The call is not made. The model is told: %(why)s"),
    "tool_output": lambda: _("The result is withheld. The model is told: %(why)s"),
}


def _streaming(rule: Pattern) -> str:
    """How long an answer has to wait for it while it is written."""
    if not rule.watches("output") or not (rule.blocks or rule.marker):
        return ""
    match rule.reach.extent:
        case "characters":
            held = {"n": f"{int(rule.reach.most):,}"}
            return _("While an answer is written its last %(n)s characters wait.") % held
        case "word":
            return _("While an answer is written each word waits until it is whole.")
        case "line":
            return _("While an answer is written each line waits until it is whole.")
    return _(
        "An answer is shown only when it is whole, because a match has no end: repeat at most "
        "so often, as in {1,20}, to have it shown as it is written."
    )
