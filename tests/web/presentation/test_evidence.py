"""What an answer is based on: links to observations, and statements without any."""

import re
import time
from dataclasses import replace
from datetime import date
from decimal import Decimal

import pytest
from django.template.loader import render_to_string
from django.test import Client

from agents.models import AgentStep, Run
from agents.web.presentation import RunView, evidence
from agents.web.presentation.evidence import (
    annotator,
    cited_rows,
    find_evidence,
    observed,
    sources,
    statements_citing,
)
from agents.web.presentation.evidence.figures import figures_in
from agents.web.presentation.markdown import render_markdown
from tests.conftest import as_user

ROWS = '{"columns":["month","revenue"],"rows":[["2026-08",14832.924],["2026-09",5210]]}'
PASSAGES = (
    "[1] Runs › Stop (runs.md #3)\nPress the Stop button. The partial answer stays saved.\n\n"
    "[2] Runs › Queue (runs.md #4)\nQueued messages start in order."
)


def step(number, observation, action="database", **more):
    done = {"kind": "tool", "status": "done"} | more
    return AgentStep(number=number, action=action, observation=observation, **done)


def links_in(text, *steps):
    """Return the links of an answer: what is linked, to which step, and what is behind it."""
    found = find_evidence(render_markdown(text), observed(steps), "/traces/7/#step-")
    anchor = r'href="/traces/7/#step-(\d+)" data-evidence="(\d+)">(.+?)</a>'
    anchors = re.findall(anchor, found.html)
    return [(label, int(n), found.links[int(at) - 1]) for n, at, label in anchors]


def unsupported_in(text, *steps):
    found = find_evidence(render_markdown(text), observed(steps))
    return re.findall(r'<span class="unsupported">(.*?)</span>', found.html)


@pytest.mark.parametrize("written", ["[1]", "【1】", "[１]", "［1］", "【1†source】"])
def test_a_number_in_brackets_is_a_link_to_its_passage(written):
    [(label, number, link)] = links_in(f"Press Stop {written}.", step(3, PASSAGES, "search"))

    assert (label, number) == (written, 3)
    assert link.source.label == "Runs › Stop (runs.md #3)"
    assert link.source.excerpt.startswith("Press the Stop button.")


def test_several_numbers_are_several_links_and_unknown_ones_none():
    links = links_in("As written [1, 2, 9].", step(3, PASSAGES, "search"))

    assert [(label, link.source.number) for label, _, link in links] == [("1", 1), ("2", 2)]


def test_with_two_searches_a_citation_links_to_the_matching_passage():
    other = "[1] Costs (costs.md #1)\nEvery model has a price per token and a monthly budget."
    steps = step(2, PASSAGES, "search"), step(5, other, "search")

    assert [n for _, n, _ in links_in("The partial answer stays saved [1].", *steps)] == [2]
    assert [n for _, n, _ in links_in("A model has a monthly budget [1].", *steps)] == [5]


def test_results_of_other_search_tools_are_cited_by_their_position():
    found = '{"results":[{"title":"First","text":"a"},{"title":"Second","text":"b"}]}'
    [(_, number, link)] = links_in("See [2].", step(4, found, "web_search"))

    assert (number, link.source.label, link.source.text) == (4, "Second", "Second\nb")


def test_without_passages_a_number_means_an_observation_in_order():
    steps = step(2, "Sunny in Kyoto"), step(4, "Rain in Oslo", "weather")

    assert [n for _, n, _ in links_in("It rains [2].", *steps)] == [4]
    assert links_in("It rains [3].", *steps) == []


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("5,210", "5210"),
        ("５，２１０", "5210"),
        ("$5,210.00", "5210"),
        ("5210円", "5210"),
        ("14,832.92", "14832.924"),  # rounded
        ("14,833", "14832.924"),
    ],
)
def test_a_figure_is_a_link_to_the_value_it_equals(written, expected):
    [(label, number, link)] = links_in(f"It was {written} in all.", step(2, ROWS))

    assert (label, number, link.match) == (written, 2, expected)
    assert link.is_rounded == ("924" in expected)


