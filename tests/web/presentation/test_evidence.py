"""What an answer is based on: links to observations, and statements without any."""

import re
import time
from dataclasses import replace
from datetime import date
from decimal import Decimal

import pytest
from django.test import Client

from agents.engine.material.figures import figures_in
from agents.models import AgentStep, Run
from agents.web.presentation import RunView, evidence, evidence_fragments
from agents.web.presentation.evidence import (
    annotator,
    cited_rows,
    find_evidence,
    observed,
    sources,
    statements,
    statements_citing,
)
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


CITATION = re.compile(
    r'<a class="cite" href="([^"]*)"(?: data-document)? data-evidence="(\d+)" '
    r'aria-label="([^"]*)">(\d+)</a>'
)


def links_in(text, *steps):
    """Return the citations of an answer: their number, step and what is behind them."""
    found = find_evidence(render_markdown(text), observed(steps), "/traces/7/#step-")
    return [
        (int(match[4]), int(match[1].partition("#step-")[2]), found.links[int(match[2]) - 1])
        for match in CITATION.finditer(found.html)
    ]


def cited_text(text, *steps, **more):
    """Return an answer's HTML with its citations as ⟦1⟧ and its marks as {text}."""
    html = find_evidence(render_markdown(text), observed(steps), **more).html
    html = re.sub(r'<span class="unsupported">(.*?)</span>', r"{\1}", html)
    return CITATION.sub(r"⟦\4⟧", html).strip()


def unsupported_in(text, *steps, **more):
    found = find_evidence(render_markdown(text), observed(steps), **more)
    return re.findall(r'<span class="unsupported">(.*?)</span>', found.html)


@pytest.mark.parametrize("written", ["[1]", "【1】", "[１]", "［1］", "【1†source】"])
def test_a_number_in_brackets_is_a_link_to_its_passage(written):
    [(label, number, link)] = links_in(f"Press Stop {written}.", step(3, PASSAGES, "search"))

    assert (label, number) == (1, 3)
    assert link.source.label == "Runs › Stop (runs.md #3)"
    assert link.source.excerpt.startswith("Press the Stop button.")


def test_several_numbers_are_several_links_and_unknown_ones_none():
    links = links_in("As written [1, 2, 9].", step(3, PASSAGES, "search"))

    assert [(label, link.source.number) for label, _, link in links] == [(1, 1), (2, 2)]


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
def test_a_figure_is_cited_from_the_value_it_equals(written, expected):
    [(_, number, link)] = links_in(f"It was {written} in all.", step(2, ROWS))

    assert (number, link.match) == (2, expected)
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
def test_values_that_may_match_by_chance_are_not_cited(text):
    assert links_in(text, step(2, ROWS + " 2026 2 5.2")) == []


def test_values_are_normalized():
    found = {figure.value for figure in figures_in("-1,234.50 −1234.5 2026/1/2 2026-02-30")}

    assert found == {Decimal("-1234.5"), date(2026, 1, 2), "2026-02-30"}


def test_unsupported_statements_are_marked():
    text = (
        "Press the Stop button. Elephants are large grey mammals of Africa. "
        "Revenue was 99,999 in total. Is that all?"
    )
    marked = unsupported_in(text, step(3, PASSAGES, "search"))

    assert marked == [
        "Elephants are large grey mammals of Africa.",
        "99,999",
    ]


def test_every_figure_is_matched_by_itself():
    rows = step(2, '{"rows": [["2026-08", 40, 1200]]}')
    answer = "There were 40 orders worth $1,200 in August; 3.3% of them were refunded."

    assert cited_text(answer, rows) == (
        "<p>There were 40 orders worth $1,200 in August; {3.3%} of them were refunded.⟦1⟧</p>"
    )


@pytest.mark.parametrize(
    ("figure", "observed_text"),
    [
        ("$99", "40 orders"),
        ("3.3万円", "40 orders"),
        ("17 November 2026", "40 orders on 2026-11-18"),
        ("12,345", "40 orders worth 12,346"),
    ],
)
def test_figures_of_all_forms_are_marked(figure, observed_text):
    assert unsupported_in(f"40 orders: {figure}.", step(2, observed_text)) == [figure]


@pytest.mark.parametrize(
    ("answer", "result", "question"),
    [
        ("40 orders, or 3.3% of all.", "40 orders, 3.28%", ""),  # rounded to few digits
        ("40 of the 75 newest orders.", "40 orders", "How many of the 75 newest orders?"),
        ("40 of the 500 newest orders.", "40 orders", ""),  # asked for
        ("In 2026 there were 40 orders in 2 of them.", "40 orders", "Asked on 2026-11-19"),
    ],
)
def test_figures_that_may_come_from_elsewhere_are_not_marked(answer, result, question):
    found = step(2, result, action_input={"sql": "SELECT count(*) FROM new LIMIT 500"})

    assert unsupported_in(answer, found, question=question) == []


