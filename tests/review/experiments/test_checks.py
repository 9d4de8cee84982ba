"""Checks of an answer."""

import pytest

from agents.review.experiments.scoring import checks
from agents.review.experiments.scoring.checks import InvalidCheck, RunFacts


def facts(answer="", **more):
    about = {"output": None, "tools": (), "steps": 3, "cost": 0.02} | more
    return RunFacts(answer=answer, **about)


@pytest.mark.parametrize(
    ("kind", "value", "seen", "passed"),
    [
        ("contains", "Total 42", facts("The TOTAL: ４２!"), True),
        ("contains", "42", facts("It is 421."), False),
        ("not_contains", "sorry", facts("Sorry, no."), False),
        ("equals", "It  is 42.", facts("It is 42."), True),
        ("equals", '{"a": 1}', facts("", output={"a": 1}), True),
        ("json_schema", '{"type": "object", "required": ["a"]}', facts('{"a": 1}'), True),
        ("json_schema", '{"type": "object", "required": ["a"]}', facts("{}"), False),
        ("tool_called", "search", facts(tools=("search",)), True),
        ("tool_not_called", "search", facts(tools=("search",)), False),
        ("max_steps", "3", facts(), True),
        ("max_cost", "0.01", facts(), False),
    ],
)
def test_a_check_passes_or_fails(kind, value, seen, passed):
    (check,) = checks.clean([{"kind": kind, "value": value}])

    assert checks.evaluate(check, seen).passed is passed


@pytest.mark.parametrize(
    ("tolerance", "answer", "passed"),
    [
        ("0.5", "About 1,234.4 in total", True),
        ("0.1", "About 1,234.4 in total", False),
        ("1%", "1230 of 9", True),
        ("", "no number", False),
    ],
)
def test_a_number_is_found_within_its_tolerance(tolerance, answer, passed):
    (check,) = checks.clean([{"kind": "number", "value": "1234", "tolerance": tolerance}])

    assert checks.evaluate(check, facts(answer)).passed is passed


@pytest.mark.parametrize(
    ("check", "reason"),
    [
        ({"kind": "magic", "value": "1"}, "isn't a check"),
        ({"kind": "contains", "value": " "}, "needs a value"),
        ({"kind": "number", "value": "many"}, "isn't a number"),
        ({"kind": "number", "value": "1", "tolerance": "a bit"}, "isn't a number"),
        ({"kind": "json_schema", "value": "[]"}, "isn't a JSON object"),
    ],
)
def test_an_invalid_check_is_refused_with_a_reason(check, reason):
    with pytest.raises(InvalidCheck, match=reason):
        checks.clean([check])
