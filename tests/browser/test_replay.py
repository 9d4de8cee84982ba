"""Replay with the mouse, the keyboard, or neither."""

import re
import sqlite3
from datetime import datetime, timedelta

from playwright.sync_api import Locator, Page, expect

from tests.browser.conversation import CALCULATION, LOOKUP, SEVERAL, ask_and_wait, begin, html
from tests.browser.server import Server
from tests.browser.test_approvals import asks
from tests.browser.test_connection import Line
from tests.browser.test_everyone import faint_text, fits

EVENTS = 10


def replay(page: Page, at: str = "") -> Locator:
    """Open the replay of the page's run; return its stage."""
    number = page.locator(".run").last.get_attribute("id").removeprefix("run-")
    page.goto(f"/traces/{number}/replay/{at}")
    return page.locator("#stage")


def bare(locator: Locator) -> str:
    """Return the HTML without clock values and buttons that scripts add or reveal."""
    added = r'<button[^>]*copy-code.*?</button>|<rect class="span"[^>]*>'
    text = re.sub(added, "", html(locator), flags=re.S)
    text = re.sub(r'(<button[^>]*data-(?:speak|regenerate-menu)[^>]*) hidden=""', r"\1", text)
    return re.sub(r' data-elapsed-ms="\d+"(?: data-began="[-\d.]+")?>[^<]*', ">", text)


def move(page: Page, key: str) -> int:
    before = page.url
    page.keyboard.press(key)
    expect(page).not_to_have_url(before)
    return int(re.search(r"at=(\d+)", page.url)[1])


def test_a_run_replayed_to_its_end_equals_the_live_run(page: Page):
    watched = bare(ask_and_wait(page, SEVERAL))
    stage = replay(page)
    expect(stage.locator(".run")).to_have_attribute("data-status", "running")
    expect(stage.locator(".step")).to_have_count(0)

    page.get_by_text("4×").click()
    page.get_by_role("button", name="Play").click()

    expect(stage.locator(".run")).to_have_attribute("data-status", "completed")
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    assert bare(stage.locator(".run")) == watched
    expect(page.locator("#now")).to_have_text("Answer complete")


def test_moments_are_the_same_when_stepping_back(page: Page):
    ask_and_wait(page, CALCULATION)
    run, seen = replay(page).locator(".run"), {}
    for _ in range(EVENTS):
        at = move(page, "Shift+ArrowRight")
        seen[at] = bare(run)
    assert list(seen) == list(range(1, EVENTS + 1))

    for _ in range(EVENTS - 1):
        at = move(page, "Shift+ArrowLeft")
        assert bare(run) == seen[at], at
    page.reload()
    assert bare(run) == seen[1]


def test_arrows_go_from_moment_to_moment_and_say_what_happens(page: Page):
    ask_and_wait(page, CALCULATION)
    stage = replay(page)
    now, announced = page.locator("#now"), page.locator("#announcer")

    move(page, "ArrowRight")
    expect(now).to_have_text("helper started")
    move(page, "ArrowRight")
    move(page, "ArrowRight")
    expect(now).to_have_text("calculator called")
    expect(announced).to_contain_text("calculator called")
    expect(stage.locator(".step[data-kind=tool]")).to_have_attribute("data-status", "running")
    move(page, "ArrowRight")
    expect(stage.locator(".seen pre")).to_contain_text("435")
    move(page, "End")
    expect(stage.locator(".run")).to_have_attribute("data-status", "completed")
    move(page, "Home")
    expect(stage.locator(".step")).to_have_count(0)
    page.keyboard.press("Space")
    expect(page.get_by_role("button", name="Pause")).to_be_visible()


def test_the_list_of_moments_says_which_one_is_shown(page: Page):
    ask_and_wait(page, CALCULATION)
    replay(page)
    current = page.locator("#moments a[aria-current]")

    at = move(page, "ArrowRight")
    expect(current).to_have_attribute("href", f"?at={at}")
    expect(current).to_have_attribute("aria-current", "true")
    move(page, "Home")
    expect(current).to_have_count(0)


def test_keys_continue_after_a_mouse_selection(page: Page):
    ask_and_wait(page, CALCULATION)
    replay(page)

    for choice in ("0.5×", "Skip waiting"):
        page.get_by_text(choice, exact=True).click()
        move(page, "ArrowRight")
    page.keyboard.press("Space")
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    expect(page.locator("#skip")).not_to_be_checked()
    page.get_by_label("0.5×").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_label("0.5×")).not_to_be_checked()


def test_the_scrubber_goes_to_any_time_and_an_open_row_stays_open(page: Page):
    ask_and_wait(page, CALCULATION)
    stage = replay(page, "?at=999")
    row = stage.locator(".step").first
    row.locator("summary").click()
    scrubber = page.get_by_role("slider", name="Position in the run")

    scrubber.evaluate("e => { e.value = 0.6 * e.max; e.dispatchEvent(new Event('input')) }")
    expect(stage.locator(".run")).to_have_attribute("data-status", "running")
    expect(row.locator("details")).to_have_attribute("open", "")
    scrubber.evaluate("e => { e.value = e.max; e.dispatchEvent(new Event('input')) }")

    expect(stage.locator(".run")).to_have_attribute("data-status", "completed")
    expect(row.locator("details")).to_have_attribute("open", "")


def test_a_replayed_approval_cannot_be_decided_again(page: Page):
    asks(page)
    page.get_by_role("button", name="Approve", exact=True).click()
    expect(page.locator(".run").last).to_have_attribute("data-status", "completed")
    stage = replay(page)

    page.locator("#moments summary").click()
    page.get_by_role("link", name="Waiting for user input").click()

    approve = stage.get_by_role("button", name="Approve", exact=True)
    expect(approve).to_be_visible()
    expect(approve).to_be_disabled()
    move(page, "ArrowRight")
    expect(stage.locator(".decided")).to_have_text("approved by you")


