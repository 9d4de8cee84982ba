"""The filter language: what it accepts, its messages, and its matches."""

from datetime import timedelta

import pytest
from django.utils import timezone
from hypothesis import example, given
from hypothesis import strategies as st

from agents.models import Agent, AgentStep, Run
from agents.review.filters.filter_fields import FIELDS
from agents.review.filters.filter_language import MAX_CHARS, MAX_TERMS, parse
from agents.review.filters.filter_values import NamePattern, Range
from agents.review.models import Label, Note, Rating, Review
from tests.sampling import one_in

pytestmark = pytest.mark.both_databases


def terms(text, is_reviewer=True):
    asked = parse(text, is_reviewer=is_reviewer)
    assert asked.problems == ()
    return [(term.field, *term.values) for term in asked.terms]


def sentences(text, is_reviewer=True):
    return [p.sentence for p in parse(text, is_reviewer=is_reviewer).problems]


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("", []),
        ("refund order", [("", "refund"), ("", "order")]),
        ('"exact words" more', [("", "exact words"), ("", "more")]),
        ("「注文番号」", [("", "注文番号")]),
        ("status:failed,stopped", [("status", "failed", "stopped")]),
        ("STATUS:Failed", [("status", "failed")]),
        ("status：ｆａｉｌｅｄ", [("status", "failed")]),
        ("agent:helper", [("agent", NamePattern(text="helper"))]),
        ("tool:shop*", [("tool", NamePattern(text="shop", is_beginning=True))]),
        (
            'label:"wrong figure",tone',
            [("label", NamePattern(text="wrong figure"), NamePattern(text="tone"))],
        ),
        ("steps:>5", [("steps", Range(low=5, has_low=False))]),
        ("steps:＞５", [("steps", Range(low=5, has_low=False))]),
        ("tools:2..8", [("tools", Range(low=2, high=8))]),
        ("tokens:..4000", [("tokens", Range(high=4000))]),
        ("cost:<=$0.5", [("cost", Range(high=0.5))]),
        ("duration:>5s", [("duration", Range(low=5, has_low=False))]),
        ("duration:>=2m", [("duration", Range(low=120))]),
        ("duration:<1h", [("duration", Range(high=3600, has_high=False))]),
        ("duration:250ms..", [("duration", Range(low=0.25))]),
        ("duration:5s", [("duration", Range(low=5, high=6, has_high=False))]),
        ("flagged:open", [("flag", "open")]),
        ("12:30", [("", "12:30")]),
        ("時間：すぐ", [("", "時間：すぐ")]),
    ],
)
def test_filters_are_parsed(text, read):
    assert terms(text) == read


def test_a_term_has_a_position_and_can_be_removed():
    asked = parse(' status:failed  -agent:a,b "x  y"', is_reviewer=True)
    first, second, third = asked.terms

    assert [asked.source_text(term) for term in asked.terms] == [
        "status:failed",
        "-agent:a,b",
        '"x  y"',
    ]
    assert [term.is_not for term in asked.terms] == [False, True, False]
    assert asked.without(second) == 'status:failed "x  y"'


@pytest.mark.parametrize(
    ("text", "sentence", "mended"),
    [
        ("staus:failed", "Unknown field “staus”. Did you mean status?", "status:failed"),
        ("http://x", "Unknown field “http”", '"http://x"'),
        ("status:faild x", "status can't be “faild”. Use one of: running,", "status:failed x"),
        ("steps:many", "steps can't be “many”. Enter a number", ""),
        ("cost:>", "cost can't be “>”. Enter an amount in USD", ""),
        ("duration:5parsec", "Enter a duration, e.g. >5s", ""),
        ("before:soon", "Enter a date, e.g. 2026-11-01", ""),
        ("on:2026-02-30", "Enter a date", ""),
        ("after:-999999999999d", "Enter a date", ""),
        ("id:99999999999999999999", "Enter a number", ""),
        ("status:", "Add a value after status:, e.g. status:running.", ""),
        ('"never closed', "The closing quotation mark is missing.", '"never closed"'),
    ],
)
def test_invalid_terms_have_an_error_message(text, sentence, mended):
    asked = parse(text, is_reviewer=True)

    assert sentence in asked.problems[0].sentence
    assert asked.with_suggestion(asked.problems[0]) == mended


