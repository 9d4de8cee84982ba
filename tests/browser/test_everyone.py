"""Every language, theme, screen size, keyboard and browser."""

import gettext
import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conversation import (
    CALCULATION,
    ask,
    ask_and_wait,
    begin,
    last_run,
    open_details,
    open_trace,
    tool_step,
)
from tests.browser.server import NAME, PASSWORD, PROJECT

LOCALE = PROJECT / "locale"
UNBROKEN = "x" * 400

BACKGROUND = "getComputedStyle(document.documentElement).backgroundColor"
FOCUSED = """() => {
  const element = document.activeElement;
  if (element === document.body) return null;
  const shown = element.matches(".segmented input") ? element.nextElementSibling : element;
  const { outlineStyle, outlineWidth } = getComputedStyle(shown);
  return {
    name: element.id || element.className || element.tagName.toLowerCase(),
    isMarked: outlineStyle !== "none" && parseFloat(outlineWidth) >= 1,
    frame: getComputedStyle(document.querySelector("#ask")).borderColor,
  };
}"""
MOVING = """() => document.getAnimations().flatMap((animation) =>
  animation.effect.getKeyframes().flatMap(Object.keys)
    .filter((name) => ["transform", "translate", "rotate", "scale"].includes(name))
    .map((name) => `${animation.animationName ?? animation.transitionProperty}: ${name}`))"""
CONTRASTS = """() => {
  const pen = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const paint = (colour) => { pen.fillStyle = colour; pen.fillRect(0, 0, 1, 1); };
  const light = () => {
    const parts = [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3).map((part) => part / 255);
    const linear = parts.map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  const contrast = (element) => {
    const behind = [];
    for (let at = element; at; at = at.parentElement) behind.unshift(at);
    paint("white");
    for (const layer of behind) paint(getComputedStyle(layer).backgroundColor);
    const back = light();
    paint(getComputedStyle(element).color);
    const [dark, bright] = [back, light()].sort((a, b) => a - b);
    return (bright + 0.05) / (dark + 0.05);
  };
  const says = (node) => node.nodeType === Node.TEXT_NODE && node.textContent.trim();
  return [...document.body.querySelectorAll("*")]
    .filter((element) => [...element.childNodes].some(says) && element.checkVisibility())
    .filter((element) => !element.closest(".visually-hidden, .skip-link, template, :disabled"))
    .map((element) => [contrast(element), element])
    .filter(([ratio]) => ratio < 4.5)
    .map(([ratio, element]) =>
      `${ratio.toFixed(2)} ${element.className || element.tagName}: ${element.textContent}`);
}"""


def test_the_language_can_be_changed_and_stays(page: Page):
    page.goto("/")
    page.locator(".account-button").click()
    page.get_by_role("button", name="日本語").click()

    expect(page.locator("html")).to_have_attribute("lang", "ja")
    if LOCALE.exists():
        japanese = gettext.translation("django", LOCALE, ["ja"]).gettext
        expect(page.locator("h1")).to_have_text(japanese("New chat"))
        assert japanese("New chat") != "New chat"
    run = begin(page, "3480の12.5%は？")
    expect(run).to_have_attribute("data-status", "completed")
    expect(page.locator("html")).to_have_attribute("lang", "ja")
    page.locator(".account-button").click()
    page.get_by_role("button", name="English").click()
    expect(page.locator("html")).to_have_attribute("lang", "en")


def test_live_text_is_in_the_language_of_the_page(page: Page):
    page.goto("/")
    page.locator(".account-button").click()
    page.get_by_role("button", name="日本語").click()
    run = begin(page, "3480の12.5%は？")
    expect(run).to_have_attribute("data-status", "completed", timeout=30_000)
    watched = run.inner_text()

    page.reload()
    reloaded = run.inner_text()
    page.locator(".account-button").click()
    page.get_by_role("button", name="English").click()  # the choice is saved for the user

    assert reloaded == watched


def test_dark_and_light_are_chosen_and_remembered(page: Page):
    page.goto("/")
    light = page.evaluate(BACKGROUND)

    page.locator(".account-button").click()
    page.locator("label:has([name=theme][value=dark])").click()
    dark = page.evaluate(BACKGROUND)
    page.reload()

    assert dark != light
    assert page.evaluate(BACKGROUND) == dark
    expect(page.locator("[name=theme][value=dark]")).to_be_checked()
    page.locator(".account-button").click()
    page.locator("label:has([name=theme][value=light])").click()
    assert page.evaluate(BACKGROUND) == light


def test_the_system_theme_is_used_unless_one_was_chosen(page: Page):
    page.goto("/")
    light = page.evaluate(BACKGROUND)

    page.emulate_media(color_scheme="dark")
    assert page.evaluate(BACKGROUND) != light

    page.locator(".account-button").click()
    page.locator("label:has([name=theme][value=light])").click()
    assert page.evaluate(BACKGROUND) == light


def test_all_text_has_enough_contrast(page: Page):
    run = ask_and_wait(page, "How do I ingest documents?")
    ask(page, "show all orders")
    expect(page.locator(".run[data-status=completed]")).to_have_count(2)
    open_details(page)

    assert faint_text(page) == []
    open_trace(run)
    expect(page.get_by_role("heading", level=1)).to_have_text("show all orders")
    assert faint_text(page) == []
    page.goto("/traces/")
    assert faint_text(page) == []


def test_nothing_moves_with_reduced_motion(slow_page: Page):
    slow_page.emulate_media(reduced_motion="reduce")
    slow_page.set_viewport_size({"width": 900, "height": 300})
    run = begin(slow_page, "How many customers are there?")
    expect(run.locator(".step[data-live]").first).to_be_visible()
    assert slow_page.evaluate(MOVING) == []

    expect(run).to_have_attribute("data-status", "completed")
    slow_page.mouse.move(450, 150)
    slow_page.mouse.wheel(0, -4_000)
    expect(slow_page.locator("#jump")).to_be_visible()
    assert slow_page.evaluate(MOVING) == []


