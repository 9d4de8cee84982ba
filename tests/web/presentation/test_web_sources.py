"""Pages of the web as sources of an answer."""

from agents.access.masking import mask_row
from agents.engine.material import Passage, RunMaterial, format_passages
from agents.models import AgentStep
from agents.web.presentation import evidence_fragments
from agents.web.presentation.evidence import find_evidence, observed
from agents.web.presentation.markdown import render_markdown

HOSTILE = '<script>alert(1)</script>"><img src=x onerror=alert(1)>'


def page_step(url="https://kyoto.example/guide", title="Guide", text="Open from nine."):
    [passage] = RunMaterial().number([Passage(title=title, text=text, url=url)])
    return AgentStep(
        number=1,
        kind="tool",
        status="done",
        action="read_page",
        observation=format_passages([passage]),
        sources=[passage.to_dict()],
    )


def sources_html(step):
    html = render_markdown("They open from nine [1].")
    evidence = find_evidence(
        html, observed([step]), "/traces/7/#step-", documents="/traces/7/sources/"
    )
    return evidence.html, str(evidence_fragments.evidence_sources(evidence))


def test_the_list_opens_the_page_and_the_number_what_was_read():
    answer, listed = sources_html(page_step())

    assert 'href="/traces/7/sources/1/"' in answer
    assert (
        '<a href="https://kyoto.example/guide" target="_blank" '
        'rel="noopener noreferrer nofollow">'
    ) in listed
    assert "kyoto.example" in listed


def test_only_addresses_of_pages_become_links():
    _answer, listed = sources_html(page_step(url="javascript:alert(1)"))

    assert "javascript:" not in listed


def test_a_page_cannot_write_into_the_list():
    _answer, listed = sources_html(
        page_step(url=f"https://kyoto.example/{HOSTILE}", title=HOSTILE)
    )

    assert "<script" not in listed
    assert "<img" not in listed


def test_reviewers_see_a_page_s_address_masked():
    step = page_step(url="https://kyoto.example/?user=ana@mail.example")
    step.sources[0]["links"] = ["https://kyoto.example/?to=ben@mail.example"]

    [source] = mask_row(step).sources

    assert "ana@mail.example" not in str(source)
    assert "ben@mail.example" not in str(source)
