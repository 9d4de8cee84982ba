"""Texts with a markup of their own: reStructuredText, Org and LaTeX."""

import re
from collections.abc import Iterator

from . import markdown, plain
from .values import ParsedDocument, SourceFile, WorkLimit

UNDERLINE = re.compile(r"^([=\-~^\"'`#*+.:_<>])\1{2,}\s*$")
GRID_LINE = re.compile(r"^\s*\+(?:[-=]+\+)+\s*$")
SIMPLE_LINE = re.compile(r"^\s*=+(?:\s+=+)+\s*$")
DIRECTIVE = re.compile(r"^\s*\.\.\s+(?:code-block|code|sourcecode|highlight)::\s*(\w*)")
OPTION = re.compile(r"^\s*(?:\.\.\s+(?:_|contents::|toctree::|index::|image::)|:\w[\w-]*:)")
ROLE = re.compile(r":[\w:+.-]{1,40}:`([^`<]{1,500}?)(?:\s*<[^>`]{0,500}>)?`")
ORG_HEADING = re.compile(r"^(\*{1,8})\s++(?:TODO\s++|DONE\s++)?(.*)$")
ORG_TAGS = re.compile(r"(?<!\s)\s+:[\w:@]+:\s*$")
ORG_RULE = re.compile(r"^\s*\|-[-+]*\|?\s*$")
ORG_BEGIN = re.compile(r"^\s*#\+begin_(?:src|example)\s*(\w*)", re.IGNORECASE)
ORG_END = re.compile(r"^\s*#\+end_(?:src|example)", re.IGNORECASE)
ORG_KEYWORD = re.compile(r"^\s*#\+(\w+):\s*(.*)$")
ORG_LINK = re.compile(r"\[\[[^\[\]]{1,1000}\]\[([^\[\]]{1,1000})\]\]")
TEX_LEVELS = {"part": 1, "chapter": 1, "section": 2, "subsection": 3, "subsubsection": 4}
TEX_LEVELS |= {"paragraph": 5, "title": 1}
TEX_HEADING = re.compile(
    r"\\(part|chapter|section|subsection|subsubsection|paragraph|title)\*?(?:\[[^\]]{0,300}\])?"
    r"\{((?:[^{}]|\{[^{}]{0,300}\}){0,500})\}"
)
TEX_COMMENT = re.compile(r"(?<!\\)%.*")
TEX_TABLE = re.compile(r"\\begin\{(tabularx?\*?|longtable)\}")
TEX_RULES = re.compile(r"\\(?:hline|toprule|midrule|bottomrule|endhead|cline\{[^}]{0,20}\})")
TEX_COLUMNS = re.compile(
    r"^\s*(?:\[[^\]]{0,20}\])?(?:\{(?:[^{}]|\{[^{}]{0,100}\}){0,300}\}){1,2}"
)
TEX_ITEM = re.compile(r"\\item\b(?:\[([^\]]{0,300})\])?")
TEX_HIDDEN = re.compile(
    r"\\(?:begin|end|label|ref|cite\w*|usepackage|documentclass|bibliography\w*|includegraphics"
    r"|input|include|pagestyle|vspace\*?|hspace\*?|setlength|newcommand|bibitem)"
    r"(?:\[[^\]]{0,300}\])?\{[^{}]{0,300}\}(?:\[[^\]]{0,300}\])?"
)
TEX_COMMAND = re.compile(r"\\[a-zA-Z]+\*?(?:\[[^\]]{0,300}\])?")
# Each kind ends at the next beginning of one, so that a text is read once.
TEX_MATH = re.compile(
    r"((?<!\\)\$\$?(?:[^$\n]|\n(?!\n)){1,2000}\$\$?"
    r"|\\\[[^\\]*(?:\\(?![\[\]])[^\\]*)*\\\]|\\\([^\\]*(?:\\(?![()])[^\\]*)*\\\)"
    r"|\\begin\{(?:equation|align|gather|multline|eqnarray)\*?\}[^\\]*"
    r"(?:\\(?!begin\b|end\b)[^\\]*)*\\end\{(?:equation|align|gather|multline|eqnarray)\*?\})"
)
TEX_ESCAPES = {"\\&": "&", "\\%": "%", "\\_": "_", "\\$": "$", "\\#": "#", "~": " "}
TEX_ESCAPES |= {
    "\\\\": "\n",
    "``": "“",
    "''": "”",
    "---": "—",
    "--": "–",
    "\\{": "(",
    "\\}": ")",
}


