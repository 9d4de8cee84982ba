"""Checks of an answer: what an example expects, and whether a run meets it."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.engine.errors import AgentError
from agents.engine.loop import OutputSchema
from agents.models import AgentStep, Run
from agents.models.types import LazyText
from agents.review.annotations.similarity import text_similarity, tokenize
from agents.review.models import Example

Check = Mapping[str, str]  # kind, value and, for numbers, tolerance

MAX_CHECKS = 20
MAX_VALUE_CHARS = 20_000
PASSING_SIMILARITY = 0.8
NUMBER = re.compile(r"[-+−]?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?")
JUDGE = "judge"
SIMILAR = "similar"
ANSWERED = "answered"
RECORDED = "similar_recorded"
APPROVED = "similar_approved"
KINDS: dict[str, LazyText] = {
    "contains": gettext_lazy("Answer contains"),
    "not_contains": gettext_lazy("Answer doesn't contain"),
    "equals": gettext_lazy("Answer equals"),
    "number": gettext_lazy("Number within tolerance"),
    "json_schema": gettext_lazy("Output matches JSON schema"),
    "tool_called": gettext_lazy("Calls tool"),
    "tool_not_called": gettext_lazy("Doesn't call tool"),
    "max_steps": gettext_lazy("Max steps"),
    "max_cost": gettext_lazy("Max cost (USD)"),
    JUDGE: gettext_lazy("LLM judge with rubric"),
}
IMPLICIT_KINDS: dict[str, LazyText] = {
    SIMILAR: gettext_lazy("Similar to the expected answer"),
    RECORDED: gettext_lazy("Similar to the recorded answer"),
    APPROVED: gettext_lazy("Similar to the corrected answer"),
    ANSWERED: gettext_lazy("Has an answer"),
}


class InvalidCheck(ValueError):
    """Raised for a check that can't be evaluated; the user sees the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """Whether a check passed, as it is saved with the result."""

    kind: str
    value: str
    passed: bool
    score: float
    detail: str = ""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """What checks look at."""

    answer: str
    output: Any
    tools: tuple[str, ...]
    steps: int
    cost: float | None

    @classmethod
    def of(cls, run: Run) -> "RunFacts":
        calls = run.steps.filter(kind=AgentStep.Kind.TOOL).order_by("number")
        return cls(
            answer=run.answer,
            output=run.output,
            tools=tuple(calls.values_list("action", flat=True)),
            steps=run.step_count,
            cost=run.cost,
        )


def label(kind: str) -> str:
    return str(KINDS.get(kind) or IMPLICIT_KINDS.get(kind) or kind)


