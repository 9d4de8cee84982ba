r"""Markdown beyond CommonMark: math, task lists and footnotes.

Math is `\(…\)`, `\[…\]`, `$$…$$` or `$…$`, unless that is more likely a price. Its source is
the text of an element, which the browser replaces by a formula. What a line starts is decided
by that line alone, so that streamed text is parsed like complete text.
"""

import re
from typing import Any
from zlib import crc32

from django.utils.html import escape
from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

MAX_INLINE_MATH_CHARS = 1_000
MAX_BLOCK_MATH_CHARS = 10_000
MAX_FOOTNOTES = 200
CLOSINGS = {"\\(": "\\)", "\\[": "\\]", "$$": "$$", "$": "$"}
# As in Pandoc: no space inside, no digit after. Besides, no word next to it, as in US$5 and
# $HOME/$USER, no bracket that isn't its own, as in "Cost ($), price ($)", and no amount with a
# word after it, as in "$10 or 12 US$".
DOLLAR_MATH = re.compile(
    r"(?<![\w$\\])\$(?P<formula>(?![\s)\],.;:!?]|\d[\d,.]*\w?[,;:]?\s+[^\W\d_]{2})(?:[^\n$`\\]|\\[^\n`])+)(?<![\s(\[])\$(?![\w$])"
)
FENCE_START = ("```", "~~~")
FOOTNOTE = re.compile(r"\[\^([^\[\]\s]{1,40})\]")
TASK = re.compile(r"\[([ xX])\][ \t]+(?=\S|\Z)")


def extend(markdown: MarkdownIt) -> None:
    """Add the rules and renderers to a parser."""
    paragraphs = ["paragraph", "reference", "blockquote", "list"]
    block = markdown.block.ruler
    inline = markdown.inline.ruler
    block.before("table", "math", _math_block, {"alt": paragraphs})
    block.before("reference", "footnote", _footnote_block, {"alt": ["paragraph", "reference"]})
    inline.before("escape", "math", _math_inline)
    inline.before("link", "footnote", _footnote_reference)
    markdown.core.ruler.push("tasks", _mark_tasks)
    markdown.core.ruler.push("footnotes", _move_footnotes)
    renderer: Any = markdown.renderer  # its protocol has no rules
    renderer.rules |= {
        "math_inline": _render_math,
        "math_block": _render_math_block,
        "math_open": _render_open_math,
        "task_box": _render_task,
        "footnote_reference": _render_reference,
        "footnotes_open": lambda *_: '<div class="footnotes"><ol>\n',
        "footnotes_close": lambda *_: "</ol></div>\n",
        "footnote_open": _open_footnote,
        "footnote_close": _close_footnote,
    }


# Math


def _math_inline(state: StateInline, silent: bool) -> bool:
    opening = state.src[state.pos : state.pos + 2]
    if opening[:1] == "$" != opening[1:]:
        opening = "$"
        max_end = min(state.posMax, state.pos + MAX_INLINE_MATH_CHARS)
        match = DOLLAR_MATH.match(state.src, state.pos, max_end)
        if match is None or (max_end < state.posMax and match.end() == max_end):
            return False
        content = match["formula"]
        end = match.end()
    else:
        if (closing := CLOSINGS.get(opening)) is None:
            return False
        start = state.pos + 2
        end = state.src.find(closing, start, min(state.posMax, start + MAX_INLINE_MATH_CHARS))
        content = state.src[start:end]
        # A backtick may start code, in which nothing is math.
        if end < 0 or not content.strip() or "`" in content:
            return False
        end += 2
    if not silent:
        token = state.push("math_inline", "", 0)
        token.content = content
        token.markup = opening
    state.pos = end
    return True


