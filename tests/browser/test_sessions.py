import re
from random import randrange

from playwright.sync_api import Page, expect

from tests.browser.conversation import (
    ask,
    ask_and_wait,
    begin,
    choose_action,
    last_run,
    number_in,
)

MANY_MESSAGES = """
from django.contrib.auth import get_user_model
from agents.models import Run
from chat.models import ChatSession, Message
user = get_user_model().objects.filter(is_superuser=True).first()
chat = ChatSession.objects.create(user=user, title=title)
said = None
for n in range(count):
    run = Run.objects.create(user=user, topic=chat.topic, agent_name="helper", model="demo",
        query=str(n), answer=answer, status="completed", stopped_reason="completed")
    about = {"session": chat, "author": user, "run": run, "parent": said}
    said = Message.objects.create(**about, text=str(n), client_id=f"{title}-{n}")
print(chat.pk)
"""
PARAGRAPH = "Several sentences of an answer, with **emphasis** and `code`. " * 6
TABLE = "| a | b |\n|---|---|\n| 1 | 2 |"
LONG_ANSWER = "\n\n".join(
    [PARAGRAPH, "```python\nx = 1\n```", TABLE, "- one\n- two", PARAGRAPH]
)
RECORD_SHIFTS = """
    window.shifted = 0;
    new PerformanceObserver(list => {
        for (const { value, hadRecentInput } of list.getEntries())
            window.shifted += hadRecentInput ? 0 : value;
    }).observe({ type: "layout-shift", buffered: true });
"""
STEPS = "\n".join(f"  S{n}[Step {n} of the procedure] --> S{n + 1}" for n in range(14))
FORMULA = r"\[\frac{1}{2}\]"
TALL_DIAGRAM = f"Before.\n\n```mermaid\nflowchart TD\n{STEPS}\n```\n\n{FORMULA}\n\nAfter."
LOAD_EARLIER = """async count => {
    while (document.querySelectorAll(".message").length < count) {
        document.querySelector("#messages > .earlier")?.click();
        await new Promise(resume => setTimeout(resume, 100));
    }
    scrollTo(0, document.documentElement.scrollHeight);
}"""


def record_shifts(page: Page) -> None:
    """Sum up how much moves by itself on each page, as if its images came from far away."""

    def delay(route) -> None:
        page.wait_for_timeout(300)
        route.continue_()

    page.add_init_script(RECORD_SHIFTS)
    page.route(lambda url: re.search(r"/(file|attachments/\w+)/", url) is not None, delay)


def open_chat(page: Page, server, count: int, title: str, answer: str = "An answer.") -> None:
    """Open a new chat of this many messages at its end."""
    values = f"count, title, answer = {count!r}, {title!r}, {answer!r}"
    number = server.manage("shell", "-v0", "-c", values + MANY_MESSAGES).strip()
    page.goto(f"/chat/{number}/")
    expect(page.locator(".message").last).to_be_in_viewport()


def layout_seconds_of_typing(page: Page) -> float:
    """Type thirty letters and return how long the browser computed layouts meanwhile."""
    browser = page.context.new_cdp_session(page)
    browser.send("Performance.enable")

    def measured() -> float:
        metrics = browser.send("Performance.getMetrics")["metrics"]
        return next(m["value"] for m in metrics if m["name"] == "LayoutDuration")

    page.locator("#ask textarea").press_sequentially("first ")
    before = measured()
    page.locator("#ask textarea").press_sequentially("thirty letters, and a few more")
    return measured() - before


def test_a_new_user_sees_an_empty_chat_list(visit, server, newcomer):
    page = visit(server, storage_state=newcomer)
    page.goto("/")

    expect(page.locator("#sessions .session")).to_have_count(0)
    expect(page.locator("#sessions .nothing")).to_have_text(
        re.compile(r"Your chats will appear here")
    )
    expect(page.get_by_role("link", name="Admin console")).to_have_count(0)
    page.goto("/traces/")
    expect(page.locator(".empty")).to_contain_text("No runs yet")


