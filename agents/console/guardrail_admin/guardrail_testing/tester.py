"""Tests a pattern on a sample: its matches and their effect."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.utils.translation import gettext as _

from agents.db.sentences import translate
from agents.engine.errors import BadPattern
from agents.engine.guardrails import (
    STAGES,
    GuardrailAction,
    Guardrails,
    Pattern,
    find_matches,
)
from agents.engine.guardrails import Stage as EngineStage
from agents.models import GuardrailPattern

MAX_SAMPLE_CHARS = 20_000
Stage = GuardrailPattern.Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleSegment:
    text: str
    is_match: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StageOutcome:
    """The outcome at a stage, with the resulting text if it changes."""

    stage: str
    words: str
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternCheck:
    problem: str = ""
    pieces: Sequence[SampleSegment] = ()
    matches: int = 0
    verdicts: Sequence[StageOutcome] = ()
    streaming: str = ""
    is_cut: bool = False


def check_sample(rule: Pattern, sample: str) -> PatternCheck:
    """Return the rule's effect on the sample, or why it is invalid."""
    try:
        rule.try_out()
    except BadPattern as error:
        return PatternCheck(problem=translate(str(error)) if rule.pattern else "")
    text = sample[:MAX_SAMPLE_CHARS]
    matches = find_matches(text, [replace(rule, action=GuardrailAction.WARN)])
    pieces = []
    position = 0
    for match in matches:
        if match.start > position:
            pieces.append(SampleSegment(text=text[position : match.start]))
        pieces.append(SampleSegment(text=text[match.start : match.end], is_match=True))
        position = match.end
    if position < len(text):
        pieces.append(SampleSegment(text=text[position:]))
    return PatternCheck(
        pieces=pieces,
        matches=len(matches),
        verdicts=[
            _stage_outcome(rule, text, stage) for stage in STAGES if rule.applies_to(stage)
        ],
        streaming=_streaming_delay(rule),
        is_cut=len(sample) > MAX_SAMPLE_CHARS,
    )


def _stage_outcome(rule: Pattern, text: str, stage: EngineStage) -> StageOutcome:
    label = str(Stage(stage).label)
    inspected = Guardrails(blocked_patterns=[rule]).without_length_limits().inspect(text, stage)
    if rule.is_exception:
        return StageOutcome(stage=label, words=_("Other rules skip the highlighted text."))
    if not inspected.findings:
        return StageOutcome(stage=label, words=_("No hits. The text passes unchanged."))
    if rule.is_observed:
        unchanged = _("Nothing changes.")
        return StageOutcome(stage=label, words=f"{translate(rule.reason)} {unchanged}")
    if inspected.is_blocked:
        return StageOutcome(
            stage=label, words=BLOCKED_MESSAGES[stage]() % {"why": translate(rule.reason)}
        )
    if rule.marker:
        return StageOutcome(stage=label, words=_("The text becomes:"), text=inspected.text)
    return StageOutcome(
        stage=label, words=_("The text passes unchanged, and a warning is recorded.")
    )


BLOCKED_MESSAGES = {
    "input": lambda: _("The run stops. The user sees: %(why)s"),
    "output": lambda: _("The answer is blocked. The user sees: %(why)s"),
    "tool_input": lambda: _("The tool isn't called. The model sees: %(why)s"),
    "tool_output": lambda: _("The result is blocked. The model sees: %(why)s"),
}


def _streaming_delay(rule: Pattern) -> str:
    """Return how long the rule delays a streamed answer."""
    if not rule.applies_to("output") or not (rule.blocks or rule.marker):
        return ""
    match rule.reach.extent:
        case "characters":
            sentence = _("While an answer streams, its last %(n)s characters are delayed.")
            return sentence % {"n": f"{int(rule.reach.max_length):,}"}
        case "word":
            return _("While an answer streams, each word appears when it's complete.")
        case "line":
            return _("While an answer streams, each line appears when it's complete.")
    return _(
        "Answers can't stream because a match has no maximum length. To allow "
        "streaming, limit repetitions, e.g. {1,20}."
    )