def clean(checks: Iterable[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Return the checks in one notation; raise InvalidCheck."""
    cleaned = []
    for check in checks:
        kind = str(check.get("kind", ""))
        if kind not in KINDS:
            raise InvalidCheck(
                _("“%(kind)s” isn't a check. Use one of: %(known)s.")
                % {"kind": kind[:40], "known": ", ".join(KINDS)}
            )
        value = check.get("value", "")
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        text = text.replace("\r\n", "\n").replace("\0", "").strip()[:MAX_VALUE_CHARS]
        text = text.encode(errors="replace").decode()  # as every database accepts it
        if not text:
            raise InvalidCheck(_("“%(check)s” needs a value.") % {"check": label(kind)})
        cleaned_check = {"kind": kind, "value": text}
        if kind == "number":
            cleaned_check["tolerance"] = str(check.get("tolerance", "") or "0").strip()
            _tolerance(cleaned_check["tolerance"], 1.0)
        if kind in {"number", "max_steps", "max_cost"}:
            _number(text)
        if kind == "json_schema":
            _schema(text)
        cleaned.append(cleaned_check)
    if len(cleaned) > MAX_CHECKS:
        raise InvalidCheck(
            _("An example can have up to %(most)d checks.") % {"most": MAX_CHECKS}
        )
    return cleaned


def of_example(example: Example) -> list[Check]:
    """Return an example's checks; without any, its answer is compared by similarity."""
    if example.checks:
        return list(example.checks)
    if example.expected:
        return [{"kind": SIMILAR, "value": example.expected}]
    return [{"kind": ANSWERED, "value": ""}]


def evaluate(check: Check, facts: RunFacts) -> CheckResult:
    """Evaluate a check without a model."""
    kind = check["kind"]
    value = check.get("value", "")
    if kind == SIMILAR:
        return similarity(value, facts.answer)
    if kind == "number":
        expected = _number(value)
        tolerance = _tolerance(check.get("tolerance", "0"), expected)
        numbers = [_to_float(text) for text in NUMBER.findall(facts.answer)]
        nearest = min(numbers, key=lambda number: abs(number - expected), default=None)
        rounding = 1e-9 * max(1, abs(expected))
        passed = nearest is not None and abs(nearest - expected) <= tolerance + rounding
        value = f"{value} ± {check.get('tolerance', '0')}"
        detail = "" if nearest is None else f"{nearest:g}"
    else:
        passed = EVALUATORS[kind](value, facts)
        detail = _DETAILS[kind](facts) if kind in _DETAILS else ""
    return CheckResult(
        kind=kind, value=value, passed=passed, score=float(passed), detail=detail
    )


def similarity(expected: str, answer: str, kind: str = SIMILAR) -> CheckResult:
    score = text_similarity(expected, answer)
    return CheckResult(
        kind=kind,
        value=expected[:MAX_VALUE_CHARS],
        passed=score >= PASSING_SIMILARITY,
        score=round(score, 4),
    )


def failed(check: Check, why: str) -> CheckResult:
    return CheckResult(
        kind=check["kind"], value=check.get("value", ""), passed=False, score=0.0, detail=why
    )


def mean(results: Sequence[CheckResult]) -> float:
    return round(sum(result.score for result in results) / len(results), 4) if results else 0.0


def _contains(value: str, facts: RunFacts) -> bool:
    """Whether the words are in the answer; width, case and punctuation don't matter."""
    expected_words = tokenize(value)
    answer_words = tokenize(facts.answer)
    count = len(expected_words)
    if not count:
        return value.casefold() in facts.answer.casefold()
    starts = range(len(answer_words) - count + 1)
    return any(answer_words[start : start + count] == expected_words for start in starts)


def _equals(value: str, facts: RunFacts) -> bool:
    if facts.output is not None:
        try:
            return bool(json.loads(value) == facts.output)
        except ValueError:
            pass
    return " ".join(value.split()) == " ".join(facts.answer.split())


def _matches_schema(value: str, facts: RunFacts) -> bool:
    text = facts.answer if facts.output is None else json.dumps(facts.output)
    try:
        _schema(value).decode(text)
    except (AgentError, ValueError):
        return False
    return True


EVALUATORS: dict[str, Callable[[str, RunFacts], bool]] = {
    "contains": _contains,
    "not_contains": lambda value, facts: not _contains(value, facts),
    "equals": _equals,
    "json_schema": _matches_schema,
    "tool_called": lambda value, facts: value in facts.tools,
    "tool_not_called": lambda value, facts: value not in facts.tools,
    "max_steps": lambda value, facts: facts.steps <= _number(value),
    "max_cost": lambda value, facts: (facts.cost or 0.0) <= _number(value),
    ANSWERED: lambda _value, facts: bool(facts.answer.strip()),
}
_DETAILS: dict[str, Callable[[RunFacts], str]] = {
    "max_steps": lambda facts: str(facts.steps),
    "max_cost": lambda facts: f"${facts.cost or 0.0:.4f}",
    "tool_called": lambda facts: ", ".join(dict.fromkeys(facts.tools)),
    "tool_not_called": lambda facts: ", ".join(dict.fromkeys(facts.tools)),
}


def _to_float(text: str) -> float:
    return float(text.replace(",", "").replace("−", "-"))


def _number(text: str) -> float:
    try:
        return _to_float(text)
    except ValueError:
        raise InvalidCheck(_("“%(text)s” isn't a number.") % {"text": text[:40]}) from None


def _tolerance(text: str, expected: float) -> float:
    """Return an absolute tolerance; 1% is relative to the number."""
    is_percent = text.endswith("%")
    value = _number(text.removesuffix("%").strip())
    return abs(value) * (abs(expected) / 100 if is_percent else 1)


def _schema(text: str) -> OutputSchema:
    try:
        schema = json.loads(text)
        if not isinstance(schema, dict):
            raise ValueError
        return OutputSchema(schema)
    except AgentError as error:
        raise InvalidCheck(str(error)) from error
    except ValueError:
        raise InvalidCheck(_("The JSON schema isn't a JSON object.")) from None