@pytest.mark.journey
def test_nothing_is_wider_than_a_phone(phone: Page):
    phone.goto("/")
    assert fits(phone)

    run = answered_by_hand(phone, f"How many orders are there? {UNBROKEN}")
    assert fits(phone)
    answered_by_hand(phone, "show all orders")
    open_details(phone)
    expect(run.last.locator(".answer table")).to_be_visible()
    assert fits(phone)
    answered_by_hand(phone, "How do I ingest documents?")
    expect(last_run(phone).locator(".answer pre")).to_be_visible()
    assert fits(phone)

    open_trace(last_run(phone))
    phone.locator(".step summary").first.click()
    assert fits(phone)
    phone.goto("/traces/")
    assert fits(phone)


def test_the_login_page_fits_a_phone(visit, server):
    page = visit(server, storage_state=None, viewport={"width": 390, "height": 844})
    page.goto("/login/")

    assert fits(page)
    expect(page.get_by_role("button", name="Sign in")).to_be_in_viewport()


def test_the_chat_list_is_a_drawer_on_a_phone(phone: Page):
    phone.goto("/")
    drawer = phone.locator("#sidebar")
    expect(drawer).to_be_hidden()

    phone.get_by_role("button", name="Menu").tap()
    expect(drawer).to_be_visible()
    expect(phone.get_by_role("link", name="New chat")).to_be_in_viewport()

    phone.get_by_role("button", name="Close sidebar").tap()
    expect(drawer).to_be_hidden()


def test_everything_is_reachable_by_tab_with_visible_focus(page: Page):
    ask_and_wait(page, CALCULATION)
    page.reload()
    expect(page.locator("#text")).to_be_focused()

    visited = walk(page)

    names = {stop["name"] for stop in visited}
    assert {"skip-link", "session-search", "number", "summary", "text", "send"} <= names
    assert [stop for stop in visited if not stop["isMarked"] and stop["name"] != "text"] == []
    assert visited[-1]["frame"] not in {stop["frame"] for stop in visited[:-1]}


def test_a_row_is_opened_with_the_keyboard(page: Page):
    row = tool_step(ask_and_wait(page, CALCULATION))

    row.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(row.locator(".said pre")).to_be_visible()
    page.keyboard.press("Enter")
    expect(row.locator(".said pre")).to_be_hidden()


def test_every_control_has_an_accessible_name(page: Page):
    ask_and_wait(page, CALCULATION)
    row = page.locator(".session").first
    row.hover()

    for control in page.locator("button, a, input:not([type=hidden]), textarea, select").all():
        is_hidden = control.evaluate(
            "element => element.closest('[aria-hidden=true]') !== null"
        )
        if control.is_visible() and not is_hidden:
            expect(control).to_have_accessible_name(re.compile(r"\S"))
    for role in ("main", "complementary", "search"):
        expect(page.get_by_role(role)).to_have_count(1)
    expect(page.get_by_role("heading", level=1)).to_have_count(1)
    expect(page.get_by_role("region", name="Run")).to_have_count(1)
    expect(page.locator("#announcer")).to_have_text("The agent has finished.")


@pytest.mark.journey
def test_everything_essential_works_without_javascript(visit, server):
    page = visit(server, java_script_enabled=False, storage_state=None)
    page.goto("/")
    page.locator("[name=username]").fill(NAME)
    page.locator("[name=password]").fill(PASSWORD)
    page.locator("form.credentials button").click()
    page.locator("#text").fill(CALCULATION)
    page.get_by_role("button", name="Send").click()

    run = last_run(page)
    expect(run).to_have_attribute("data-status", "completed")
    expect(run.locator(".answer strong")).to_have_text("435")
    open_trace(run)
    tool_step(run).locator("summary").click()
    expect(tool_step(run).locator(".seen pre")).to_contain_text("435")
    page.locator(".crumb").click()
    expect(page.locator(".runs tbody tr").first).to_contain_text(CALCULATION)


def test_a_run_is_stopped_without_javascript(visit, slow_server):
    page = visit(slow_server, java_script_enabled=False)
    page.goto("/")
    page.locator("#text").fill(CALCULATION)
    page.get_by_role("button", name="Send").click()

    page.get_by_role("button", name="Stop").click()

    expect(last_run(page)).to_have_attribute("data-status", "stopped")
    expect(page.get_by_role("button", name="Send")).to_be_visible()


def answered_by_hand(page: Page, question: str):
    """Send with the button, because Enter is a line break on a phone."""
    before = page.locator(".message").count()
    page.locator("#text").fill(question)
    page.get_by_role("button", name="Send").tap()
    expect(page.locator(".run[data-status=completed]")).to_have_count(before + 1)
    return page.locator(".run")


def fits(page: Page) -> bool:
    return page.evaluate("document.documentElement.scrollWidth <= 390 && innerWidth <= 390")


def faint_text(page: Page) -> list[str]:
    """Return text with too little contrast in either theme."""
    found = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_timeout(300)  # the colours take a moment to change
        found += [f"{scheme}: {text}" for text in page.evaluate(CONTRASTS)]
    return found


def walk(page: Page) -> list[dict]:
    """Return every element the Tab key reaches, starting from the composer."""
    visited: list[dict] = []
    for _press in range(1_000):
        page.keyboard.press("Tab")
        if stop := page.evaluate(FOCUSED):
            visited.append(stop)
        if visited and visited[-1]["name"] == "text":
            return visited
    raise AssertionError(visited[-5:])