def test_valid_terms_apply_despite_invalid_ones():
    asked = parse("staus:x status:failed,nonsense words", is_reviewer=True)

    assert [(t.field, *t.values) for t in asked.terms] == [("status", "failed"), ("", "words")]
    assert len(asked.problems) == 2


def test_only_reviewers_can_filter_by_user():
    assert terms("user:ada") == [("user", NamePattern(text="ada"))]
    assert "Only reviewers" in sentences("user:ada", is_reviewer=False)[0]
    assert "“usr”. To search" in sentences("usr:ada", is_reviewer=False)[0]


def test_labels_and_notes_are_searchable_only_for_reviewers():
    assert parse("has:note has:label label:x", is_reviewer=False).terms == ()
    said = sentences("label:x has:note", is_reviewer=False)
    assert said[0] == "Only reviewers can filter by label."
    assert said[1].startswith("has can't be “note”. Use one of: error, answer, rating")


def test_the_length_of_a_filter_is_limited():
    asked = parse(" ".join("x" * 400), is_reviewer=True)

    assert len(asked.terms) == MAX_TERMS
    assert "Only the first 40 terms" in asked.problems[0].sentence
    assert len(parse("x" * 10_000, is_reviewer=True).text) == MAX_CHARS


NOISE = st.text(
    alphabet=st.sampled_from('a1:"“」,、-.>< *\0\ud800:＞：　今日$%_\\|'), max_size=40
)
VALUES = st.one_of(NOISE, st.text(max_size=20), st.integers().map(str), st.floats().map(str))
TERMS = st.builds(
    "{}{}:{}".format, st.sampled_from(["", "-"]), st.sampled_from([*FIELDS]), VALUES
)


@given(st.one_of(NOISE, st.text(), st.lists(TERMS, max_size=4).map(" ".join)), st.booleans())
@example("on:9999-12-31", True)
@example("on:0001-01-01..", True)
@example("after:2026-11-01T10:00+99:00", True)
def test_any_text_is_parsed(text, is_reviewer):
    asked = parse(text, is_reviewer=is_reviewer)

    for part in (*asked.terms, *asked.problems):
        assert 0 <= part.start <= part.end <= len(asked.text)
    str(asked.apply(Run.objects.all()).query)


