"""Links for web addresses that are written without any Markdown."""

import re
from collections.abc import Iterator

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

SCHEME_END = "://"
# Only ASCII: in Japanese, a sentence continues right after an address.
ADDRESS = re.compile(r"(?<![A-Za-z0-9_/])https?://[^\x00-\x20<>\"'`{}|\\^\[\]\x7f-\U0010ffff]+")
SENTENCE_SIGNS = ".,;:!?*_~"
CLOSING = ")"
OPENING = "("


def extend(markdown: MarkdownIt) -> None:
    """Add the rule to a parser."""
    markdown.core.ruler.push("autolinks", _link_addresses)


def _link_addresses(state: StateCore) -> None:
    for token in state.tokens:
        if token.type == "inline" and SCHEME_END in token.content and token.children:
            token.children = list(_with_links(state.md, token.children))


def _with_links(markdown: MarkdownIt, children: list[Token]) -> Iterator[Token]:
    depth = 0
    for child in children:
        depth += child.nesting if child.type in {"link_open", "link_close"} else 0
        if depth or child.type != "text" or SCHEME_END not in child.content:
            yield child
            continue
        text = child.content
        level = child.level
        position = 0
        for match in ADDRESS.finditer(text):
            address = _without_sentence_end(match[0])
            href = markdown.normalizeLink(address)
            if address.endswith(SCHEME_END) or not markdown.validateLink(href):
                continue
            yield Token("text", "", 0, content=text[position : match.start()], level=level)
            yield Token("link_open", "a", 1, attrs={"href": href}, level=level)
            yield Token("text", "", 0, content=address, level=level + 1)
            yield Token("link_close", "a", -1, level=level)
            position = match.start() + len(address)
        yield Token("text", "", 0, content=text[position:], level=level)


def _without_sentence_end(address: str) -> str:
    """Return an address without the signs that end its sentence or the brackets around it."""
    surplus = address.count(CLOSING) - address.count(OPENING)
    while address:
        if address[-1] == CLOSING and surplus > 0:
            surplus -= 1
        elif address[-1] not in SENTENCE_SIGNS:
            break
        address = address[:-1]
    return address
