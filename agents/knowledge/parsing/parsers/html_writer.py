"""Writes the elements of a page as Markdown."""

import re
from collections.abc import Iterator

from . import markdown
from .html_content import Node, words_of

HEADINGS = {f"h{level}": level for level in range(1, 7)}
BLOCKS = words_of(
    "address article aside blockquote body center dd details dialog dir div dl dt fieldset "
    "figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main nav "
    "ol p pre section summary table tbody td tfoot th thead tr ul caption"
)
SKIPPED = frozenset({"-comment", "input", "head", "title", "rt", "rp", "button", "col"})
MARKS = {"¶", "#", "§", "🔗", ""}
MAX_DEPTH = 300
MAX_SPAN = 50
MAX_CELL_CHARS = 200  # of a table with a single row; longer ones are columns of a page
MAX_ALT_CHARS = 500
LINE_BREAK = "\v"  # of the page's author, unlike line ends in its source
# Between Japanese lines that are only wrapped in the source, a space would be wrong.
WRAPPED = re.compile(rf"(?<=[{markdown.WIDE}])[ \t]*\n\s*(?=[{markdown.WIDE}])")


def write(root: Node) -> str:
    """Return an element's content as Markdown."""
    return markdown.join(_blocks(root, 0))


def inline_text(node: Node) -> str:
    """Return an element's text on one line."""
    return _finish("".join(_inline(node, 0))).replace("\n", " ")


def plain_text(node: Node) -> str:
    """Return an element's text without Markdown, as a title."""
    return markdown.collapse(node.text() or "").strip(" ¶#🔗")


def _blocks(parent: Node, depth: int) -> Iterator[str]:
    """Yield the blocks in an element; text between block elements is a paragraph."""
    if depth > MAX_DEPTH:
        yield markdown.escape(markdown.collapse(parent.text() or ""))
        return
    loose: list[str] = []
    for node in _children(parent):
        if node.tag in BLOCKS or _contains_block(node):
            yield markdown.escape(_finish("".join(loose)))
            loose = []
            yield from _block(node, depth + 1)
        else:
            loose += _inline_node(node, depth + 1)
    yield markdown.escape(_finish("".join(loose)))


def _block(node: Node, depth: int) -> Iterator[str]:
    tag = node.tag
    if tag in HEADINGS:
        if text := _heading_text(node):
            yield markdown.heading(HEADINGS[tag], text)
    elif tag == "pre":
        text = markdown.clean(node.text() or "").rstrip()
        fence = "~~~" if "```" in text else "```"
        yield f"{fence}\n{text}\n{fence}" if text.strip() else ""
    elif tag in {"ul", "ol", "dir"}:
        yield "\n".join(_items(node, depth))
    elif tag == "table":
        yield from _table(node, depth)
    elif tag == "blockquote":
        yield "\n".join(f"> {line}" for line in markdown.join(_blocks(node, depth)).split("\n"))
    elif tag == "dl":
        yield from _definitions(node, depth)
    elif tag == "hr":
        return
    elif tag in {"summary", "legend", "figcaption"}:
        yield inline_text(node)
    else:
        yield from _blocks(node, depth)


def _heading_text(node: Node) -> str:
    for link in list(node.css("a")):
        if (link.text() or "").strip() in MARKS:
            link.decompose()
    return inline_text(node).strip(" ¶#🔗")


def _items(node: Node, depth: int) -> Iterator[str]:
    number = 0
    for child in _children(node):
        if child.tag == "li":
            number += 1
            mark = f"{number}." if node.tag == "ol" else "-"
        else:  # invalid, but it happens: content without an item of its own
            mark = "-"
        blocks = [block for block in _content(child, depth + 1) if block.strip()]
        if not blocks:
            continue
        text = blocks[0]
        for block in blocks[1:]:
            # Lists follow at once, others after a line.
            text += f"\n{block}" if re.match(r"(?:-|\d+\.) ", block) else f"\n\n{block}"
        indent = " " * (len(mark) + 1)
        yield re.sub(r"\n(?=[^\n])", f"\n{indent}", f"{mark} {text.strip()}")


def _content(node: Node, depth: int) -> Iterator[str]:
    """Yield the blocks of an item, or of what is there instead of one."""
    if node.tag == "li":
        yield from _blocks(node, depth)
    elif node.tag in BLOCKS or _contains_block(node):
        yield from _block(node, depth)
    else:
        yield markdown.escape(_finish("".join(_inline_node(node, depth))))