@pytest.mark.parametrize(
    ("written", "observed_text"),
    [
        ("12.5%", "share: 0.125"),
        ("1.2 million", "1200000"),
        ("3万", "30,000"),
        ("17 November 2026", "due 2026-11-17"),
        ("2026年11月17日", "Nov 17, 2026"),
        ("ORD-1042", "order ORD-1042 shipped"),
        ("7 orders", "counted 7 orders"),
    ],
)
def test_figures_are_compared_as_values(written, observed_text):
    assert len(links_in(f"It is {written}.", step(2, observed_text))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "In 2026 there were 2 of them.",  # years and small numbers may be chance
        "`5210` and [5210](https://shop.example)",
        "Version 5.2.10 of X5210.",
        "It was 5,211.",
        "2. second",
    ],
)
def test_values_that_may_match_by_chance_are_not_linked(text):
    assert links_in(text, step(2, ROWS + " 2026 2 5.2")) == []


def test_values_are_normalized():
    found = {figure.value for figure in figures_in("-1,234.50 −1234.5 2026/1/2 2026-02-30")}

    assert found == {Decimal("-1234.5"), date(2026, 1, 2)}


def test_unsupported_statements_are_marked():
    text = (
        "Press the Stop button. Elephants are large grey mammals of Africa. "
        "Revenue was 99,999 in total. Is that all?"
    )
    marked = unsupported_in(text, step(3, PASSAGES, "search"))

    assert marked == [
        "Elephants are large grey mammals of Africa.",
        "Revenue was 99,999 in total.",
    ]


def test_nothing_is_marked_if_not_everything_could_be_compared():
    long = step(3, "x " * sources.MAX_SOURCE_CHARS)

    assert unsupported_in("Elephants are large grey mammals of Africa.", long) == []


def test_sub_agent_answers_and_failed_calls_are_not_evidence():
    steps = step(2, "5210", "ask_helper"), step(3, "5210", status="failed")

    assert observed(steps) == ()


def test_only_links_and_marks_are_added():
    text = "**Total**: 5,210 <b>&amp; *x*</b>.\n\n- `x < y` [1]\n\n| a |\n|--|\n| 5210 |\n\n1<2"
    html = render_markdown(text)
    found = find_evidence(html, observed([step(2, ROWS)])).html

    assert (
        re.sub(
            r'<a class="evidence[^>]*>(.*?)</a>|<span class="uns[^>]*>(.*?)</span>',
            r"\1\2",
            found,
        )
        == html
    )


def test_the_amount_of_work_is_limited():
    words = " ".join(f"{at * 37.123:.3f} word{at}" for at in range(40_000))
    steps = [step(n, words[n * 9_000 :]) for n in range(60)]
    html = render_markdown("It was 371.23 and 12,345 for word33. Nothing else.\n\n" * 2_000)
    began = time.process_time()
    found = find_evidence(html, observed(steps))

    assert time.process_time() - began < 10
    assert len(found.links) <= annotator.MAX_LINKS
    assert sum(len(source.text) for source in found.sources) <= sources.MAX_TOTAL_CHARS


@pytest.fixture
def run(person):
    run = Run.objects.create(
        topic="chat.1", user=person, query="?", status="completed", answer="It was **5,210**."
    )
    run.ended_at = run.started_at
    run.save()
    AgentStep.objects.create(
        run=run,
        number=2,
        kind="tool",
        status="done",
        action="database",
        observation=ROWS,
        started_at=run.started_at,
        ended_at=run.started_at,
    )
    return run


@pytest.mark.django_db
def test_a_run_page_shows_the_evidence_of_its_answer(run, person):
    client = as_user(person)
    page = client.get(f"/traces/{run.pk}/").text

    assert f'href="/traces/{run.pk}/#step-2" data-evidence="1">5,210</a>' in page
    assert "<mark>5210</mark>" in page
    assert "#2 database</a>" in page


@pytest.mark.django_db
@pytest.mark.parametrize(("level", "is_linked"), [("person", False), ("reviewer", True)])
def test_a_shared_run_has_links_only_if_it_has_the_results(run, person, level, is_linked):
    client = as_user(person)
    answer = client.post(f"/traces/{run.pk}/share/", {"level": level, "hours": 24})
    url = re.search(r"http://testserver(/shared/[\w-]+/)", answer.text)[1]
    page = Client().get(url).text

    assert ('<a class="evidence evidence-figure" href="#step-2"' in page) == is_linked
    assert ("5210" in page) == is_linked


