from contextlib import contextmanager

from playwright.sync_api import Page, expect

from tests.browser.agent_editor import open_agent, publish
from tests.browser.conversation import ask_and_wait, begin, tool_step

TOOLS, PATTERNS = "/admin/agents/toolregistration/", "/admin/agents/guardrailpattern/"


def test_a_disabled_tool_is_missing_from_the_next_run(page: Page):
    with switched_off(page, "calculator"):
        run = ask_and_wait(page, "What is 6 times 7?")
        expect(run.locator(".step[data-kind=tool]", has_text="calculator")).to_have_count(0)

    run = ask_and_wait(page, "What is 6 times 7?")
    expect(tool_step(run).locator(".intent")).to_contain_text("calculator")


def test_a_new_pattern_blocks_the_next_run_with_its_message(page: Page):
    sentence = "We do not speak of <b>Macbeth</b> here."
    with a_pattern(page, name="Superstition", pattern="(?i)macbeth", message=sentence):
        run = begin(page, "Who wrote Macbeth?")

        expect(run).to_have_attribute("data-status", "blocked")
        expect(run.locator(".outcome")).to_contain_text(sentence)
        expect(run.locator(".step[data-kind=tool]")).to_have_count(0)

    run = begin(page, "Who wrote Macbeth?")
    expect(run).to_have_attribute("data-status", "completed")


def test_an_invalid_pattern_is_rejected_with_the_reason(page: Page):
    page.goto(f"{PATTERNS}add/")
    page.locator("[name=name]").fill("Broken")
    page.locator("[name=pattern]").fill("(unclosed")
    page.locator("[name=_save]").click()

    expect(page.locator(".field-pattern .errorlist")).to_contain_text("missing )")
    assert "Broken" not in page.request.get(PATTERNS).text()


def test_a_run_at_its_step_limit_offers_to_continue(page: Page):
    with most_steps(page, 1):
        run = begin(page, "What is 6 times 7?")
        expect(run.locator(".outcome")).to_contain_text("No answer after 1 step.")
    run.get_by_role("button", name="Continue").click()

    expect(page.locator(".message")).to_have_count(2)
    expect(page.locator(".run").last).to_have_attribute("data-status", "completed")


def test_recorded_rows_can_be_viewed_in_the_console(page: Page):
    ask_and_wait(page, "What is 4141 + 1?")

    page.goto("/admin/agents/run/?q=4141")
    page.locator("#result_list tbody a").first.click()

    expect(page.locator("#content")).to_contain_text("4141")
    expect(page.locator("[name=_save]")).to_have_count(0)


@contextmanager
def most_steps(page: Page, number: int):
    limit_steps(page, number)
    try:
        yield
    finally:
        with page.context.new_page() as other:
            limit_steps(other, 10)


def limit_steps(page: Page, number: int) -> None:
    open_agent(page, "helper", "Limits")
    page.locator("[name=max_steps]").fill(str(number))
    publish(page)


@contextmanager
def switched_off(page: Page, tool: str):
    switch(page, tool, False)
    try:
        yield
    finally:
        switch(page, tool, True)


def switch(page: Page, tool: str, on: bool) -> None:
    page.goto(TOOLS)
    row = page.locator("#result_list tr", has_text=tool)
    box = row.locator("[type=checkbox][name$=enabled]")
    box.set_checked(on)
    page.locator("[name=_save]").click()
    expect(page.locator(".messagelist .success")).to_be_visible()
    expect(box).to_be_checked(checked=on)


@contextmanager
def a_pattern(page: Page, **fields: str):
    page.goto(f"{PATTERNS}add/")
    for field, value in fields.items():
        page.locator(f"[name={field}]").fill(value)
    page.locator("[name=_save]").click()
    expect(page.locator(".messagelist .success")).to_be_visible()
    try:
        yield
    finally:
        page.goto(PATTERNS)
        page.locator("#result_list").get_by_role("link", name=fields["name"]).click()
        page.locator(".deletelink").click()
        page.locator("#content form [type=submit]").click()
        expect(page.locator(".messagelist .success")).to_be_visible()


def test_a_server_of_the_gallery_is_added_with_its_fields(page: Page):
    page.goto("/admin/agents/mcpserver/")
    page.get_by_role("link", name="Add MCP server").click()
    page.get_by_role("link", name="GitHub").click()
    page.get_by_label("Personal access token").fill("github_pat_1")
    page.get_by_role("button", name="Add server").click()
    expect(page.locator(".messagelist .success")).to_contain_text("Github was added.")

    page.goto("/admin/agents/mcpserver/")
    card = page.locator(".server-card", has_text="github")
    card.get_by_role("button", name="Pause github").click()
    expect(page.locator(".messagelist .success")).to_contain_text("Github is paused.")
    page.locator(".server-card", has_text="github").get_by_role("link", name="Edit").click()
    page.locator(".deletelink").click()
    page.locator("#content form [type=submit]").click()
    expect(page.locator(".messagelist .success")).to_be_visible()
