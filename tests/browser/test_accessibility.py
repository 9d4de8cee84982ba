"""Pages have no serious axe-core findings."""

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page, expect

from tests.browser.conversation import (
    CALCULATION,
    SEVERAL,
    ask_and_wait,
    last_run,
    open_trace,
)
from tests.browser.test_sessions import LONG_ANSWER, open_chat
from tests.browser.test_sharing import make, open_elsewhere

GRAVE = {"serious", "critical"}
# Off or of moderate impact in axe, but fingers and screen readers need them.
ALWAYS = ["heading-order", "target-size"]
# It would load the style sheets of the console once more, as none that we allow, and it would
# tell at length of all that is well.
FOUND = """async ([grave, always, within]) => {
    const rules = Object.fromEntries(always.map(id => [id, { enabled: true }]));
    const options = { preload: false, resultTypes: ["violations"], rules };
    const { violations } = await axe.run(within, options);
    return violations
        .filter(fault => grave.includes(fault.impact) || always.includes(fault.id))
        .flatMap(({ id, nodes }) => nodes.map(node => `${id}: ${node.html.slice(0, 160)}`));
}"""
READERS = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "a phone in Japanese": {"viewport": {"width": 390, "height": 844}, "locale": "ja-JP"},
}


def faults(page: Page, within: str = "html") -> list[str]:
    """Return grave findings, and those of some rules whatever their impact.

    An open list covers buttons, which are too small then: look only `within` it.
    """
    page.wait_for_load_state()  # with its styles
    page.evaluate(AXE_SCRIPT)
    return page.evaluate(FOUND, [sorted(GRAVE), ALWAYS, within])


@pytest.fixture(params=READERS)
def options(request) -> dict:
    return READERS[request.param] | {"reduced_motion": "reduce"}


@pytest.fixture
def reader(options, visit, server) -> Page:
    return visit(server, **options)


def run_of(page: Page) -> str:
    """Return the number of the last run."""
    return last_run(page).get_attribute("id").removeprefix("run-")


@pytest.mark.parametrize(
    "options",
    [pytest.param("light", marks=pytest.mark.journey), "dark", "a phone in Japanese"],
    indirect=True,
)
def test_chat_and_run_page_are_accessible(reader: Page):
    ask_and_wait(reader, SEVERAL)
    assert faults(reader) == []
    for link in reader.locator(".step > .number").all():
        assert link.bounding_box()["height"] >= 24  # the least that a finger hits

    run = run_of(reader)
    for address in ("", "steps/1/", "steps/1/?tab=request", "steps/2/?tab=raw"):
        reader.goto(f"/traces/{run}/{address}")
        assert faults(reader) == [], address


def test_answers_with_headings_code_and_tables_are_accessible(request, reader: Page, server):
    answer = f"## Summary\n\n{LONG_ANSWER}\n\n#### Detail\n\nText.\n\n# Conclusion\n\nText."
    open_chat(reader, server, 2, request.node.callspec.id, answer)

    assert faults(reader) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_step_panel_is_accessible(visit, server, scheme):
    reader = visit(server, color_scheme=scheme, reduced_motion="reduce")
    open_trace(ask_and_wait(reader, SEVERAL))
    reader.locator("#step-1 summary").click()
    expect(reader.locator("#panel .payload").first).to_be_visible()
    assert faults(reader) == []

    reader.get_by_role("link", name="Request", exact=True).click()
    expect(reader.locator("#panel .sent").first).to_be_visible()
    assert faults(reader) == []


@pytest.mark.parametrize("width", [390, 1280])
def test_a_long_question_scrolls_with_the_keyboard(visit, server, width):
    reader = visit(server, viewport={"width": width, "height": 844})
    lines = "\n".join(f"What is {number} + {number}?" for number in range(30))
    ask_and_wait(reader, lines)
    assert faults(reader) == []

    run = run_of(reader)
    for address in ("", "replay/", "compare/", f"compare/{run}/", "again/1/", "share/"):
        reader.goto(f"/traces/{run}/{address}")
        assert faults(reader) == [], address


def test_trace_list_and_review_queue_are_accessible(reader: Page):
    ask_and_wait(reader, CALCULATION)
    for address in ("/traces/", "/traces/?q=staus:failed", "/review/", "/approvals/"):
        reader.goto(address)
        assert faults(reader) == [], address


def test_a_review_is_accessible_in_the_queue_and_on_its_page(reader: Page):
    run = ask_and_wait(reader, CALCULATION)
    run.locator(".thumb[value=bad]").click()
    run.locator("button[value=flag]").click()
    expect(run.locator(".flagged")).to_be_visible()
    number = run_of(reader)

    reader.goto("/review/")
    mine = reader.locator(f"#judge-{number}")
    for details in mine.locator("details").all():
        details.evaluate("details => { details.open = true }")
    assert faults(reader) == []
    reader.goto(f"/traces/{number}/")
    assert faults(reader) == []


@pytest.mark.parametrize("level", ["person", "reviewer", "auditor"])
def test_a_shared_run_is_accessible(reader: Page, options, visit, server, level):
    ask_and_wait(reader, SEVERAL)
    link = make(reader, run_of(reader), level)
    assert faults(reader) == []

    shared = open_elsewhere(visit, server, link, **options)
    for details in shared.locator("details").all():
        details.evaluate("details => { details.open = true }")
    assert faults(shared) == []


def test_an_expired_link_page_is_accessible(options, visit, server, watch):
    watch.expect("404")
    page = visit(server, storage_state={"cookies": [], "origins": []}, **options)
    page.goto("/shared/no-such-link/")

    assert faults(page) == []


def test_replay_and_comparison_are_accessible(reader: Page):
    ask_and_wait(reader, CALCULATION)
    run = run_of(reader)
    for address in ("replay/", "compare/", f"compare/{run}/", "again/2/", "share/"):
        answer = reader.goto(f"/traces/{run}/{address}")
        assert answer.ok, address
        assert faults(reader) == [], address
