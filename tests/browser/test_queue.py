"""Messages sent during a run are queued, on every page of the chat."""

from playwright.sync_api import Page, expect

from tests.browser.conftest import AWAY
from tests.browser.conversation import LOOKUP, ask, begin, html, last_run

SUM = "What is 2 + 3?"


def busy(page: Page):
    """Start a chat with a slow answer."""
    begin(page, LOOKUP)
    run = page.locator(".run").first
    expect(run.locator(".live-thought").first).not_to_be_empty()
    return run


def queued_messages(page: Page):
    return page.locator("#queue .question p")


def test_a_message_sent_during_an_answer_is_queued_and_answered(slow_page: Page):
    run = busy(slow_page)
    other = slow_page.context.new_page()
    other.goto(slow_page.url)

    ask(slow_page, SUM)

    for page in (slow_page, other):
        expect(queued_messages(page)).to_have_text([SUM])
        expect(page.locator("#queue")).to_contain_text("Queued")
    expect(slow_page.locator("#text")).to_have_value("")
    expect(slow_page.locator("#announcer")).to_have_text("Your message is queued.")
    for page in (slow_page, other):
        expect(page.locator(".run[data-status=completed]")).to_have_count(2, timeout=60_000)
        expect(page.locator("#queue")).to_be_hidden()
        expect(last_run(page).locator(".answer strong")).to_have_text("5")
    expect(run).to_have_attribute("data-status", "completed")
    watched = html(slow_page.locator("#messages"))
    slow_page.reload()
    assert html(slow_page.locator("#messages")) == watched


def test_the_queue_survives_a_reload_and_a_restart(slow_page: Page, slow_server, watch):
    watch.expect(AWAY)
    busy(slow_page)
    ask(slow_page, SUM)
    expect(queued_messages(slow_page)).to_have_text([SUM])

    slow_page.reload()
    expect(queued_messages(slow_page)).to_have_text([SUM])
    slow_server.kill()
    expect(slow_page.locator("#connection")).to_be_visible()
    slow_server.start()
    expect(slow_page.locator("#connection")).to_be_hidden()
    expect(queued_messages(slow_page)).to_have_text([SUM])

    slow_page.locator("#text").press("Escape")

    expect(last_run(slow_page).locator(".answer strong")).to_have_text("5")
    expect(slow_page.locator("#messages .question p")).to_have_text([LOOKUP, SUM])


def test_a_removed_message_returns_to_the_composer(slow_page: Page):
    busy(slow_page)
    ask(slow_page, "What is 2 + 33?")
    ask(slow_page, "Never mind")
    expect(queued_messages(slow_page)).to_have_count(2)

    slow_page.locator("#queue").get_by_role("button", name="Remove").first.click()

    expect(queued_messages(slow_page)).to_have_text(["Never mind"])
    expect(slow_page.locator("#text")).to_have_value("What is 2 + 33?")
    expect(slow_page.locator("#text")).to_be_focused()
    expect(slow_page.locator("#announcer")).to_have_text(
        "Your message was removed from the queue."
    )
    ask(slow_page, SUM)
    expect(queued_messages(slow_page)).to_have_text(["Never mind", SUM])
    expect(slow_page.locator("#text")).to_have_value("")


def test_removing_a_message_keeps_the_current_draft(slow_page: Page):
    busy(slow_page)
    ask(slow_page, SUM)
    slow_page.locator("#text").fill("Other")

    slow_page.locator("#queue").get_by_role("button", name="Remove").click()

    expect(slow_page.locator("#queue")).to_be_hidden()
    expect(slow_page.locator("#text")).to_have_value("Other")


def test_send_now_stops_the_answer_and_goes_first(slow_page: Page):
    run = busy(slow_page)
    ask(slow_page, "How many customers are there?")
    ask(slow_page, SUM)
    expect(queued_messages(slow_page)).to_have_count(2)

    now = slow_page.locator("#queue").get_by_role("button", name="Send now").last
    now.focus()
    now.press("Enter")

    expect(run).to_have_attribute("data-status", "stopped")
    expect(run.locator(".outcome")).to_have_attribute("data-status", "stopped")
    expect(slow_page.locator("#messages .question p")).to_have_text(
        [LOOKUP, SUM, "How many customers are there?"], timeout=60_000
    )
    expect(slow_page.locator(".run[data-status=completed]")).to_have_count(2, timeout=60_000)


def test_stop_starts_the_next_queued_message(slow_page: Page):
    run = busy(slow_page)
    ask(slow_page, SUM)
    expect(slow_page.locator("#queue")).to_contain_text("The next queued message is sent")

    slow_page.locator("#text").press("Escape")

    expect(run).to_have_attribute("data-status", "stopped")
    expect(last_run(slow_page).locator(".answer strong")).to_have_text("5")
    expect(slow_page.locator("#queue")).to_be_hidden()


def test_focus_stays_when_the_queue_changes(slow_page: Page):
    busy(slow_page)
    ask(slow_page, SUM)
    expect(queued_messages(slow_page)).to_have_text([SUM])
    other = slow_page.context.new_page()
    other.goto(slow_page.url)
    withdraw = slow_page.locator("#queue").get_by_role("button", name="Remove").first
    withdraw.focus()

    ask(other, "And 4 + 5?")

    expect(queued_messages(slow_page)).to_have_count(2)
    expect(withdraw).to_be_focused()


def test_two_devices_show_the_same_queue(slow_page: Page, visit, slow_server):
    busy(slow_page)
    phone = visit(
        slow_server, viewport={"width": 390, "height": 844}, is_mobile=True, has_touch=True
    )
    phone.goto(slow_page.url)

    phone.locator("#text").fill(SUM)
    phone.get_by_role("button", name="Add to queue").tap()

    for page in (slow_page, phone):
        expect(queued_messages(page)).to_have_text([SUM])
    assert html(slow_page.locator("#queue")) == html(phone.locator("#queue"))
    assert phone.evaluate("document.documentElement.scrollWidth") == 390
    slow_page.locator("#queue").get_by_role("button", name="Remove").click()
    expect(phone.locator("#queue")).to_be_hidden()
    expect(phone.locator("#text")).to_have_value("")


def test_without_javascript_a_message_is_queued_and_removed(
    visit, slow_server, slow_page: Page
):
    busy(slow_page)
    plain = visit(slow_server, java_script_enabled=False)
    plain.goto(slow_page.url)

    plain.locator("#text").fill(SUM)
    plain.locator("button.send").click()
    expect(queued_messages(plain)).to_have_text([SUM])
    plain.get_by_role("button", name="Remove").click()

    expect(plain.locator("#text")).to_have_value(SUM)
    expect(plain.locator("#queue")).to_be_hidden()
    expect(slow_page.locator("#queue")).to_be_hidden()
