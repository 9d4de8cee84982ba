"""The list of chats: menu, folders, several at once, undo, search, temporary chats."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import AWAY
from tests.browser.conversation import ask, ask_and_wait, number_in
from tests.browser.test_accessibility import faults

CHATS = """
from django.contrib.auth import get_user_model
from agents.models import Run
from chat.models import ChatSession, Message
user = get_user_model().objects.filter(is_superuser=True).first()
for title in TITLES:
    chat = ChatSession.objects.create(user=user, title=title)
    for n in range(COUNT):
        run = Run.objects.create(user=user, topic=chat.topic, agent_name="helper",
            model="demo", query=title, answer=f"An answer about {title}, part {n}.",
            status="completed", stopped_reason="completed")
        Message.objects.create(session=chat, author=user, run=run, text=f"{title} {n}",
            client_id=f"{chat.pk}-{n}")
"""


def seed(server, *titles: str, count: int = 1) -> None:
    code = CHATS.replace("TITLES", repr(list(titles))).replace("COUNT", str(count))
    server.manage("shell", "-v0", "-c", code)


def row(page: Page, title: str) -> Locator:
    return page.locator("#sessions .session").filter(has_text=title)


def choose(page: Page, title: str, action: str) -> None:
    """Choose an action in a chat's menu, with the keyboard."""
    row(page, title).locator("a").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.get_by_role("menuitem", name=action, exact=True).press("Enter")


def test_chats_are_pinned_filed_archived_and_deleted_with_undo(page: Page, server):
    seed(server, "Oolong one", "Oolong two", "Oolong three")
    page.goto("/")
    toast = page.locator("#toast")

    choose(page, "Oolong one", "Pin")
    expect(page.locator("#sessions h2").first).to_have_text("Pinned")
    expect(row(page, "Oolong one")).to_have_attribute("data-pinned", "")

    row(page, "Oolong two").click(button="right")
    page.get_by_role("menuitem", name="Move to folder…").click()
    page.get_by_role("radio", name="New folder").check()
    page.get_by_label("Folder name").fill("Teas")
    page.keyboard.press("Enter")
    folder = page.locator(".folder").filter(has_text="Teas")
    expect(folder.locator(".session")).to_have_count(1)
    row(page, "Oolong three").drag_to(folder)
    expect(folder.locator(".session")).to_have_count(2)
    with page.expect_response("**/chat/folders/*/"):  # saved before the page is read again
        folder.locator("summary").click()
    page.reload()
    expect(folder).not_to_have_attribute("open", "")
    folder.locator("summary").click()

    choose(page, "Oolong two", "Archive")
    expect(toast).to_contain_text("1 chat archived.")
    expect(row(page, "Oolong two")).to_have_count(0)
    toast.get_by_role("button", name="Undo").click()
    expect(row(page, "Oolong two")).to_have_count(1)

    choose(page, "Oolong three", "Delete")
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(row(page, "Oolong three")).to_have_count(0)
    toast.get_by_role("button", name="Undo").click()
    expect(row(page, "Oolong three")).to_have_count(1)


def test_a_search_result_opens_its_message_in_a_long_chat(page: Page, server):
    seed(server, "Gyokuro notes", count=70)
    page.goto("/")
    search = page.get_by_role("searchbox", name="Search chats")

    search.fill("gyokuro notes 3")
    hit = page.locator(".found-hit").last
    expect(hit.locator("mark").first).to_have_text(re.compile("gyokuro", re.I))
    name = re.search(r"#(message-\d+)", hit.get_attribute("href"))[1]
    search.press("ArrowDown")
    expect(page.locator("#sessions .session > a").first).to_be_focused()
    hit.press("Enter")

    expect(page.locator(f"#{name}")).to_be_in_viewport()
    expect(page.locator("#session-title")).to_have_text("Gyokuro notes")
    marked = page.evaluate("CSS.highlights.get('found')?.size ?? 0")
    assert marked >= 2


