"""Finds the main content of a page, and removes what surrounds it."""

import re
from collections.abc import Iterator
from typing import Any

Tree = Any  # LexborHTMLParser
Node = Any  # LexborNode


def words_of(text: str) -> frozenset[str]:
    return frozenset(text.split())


REMOVED_TAGS = (
    *("script", "style", "noscript", "template", "nav", "footer", "iframe", "object", "embed"),
    *(
        "svg",
        "canvas",
        "video",
        "audio",
        "input",
        "select",
        "textarea",
        "button",
        "dialog",
    ),
    *("rt", "rp", "link", "meta", "map"),
)
REMOVED_ROLES = (
    *("navigation", "banner", "contentinfo", "search", "complementary", "menu", "menubar"),
    *("toolbar", "dialog", "alertdialog", "directory", "doc-toc", "doc-pagelist"),
)
# Classes and ids of what surrounds the content, as single words.
SURROUNDINGS = words_of(
    "breadcrumb breadcrumbs sidebar navbar topnav subnav navigation pagination pager paginator "
    "cookie cookies consent gdpr skiplink skip headerlink permalink sphinxsidebar editsection "
    "navbox catlinks printfooter toc tableofcontents masthead socials sharing newsletter "
    "subscribe advertisement adsbygoogle promo hatnote siteinfo sitemap colophon"
)
# These may also be content, so they are only removed if they are mostly links or very short.
PERHAPS = words_of(
    "nav menu header footer share social related banner ads ad toolbar search feedback helpful "
    "rating comments tags meta topbar links widget contents prev next edit"
)
CALLOUT = re.compile(
    r"note|tip|warn|caution|admonition|callout|info|danger|important|example|hint|alert|"
    r"footnote|sidenote|definition|summary",
    re.IGNORECASE,
)
WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
HIDDEN_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
MAIN_SELECTORS = (
    *("main article", "main", "[role=main]", "article", "#main-content", "#content"),
    *("#main", ".main-content", ".markdown-body", ".document .body", ".content"),
)
MAX_SHARE = 0.5  # what has more of the text isn't surroundings
MIN_SHARE = 0.4  # of the text in the page's content that the main element must have
SHORT = 200


def find(tree: Tree) -> Node:
    """Return the element with the main content, cleaned in place."""
    for selector in (*REMOVED_TAGS, *(f"[role={role}]" for role in REMOVED_ROLES)):
        for node in tree.css(selector):
            node.decompose()
    body = tree.body or tree.root
    _remove_hidden(body)
    for node in list(tree.css("aside")):
        if not CALLOUT.search(_names(node)) or not _is_inside(node, {"main", "article"}):
            node.decompose()
    for node in list(tree.css("header")):
        if not _is_inside(node, {"main", "article", "section"}) and not node.css_first("h1"):
            node.decompose()
    _remove_surroundings(body)
    _remove_page_contents(body)
    return _main(tree, body)


def _main(tree: Tree, body: Node) -> Node:
    """Return the first candidate that has most of the text which isn't links."""
    whole = _prose_length(body)
    for selector in MAIN_SELECTORS:
        found = tree.css(selector)
        if len(found) == 1 and _prose_length(found[0]) >= max(MIN_SHARE * whole, 1):
            return _with_heading(found[0], body)
    _remove_link_lists(body)
    return body


def _with_heading(main: Node, body: Node) -> Node:
    """Return the main element, or a parent that also has the page's only main heading."""
    headings = body.css("h1")
    if len(headings) != 1 or main.css_first("h1"):
        return main
    around = main.parent
    for _ in range(3):
        if around is None or around.tag in {"body", "html"}:
            break
        if around.css_first("h1"):
            return around
        around = around.parent
    return main


def _remove_hidden(body: Node) -> None:
    for node in list(body.css("[hidden], [aria-hidden=true], [style]")):
        about = node.attributes
        if "hidden" in about or about.get("aria-hidden") == "true":
            is_hidden = about.get("hidden") != "until-found"
        else:
            is_hidden = bool(HIDDEN_STYLE.search(about.get("style") or ""))
        if is_hidden and node.tag not in {"html", "body", "main", "article"}:
            node.decompose()


def _remove_surroundings(body: Node) -> None:
    whole = len(_text(body)) or 1
    for node in list(body.css("[class], [id]")):
        if node.tag in {"html", "body", "main", "article", "code", "pre", "td", "th", "tr"}:
            continue
        words = {word.lower() for word in WORDS.findall(_names(node))}
        is_sure, is_possible = words & SURROUNDINGS, words & PERHAPS
        if not (is_sure or is_possible) or node.parent is None:
            continue
        text = _text(node)
        if len(text) > MAX_SHARE * whole or re.fullmatch(r"h[1-6]", node.tag):
            continue
        if node.css_first("h1") and not is_sure:
            continue
        if is_sure or (is_possible and _link_share(node, text) > 0.6):
            node.decompose()


def _remove_page_contents(body: Node) -> None:
    """Remove lists of links to the headings of this page, which repeat them."""
    for node in list(body.css("ul, ol")):
        links = node.css("a")
        if len(links) < 3 or node.parent is None:
            continue
        is_local = all((a.attributes.get("href") or "").startswith("#") for a in links)
        if is_local and _link_share(node, _text(node)) > 0.9 and not _is_inside(node, {"td"}):
            node.decompose()


def _remove_link_lists(body: Node) -> None:
    """Remove menus: lists of many short links, and nothing else."""
    for node in list(body.css("ul, ol")):
        links = node.css("a")
        if len(links) < 4 or node.parent is None:
            continue
        text = _text(node)
        if _link_share(node, text) > 0.9 and len(text) / len(links) < 40:
            node.decompose()


def _link_share(node: Node, text: str) -> float:
    linked = sum(len(_text(a)) for a in node.css("a"))
    return linked / len(text) if text else 1.0


def _prose_length(node: Node) -> int:
    return len(_text(node)) - sum(len(_text(a)) for a in node.css("a"))


def _text(node: Node) -> str:
    return "".join((node.text() or "").split())


def _names(node: Node) -> str:
    about = node.attributes
    return f"{about.get('class') or ''} {about.get('id') or ''}"


def _is_inside(node: Node, tags: set[str]) -> bool:
    return any(parent.tag in tags for parent in _parents(node))


def _parents(node: Node) -> Iterator[Node]:
    parent = node.parent
    while parent is not None:
        yield parent
        parent = parent.parent
