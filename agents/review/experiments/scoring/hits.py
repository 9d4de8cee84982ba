"""Scores the cases of a guardrail's backtest: where the rule would have hit.

A pattern is matched with many runs at once, a model check is asked about a few texts. Both save
their hits, without personal data, as the failed checks of a result.
"""

import asyncio
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from agents.catalog import agent_factory
from agents.catalog.agent_factory import pattern_from
from agents.db import claims, database
from agents.engine.errors import AgentError
from agents.engine.guardrails import GuardrailAction, Match, ModelChecks, Pattern, find_matches
from agents.engine.privacy import find
from agents.llm import tokens
from agents.metering.budgets import Payer
from agents.models import GuardrailPattern

from ..models import Experiment, ExperimentResult
from ..sources import run_texts
from ..sources.run_texts import RunText

Action = GuardrailPattern.Action
State = ExperimentResult.State
TextsByRun = dict[int, list[RunText]]
HIT = "hit"
RULE_FIELDS = ("kind", "name", "pattern", "stage", "action", "message", "is_observed")
CHECK_FIELDS = ("model", "rubric", "threshold", "max_calls", "max_call_tokens", "timeout")
PATTERN_BATCH = 50
CHECK_BATCH = 4
CONTEXT_CHARS = 60
EXCERPT_CHARS = 300
# The preceding text decides what is personal, so more is read than displayed.
MASKING_CONTEXT_CHARS = 300
MASK_MARKER = re.compile("‹[^‹›]*›")


def describe(rule: GuardrailPattern) -> dict[str, Any]:
    """Return the settings that are tested."""
    fields = (*RULE_FIELDS, *(CHECK_FIELDS if rule.is_model_check else ()))
    return {name: getattr(rule, name) for name in fields}


def batch_size(experiment: Experiment) -> int:
    return CHECK_BATCH if experiment.judge_model else PATTERN_BATCH


async def score(results: Sequence[ExperimentResult]) -> None:
    """Score these results of one experiment and save them."""
    rule = GuardrailPattern(**results[0].experiment.spec)
    if rule.is_model_check:
        checks, texts = await database.run(_load_check, rule, results)
        await asyncio.gather(*(_judge(result, texts, checks) for result in results))
    else:
        patterns, texts = await database.run(_load_patterns, rule, results)
        await asyncio.to_thread(_match, results, texts, patterns)
    await database.run(_save, results)


def _load_patterns(
    rule: GuardrailPattern, results: Sequence[ExperimentResult]
) -> tuple[list[Pattern], TextsByRun]:
    """Return the rule with its exceptions, and the texts as who tests it sees them."""
    tested = replace(pattern_from(rule), action=GuardrailAction.WARN)
    patterns = [tested]
    if rule.action != Action.ALLOW:
        rows = GuardrailPattern.objects.filter(enabled=True, is_observed=False)
        patterns += map(pattern_from, rows.filter(action=Action.ALLOW))
    run_ids = _run_ids(results)
    masked = run_texts.masked_runs(_tester(results), run_ids)
    return patterns, _by_run(
        replace(text, is_masked=text.run in masked) for text in run_texts.load(run_ids, tested)
    )


def _load_check(
    rule: GuardrailPattern, results: Sequence[ExperimentResult]
) -> tuple[ModelChecks, TextsByRun]:
    """Return the check, which who tests it pays for, and the texts."""
    check = agent_factory.build_check(rule, payer=Payer(user=_tester(results).pk))
    texts = run_texts.load(_run_ids(results), pattern_from(rule))
    return ModelChecks([check], tokens.count), _by_run(texts)


def _tester(results: Sequence[ExperimentResult]) -> User:
    user = results[0].experiment.started_by
    if user is None:
        raise AgentError("The user who started the backtest was deleted.")
    return user


def _run_ids(results: Sequence[ExperimentResult]) -> list[int]:
    return [result.origin_id for result in results if result.origin_id]


def _by_run(texts: Iterable[RunText]) -> TextsByRun:
    by_run: TextsByRun = defaultdict(list)
    for text in texts:
        by_run[text.run].append(text)
    return by_run


def _match(
    results: Sequence[ExperimentResult], texts: TextsByRun, patterns: Sequence[Pattern]
) -> None:
    for result in results:
        for original in texts[result.origin_id or 0]:
            text = original.masked() if original.is_masked else original
            applied = [rule for rule in patterns if rule.applies_to(text.stage)]
            matches = find_matches(text.text, applied)
            if text.is_masked:
                # A match inside a marker such as ‹email› isn't original text.
                marker_spans = [marker.span() for marker in MASK_MARKER.finditer(text.text)]
                matches = [
                    match
                    for match in matches
                    if not any(
                        start <= match.start and match.end <= end for start, end in marker_spans
                    )
                ]
            if matches:
                result.checks.append(_hit(text, **_excerpt(text.text, matches[0])))


async def _judge(result: ExperimentResult, texts: TextsByRun, checks: ModelChecks) -> None:
    """Ask the model about the text that the result is about."""
    same = (text for text in texts[result.origin_id or 0] if text.name == result.name)
    if (text := next(same, None)) is None:
        return
    masked = (await asyncio.to_thread(text.masked)).text
    for finding in await checks.judge(masked, text.stage):
        verdict = finding.details["judge"]
        result.problem = verdict.get("error", "")
        result.judge_cost = finding.usage.get("cost")
        if finding.details["matches"]:
            reason = f"{verdict['reason']} ({verdict['confidence']}%)"
            result.checks.append(_hit(text, match=masked[:EXCERPT_CHARS], detail=reason))


def _hit(text: RunText, **details: str) -> dict[str, Any]:
    """Return a hit in the form of a failed check."""
    check = {"kind": HIT, "value": text.stage, "passed": False, "score": 0.0, "detail": ""}
    return {**check, "agent": text.agent, **details}


def _excerpt(text: str, match: Match) -> dict[str, str]:
    """Return the match with its context, personal data masked."""
    first = max(0, match.start - MASKING_CONTEXT_CHARS)
    excerpt = text[first : match.end + MASKING_CONTEXT_CHARS]
    start = match.start - first
    end = match.end - first
    spans = list(find(excerpt))
    for span in spans:
        if span.start < end and span.end > start:
            start = min(start, span.start)
            end = max(end, span.end)

    def masked(begin: int, stop: int) -> str:
        pieces = []
        for span in spans:
            if begin <= span.start and span.end <= stop:
                pieces += [excerpt[begin : span.start], span.replacement]
                begin = span.end
        return "".join([*pieces, excerpt[begin:stop]])

    return {
        "before": masked(0, start)[-CONTEXT_CHARS:],
        "match": masked(start, end)[: 4 * CONTEXT_CHARS],
        "after": masked(end, len(excerpt))[:CONTEXT_CHARS],
    }


@transaction.atomic
def _save(results: Sequence[ExperimentResult]) -> None:
    """Save the results; those of a pattern without a hit, which are most, in one statement."""
    unmatched = []
    for result in results:
        if result.problem:
            result.state = State.ERROR
        else:
            result.state = State.FAILED if result.checks else State.PASSED
        if result.state == State.PASSED and result.judge_cost is None:
            unmatched.append(result)
        else:
            claims.release(result, **result.scored_values())
    claims.release_all(unmatched, state=State.PASSED)
