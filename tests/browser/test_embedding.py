"""A chat in a page of another site, with a strict policy of its own."""

import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import jwt
import pytest
from playwright.sync_api import FrameLocator, Page, expect

from tests.browser.server import Server

PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
QUESTION = "What is 12.5% of 3480?"
PAGE = """\
<!doctype html><html lang="{language}"><head><title>Tea</title>
<meta name="viewport" content="width=device-width, initial-scale=1"></head>
<body><h1>Kobayashi Tea</h1><div id="chat"></div>
<script src="{script}" {attributes} async></script></body></html>
"""


class Site:
    """Another site: its pages allow nothing but the chat."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.pages: dict[str, str] = {}
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = site.pages.get(self.path, "").encode()
                self.send_response(200 if body else 404)
                policy = f"default-src 'none'; script-src {server.url}; frame-src {server.url}"
                self.send_header("Content-Security-Policy", policy)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_about: object) -> None: ...

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        # Not the server's host name: for a browser it is another site.
        self.url = f"http://localhost:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def add(self, key: str, *attributes: str, language: str = "en") -> str:
        """Return the address of a new page with the script."""
        path = f"/{len(self.pages) + 1}"
        self.pages[path] = PAGE.format(
            language=language,
            script=f"{self.server.url}/embed.js",
            attributes=" ".join([f'data-embed="{key}"', *attributes]),
        )
        return f"{self.url}{path}"


@pytest.fixture(scope="module")
def site(server: Server) -> Iterator[Site]:
    site = Site(server)
    yield site
    site.http.shutdown()
    site.http.server_close()


@pytest.fixture(scope="module")
def embed(browser, server, signed_in, site) -> tuple[str, str]:
    """Make an embedded chat in the console; return its key and its secret."""
    context = browser.new_context(base_url=server.url, storage_state=signed_in(server))
    page = context.new_page()
    page.goto("/admin/agents/embed/add/")
    page.get_by_label("Name").fill("Website")
    page.locator("#id_agent").select_option(label="helper")
    page.get_by_label("Allowed sites").fill(site.url)
    page.locator("#id_audience").select_option("both")
    page.get_by_label("Title", exact=True).fill("Tea advice")
    page.get_by_label("Example questions").fill(QUESTION)
    page.get_by_role("button", name="Save", exact=True).click()
    secret = page.locator("#secret").input_value()
    page.get_by_role("link", name="Done").click()
    snippet = page.locator("#example-script").text_content() or ""
    context.close()
    return snippet.split('data-embed="')[1].split('"')[0], secret


@pytest.fixture
def open_page(browser) -> Iterator[Callable[..., Page]]:
    """Open pages as new visitors; their console must be silent and without cookies."""
    opened: list[tuple[Page, list[str]]] = []

    def open_as_visitor(url: str, **options: object) -> Page:
        page = browser.new_context(**options).new_page()
        messages: list[str] = []
        page.on("console", lambda message: messages.append(message.text))
        page.on("pageerror", lambda error: messages.append(str(error)))
        opened.append((page, messages))
        page.goto(url)
        return page

    yield open_as_visitor
    for page, messages in opened:
        assert messages == []
        assert page.context.cookies() == []
        page.context.close()


def chat_of(page: Page) -> FrameLocator:
    return page.frame_locator("iframe")


def answer_in(page: Page, text: str = "435"):
    answer = chat_of(page).locator(".run[data-status=completed]").filter(has_text=text)
    expect(answer).to_have_count(1)
    return answer


def sign(secret: str, subject: str, seconds: int = 600) -> str:
    claims = {"sub": subject, "name": subject, "exp": int(time.time()) + seconds}
    return jwt.encode(claims, secret, algorithm="HS256")


def scheme_of(page: Page) -> str:
    body = chat_of(page).locator("body")
    script = "body => getComputedStyle(document.documentElement).colorScheme"
    return str(body.evaluate(script))


@pytest.mark.journey
def test_a_visitor_asks_in_a_panel_over_the_page(site, embed, open_page):
    page = open_page(site.add(embed[0]))
    launcher = page.get_by_role("button", name="Open chat")
    expect(page.locator("iframe")).to_have_count(0)  # nothing is loaded before it is opened
    launcher.focus()
    page.keyboard.press("Enter")
    chat = chat_of(page)
    expect(chat.get_by_role("heading", name="Tea advice")).to_be_visible()
    expect(chat.get_by_label("Message")).to_be_focused()
    assert scheme_of(page) == "light"

    chat.get_by_role("button", name=QUESTION).click()
    answer = answer_in(page)
    answer.get_by_role("button", name="Good answer").click()
    expect(answer.locator("[data-rated=good]")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    expect(page.get_by_role("button", name="Open chat")).to_be_focused()


def test_a_reload_keeps_the_conversation_and_new_chat_begins_another(site, embed, open_page):
    page = open_page(site.add(embed[0]))
    page.get_by_role("button", name="Open chat").click()
    chat_of(page).get_by_role("button", name=QUESTION).click()
    answer_in(page)
    page.reload()
    answer_in(page)  # the panel was open
    chat_of(page).get_by_role("button", name="New chat").click()
    expect(chat_of(page).get_by_role("button", name=QUESTION)).to_be_visible()
    expect(chat_of(page).locator(".message")).to_have_count(0)


def test_on_a_phone_it_covers_the_page_in_the_sites_language_and_theme(site, embed, open_page):
    url = site.add(embed[0], 'data-theme="dark"', language="ja")
    page = open_page(url, **PHONE)
    page.get_by_role("button", name="チャットを開く").tap()
    chat = chat_of(page)
    expect(chat.locator("html[lang=ja]")).to_be_attached()
    assert scheme_of(page) == "dark"
    panel = page.get_by_role("dialog").bounding_box()
    assert panel == {"x": 0, "y": 0, "width": 390, "height": 844}
    chat.locator("#text").fill(QUESTION)
    chat.locator("button.send").tap()
    answer_in(page)
    chat.locator("[data-close]").tap()
    expect(page.get_by_role("dialog")).to_be_hidden()


def test_it_can_be_part_of_the_page(site, embed, open_page):
    page = open_page(site.add(embed[0], 'data-target="#chat"'))
    chat_of(page).get_by_role("button", name=QUESTION).click()
    answer_in(page)

    expect(page.locator("#chat > iframe")).to_be_visible()
    expect(page.get_by_role("button", name="Open chat")).to_have_count(0)
    expect(page.locator("h1")).not_to_be_focused()


def test_a_user_of_the_site_has_the_same_conversation_on_each_device(site, embed, open_page):
    key, secret = embed
    url = site.add(key, f'data-user-token="{sign(secret, "ada")}"', 'data-target="#chat"')
    page = open_page(url)
    chat_of(page).get_by_role("button", name=QUESTION).click()
    answer_in(page)

    answer_in(open_page(url))
    other = site.add(key, f'data-user-token="{sign(secret, "bob")}"', 'data-target="#chat"')
    page = open_page(other)
    expect(chat_of(page).get_by_role("button", name=QUESTION)).to_be_visible()
    expect(chat_of(page).locator(".message")).to_have_count(0)


def test_an_expired_token_is_renewed_by_the_site(site, embed, open_page):
    key, secret = embed
    expired = sign(secret, "ada", -60)
    page = open_page(site.add(key, f'data-user-token="{expired}"', 'data-target="#chat"'))
    sentence = chat_of(page).get_by_text("Your sign-in on this site has expired.")
    expect(sentence).to_be_visible()
    page.evaluate("token => Ashiato.identify(token)", sign(secret, "carol"))
    expect(sentence).to_be_hidden()
    chat_of(page).get_by_role("button", name=QUESTION).click()
    answer_in(page)


def test_the_next_user_doesnt_see_the_conversation_of_one_who_expired(site, embed, open_page):
    key, secret = embed
    token = sign(secret, "dora", 8)
    page = open_page(site.add(key, f'data-user-token="{token}"', 'data-target="#chat"'))
    chat_of(page).get_by_role("button", name=QUESTION).click()
    answer_in(page)
    page.wait_for_timeout(8000)
    chat_of(page).get_by_label("Message").fill("And now?")
    chat_of(page).get_by_label("Message").press("Enter")
    expect(chat_of(page).get_by_text("Your sign-in on this site has expired.")).to_be_visible()
    page.evaluate("token => Ashiato.identify(token)", sign(secret, "emil"))

    expect(chat_of(page).get_by_role("button", name=QUESTION)).to_be_visible()
    expect(chat_of(page).locator(".message")).to_have_count(0)


def test_a_site_that_signs_wrongly_isnt_asked_again_and_again(site, embed, open_page):
    page = open_page(site.add(embed[0], 'data-target="#chat"'))
    expect(chat_of(page).get_by_role("button", name=QUESTION)).to_be_visible()
    page.evaluate(
        "token => { window.asked = 0; Ashiato.identify(() => (window.asked++, token)); }",
        sign("another secret that is as long as it has to be", "ada"),
    )
    sentence = chat_of(page).get_by_text("Your sign-in on this site has expired.")
    expect(sentence).to_be_visible()
    page.wait_for_timeout(3000)
    assert page.evaluate("asked") <= 3


def test_an_answer_can_be_stopped(site, slow_server, browser, signed_in, open_page):
    """The site asks for its visitor."""
    site = Site(slow_server)
    context = browser.new_context(
        base_url=slow_server.url, storage_state=signed_in(slow_server)
    )
    page = context.new_page()
    page.goto("/admin/agents/embed/add/")
    page.get_by_label("Name").fill("Slow")
    page.locator("#id_agent").select_option(label="helper")
    page.get_by_label("Allowed sites").fill(site.url)
    page.get_by_role("button", name="Save", exact=True).click()
    snippet = page.locator("#example-script").text_content() or ""
    context.close()
    page = open_page(site.add(snippet.split('data-embed="')[1].split('"')[0]))
    page.get_by_role("button", name="Open chat").wait_for()
    page.evaluate("() => Ashiato.ask('Which five products brought in the most this year?')")
    chat_of(page).get_by_role("button", name="Stop").click()

    expect(chat_of(page).locator(".run[data-status=stopped]")).to_be_visible()
    expect(chat_of(page).get_by_label("Message")).to_be_editable()
    site.http.shutdown()
    site.http.server_close()


def test_other_sites_see_a_sentence_instead(server, embed, browser):
    other = Site(server)
    page = browser.new_context().new_page()
    page.goto(other.add(embed[0], 'data-target="#chat"'))

    sentence = chat_of(page).get_by_text(f"This chat isn’t set up for {other.url}.")
    expect(sentence).to_be_visible()
    page.context.close()
    other.http.shutdown()
    other.http.server_close()
