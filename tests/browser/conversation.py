"""Actions in the chat, for tests."""

import re

from playwright.sync_api import Locator, Page, expect

CALCULATION = "What is 12.5% of 3480?"
LOOKUP = "How do I stop a run, and what happens to it?"
FIGURES = "Which five products brought in the most this year?"
SEVERAL = "How many customers are there? What is 6 times 7?"


def log_in(page: Page, name: str, password: str) -> None:
    page.goto("/login/")
    page.locator("[name=username]").fill(name)
    page.locator("[name=password]").fill(password)
    page.locator("form.credentials button").click()
    expect(page.locator("#ask")).to_be_visible()


def begin(page: Page, question: str) -> Locator:
    """Ask a question in a new chat; return its run."""
    page.goto("/")
    ask(page, question)
    expect(page).to_have_url(re.compile(r"/chat/\d+/$"))
    return last_run(page)


def ask(page: Page, question: str) -> None:
    page.locator("#text").fill(question)
    page.locator("#text").press("Enter")


def ask_and_wait(page: Page, question: str) -> Locator:
    """Ask a question in a new chat, and wait for its answer."""
    run = begin(page, question)
    expect(run).to_have_attribute("data-status", "completed")
    return run


def last_run(page: Page) -> Locator:
    return page.locator(".run").last


def tool_step(run: Locator) -> Locator:
    return run.locator(".step[data-kind=tool]").first


def open_details(page: Page) -> None:
    """Open all rows of all steps."""
    rows = page.locator(".step > details")
    rows.evaluate_all("rows => rows.forEach(row => (row.open = true))")


def open_trace(run: Locator) -> None:
    """Follow the link that appears at the line of a run."""
    run.page.goto(run.locator(".to-trace").get_attribute("href"))


def choose_from_menu(run: Locator, action: str) -> None:
    """Choose an action in the menu below an answer."""
    run.get_by_role("button", name="More", exact=True).click()
    run.get_by_role("button", name=action).click()


def choose_action(row: Locator, action: str) -> None:
    """Choose an action in the menu of a chat in the list."""
    row.hover()
    row.get_by_role("button", name="Actions for").click()
    row.page.get_by_role("menuitem", name=action).click()


def number_in(page: Page) -> int:
    """Return the number in the page's URL."""
    return int(re.search(r"/(\d+)/", page.url)[1])


def html(locator: Locator) -> str:
    """Return the HTML without what only the reader or the clock determines."""
    text = locator.evaluate("element => element.innerHTML")
    text = re.sub(r'(<details)(?: open="")', r"\1", text)
    return re.sub(r' data-elapsed-ms="\d+">[^<]*', ">", text)