def test_thousands_of_citations_in_one_sentence_are_limited():
    sources = tuple(
        evidence.Observation(step=at, tool="search", text="word " * 50, number=1)
        for at in (1, 2)
    )
    html = f"<p>{'【1】' * 10_000}</p>"

    found = find_evidence(html, sources)

    assert not found.is_complete
    assert len(re.findall("evidence-cite", found.html)) <= annotator.MAX_PLACES


SAVED = [
    {
        "number": 1,
        "id": "7:3:a",
        "title": "Runs",
        "document": 7,
        "heading": "Stop",
        "digest": "x",
    },
    {"number": 2, "id": "7:4:b", "title": "Runs", "document": 7, "kind": "page", "part": 9},
]


def searched(number=3, text=PASSAGES, sources=SAVED):
    return step(number, text, "search", sources=sources, is_untrusted=True)


CITIES = "| City | Limit |\n|---|---|\n| Kyoto | 18 |\n| Paris | 20 |\n| Lima | 25 |"


@pytest.mark.parametrize(
    ("answer", "rows"),
    [
        ("The limit in Paris is 20 [1].", ["Paris"]),
        ("It is 20. [1]", ["Paris"]),
        ("Kyoto has 18 [2]. Lima has 25 [1, 3].", ["Lima"]),
        ("Kyoto has 18, Paris 20 [1].", ["Kyoto", "Paris"]),
        ("Kyoto has 18, Paris 20, Lima 25 [1].", []),
        ("Every city has a limit [1].", []),
        ("Paris has 20.", []),
    ],
)
def test_a_citation_of_a_table_is_about_the_rows_of_its_sentence(answer, rows):
    found = cited_rows(CITIES, statements_citing(answer, 1))

    assert found == [CITIES.index(f"| {row}") for row in rows]


def cited(text, *steps, documents="/traces/7/sources/"):
    return find_evidence(
        render_markdown(text), observed(steps), "/traces/7/#step-", documents=documents
    )


def test_a_citation_of_a_passage_leads_to_its_document():
    found = cited("Press Stop [1].", searched())

    assert 'href="/traces/7/sources/1/" data-document' in found.html
    assert [(s.number, s.passage.title, s.place) for s in found.cited] == [(1, "Runs", "Stop")]


def test_passages_that_were_read_and_not_cited_come_after_the_sources():
    found = cited("Press Stop [1].", searched(), step(4, ROWS))

    assert [(s.number, s.place) for s in found.also_read] == [(2, "Page 9")]
    assert found.used == []


def test_a_shared_answer_has_no_links_to_documents():
    found = cited("Press Stop [1].", searched(), documents="")

    assert "/sources/" not in found.html
    assert 'href="/traces/7/#step-3"' in found.html


def test_a_number_means_the_passage_that_the_run_gave_it():
    other = '{"results":[{"title":"First","text":"a"},{"title":"Press Stop","text":"Press"}]}'
    found = cited("Press Stop [1].", step(2, other, "web_search"), searched(5))

    assert [link.source.step for link in found.links] == [5]


def test_a_range_is_linked_by_its_numbers():
    found = cited("Press Stop [1–2].", searched())

    assert [link.source.number for link in found.links] == [1, 2]


def test_an_answer_can_cite_what_an_earlier_one_found():
    earlier = {**SAVED[0], "number": 4, "text": "Press the Stop button."}
    note = {"kind": "earlier_sources", "sources": [earlier]}
    found = cited("As I said [4].", step(2, "", "", kind="answer", notes=[note]))

    [source] = found.cited
    assert (source.number, source.text) == (4, "Press the Stop button.")


def test_a_structured_answer_lists_its_sources():
    run = Run(pk=7, output={"text": "Press Stop [1].", "count": 2}, answer="Press Stop")
    run.status = Run.Status.COMPLETED
    view = RunView(run)
    vars(view)["sources"] = observed([searched()])

    found = view.output_evidence

    assert [source.number for source in found.cited] == [1]
    assert [source.number for source in found.also_read] == [2]
    assert not view.has_evidence


def test_a_source_without_a_place_quotes_its_beginning():
    found = cited("Press Stop [1].", searched())
    nowhere = replace(found.cited[0].passage, heading="", kind="")
    source = found.cited[0]._replace(passage=nowhere)

    html = render_to_string("run/_evidence_source.html", {"source": source, "evidence": found})

    assert f"“{source.text[:10]}" in html