def test_several_chats_are_selected_with_shift_and_deleted(page: Page, server):
    seed(server, *(f"Bancha {n}" for n in range(4)))
    page.goto("/")
    page.get_by_role("button", name="List options").click()
    page.get_by_role("menuitem", name="Select chats").click()

    row(page, "Bancha 3").click()
    row(page, "Bancha 1").click(modifiers=["Shift"])
    expect(page.locator("#select-count")).to_have_text("3 selected")
    assert faults(page) == []
    page.locator("[data-selected=delete]").click()
    expect(page.get_by_role("dialog")).to_contain_text("Delete 3 chats?")
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()

    expect(row(page, "Bancha")).to_have_count(1)
    expect(page.locator("#toast")).to_contain_text("3 chats deleted.")
    page.locator("#session-title").click()
    page.keyboard.press("Control+z")
    expect(row(page, "Bancha")).to_have_count(4)


def test_undo_is_offered_on_the_page_that_follows_a_deleted_chat(page: Page):
    ask_and_wait(page, "What is 6161 + 1?")
    choose(page, "What is 6161", "Delete")
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page).to_have_url(re.compile(r":\d+/$"))

    page.locator("#toast").get_by_role("button", name="Undo").click()

    expect(row(page, "What is 6161")).to_have_count(1)


def test_a_long_press_opens_the_menu_and_not_the_chat(phone: Page, server):
    seed(server, "Genmaicha")
    phone.goto("/")
    phone.get_by_role("button", name="Menu").tap()
    place = row(phone, "Genmaicha").bounding_box()
    finger = [{"x": place["x"] + 40, "y": place["y"] + 10}]
    touch = phone.context.new_cdp_session(phone)

    touch.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": finger})
    expect(phone.locator("#session-menu")).to_be_visible()
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})

    phone.get_by_role("menuitem", name="Rename").tap()
    expect(phone.locator(".rename input")).to_have_value("Genmaicha")


def test_a_change_that_does_not_reach_the_server_says_so(page: Page, server, watch):
    watch.expect(AWAY)
    seed(server, "Matcha")
    page.goto("/")
    choose(page, "Matcha", "Rename")
    page.locator(".rename input").fill("Matcha latte")
    page.context.set_offline(True)
    page.keyboard.press("Enter")
    expect(page.locator("#toast")).to_contain_text("The server can't be reached.")

    page.context.set_offline(False)
    expect(page.locator(".rename input")).to_be_focused()
    page.keyboard.press("Enter")
    expect(row(page, "Matcha latte")).to_have_count(1)


def test_older_chats_load_while_scrolling_and_stay_when_the_list_changes(page: Page, server):
    seed(server, *(f"Kukicha {n}" for n in range(130)), count=0)
    ask_and_wait(page, "What is 6262 + 1?")
    rows = page.locator("#sessions .session")
    page.locator("#session-list").evaluate("list => list.scrollTo(0, list.scrollHeight)")
    expect(page.locator("#session-list .older")).to_have_count(0)
    before = rows.count()
    assert before > 100
    ask(page, "What is 6363 + 1?")
    expect(page.locator(".run[data-status=completed]")).to_have_count(2)

    expect(rows).to_have_count(before)


@pytest.mark.parametrize("locale", ["en-US", "ja-JP"])
def test_the_menus_and_the_temporary_chat_are_accessible_on_a_phone(visit, server, locale):
    seed(server, "Hojicha")
    size = {"viewport": {"width": 390, "height": 844}, "locale": locale, "has_touch": True}
    page = visit(server, **size)
    page.goto("/?temporary=1")
    expect(page.locator(".temporary-note")).to_be_visible()
    assert faults(page) == []

    page.locator("header [popovertarget=sidebar]:visible").first.click()
    row(page, "Hojicha").first.locator("[data-menu]").click()
    expect(page.locator("#session-menu")).to_be_visible()
    assert faults(page, "#session-menu") == []


def test_a_temporary_chat_is_in_no_list_until_it_is_saved(page: Page):
    page.goto("/")
    page.get_by_role("link", name="Temporary chat").click()
    ask(page, "What is 6464 + 1?")
    expect(page).to_have_url(re.compile(r"/chat/\d+/$"))
    expect(page.locator(".run").last).to_have_attribute("data-status", "completed")
    expect(row(page, "6464")).to_have_count(0)
    expect(page.get_by_role("button", name="Good answer")).to_have_count(0)
    number = number_in(page)

    page.get_by_role("button", name="Save this chat").click()

    expect(page.locator(f"#session-{number}")).to_contain_text("6464")
    expect(page.locator(".temporary-note")).to_have_count(0)
    expect(page.get_by_role("button", name="Good answer")).to_have_count(1)