def test_figures_in_compact_json_and_csv_are_found():
    json_text = '[["2026-08",14832.924,40],["2026-09",5210,44]]'

    for text in (json_text, "month,revenue,orders\n2026-09,5210,44"):
        assert unsupported_in("Revenue was 5,210 with 44 orders.", step(2, text)) == []


def test_nothing_is_marked_if_not_everything_could_be_compared():
    long = step(3, "x " * sources.MAX_SOURCE_CHARS)

    assert unsupported_in("Elephants are large grey mammals of Africa.", long) == []


def test_sub_agent_answers_and_failed_calls_are_not_evidence():
    steps = step(2, "5210", "ask_helper"), step(3, "5210", status="failed")

    assert observed(steps) == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Press Stop [1]. *Wait.* [2] Go", "Press Stop.⟦1⟧ <em>Wait.</em>⟦2⟧ Go"),
        ("Stop [1], or wait [2] and go.", "Stop,⟦1⟧ or wait⟦2⟧ and go."),
        ("Press Stop [1][2].", "Press Stop.⟦1⟧⟦2⟧"),
        ("Press Stop ([1]).", "Press Stop (⟦1⟧)."),
        ("**5,210.** And 5,210", "<strong>5,210.</strong>⟦1⟧ And 5,210⟦1⟧"),
        ("「停止」を押す【1】。次へ。", "「停止」を押す。⟦1⟧次へ。"),
        ("Press `5,210. Stop` now", "Press <code>5,210. Stop</code> now"),
        ("5,210: `a. b`", "5,210: <code>a. b</code>⟦1⟧"),
        ("`[1]` is code, and [9] unknown.", "<code>[1]</code> is code, and [9] unknown."),
    ],
)
def test_citations_come_after_the_punctuation(text, expected):
    assert cited_text(text, searched(), step(4, ROWS)) == f"<p>{expected}</p>"


def test_a_row_of_a_table_is_cited_once_at_its_end():
    table = "| Month | Sum | Orders |\n|--|--:|--:|\n| Aug [1] | 5,210 | 44 |\n| Sep | 99 | 7 |"
    html = cited_text(table, searched(), step(4, ROWS + "44"))

    assert re.findall(r"<tr>\n(.*?)</tr>", html.replace(' class="right"', ""), re.DOTALL) == [
        "<th>Month</th>\n<th>Sum</th>\n<th>Orders</th>\n"
        '<th class="cited-cell"><span class="visually-hidden">Sources</span></th>',
        '<td>Aug</td>\n<td>5,210</td>\n<td>44</td>\n<td class="cited-cell">⟦1⟧⟦2⟧</td>',
        '<td>Sep</td>\n<td>{99}</td>\n<td>7</td>\n<td class="cited-cell"></td>',
    ]


def test_a_column_of_citations_stays_where_it_is():
    table = "| Month | Source |\n|--|--|\n| Stop | [1] |\n| Wait | [2] |"
    html = cited_text(table, searched())

    assert "<td>Stop</td>\n<td>⟦1⟧</td>\n</tr>" in html
    assert "cited-cell" not in html


def test_sources_have_the_numbers_that_the_model_gave_them():
    found = cited(
        "It was 5,210. Press Stop [1]. Revenue was 14,833.", step(2, ROWS), searched()
    )

    assert [(n, s.title) for n, s in found.listed] == [(1, "Runs"), (2, "Database")]


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (
            step(2, "435", "calculator", action_input={"expression": "3480 / 8"}),
            ("calculator", "Calculator", "3480 / 8 = 435"),
        ),
        (
            step(2, "435", action_input={"sql": "SELECT sum(x) FROM y"}),
            ("database", "Database", "SELECT sum(x) FROM y"),
        ),
        (
            step(2, "435", "shop_orders", action_input={"year": 2026}),
            ("tool", "Shop orders", "2026"),
        ),
        (
            step(
                2, '[{"title": "Page", "url": "https://a.example/x", "n": 435}]', "web_search"
            ),
            ("globe", "Page", "a.example"),
        ),
        (step(2, '[{"name": "Kyoto", "sum": 435}]', "cities"), ("tool", "Cities", "")),
    ],
)
def test_a_source_has_the_title_of_its_tool_and_what_was_asked(made, expected):
    [(_, source)] = find_evidence("<p>It was 435.</p>", observed([made])).listed

    assert (source.icon, source.title, source.detail) == expected


def test_a_sentence_cites_as_few_sources_as_have_its_figures():
    steps = step(2, "40 orders"), step(3, "40 orders worth 1,200"), step(4, "1,200")

    assert [n for _, n, _ in links_in("There were 40 orders worth 1,200.", *steps)] == [3]


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

    [(href, _link, name, number)] = CITATION.findall(page)
    assert (href, name, number) == (f"/traces/{run.pk}/#step-2", "Source 1: Database", "1")
    assert "<mark>5210</mark>" in page
    assert f'<a href="/traces/{run.pk}/#step-2" class="evidence-step">' in page