def test_a_chat_is_named_after_its_first_question_and_listed_first(page: Page):
    ask_and_wait(page, "What is 101 + 1?")
    older = page.url
    ask_and_wait(page, "What is 102 + 1?")
    titles = page.locator("#sessions .title")

    expect(page.locator("#session-title")).to_have_text("What is 102 + 1?")
    assert titles.all_inner_texts()[:2] == ["What is 102 + 1?", "What is 101 + 1?"]

    page.goto(older)
    ask(page, "What is 103 + 1?")
    expect(titles.first).to_have_text("What is 101 + 1?")
    expect(page.locator("#sessions [aria-current=page]")).to_have_text("What is 101 + 1?")


def test_a_new_chat_is_one_click_away(page: Page):
    ask_and_wait(page, "What is 104 + 1?")

    page.get_by_role("link", name="New chat").click()

    expect(page).to_have_url(re.compile(r"/$"))
    expect(page.locator("#text")).to_be_focused()
    expect(page.locator(".message")).to_have_count(0)


def test_the_list_is_searched_while_typing(page: Page):
    ask_and_wait(page, "What is 7070 + 1?")
    ask_and_wait(page, "What is 8080 + 1?")
    search, rows = (
        page.get_by_role("searchbox", name="Search chats"),
        page.locator("#sessions .session"),
    )

    search.press_sequentially("7070")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("7070")

    search.fill("zyxwvut")
    expect(rows).to_have_count(0)
    expect(page.locator("#sessions .nothing")).to_contain_text("zyxwvut")

    search.fill("")
    expect(rows.first).to_contain_text("8080")


def test_search_results_stay_during_a_run(page: Page):
    wanted = str(randrange(10**6, 10**7))  # never asked about before
    ask_and_wait(page, f"What is {wanted} + 1?")
    ask_and_wait(page, "What is 9191 + 1?")
    search, rows = (
        page.get_by_role("searchbox", name="Search chats"),
        page.locator("#sessions .session"),
    )
    search.fill(wanted)
    expect(rows).to_have_count(1)

    ask(page, "What is 5 + 5?")

    expect(page.locator(".run[data-status=completed]")).to_have_count(2)
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text(wanted)


def test_a_chat_is_renamed_with_the_keyboard(page: Page):
    ask_and_wait(page, "What is 105 + 1?")
    row = page.locator(f"#session-{number_in(page)}")

    row.locator("a").focus()
    page.keyboard.press("Tab")
    expect(row.get_by_role("button", name="Actions for")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("menuitem", name="Rename")).to_be_focused()
    page.keyboard.press("Enter")
    expect(row.get_by_label("New title")).to_have_value("What is 105 + 1?")
    page.keyboard.type("An easy sum")
    page.keyboard.press("Enter")

    expect(row.locator(".title")).to_have_text("An easy sum")
    expect(page.locator("#session-title")).to_have_text("An easy sum")
    page.reload()
    expect(page.locator("#session-title")).to_have_text("An easy sum")


def test_escape_keeps_the_title(page: Page):
    ask_and_wait(page, "What is 106 + 1?")
    row = page.locator(f"#session-{number_in(page)}")
    choose_action(row, "Rename")

    page.keyboard.type("Never mind")
    page.keyboard.press("Escape")

    expect(row.locator(".title")).to_have_text("What is 106 + 1?")
    expect(row.get_by_role("link")).to_be_focused()


def test_deleting_a_chat_needs_confirmation(page: Page, watch):
    ask_and_wait(page, "What is 107 + 1?")
    url, row = page.url, page.locator(f"#session-{number_in(page)}")
    dialog = page.get_by_role("dialog")

    choose_action(row, "Delete")
    expect(dialog).to_contain_text("What is 107 + 1?")
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_be_hidden()
    expect(row).to_be_visible()

    choose_action(row, "Delete")
    dialog.get_by_role("button", name="Delete").click()
    expect(page).to_have_url(re.compile(r":\d+/$"))
    expect(row).to_have_count(0)

    watch.expect("404")
    assert page.goto(url).status == 404


