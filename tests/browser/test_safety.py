import pytest
from playwright.sync_api import Page, expect

from tests.browser.conversation import (
    ask_and_wait,
    begin,
    choose_action,
    last_run,
    number_in,
    open_trace,
)

ATTACK = (
    "<img src=x onerror=alert(1)> <script>alert(2)</script> "
    "[here](javascript:alert(3)) ![there](https://example.com/x.png)"
)
DOCUMENT = f"""# What is the purple trapdoor?

The purple trapdoor is this: {ATTACK} <svg onload=alert(4)> <a href="data:text/html,x">x</a>

<iframe src="https://example.com/"></iframe>
"""


def test_markup_in_a_question_is_shown_as_text(page: Page):
    run = begin(page, ATTACK)
    expect(run).not_to_have_attribute("data-live", "")

    expect(page.locator(".question p")).to_have_text(ATTACK)
    expect(page.locator("#session-title")).to_contain_text("<img src=x onerror=alert(1)>")
    expect(page.locator("#sessions img, #messages img, #messages script")).to_have_count(0)
    open_trace(run)
    expect(page.get_by_role("heading", level=1)).to_have_text(ATTACK)
    page.goto("/traces/")
    expect(page.locator(".runs tbody a").first).to_contain_text("<script>alert(2)</script>")


def test_markup_in_a_title_is_shown_as_text(page: Page):
    ask_and_wait(page, "What is 2 + 3?")
    row = page.locator(f"#session-{number_in(page)}")
    choose_action(row, "Rename")
    page.keyboard.type("<img src=x onerror=alert(1)>")
    page.keyboard.press("Enter")

    expect(row.locator(".title")).to_have_text("<img src=x onerror=alert(1)>")
    choose_action(row, "Delete")
    expect(page.get_by_role("dialog")).to_contain_text("<img src=x onerror=alert(1)>")


@pytest.mark.journey
def test_a_document_cannot_inject_active_content_into_an_answer(page: Page, server, tmp_path):
    document = tmp_path / "trapdoor.md"
    document.write_text(DOCUMENT)
    server.manage("ingest", str(document))

    ask_and_wait(page, "What is the purple trapdoor?")
    answer = last_run(page).locator(".answer")

    expect(answer).to_contain_text("The purple trapdoor is this")
    expect(answer.locator("img, script, svg, iframe")).to_have_count(0)
    links = answer.locator("a").evaluate_all("links => links.map(link => link.protocol)")
    assert not {"javascript:", "data:"} & set(links)
