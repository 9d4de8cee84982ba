"""The trace list in a browser: typed, clicked, without JavaScript and on a phone."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conversation import CALCULATION, ask_and_wait, last_run
from tests.browser.test_everyone import faint_text, fits


@pytest.fixture(scope="module")
def filled(server):
    """Other users' runs next to one's own, for an administrator."""
    server.manage(
        *("seed_runs", "--runs", "150", "--events", "1500", "--into-this-database"),
    )
    return server


@pytest.fixture
def traces(filled, visit) -> Page:
    page = visit(filled)
    page.goto("/traces/")
    return page


def rows(page: Page):
    return page.locator(".runs tbody tr[data-run]")


def statuses(page: Page) -> set[str]:
    marks = page.locator(".runs .status")
    return {mark.get_attribute("data-status") for mark in marks.all()}


def filter_list(page: Page, text: str) -> None:
    """Type a filter, and wait for its list."""
    page.get_by_role("combobox", name="Filter runs").fill(text)
    expect(page.locator("#views [name=q]")).to_have_value(text.strip())


def test_typing_filters_the_list_and_updates_the_url(traces: Page):
    expect(rows(traces)).to_have_count(50)
    pages = traces.evaluate("history.length")

    filter_list(traces, "status:f")
    filter_list(traces, "status:failed")
    expect(traces).to_have_url(re.compile(r"q=status%3Afailed"))
    assert statuses(traces) == {"failed"}

    traces.reload()
    expect(traces.locator("#q")).to_have_value("status:failed")
    assert statuses(traces) == {"failed"}
    assert traces.evaluate("history.length") == pages


def test_fields_and_values_are_completed_with_the_keyboard(traces: Page):
    box = traces.get_by_role("combobox", name="Filter runs")
    box.focus()
    box.press_sequentially("stat")
    expect(traces.get_by_role("option")).to_have_count(1)
    expect(box).to_have_attribute("aria-expanded", "true")

    traces.keyboard.press("ArrowDown")
    expect(box).to_have_attribute("aria-activedescendant", "offer-0")
    traces.keyboard.press("Enter")
    expect(box).to_have_value("status:")
    box.press_sequentially("fai")
    traces.keyboard.press("ArrowDown")
    traces.keyboard.press("Tab")

    expect(box).to_have_value("status:failed ")
    expect(traces).to_have_url(re.compile("status%3Afailed"))
    expect(traces.locator(".term")).to_have_text(re.compile("status:failed"))
    assert statuses(traces) == {"failed"}
    traces.keyboard.press("Escape")
    expect(box).to_have_attribute("aria-expanded", "false")


def test_values_in_use_are_offered_to_the_mouse(traces: Page):
    box = traces.get_by_role("combobox", name="Filter runs")
    box.focus()
    box.press_sequentially("tool:shop")

    traces.get_by_role("option", name="shop_find_order").click()

    expect(box).to_have_value("tool:shop_find_order ")
    expect(box).to_be_focused()
    expect(traces.locator("#views [name=q]")).to_have_value("tool:shop_find_order")


def test_a_misspelt_field_has_an_error_and_a_suggestion(traces: Page):
    filter_list(traces, "staus:failed")
    problem = traces.locator("#problems")
    expect(problem).to_have_attribute("role", "status")
    expect(problem).to_contain_text("“staus”")
    expect(rows(traces)).to_have_count(50)

    problem.get_by_role("link").click()

    expect(traces.locator("#q")).to_have_value("status:failed")
    assert statuses(traces) == {"failed"}


def test_a_term_is_removed_and_a_ready_made_view_chosen(traces: Page):
    filter_list(traces, "status:completed -agent:helper")
    terms = traces.locator(".term")
    expect(terms).to_have_count(2)

    terms.first.click()
    expect(traces.locator("#q")).to_have_value("-agent:helper")
    agents = traces.locator(".runs td[data-column=agent]")
    expect(agents.filter(has_text="helper")).to_have_count(0)

    views = traces.get_by_role("navigation", name="Views")
    views.get_by_role("link", name="Failed", exact=True).click()
    expect(views.locator("[aria-current]")).to_have_text("Failed")
    expect(traces.locator("#q")).to_have_value("-agent:helper status:failed")
    assert statuses(traces) == {"failed"}


def test_failures_of_yesterday_are_two_clicks_away(traces: Page):
    traces.goto("/")
    traces.get_by_role("link", name="Traces").click()
    traces.get_by_role("link", name="Failed yesterday").click()

    expect(traces.locator("#q")).to_have_value("status:failed on:yesterday")


def test_runs_are_grouped_by_chat(traces: Page):
    ask_and_wait(traces, "What is 2 + 2?")
    traces.locator("#text").fill("What is 3 + 3?")
    traces.keyboard.press("Enter")
    expect(traces.locator(".run[data-status=completed]")).to_have_count(2)
    traces.goto("/traces/")
    traces.locator("[data-menu=group] summary").click()
    traces.get_by_role("link", name="Chat", exact=True).click()

    thread = traces.locator("tbody[data-group]").first
    expect(thread.locator(".group")).to_contain_text("2 runs")
    expect(thread.locator(".ask-cell a")).to_have_text(["What is 2 + 2?", "What is 3 + 3?"])
    expect(traces).to_have_url(re.compile(r"group=chat"))


def test_a_view_is_saved_used_and_deleted(traces: Page):
    filter_list(traces, "duration:>1s -status:failed")
    traces.get_by_text("Save view").click()
    traces.get_by_label("View name").fill("Slow but sure")
    traces.get_by_role("button", name="Save", exact=True).click()

    traces.goto("/traces/")
    traces.get_by_role("link", name="Slow but sure").click()
    expect(traces.locator("#q")).to_have_value("duration:>1s -status:failed")

    traces.get_by_role("button", name="Delete view Slow but sure").click()
    expect(traces.get_by_role("link", name="Slow but sure")).to_have_count(0)
    expect(traces.locator("#q")).to_have_value("duration:>1s -status:failed")


def test_enter_saves_a_view_and_deletes_none(traces: Page):
    for name in ("Bad ones", "All the bad ones"):
        filter_list(traces, f'status:failed -"{name}"')
        traces.get_by_text("Save view").click()
        traces.get_by_label("View name").fill(name)
        traces.keyboard.press("Enter")
        expect(traces.get_by_role("link", name=name, exact=True)).to_be_visible()

    expect(traces.locator(".views .saved")).to_have_count(2)


def test_paging_works_in_both_directions(traces: Page):
    first = rows(traces).first.inner_text()

    traces.get_by_role("link", name="Older").click()
    expect(traces).to_have_url(re.compile(r"older=\d+"))
    expect(rows(traces).first).not_to_have_text(first)
    traces.get_by_role("link", name="Newer").click()

    assert rows(traces).first.inner_text() == first


def test_an_own_run_is_found_by_its_text_and_opened(traces: Page):
    ask_and_wait(traces, "What is 3131 + 1?")
    number = last_run(traces).get_attribute("id").removeprefix("run-")

    traces.goto("/traces/")
    filter_list(traces, '"3131 + 1"')

    expect(rows(traces)).to_have_count(1)
    expect(rows(traces)).to_have_attribute("data-run", number)
    rows(traces).get_by_role("link").click()
    expect(traces).to_have_url(re.compile(rf"/traces/{number}/\?within=%223131"))
    expect(traces.get_by_role("heading", level=1)).to_have_text("What is 3131 + 1?")


def test_keys_focus_the_filter_and_move_down_the_list(traces: Page):
    links = rows(traces).get_by_role("link")
    traces.keyboard.press("j")
    traces.keyboard.press("j")
    expect(links.nth(1)).to_be_focused()
    traces.keyboard.press("K")  # as Caps Lock has it
    expect(links.first).to_be_focused()

    traces.keyboard.press("/")

    expect(traces.locator("#q")).to_be_focused()
    expect(traces.locator("#q")).to_have_value("")


def test_the_list_works_without_javascript(filled, visit):
    page = visit(filled, java_script_enabled=False)
    page.goto("/traces/")
    page.locator("#q").fill("status:failed")
    page.get_by_role("button", name="Search").click()

    assert statuses(page) == {"failed"}
    page.locator(".term").click()
    expect(rows(page)).to_have_count(50)
    page.get_by_text("Filter syntax").click()
    expect(page.get_by_text("duration:>5s")).to_be_visible()


def test_the_list_fits_a_phone_in_both_themes(filled, visit):
    options = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
    phone = visit(filled, **options)

    for query in ("", "status:failed,stopped -agent:helper staus:x", "nowhere-at-all"):
        phone.goto("/traces/")
        phone.locator("#q").fill(query)
        expect(phone.locator("#views [name=q]")).to_have_value(query)
        assert fits(phone), query
        assert faint_text(phone) == []


def test_the_list_is_translated_to_japanese(filled, visit):
    page = visit(filled, locale="ja-JP")
    page.goto("/traces/")

    expect(page.locator("html")).to_have_attribute("lang", "ja")
    page.locator("#q").fill("status：失敗　ｓｔｅｐｓ：＞０")
    expect(page.locator(".term")).to_have_count(2)
    expect(page.locator(".trouble")).to_have_count(0)
    assert statuses(page) == {"failed"}


def test_text_under_composition_is_not_searched(traces: Page):
    traces.locator("#q").focus()
    keyboard = traces.context.new_cdp_session(traces)
    half = {"text": "ちゅうもん", "selectionStart": 5, "selectionEnd": 5}
    keyboard.send("Input.imeSetComposition", half)
    expect(traces.locator("#q")).to_have_value("ちゅうもん")
    traces.wait_for_timeout(800)  # longer than a pause in typing
    expect(traces).to_have_url(re.compile(r"/traces/$"))

    keyboard.send("Input.insertText", {"text": "注文"})

    expect(traces.locator(".term")).to_have_text(re.compile("注文"))


def test_every_control_of_the_list_has_an_accessible_name(traces: Page):
    ask_and_wait(traces, CALCULATION)
    traces.goto("/traces/?q=status%3Acompleted")

    for control in traces.locator(
        "main :is(a, button, input:not([type=hidden]), svg[role=img])"
    ).all():
        if control.is_visible():
            expect(control).to_have_accessible_name(re.compile(r"\S"))
    expect(traces.locator("main").get_by_role("search")).to_have_count(1)