def parse(source: SourceFile) -> ParsedDocument:
    text, notes = plain.read(source)
    source.work.spend(len(text))
    if source.suffix == ".org":
        title, blocks = _org(text)
    elif source.suffix in {".tex", ".ltx"}:
        title, blocks = _tex(text)
    else:
        title = ""
        blocks = list(_rst(text.split("\n"), source.work))
    body = markdown.clean("\n".join(blocks))
    first = next((line.lstrip("# ") for line in body.split("\n") if line.startswith("#")), "")
    return ParsedDocument(title=title or first, parts=markdown.parts(body), notes=notes)


def _rst(lines: list[str], work: WorkLimit) -> Iterator[str]:
    levels: dict[tuple[str, bool], int] = {}
    position = 0
    while position < len(lines):
        line = lines[position]
        following = lines[position + 1] if position + 1 < len(lines) else ""
        third = lines[position + 2] if position + 2 < len(lines) else ""
        position += 1
        if UNDERLINE.match(line) and following.strip() and UNDERLINE.match(third):
            level = levels.setdefault((third[0], True), len(levels) + 1)
            yield f"\n{markdown.heading(level, following)}\n"
            position += 2
        elif line.strip() and not line[0].isspace() and UNDERLINE.match(following):
            level = levels.setdefault((following[0], False), len(levels) + 1)
            yield f"\n{markdown.heading(level, _roles(line))}\n"
            position += 1
        elif GRID_LINE.match(line):
            start = position - 1
            while position < len(lines) and lines[position].lstrip()[:1] in {"|", "+"}:
                position += 1
            yield f"\n{markdown.table(_grid_rows(lines[start:position]))}\n"
        elif SIMPLE_LINE.match(line):
            start = position
            while position < len(lines) and lines[position].strip():
                position += 1
            columns = [match.start() for match in re.finditer(r"=+", line)]
            columns = columns[: markdown.MAX_COLUMNS]
            work.spend((position - start) * len(columns))
            yield f"\n{markdown.table(_simple_rows(columns, lines[start:position]))}\n"
        elif match := DIRECTIVE.match(line):
            start = position
            while position < len(lines) and (
                not lines[position].strip() or lines[position][:1].isspace()
            ):
                position += 1
            code = [text for text in lines[start:position] if not OPTION.match(text)]
            yield f"\n{markdown.fenced(_dedented(code), match[1])}\n"
        elif not OPTION.match(line) and not UNDERLINE.match(line):
            yield _roles(line)


def _roles(text: str) -> str:
    return ROLE.sub(r"\1", text).replace("``", "`")


def _dedented(lines: list[str]) -> str:
    indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return "\n".join(line[indent:] for line in lines).strip("\n")


def _grid_rows(lines: list[str]) -> list[list[str]]:
    rows: list[list[str]] = []
    is_new = True
    for line in lines:
        text = line.strip()
        if text.startswith("+"):
            is_new = True
            continue
        cells = [cell.strip() for cell in text.strip("|").split("|")]
        if is_new or len(cells) != len(rows[-1]):
            rows.append(cells)
        else:
            rows[-1] = [f"{a} {b}".strip() for a, b in zip(rows[-1], cells, strict=True)]
        is_new = False
    return rows