@pytest.fixture
def runs(person):
    """A plain run, a long failed one, and a live one."""
    now = timezone.now()
    plain = {"agent_name": "helper", "model": "demo", "status": "completed", "turns": 1}
    long = {"agent_name": "reporter", "model": "openai/gpt-5", "status": "failed", "turns": 7}
    rows = [
        {"query": "Where is order 12?", "answer": "On its way.", "seconds": 1.5, **plain},
        {"query": "売上は？", "detail": "Timeout of 60 s", "seconds": 90.0, **long},
        {"query": "Still?", "status": "running", "agent_name": "helper"},
    ]
    first, second, third = (
        Run.objects.create(user=person, topic=str(number), **row)
        for number, row in enumerate(rows)
    )
    Run.objects.filter(pk=first.pk).update(step_types="|answer|", cost=0.002, route="direct")
    Run.objects.filter(pk=second.pk).update(
        step_types="|failed|guardrail|guardrail=warn|tool|tool=database|",
        cost=0.5,
        tool_calls=4,
        prompt_tokens=4_000,
        completion_tokens=500,
        version="3fa2b1c0",
        started_at=now - timedelta(days=10),
    )
    AgentStep.objects.create(
        run=third, number=1, kind="tool", action="Search", status="failed", started_at=now
    )
    Rating.objects.create(run=first, user=person, is_good=True)
    Rating.objects.create(run=second, user=person, is_good=False, comment="wrong")
    Label.objects.create(run=second, name="refund")
    Note.objects.create(run=second, text="Look.")
    Review.objects.create(run=second, verdict="wrong", correction="12 million")
    Review.objects.create(run=third)
    return {first.pk: "plain", second.pk: "long", third.pk: "live"}


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("text", "found"),
    one_in(
        4,
        [
            ("", "plain long live"),
            ("status:failed,completed", "plain long"),
            ("status:live", "live"),
            ("-status:failed", "plain live"),
            ("agent:helper", "plain live"),
            ("agent:rep*", "long"),
            ("model:GPT", "long"),
            ("tool:database", "long"),
            ("tool:data", ""),
            ("tool:data*", "long"),
            ("tool:search", "live"),
            ("-tool:search", "plain long"),
            ("kind:guardrail", "long"),
            ("kind:tool", "long live"),
            ("guardrail:warn", "long"),
            ("guardrail:block", ""),
            ("guardrail:any", "long"),
            ("steps:>5", "long"),
            ("steps:1", "plain"),
            ("tools:2..8", "long"),
            ("duration:>5s", "long"),
            ("duration:<2s", "plain"),
            ("-duration:>5s", "plain live"),
            ("tokens:>4000", "long"),
            ("tokens:4500", "long"),
            ("cost:>0.01", "long"),
            ("cost:0.002", "plain"),
            ("user:ADA", "plain long live"),
            ("user:eve", ""),
            ("before:-7d", "long"),
            ("after:-7d", "plain live"),
            ("on:today", "plain live"),
            ("on:-20d..-7d", "long"),
            ("on:yesterday..", "plain live"),
            ("on:今日", "plain live"),
            ("rating:up", "plain"),
            ("rating:down", "long"),
            ("rating:none", "live"),
            ("label:Refund", "long"),
            ("flag:open", "live"),
            ("flag:done", "long"),
            ("flag:no", "plain"),
            ("verdict:wrong", "long"),
            ("verdict:none", "live"),
            ("version:3fa2", "long"),
            ("error:TIMEOUT", "long"),
            ("route:direct", "plain"),
            ("has:error", "long live"),
            ("has:answer", "plain"),
            ("has:note", "long"),
            ("has:correction", "long"),
            ("has:comment", "long"),
            ("-has:review", "plain"),
            ("order", "plain"),
            ("ORDER way", "plain"),
            ('"order 12"', "plain"),
            ('"12 order"', ""),
            ("売上", "long"),
            ("-売上", "plain live"),
            ("100%", ""),
            ("staus:x order", "plain"),
            ("status:failed order", ""),
        ],
    ),
)
def test_a_filter_finds_its_runs(runs, text, found):
    asked = parse(text, is_reviewer=True)

    rows = asked.apply(Run.objects.all()).order_by("pk")

    assert [runs[row.pk] for row in rows] == found.split()


@pytest.mark.django_db
def test_a_rerun_is_found_as_one_even_without_its_origin(runs):
    pk = next(iter(runs))
    Run.objects.filter(pk=pk).update(origin=None, origin_step=2)

    asked = parse("has:rerun", is_reviewer=True)

    assert pk in asked.apply(Run.objects.all()).values_list("pk", flat=True)


def test_the_number_of_alternatives_is_limited():
    asked = parse(f"id:{','.join(map(str, range(12)))} x", is_reviewer=True)

    assert [len(term.values) for term in asked.terms] == [10, 1]
    [problem] = asked.problems
    assert problem.sentence == "Only the first 10 alternatives are used."
    assert asked.source_text(problem) == "10,11"


@pytest.mark.django_db
def test_agent_names_match_in_any_case(runs):
    Agent.objects.create(name="helper")

    rows = parse("agent:HELPER", is_reviewer=True).apply(Run.objects.order_by("pk"))

    assert [runs[row.pk] for row in rows] == ["plain", "live"]


@pytest.mark.django_db
def test_a_run_is_found_by_its_number(runs):
    first, second, third = runs

    asked = parse(f"id:{first},{third}", is_reviewer=True)

    assert set(asked.apply(Run.objects.all())) == set(Run.objects.exclude(pk=second))


@pytest.mark.thorough
@pytest.mark.django_db
@given(st.lists(st.one_of(TERMS, NOISE), min_size=1, max_size=3).map(" ".join))
def test_any_filter_is_a_valid_query(text):
    list(parse(text, is_reviewer=True).apply(Run.objects.all())[:1])
