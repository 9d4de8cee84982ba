"""Web pages: title, headings and main content, without navigation, scripts and footers."""

import re
from dataclasses import dataclass, field

from agents.engine.sentences import Sentence as _

from . import html_content, html_writer, markdown
from .encoding import decode_leniently
from .html_content import words_of
from .values import ParsedDocument, SourceFile, UnreadableDocument, WorkLimit

CHARSET = re.compile(
    rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w:.-]+)|<\?xml[^>]{0,100}?encoding\s*=\s*"""
    rb"""["']([\w:.-]+)""",
    re.IGNORECASE,
)
HEAD_BYTES = 8_192
SEPARATORS = re.compile(r"\s+[|\-–—·»›:]+\s+|\s*[｜]\s*|\s*::\s*")
TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)(?![a-zA-Z0-9])[^<>]*?(/?)>")
UNREAD = re.compile(
    r"<!--.*?(?:-->|\Z)|(<(script|style)\b[^>]*>?).*?(?:</\2|\Z)", re.DOTALL | re.IGNORECASE
)
START = re.compile(r"</?[a-zA-Z][^\s/>]*")
ATTRIBUTE = re.compile(
    r"""[\s/]*(?:=?[^\s/>=]+|=)(?:\s*=\s*(?:"[^"]*(?:"|\Z)|'[^']*(?:'|\Z)|[^\s>"'][^\s>]*)?)?"""
)
# Elements that are often left open, or have no end.
UNNESTED = words_of(
    "p li dt dd tr td th thead tbody tfoot option optgroup colgroup rt rp br hr img input "
    "meta link area base col embed source track wbr param path circle rect line use"
)
# In XHTML these can be closed at once; HTML would put all that follows into them.
XHTML = re.compile(r"<\?xml\s|www\.w3\.org/1999/xhtml")
SELF_CLOSED = re.compile(
    r"<(a|abbr|b|blockquote|caption|cite|code|dd|div|dl|dt|em|h[1-6]|i|iframe|li|object|ol|p|"
    r"pre|script|section|small|span|strong|style|sub|sup|table|td|textarea|th|title|tr|tt|ul|"
    r"video)\b([^<>]*?)/>",
    re.IGNORECASE,
)
MAX_DEPTH = 300
MAX_ATTRIBUTES = 500  # of one element
TAG_STEPS = 10
FEW_CHARS = 60
MAX_LINKS = 100
MAX_LINK_CHARS = 1_000
LINK_TEXT_CHARS = 80
TOO_DEEP = _("This page is nested too deeply to be read.")
TOO_MANY_ATTRIBUTES = _(
    "This page has an element with more than %(count)s attributes, so it can't be read.",
    count=MAX_ATTRIBUTES,
)
LANGUAGES = ("en", "ja")


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What a page says."""

    title: str
    text: str
    language: str
    links: list[list[str]] = field(default_factory=list)


def parse(source: SourceFile) -> ParsedDocument:
    encoding = ""
    if charset := re.search(r"charset=\"?([\w.-]+)", source.mime_type):
        encoding = charset[1]
    elif declaration := CHARSET.search(source.data[:HEAD_BYTES]):
        encoding = (declaration[1] or declaration[2]).decode("ascii", "replace")
    page = convert(decode_leniently(source.data, encoding), source.work)
    return ParsedDocument(
        title=page.title,
        parts=markdown.parts(page.text),
        language=page.language,
        links=page.links,
        why_empty=_(
            "This page contains no text. It may need JavaScript to display its content."
        ),
    )


def convert(text: str, work: WorkLimit) -> Page:
    """Convert a page's HTML to Markdown."""
    from selectolax.lexbor import LexborHTMLParser

    if XHTML.search(text[:HEAD_BYTES]):
        text = SELF_CLOSED.sub(r"<\1\2></\1>", text)
    work.spend(text.count("<") * TAG_STEPS)
    _check_complexity(text)
    tree = LexborHTMLParser(text)
    root = tree.root
    if root is None:
        return Page(title="", text="", language="")
    attributes = root.attributes
    language = (attributes.get("lang") or attributes.get("xml:lang") or "")[:2].lower()
    title = _page_title(tree)
    content = html_content.find(tree)
    body = html_writer.write(content)
    if sum(len(line) for line in body.split("\n") if line[:1] != "#") < FEW_CHARS:
        # An overview: its lists of links are its content.
        overview_root = html_content.find(LexborHTMLParser(text), is_overview=True)
        overview = html_writer.write(overview_root)
        if len(overview) > 3 * len(body):
            body = overview
            content = overview_root
    known_language = language if language in LANGUAGES else ""
    return Page(title=title, text=body, language=known_language, links=_links(content))


def _links(content: "html_content.Node") -> list[list[str]]:
    """Return the first links of the content with their texts, each address once."""
    links: dict[str, str] = {}
    for node in content.css("a[href]"):
        address = (node.attributes.get("href") or "").strip()
        is_short = len(address) <= MAX_LINK_CHARS
        if address and is_short and not address.startswith("#"):
            links.setdefault(address, markdown.collapse(node.text() or "")[:LINK_TEXT_CHARS])
        if len(links) >= MAX_LINKS:
            break
    return [[text, address] for address, text in links.items()]


def _check_complexity(text: str) -> None:
    """Refuse deep nesting and elements with very many attributes.

    The parser's time grows with the square of the depth, and it compares each attribute with
    all others. What is hidden from this, by comments in strange places, is ended by the limit
    of CPU time.
    """
    depth = 0
    for closing, name, is_empty in TAG.findall(text):
        if not is_empty and name.lower() not in UNNESTED:
            depth = max(0, depth - 1) if closing else depth + 1
            if depth > MAX_DEPTH:
                raise UnreadableDocument(TOO_DEEP)
    text = UNREAD.sub(r"\1", text)
    position = 0
    while start := START.search(text, position):
        position = start.end()
        count = 0
        while attribute := ATTRIBUTE.match(text, position):
            position = attribute.end()
            count += 1
            if count > MAX_ATTRIBUTES:
                raise UnreadableDocument(TOO_MANY_ATTRIBUTES)


def _page_title(tree: "html_content.Tree") -> str:
    """Return the main heading, with what the page's title adds to it but the site's name."""
    title_node = tree.css_first("head > title") or tree.css_first("title")
    page_title = markdown.collapse(title_node.text()) if title_node else ""
    headings = list(filter(None, map(html_writer.plain_text, tree.css("h1"))))
    heading = headings[0] if len(headings) == 1 else ""
    if not page_title or not heading:
        return heading or _without_site(page_title)
    if heading.casefold() not in page_title.casefold():
        return heading
    shorter = _without_site(page_title)
    return shorter if SEPARATORS.search(shorter) else heading


def _without_site(title: str) -> str:
    segments = SEPARATORS.split(title)
    if len(segments) < 2:
        return title
    return title[: title.rfind(segments[-1])].rstrip(" |-–—·»›:｜")