@pytest.mark.django_db
@pytest.mark.parametrize(("level", "is_linked"), [("person", False), ("reviewer", True)])
def test_a_shared_run_has_links_only_if_it_has_the_results(run, person, level, is_linked):
    client = as_user(person)
    answer = client.post(f"/traces/{run.pk}/share/", {"level": level, "hours": 24})
    url = re.search(r"http://testserver(/shared/[\w-]+/)", answer.text)[1]
    page = Client().get(url).text

    assert ('<a class="cite" href="#step-2"' in page) == is_linked
    assert ("5210" in page) == is_linked


def test_thousands_of_citations_in_one_sentence_are_limited():
    sources = tuple(
        evidence.Observation(step=at, tool="search", text="word " * 50, number=1)
        for at in (1, 2)
    )
    html = f"<p>{'【1】' * 10_000}</p>"

    found = find_evidence(html, sources)

    assert not found.is_complete
    assert len(CITATION.findall(found.html)) <= statements.MAX_PLACES


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
    assert [(n, s.passage.title, s.place) for n, s in found.listed] == [(1, "Runs", "Stop")]


def test_passages_that_were_read_and_not_cited_come_after_the_sources():
    found = cited("Press Stop [1].", searched(), step(4, ROWS))

    assert [(s.number, s.place) for s in found.also_read] == [(2, "Page 9")]
    assert [(n, s.number) for n, s in found.listed] == [(1, 1)]


def test_a_shared_answer_has_no_links_to_documents():
    found = cited("Press Stop [1].", searched(), documents="")

    assert "/sources/" not in found.html
    assert 'href="/traces/7/#step-3"' in found.html


def test_a_number_means_the_passage_that_the_run_gave_it():
    other = '{"results":[{"title":"First","text":"a"},{"title":"Press Stop","text":"Press"}]}'
    found = cited("Press Stop [1].", step(2, other, "web_search"), searched(5))

    assert [link.source.step for link in found.links] == [5]


def test_a_range_cites_each_of_its_numbers():
    found = cited("Press Stop [1–2].", searched())

    assert [link.source.number for link in found.links] == [1, 2]


def test_an_answer_can_cite_what_an_earlier_one_found():
    earlier = {**SAVED[0], "number": 4, "text": "Press the Stop button."}
    note = {"kind": "earlier_sources", "sources": [earlier]}
    found = cited("As I said [4].", step(2, "", "", kind="answer", notes=[note]))

    [(number, source)] = found.listed
    assert (number, source.text) == (4, "Press the Stop button.")


def test_a_structured_answer_lists_its_sources():
    run = Run(pk=7, output={"text": "Press Stop [1].", "count": 2}, answer="Press Stop")
    run.status = Run.Status.COMPLETED
    view = RunView(run)
    vars(view)["sources"] = observed([searched()])

    found = view.output_evidence

    assert [number for number, _source in found.listed] == [1]
    assert [source.number for source in found.also_read] == [2]
    assert not view.has_evidence


def test_a_source_without_a_place_quotes_its_beginning():
    source = cited("Press Stop [1].", searched()).listed[0].source
    nowhere = source._replace(passage=replace(source.passage, heading="", kind=""))

    assert nowhere.detail.startswith(f"“{source.text[:10]}")


def test_more_than_six_sources_are_folded():
    steps = [step(number, f"It was {number}{number},000.") for number in range(1, 10)]
    answer = " ".join(f"It was {number}{number},000." for number in range(1, 10))
    html = evidence_fragments.evidence_sources(cited(answer, *steps))
    shown, folded = html.split("<details>")

    assert (shown.count("<li>"), folded.count("<li>")) == (6, 3)
    assert "<summary>Show all 9<" in folded


def test_an_answer_without_results_has_only_the_note():
    html = evidence_fragments.evidence_bar(find_evidence("<p>Hello.</p>", ()))

    assert "<section" not in html
    assert "data-sources" not in html
    assert 'class="evidence-note"' in html


def test_a_computed_figure_says_how_it_follows():
    found = cited("August and September had 20,042.92 in total.", step(2, ROWS))
    [link, *_] = [link for link in found.links if link.computation]
    html = evidence_fragments.evidence_bar(found)

    assert '<a class="computed" href="/traces/7/#step-2" data-evidence="1">' in found.html
    assert link.result == "20,042.92"
    assert "14,832.92 + 5,210 = 20,042.92" in html
    assert not found.has_unsupported


def test_a_known_figure_clears_no_other():
    answer = "Revenue was 5,210 in September and 6,200 in October."

    assert unsupported_in(answer, step(2, ROWS)) == ["6,200"]


def test_names_that_nothing_has_are_marked():
    answer = "Revenue was 5,210, says Elena Vasquez."

    assert unsupported_in(answer, step(2, ROWS)) == ["Elena Vasquez"]
