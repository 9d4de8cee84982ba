"""Takes the pictures of the README: `python -m tests.browser.screenshots`."""

import tempfile
from pathlib import Path

from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.browser.agent_editor import open_agent
from tests.browser.conversation import ask, begin, last_run, log_in, open_trace, tool_step
from tests.browser.server import NAME, PASSWORD, PROJECT, Server, launch_options

FOLDER = PROJECT / "docs" / "screenshots"
DESK = {"viewport": {"width": 1280, "height": 860}, "device_scale_factor": 1.5}
PHONE = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2}
EARLIER = ["How do I connect a real model?", "How do I stop a run?"]
QUESTIONS = [
    "Which five products brought in the most this year?",
    "Compare this year's best month with last year's.",
]

PLANNED = "Compare this year's best month with last year's and explain."

# To the answer in the chat; a run's page isn't scrolled.
SCROLLED = """() => scrollTo(0, document.querySelector(".message") ? 100_000 : 0)"""


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        server = Server(Path(folder), 0.01)
        server.start()
        try:
            take_all(playwright.chromium.launch(**launch_options()), server.url)
        finally:
            server.stop()


def take_all(browser: Browser, url: str) -> None:
    page = browser.new_page(base_url=url, reduced_motion="reduce", **DESK)
    log_in(page, NAME, PASSWORD)
    converse(page)
    take(page, "chat-light")
    page.emulate_media(color_scheme="dark")
    take(page, "chat-dark")
    page.emulate_media(color_scheme="light")
    chat, kept = page.url, page.context.storage_state()
    open_trace(last_run(page))
    expect(page.get_by_role("heading", level=1)).to_have_text(QUESTIONS[1])
    tool_step(last_run(page)).locator("summary").click()
    expect(page.locator("#panel .payload").first).to_be_visible()
    take(page, "trace")
    run = int(page.url.split("/traces/")[1].split("/")[0])
    take_traces(page, run)
    take_shared(page, run, browser.new_page(base_url=url, reduced_motion="reduce", **DESK))
    take_plans(page)
    take_console(page)
    page.goto("/")
    page.locator("select[name=agent]").select_option("careful")
    ask(page, "How many customers are there in Kyoto?")
    expect(page.locator(".approval[data-verdict=waiting]")).to_be_visible()
    take(page, "approval")
    page.get_by_role("button", name="Stop").click()
    phone = browser.new_page(base_url=url, reduced_motion="reduce", storage_state=kept, **PHONE)
    phone.goto(chat)
    take(phone, "phone")
    browser.close()


def take_traces(page: Page, run: int) -> None:
    """Take pictures around a run's page: replay, comparison and list."""
    page.goto(f"/traces/{run}/replay/?at=12")
    take(page, "replay")
    page.goto(f"/traces/{run - 1}/compare/{run}/")
    take(page, "compare")
    page.goto(f"/traces/{run}/again/3/")
    take(page, "again")
    page.goto(f"/traces/{run}/")
    page.locator(".run-review > summary").click()
    page.locator(".run-review summary", has_text="Flag for review").click()
    page.get_by_label("What should the reviewer look at?").fill(
        "Is the best month the right one?"
    )
    page.get_by_role("button", name="Send to review queue").click()
    expect(page.locator(".run-review .why")).to_be_visible()
    page.goto("/review/")
    take(page, "review")
    page.goto("/traces/?q=tool:database")
    take(page, "traces")


def take_shared(page: Page, run: int, reader: Page) -> None:
    """Take pictures of a share link, and what it shows without an account."""
    page.goto(f"/traces/{run}/share/")
    page.locator("#share [value=reviewer]").check()
    page.locator("#share .primary").click()
    link = page.locator("#share-url").inner_text()
    take(page, "share")
    reader.goto(link)
    take(reader, "shared")


def take_plans(page: Page) -> None:
    """Take pictures of an executed plan, a panel, and a workflow's definition."""
    asked_of(page, "planner", PLANNED)
    take(page, "plan", "() => scrollTo(0, 0)")
    asked_of(page, "panel", EARLIER[0])
    take(page, "panel")
    page.goto("/workflows/")
    page.get_by_role("link", name="Top products").click()
    expect(page.get_by_text("No errors. Ready to save.")).to_be_visible()
    take(page, "workflow")


def take_console(page: Page) -> None:
    open_agent(page, "helper", "Tools")
    take(page, "console", "() => {}")


def asked_of(page: Page, agent: str, question: str) -> None:
    page.goto("/")
    page.locator("select[name=agent]").select_option(agent)
    ask(page, question)
    expect(page.locator(".run[data-status=completed]")).to_have_count(1, timeout=60_000)


def converse(page: Page) -> None:
    for question in EARLIER:
        begin(page, question)
        expect(page.locator(".run[data-status=completed]")).to_have_count(1)
    begin(page, QUESTIONS[0])
    expect(page.locator(".run[data-status=completed]")).to_have_count(1)
    ask(page, QUESTIONS[1])
    expect(page.locator(".run[data-status=completed]")).to_have_count(2)
    last_run(page).locator(".run-line").click()
    last_run(page).locator(".step[data-kind=tool] summary").last.click()


def take(page: Page, name: str, scrolled: str = SCROLLED) -> None:
    page.evaluate("() => document.activeElement.blur()")
    page.mouse.move(0, 0)
    page.evaluate(scrolled)
    page.wait_for_timeout(300)
    page.screenshot(path=FOLDER / f"{name}.png", animations="disabled", caret="hide")


if __name__ == "__main__":
    main()