def _definitions(node: Node, depth: int) -> Iterator[str]:
    for child in _children(node):
        if child.tag == "dt":
            if text := _heading_text(child):
                yield f"**{text}**"
        elif child.tag == "div":
            yield from _definitions(child, depth + 1)
        elif child.tag == "dd":
            yield from _blocks(child, depth + 1)
        else:
            yield from _content(child, depth + 1)


def _table(node: Node, depth: int) -> Iterator[str]:
    """Yield a table, or the content of one that is only there for the layout."""
    if caption := node.css_first("caption"):
        yield inline_text(caption)
    if _is_layout(node):
        for cell in _cells(node):
            yield from _blocks(cell, depth + 1)
        return
    # A cell over several rows is repeated, so that each row is complete.
    grid: list[list[str]] = []
    pending: dict[int, tuple[int, str]] = {}  # by column: rows left, and the text
    for row in node.css("tr"):
        cells: list[str] = []
        for cell in _children(row):
            if cell.tag not in {"td", "th"}:
                continue
            _fill(cells, pending)
            text = inline_text(cell)
            rows = _span(cell, "rowspan")
            for column in range(_span(cell, "colspan")):
                if rows > 1:
                    pending[len(cells)] = (rows - 1, text if column == 0 else "")
                cells.append(text if column == 0 else "")
        _fill(cells, pending)
        grid.append(cells)
    yield markdown.table(grid)


def _is_layout(node: Node) -> bool:
    if node.attributes.get("role") == "presentation" or node.css_first("table table"):
        return True
    if node.css_first("h1, h2, h3, pre"):
        return True
    rows = [[len(inline_text(cell)) for cell in _cells(row)] for row in node.css("tr")]
    # Boxes of notes and the like have one column, perhaps beside a picture.
    if max((len(row) - row.count(0) for row in rows), default=0) < 2:
        return True
    return len(rows) < 2 and not node.css_first("th") and max(rows[0]) > MAX_CELL_CHARS


def _cells(node: Node) -> Iterator[Node]:
    """Yield the cells of this table, not of those in it; line numbers of code are left out."""
    for child in _children(node):
        if child.tag in {"td", "th"}:
            if "linenos" not in (child.attributes.get("class") or ""):
                yield child
        elif child.tag in {"tbody", "thead", "tfoot", "tr"}:
            yield from _cells(child)


def _fill(cells: list[str], pending: dict[int, tuple[int, str]]) -> None:
    """Add the cells of rows above that reach into this row."""
    while len(cells) in pending:
        rows, text = pending.pop(len(cells))
        if rows > 1:
            pending[len(cells)] = (rows - 1, text)
        cells.append(text)


def _span(cell: Node, name: str) -> int:
    value = (cell.attributes.get(name) or "").strip()
    is_number = value.isascii() and value.isdigit()
    return min(max(int(value[:6]), 1), MAX_SPAN) if is_number else 1


def _inline(node: Node, depth: int) -> Iterator[str]:
    for child in _children(node):
        yield from _inline_node(child, depth + 1)


def _inline_node(node: Node, depth: int) -> Iterator[str]:
    tag = node.tag
    if tag == "-text":
        yield node.text_content or ""
    elif tag == "br":
        yield LINE_BREAK
    elif tag == "img":
        # A single word is a name, such as that of an icon.
        alternative = markdown.collapse(node.attributes.get("alt") or "")
        yield alternative[:MAX_ALT_CHARS] if " " in alternative else ""
    elif tag in SKIPPED or (tag == "a" and (node.text() or "").strip() in {"¶", "#"}):
        return
    elif depth > MAX_DEPTH:
        yield node.text() or ""
    elif tag in {"code", "kbd", "samp", "tt"} and not node.css_first("br"):
        text = markdown.collapse(node.text() or "")
        yield f"`{text}`" if text and "`" not in text else text
    else:
        is_block = tag in BLOCKS
        yield " " if is_block else ""
        yield from _inline(node, depth)
        yield " " if is_block else ""


def _finish(text: str) -> str:
    """Collapse white space, and turn breaks into line ends."""
    lines = WRAPPED.sub("", text).replace("\n", " ").split(LINE_BREAK)
    return "\n".join(map(markdown.collapse, lines)).strip()


def _contains_block(node: Node) -> bool:
    """Whether an inline element has block elements in it, such as a link around a card."""
    if node.tag.startswith("-") or node.child is None:
        return False
    return any(child.tag in BLOCKS for child in node.traverse(include_text=False))


def _children(node: Node) -> Iterator[Node]:
    child = node.child
    while child is not None:
        following = child.next
        yield child
        child = following
