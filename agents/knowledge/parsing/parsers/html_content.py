"""Finds the main content of a page, and removes what surrounds it."""

import re
from collections.abc import Iterator
from typing import Any

Tree = Any  # LexborHTMLParser
Node = Any  # LexborNode


def words_of(text: str) -> frozenset[str]:
    return frozenset(text.split())


REMOVED_TAGS = words_of(
    "script style noscript template nav footer iframe object embed svg canvas video audio "
    "input select textarea button dialog rt rp link meta map"
)
REMOVED_ROLES = words_of(
    "navigation banner contentinfo search complementary menu menubar toolbar dialog "
    "alertdialog directory doc-toc doc-pagelist"
)
# Classes and ids of what surrounds the content, as single words.
NEVER_CONTENT = words_of(
    "cookie cookies consent gdpr skiplink skip headerlink permalink editsection navheader "
    "navfooter docnav navbox catlinks printfooter newsletter advertisement adsbygoogle "
    "breadcrumb breadcrumbs pagination pager paginator sphinxsidebar prevnext"
)
# These may also be content, so they are only removed if much of it is links.
SURROUNDINGS = words_of(
    "sidebar navbar topnav subnav navigation toc tableofcontents masthead socials sharing "
    "subscribe promo sitemap colophon nav menu header footer share social related banner ads "
    "ad toolbar search feedback topbar widget"
)
STEPS = re.compile(
    r"[«»<>←→‹›\s]*(?:prev(?:ious)?|next|up|home|top|back to top|前へ|前のページ|次へ|"
    r"次のページ|戻る|上に戻る|ホーム|トップ|トップへ|目次)[«»<>←→‹›\s]*",
    re.IGNORECASE,
)
CALLOUT = re.compile(
    r"note|tip|warn|caution|admonition|callout|info|danger|important|example|hint|alert|"
    r"footnote|sidenote|definition|summary",
    re.IGNORECASE,
)
WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
HIDDEN_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
MAIN_SELECTORS = (
    "main article",
    "main",
    "[role=main]",
    "article",
    "#main-content",
    "#content",
    "#main",
    ".main-content",
    ".markdown-body",
    ".document .body",
    ".content",
)
MAX_SHARE = 0.5  # what has more of the text isn't surroundings
MIN_SHARE = 0.3  # of the page's text that the main element must have
HEADING_SHARE = 0.7  # of the text around it, if that has the main heading
MIN_LINK_SHARE = 0.5
MAX_ID_WORDS = 2
UNTOUCHED = words_of("html body main article code pre td th tr h1 h2 h3 h4 h5 h6")


def find(tree: Tree, *, is_overview: bool = False) -> Node:
    """Return the element with the main content, cleaned in place.

    In an overview, lists of links are content.
    """
    for selector in (*REMOVED_TAGS, *(f"[role={role}]" for role in REMOVED_ROLES)):
        for node in tree.css(selector):
            node.decompose()
    body = tree.body or tree.root
    for node in list(body.css("[hidden], [aria-hidden=true], [style]")):
        attributes = node.attributes
        if "hidden" in attributes or attributes.get("aria-hidden") == "true":
            is_hidden = attributes.get("hidden") != "until-found"
        else:
            is_hidden = bool(HIDDEN_STYLE.search(attributes.get("style") or ""))
        if is_hidden and node.tag not in {"html", "body", "main", "article"}:
            node.decompose()
    for node in list(tree.css("aside")):
        names = f"{node.attributes.get('class') or ''} {node.attributes.get('id') or ''}"
        is_outside = not _is_in_main(node) and not CALLOUT.search(names)
        if is_outside or _link_share(node, _text(node)) > MIN_LINK_SHARE:
            node.decompose()
    for node in list(tree.css("header")):
        if not _is_in_main(node) and not node.css_first("h1"):
            node.decompose()
    _remove_surroundings(body, SURROUNDINGS if not is_overview else frozenset())
    if is_overview:
        return body
    # Lists of links to the headings of this page repeat them.
    for node in list(body.css("ul, ol")):
        links = node.css("a[href]")
        if len(links) < 3 or node.parent is None:
            continue
        is_local = all((a.attributes.get("href") or "").startswith("#") for a in links)
        is_in_table = any(parent.tag == "td" for parent in _parents(node))
        if is_local and _link_share(node, _text(node)) > 0.9 and not is_in_table:
            node.decompose()
    return _find_main(tree, body)


def _find_main(tree: Tree, body: Node) -> Node:
    """Return the first candidate that has most of the text, or else all without menus.

    If a parent also has the page's only main heading, it is the main element.
    """
    text_length = len(_text(body))
    for selector in MAIN_SELECTORS:
        candidates = tree.css(selector)
        if len(candidates) != 1:
            continue
        [main] = candidates
        main_length = len(_text(main))
        if main_length < max(MIN_SHARE * text_length, 1):
            continue
        if len(body.css("h1")) != 1 or main.css_first("h1"):
            return main
        for ancestor in _parents(main):
            if len(_text(ancestor)) > main_length / HEADING_SHARE:
                return main
            if ancestor.css_first("h1"):
                return ancestor
        return main
    # Menus are lists of many short links, and nothing else.
    for node in list(body.css("ul, ol")):
        links = node.css("a[href]")
        if len(links) < 4 or node.parent is None:
            continue
        text = _text(node)
        if _link_share(node, text) > 0.9 and len(text) / len(links) < 40:
            node.decompose()
    return body


def _remove_surroundings(body: Node, possible: frozenset[str]) -> None:
    text_length = len(_text(body)) or 1
    for node in list(body.css("[class], [id]")):
        if node.tag in UNTOUCHED or node.parent is None:
            continue
        # Words of its classes, and of its id unless that is made from a heading.
        name_words = WORDS.findall(node.attributes.get("class") or "")
        id_words = WORDS.findall(node.attributes.get("id") or "")
        if len(id_words) <= MAX_ID_WORDS:
            name_words += id_words
        names = {name_word.lower() for name_word in name_words}
        is_sure = names & NEVER_CONTENT
        if not (is_sure or names & possible):
            continue
        text = _text(node)
        if len(text) > MAX_SHARE * text_length or (node.css_first("h1") and not is_sure):
            continue
        if is_sure or _link_share(node, text) > MIN_LINK_SHARE:
            node.decompose()
    for link in list(body.css("a[href]")):
        if link.parent is not None and STEPS.fullmatch(link.text() or ""):
            link.decompose()


def _link_share(node: Node, text: str) -> float:
    linked = sum(len(_text(a)) for a in node.css("a[href]"))
    return linked / len(text) if text else 1.0


def _text(node: Node) -> str:
    return "".join((node.text() or "").split())


def _is_in_main(node: Node) -> bool:
    return any(
        parent.tag in {"main", "article"} or parent.attributes.get("role") == "main"
        for parent in _parents(node)
        if parent.tag not in {"html", "-document"}
    )


def _parents(node: Node) -> Iterator[Node]:
    parent = node.parent
    while parent is not None:
        yield parent
        parent = parent.parent