def approved_after_an_hour(page: Page, server: Server) -> None:
    """Create a run that was approved after an hour's disconnection."""
    asks(page)
    page.get_by_role("button", name="Approve", exact=True).click()
    expect(page.locator(".run").last).to_have_attribute("data-status", "completed")
    run = page.locator(".run").last.get_attribute("id").removeprefix("run-")
    with sqlite3.connect(server.folder / "data" / "ashiato.sqlite3") as rows:
        events = "from agents_runevent where run_id = ? and seq >"
        paused = f"(select seq {events} 0 and type = 'run_paused')"
        for pk, time in rows.execute(
            f"select id, time {events} {paused}", [run, run]
        ).fetchall():
            later = str(datetime.fromisoformat(time) + timedelta(hours=1))
            rows.execute("update agents_runevent set time = ? where id = ?", [later, pk])
    rows.close()


def test_waiting_time_is_skipped_by_default(page: Page, server):
    approved_after_an_hour(page, server)
    stage = replay(page)
    expect(page.locator(".gap[data-ours]")).to_have_count(1)
    expect(page.locator("#whole")).to_have_text(re.compile("60 min"))

    page.get_by_label("Skip waiting").uncheck()
    page.get_by_text("8×").click()
    page.locator("#play").click()
    expect(page.locator("#now")).to_have_text("Waiting for user input")
    page.wait_for_timeout(1000)
    expect(stage.locator(".run")).to_have_attribute("data-status", "waiting")
    page.get_by_label("Skip waiting").check()

    expect(stage.locator(".run")).to_have_attribute("data-status", "completed")
    expect(stage.locator(".decided")).to_have_text("approved by you")


def test_stopped_and_live_runs_are_replayed_to_their_last_event(slow_page: Page):
    begin(slow_page, CALCULATION)
    stage = replay(slow_page, "?at=999")
    expect(stage.locator(".run")).to_have_attribute("data-status", "running")
    expect(slow_page.locator(".still-going")).to_be_visible()

    slow_page.go_back()
    slow_page.get_by_role("button", name="Stop").click()
    expect(slow_page.locator(".run").last).to_have_attribute("data-status", "stopped")
    stage = replay(slow_page, "?at=999")
    expect(stage.locator(".run")).to_have_attribute("data-status", "stopped")
    expect(slow_page.locator("#now")).to_have_attribute("data-kind", "stopped")


def test_without_javascript_every_moment_is_a_page(visit, page: Page, server):
    ask_and_wait(page, CALCULATION)
    replay(page)
    address = page.url
    bare_page = visit(server, java_script_enabled=False)
    bare_page.goto(address)

    for _ in range(3):
        bare_page.get_by_role("link", name="Next moment").click()
    expect(bare_page.locator("#now")).to_have_text("calculator called")
    tool = bare_page.locator(".step[data-kind=tool]")
    expect(tool).to_have_attribute("data-status", "running")
    bare_page.get_by_role("link", name="Previous moment").click()
    expect(tool).to_have_count(0)
    expect(bare_page.get_by_role("button", name="Play")).to_be_hidden()


def test_the_replay_fits_a_phone_in_both_themes(visit, page: Page, server):
    ask_and_wait(page, SEVERAL)
    replay(page)
    address = f"{page.url}?at=30"
    phone = visit(server, viewport={"width": 390, "height": 844}, is_mobile=True)
    phone.goto(address)

    assert fits(phone)
    expect(phone.locator("#play")).to_be_in_viewport()
    page.goto(address)
    assert faint_text(page) == []
    for control in page.locator("#player").locator("button, a, input").all():
        if control.is_visible():
            expect(control).to_have_accessible_name(re.compile(r"\S"))


def test_an_unreachable_server_is_reported_and_retried(page: Page, watch):
    watch.expect("Failed to load resource|net::ERR_FAILED")
    ask_and_wait(page, CALCULATION)
    page.route("**/scene/**", lambda route: route.abort())  # the next ones are loaded ahead
    stage = replay(page)

    page.keyboard.press("End")
    expect(page.locator("#now")).to_have_text("No response from the server. Try again.")
    page.unroute("**/scene/**")
    page.keyboard.press("End")

    expect(stage.locator(".run")).to_have_attribute("data-status", "completed")


def test_a_lost_connection_is_replayed_at_its_time(slow_page: Page):
    line = Line(slow_page)
    run = begin(slow_page, LOOKUP)
    expect(run.locator(".live-thought").first).not_to_be_empty()
    line.cut()
    expect(slow_page.locator("#connection")).to_contain_text("Reconnecting")
    slow_page.wait_for_timeout(1_000)
    line.mend()
    expect(run).to_have_attribute("data-status", "completed", timeout=60_000)

    replay(slow_page)
    banner, now = slow_page.locator("#away"), slow_page.locator("#now")
    slow_page.locator("#moments summary").click()
    slow_page.get_by_role("link", name="The page lost its connection").click()

    expect(banner).to_contain_text("Connection lost. Reconnecting…")
    expect(slow_page.locator("#announcer")).to_contain_text("The page lost its connection")
    slow_page.reload()
    expect(now).to_have_text("The page lost its connection")
    expect(banner).to_be_visible()
    move(slow_page, "ArrowRight")
    while now.text_content() != "The page reconnected":
        move(slow_page, "ArrowRight")
    expect(banner).to_be_hidden()
    move(slow_page, "ArrowLeft")
    expect(banner).to_be_visible()
    move(slow_page, "Home")
    slow_page.locator("#play").click()
    expect(banner).to_be_visible()
    expect(banner).to_be_hidden()