def test_another_chat_is_deleted_without_leaving_the_open_one(page: Page):
    ask_and_wait(page, "What is 108 + 1?")
    other = page.locator(f"#session-{number_in(page)}")
    ask_and_wait(page, "What is 109 + 1?")
    here = page.url

    choose_action(other, "Delete")
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()

    expect(other).to_have_count(0)
    expect(page).to_have_url(here)
    expect(last_run(page)).to_be_visible()


def test_a_chat_can_be_deleted_during_a_run(slow_page: Page):
    run = begin(slow_page, "What is 110 + 1?")
    expect(run.locator(".live-thought").first).not_to_be_empty()
    row = slow_page.locator(f"#session-{number_in(slow_page)}")

    choose_action(row, "Delete")
    slow_page.get_by_role("dialog").get_by_role("button", name="Delete").click()

    expect(slow_page).to_have_url(re.compile(r":\d+/$"))
    expect(row).to_have_count(0)


def test_earlier_messages_load_without_moving_the_visible_text(page: Page, server):
    open_chat(page, server, 40, "Forty messages")
    expect(page.locator(".message")).to_have_count(30)
    first = page.locator(".message").first
    name = first.get_attribute("id")

    before = page.evaluate(
        "name => (scrollTo(0, 0), document.getElementById(name).getBoundingClientRect().y)",
        name,
    )

    expect(page.locator(".message")).to_have_count(40)
    expect(page.get_by_role("link", name="Load earlier messages")).to_have_count(0)
    assert abs(page.locator(f"#{name}").bounding_box()["y"] - before) < 80


def test_typing_below_many_messages_costs_no_more_layout_than_below_one(page: Page, server):
    open_chat(page, server, 1, "One message", LONG_ANSWER)
    below_one = layout_seconds_of_typing(page)
    open_chat(page, server, 150, "Many messages", LONG_ANSWER)
    page.evaluate(LOAD_EARLIER, 150)

    assert layout_seconds_of_typing(page) < 5 * below_one


def test_on_a_phone_nothing_moves_when_code_and_tables_get_their_tools(phone: Page, server):
    record_shifts(phone)
    open_chat(phone, server, 12, "Still page", LONG_ANSWER)
    expect(phone.locator(".message").last.locator(".table-tools")).to_be_visible()
    phone.wait_for_timeout(300)

    assert phone.evaluate("window.shifted") < 0.05


def test_on_a_phone_a_tall_diagram_is_readable_and_nothing_moves_when_it_is_drawn(
    phone: Page, server
):
    record_shifts(phone)
    open_chat(phone, server, 3, "Tall diagrams", TALL_DIAGRAM)
    image = phone.locator(".diagram img").last
    expect(image).to_be_visible()
    expect(phone.locator(".katex").last).to_be_visible()
    phone.wait_for_timeout(300)

    assert phone.evaluate("window.shifted") < 0.05
    assert image.evaluate("image => image.height / image.naturalHeight") > 0.65
    image.locator("..").press("End")
    expect(image.locator("..")).not_to_have_js_property("scrollTop", 0)


def test_all_messages_are_printed_and_found_though_only_near_ones_are_drawn(page: Page, server):
    open_chat(page, server, 30, "Thirty messages", LONG_ANSWER)
    drawn = """() => [...document.querySelectorAll(".message .answer")]
        .filter(answer => answer.checkVisibility({ contentVisibilityAuto: true })).length"""
    assert page.evaluate(drawn) < 20
    assert page.evaluate("() => document.body.innerText.split('Several sentences').length") > 30

    page.emulate_media(media="print")
    left_out = """() => [...document.querySelectorAll(".message")]
        .filter(message => getComputedStyle(message).contentVisibility !== "visible").length"""
    assert page.evaluate(left_out) == 0