def _math_block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Parse display math on lines of its own, up to its end or a blank line."""
    if state.is_code_block(start):
        return False
    first = _line(state, start)
    opening = first[:2]
    closing = CLOSINGS.get(opening) if opening != "\\(" else None
    if closing is None:
        return False
    _, separator, text_after = first[2:].partition(closing)
    if separator and text_after.strip():
        return False  # it continues after its math, so it's an ordinary paragraph
    if silent:
        return True
    last = _last_math_line(state, start, end, closing)
    lines = state.getLines(start, last + 1, state.blkIndent, False)
    state.line = last + 1
    content = lines.strip().removeprefix(opening)
    is_closed = content.rstrip().endswith(closing) and len(content) <= MAX_BLOCK_MATH_CHARS
    if is_closed and (formula := content.rstrip()[:-2].strip()) and closing not in formula:
        token = state.push("math_block", "", 0)
        token.content = formula
        token.markup = opening
        token.map = [start, state.line]
    elif state.env.get("growing") and closing not in content and state.line >= end:
        token = state.push("math_open", "", 0)
        token.content = lines.strip()
        token.map = [start, state.line]
    else:
        state.push("paragraph_open", "p", 1).map = [start, state.line]
        token = state.push("inline", "", 0)
        token.content = lines.strip()
        token.map = [start, state.line]
        token.children = []
        state.push("paragraph_close", "p", -1)
    return True


def _last_math_line(state: StateBlock, start: int, end: int, closing: str) -> int:
    if closing in _line(state, start)[2:]:
        return start
    line = start + 1
    while line < end and not state.isEmpty(line) and state.sCount[line] >= state.blkIndent:
        text = _line(state, line)
        if text.startswith(FENCE_START):
            break
        if closing in text:
            return line
        line += 1
    return line - 1


def _line(state: StateBlock, line: int) -> str:
    return state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]


def _source(token: Token) -> str:
    """Return math as it was written: what guardrails have read."""
    return escape(f"{token.markup}{token.content}{CLOSINGS[token.markup]}")


def _render_math(tokens: list[Token], index: int, *_: Any) -> str:
    kind = "math" if tokens[index].markup in {"\\(", "$"} else "math display"
    return f'<span class="{kind}">{_source(tokens[index])}</span>'


def _render_math_block(tokens: list[Token], index: int, *_: Any) -> str:
    return f'<div class="math display">{_source(tokens[index])}</div>\n'


def _render_open_math(tokens: list[Token], index: int, *_: Any) -> str:
    """Render math that is still being written as its source."""
    return f'<div class="math-open">{escape(tokens[index].content)}</div>\n'


# Task lists


def _mark_tasks(state: StateCore) -> None:
    """Replace [ ] and [x] at the start of a list item by a box."""
    for index, token in enumerate(state.tokens[2:], start=2):
        if token.type != "inline" or state.tokens[index - 2].type != "list_item_open":
            continue
        children = token.children or []
        if not children or children[0].type != "text":
            continue
        if match := TASK.match(children[0].content):
            children[0].content = children[0].content[match.end() :]
            children.insert(0, Token("task_box", "", 0, info=match[1].strip()))
            state.tokens[index - 2].attrSet("class", "task")


def _render_task(tokens: list[Token], index: int, *_: Any) -> str:
    is_done = bool(tokens[index].info)
    return f'<span class="task-box">{"☑" if is_done else "☐"}</span> '


# Footnotes


def _footnote_block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Parse a definition: [^1]: and the paragraph after it."""
    if state.is_code_block(start):
        return False
    first = _line(state, start)
    match = FOOTNOTE.match(first)
    if match is None or first[match.end() : match.end() + 1] != ":":
        return False
    if silent:
        return True
    line = start + 1
    while line < end and not state.isEmpty(line) and not FOOTNOTE.match(_line(state, line)):
        line += 1
    content = state.getLines(start, line, state.blkIndent, False).strip()
    state.line = line
    defined = state.env.setdefault("footnotes", {})
    opening = state.push("footnote_open", "", 1)
    opening.info = match[1]
    opening.map = [start, line]
    token = state.push("inline", "", 0)
    token.content = content[match.end() + 1 :].strip()
    token.map = [start, line]
    token.children = []
    state.push("footnote_close", "", -1)
    if len(defined) < MAX_FOOTNOTES:
        defined.setdefault(match[1], 0)  # its number, once it is referred to
    return True


def _footnote_reference(state: StateInline, silent: bool) -> bool:
    match = FOOTNOTE.match(state.src, state.pos, state.posMax)
    defined: dict[str, int] = state.env.get("footnotes", {})
    if match is None or match[1] not in defined:
        return False
    if not silent:
        is_first = not defined[match[1]]
        defined[match[1]] = defined[match[1]] or max(defined.values()) + 1
        token = state.push("footnote_reference", "", 0)
        token.meta = {"number": defined[match[1]], "is_first": is_first}
    state.pos = match.end()
    return True


def _move_footnotes(state: StateCore) -> None:
    """Move the definitions to the end, in the order of their references."""
    defined: dict[str, int] = state.env.get("footnotes", {})
    if not defined:
        return
    state.env["footnote_key"] = f"{crc32(state.src.encode(errors='replace')):08x}"
    used = {name for name, number in defined.items() if number}
    for name, number in defined.items():  # one without a reference is text, too
        defined[name] = number or max(defined.values()) + 1
    body: list[Token] = []
    notes: list[tuple[int, list[Token]]] = []
    tokens = iter(state.tokens)
    for token in tokens:
        if token.type != "footnote_open":
            body.append(token)
            continue
        note = [token, next(tokens), next(tokens)]
        number = defined.get(token.info, MAX_FOOTNOTES + 1)
        note[0].meta = note[2].meta = {"number": number, "is_used": token.info in used}
        notes.append((number, note))
    ordered = [token for _, note in sorted(notes, key=lambda note: note[0]) for token in note]
    opening = Token("footnotes_open", "", 1)
    closing = Token("footnotes_close", "", -1)
    state.tokens = [*body, opening, *ordered, closing]


def _note_id(env: dict[str, Any], number: int) -> str:
    return f"{env.get('footnote_key', '')}-{number}"


def _render_reference(tokens: list[Token], index: int, _: Any, env: dict[str, Any]) -> str:
    meta = tokens[index].meta
    key = _note_id(env, meta["number"])
    name = f' id="fnref-{key}"' if meta["is_first"] else ""
    return f'<sup><a href="#fn-{key}"{name}>{meta["number"]}</a></sup>'


def _open_footnote(tokens: list[Token], index: int, _: Any, env: dict[str, Any]) -> str:
    return f'<li id="fn-{_note_id(env, tokens[index].meta["number"])}">'


def _close_footnote(tokens: list[Token], index: int, _: Any, env: dict[str, Any]) -> str:
    meta = tokens[index].meta
    back = f' <a href="#fnref-{_note_id(env, meta["number"])}">↩</a>'
    return f"{back if meta['is_used'] else ''}</li>\n"