def _simple_rows(starts: list[int], lines: list[str]) -> list[list[str]]:
    ends = [*starts[1:], None]
    rows: list[list[str]] = []
    for line in lines:
        if SIMPLE_LINE.match(line) or UNDERLINE.match(line.replace(" ", "")):
            continue
        cells = [line[start:end].strip() for start, end in zip(starts, ends, strict=True)]
        if rows and not cells[0]:
            rows[-1] = [f"{a} {b}".strip() for a, b in zip(rows[-1], cells, strict=True)]
        else:
            rows.append(cells)
    return rows


def _org(text: str) -> tuple[str, list[str]]:
    title = ""
    blocks: list[str] = []
    table: list[list[str]] = []
    is_code = False
    for line in text.split("\n"):
        if not is_code and line.lstrip().startswith("|"):
            if not ORG_RULE.match(line):
                table.append([cell.strip() for cell in line.strip().strip("|").split("|")])
            continue
        if table:
            blocks.append(f"\n{markdown.table(table)}\n")
            table = []
        if match := ORG_BEGIN.match(line):
            is_code = True
            blocks.append(f"\n```{match[1]}")
        elif ORG_END.match(line):
            is_code = False
            blocks.append("```\n")
        elif is_code:
            blocks.append(line)
        elif match := ORG_HEADING.match(line):
            heading = _org_text(ORG_TAGS.sub("", match[2]))
            blocks.append(f"\n{markdown.heading(len(match[1]), heading)}\n")
        elif match := ORG_KEYWORD.match(line):
            title = match[2] if match[1].lower() == "title" else title
            blocks.append(match[2] if match[1].lower() == "caption" else "")
        elif not line.strip().startswith((":PROPERTIES:", ":END:", "# ")):
            blocks.append(_org_text(line))
    if table:
        blocks.append(markdown.table(table))
    if is_code:
        blocks.append("```")
    return title, blocks


def _org_text(text: str) -> str:
    return ORG_LINK.sub(r"\1", text)


def _tex(text: str) -> tuple[str, list[str]]:
    text = TEX_COMMENT.sub("", text.replace("\x00", ""))  # a mark for tables, below
    _before, document, body = text.partition("\\begin{document}")
    titles = [match[2] for match in TEX_HEADING.finditer(text) if match[1] == "title"]
    body = body if document else text
    tables: list[str] = []

    # What is before the first table, then the name of each and what follows its beginning.
    pieces = TEX_TABLE.split(body)
    body = pieces[0]
    for name, content in zip(pieces[1::2], pieces[2::2], strict=True):
        inside, _end, after = content.partition(f"\\end{{{name}}}")
        inside = TEX_RULES.sub("", TEX_COLUMNS.sub("", inside))
        rows = [
            [_tex_text(cell).strip() for cell in re.split(r"(?<!\\)&", row)]
            for row in inside.split("\\\\")
        ]
        body += f"\n\n\x00{len(tables)}\x00\n\n{after}"
        tables.append(markdown.table(rows))
    body = TEX_HEADING.sub(
        lambda match: f"\n\n{'#' * TEX_LEVELS[match[1]]} {_tex_text(match[2]).strip()}\n\n",
        body,
    )
    body = TEX_ITEM.sub(lambda match: f"\n- {match[1] or ''} ", body)
    body = _tex_text(body)
    body = re.sub("\x00(\\d+)\x00", lambda match: tables[int(match[1])], body)
    return _tex_text(titles[0]).strip() if titles else "", [
        line.strip() for line in body.split("\n")
    ]


def _tex_text(text: str) -> str:
    """Return text without commands; formulas keep theirs."""
    pieces = TEX_MATH.split(text)
    for number in range(0, len(pieces), 2):
        piece = TEX_HIDDEN.sub("", pieces[number])
        for escape, letter in TEX_ESCAPES.items():
            piece = piece.replace(escape, letter)
        pieces[number] = TEX_COMMAND.sub("", piece).replace("{", "").replace("}", "")
    return "".join(pieces)
