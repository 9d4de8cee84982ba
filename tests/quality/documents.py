"""Text and table rows of real files, beside what pandoc, pdftotext and markitdown read."""

import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from unittest.mock import patch

from django.apps import apps

if not apps.ready:
    import os

    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    django.setup()

from selectolax.lexbor import LexborHTMLParser

from agents.knowledge.parsing.parsers import SourceFile, UnreadableDocument, ocr, parse

TITLE = "Documents"
INTRO = """\
How much of their text and of their table rows is read from files of Debian packages (the list
is `tests/quality/documents.tsv`), beside pandoc, pdftotext and markitdown. The expected words
of a file are those that two of the others agree on, or all of the only one that reads it; rows
are those of the other tool that writes most of them, and count if a row here has the same
words. Scans, DOC, PPT and ODS are left out, because none of the others reads them; so are
markitdown's copies of source texts, and its rows of PDFs, among which lines of prose are rows.
The others read web pages without what the pages themselves call navigation, menus, search,
headers and footers, which isn't read here.
"""
LISTED = Path(__file__).with_name("documents.tsv")
FOLDER = Path(__file__).resolve().parents[2] / "var" / "quality"
CONVERTER = Path(__file__).parent / "converters" / "markitdown_files.py"
PANDOC_KINDS = {"docx", "odt", "html", "epub", "rst", "org", "tex", "ipynb", "rtf"}
PANDOC_READERS = {"tex": "latex", "html": "html", "ipynb": "ipynb"}
WORD = re.compile(r"\w+")
ROW = re.compile(r"<tr\b.*?</tr>", re.DOTALL | re.IGNORECASE)
CELL = re.compile(r"<t[dh]\b.*?</t[dh]>", re.DOTALL | re.IGNORECASE)
UNSAID = re.compile(r"<(script|style|head)\b.*?</\1>|<[^>]*>", re.DOTALL | re.IGNORECASE)
INLINE = re.compile(r"</?(?:sub|sup|em|strong|span|a|code|u|b|i)\b[^>]*>", re.IGNORECASE)
MARKDOWN_ROW = re.compile(r"^\s*\|(.*)\|\s*$", re.MULTILINE)
COPIED_KINDS = {".tex", ".rst", ".org", ".rtf"}  # by markitdown, as they are
SHEETS = {".xlsx", ".xls"}
DECIMALS = re.compile(r"(?<![\w.])-?\d+\.\d+(?:e[-+]?\d+)?\b", re.IGNORECASE)
NAVIGATION = "nav, footer, noscript, form, [role=navigation], [role=search], [role=dialog]"
NAVIGATION_NAMES = re.compile(
    r"(?:nav|navigation|navbar|topnav|subnav|bottomnav|menu|header|footer|sidebar|search|toc"
    r"|sphinxsidebar|sphinxsidebarwrapper|related|breadcrumbs?|skip)",
    re.IGNORECASE,
)
NAMED_PARTS = "div[class], div[id], ul[class], ul[id], table[class], p[class]"
LOW = 0.97
SECONDS = 60

Row = tuple[str, ...]


def measure() -> str:
    """Return a table with a line per kind of file."""
    files = _files()
    navigation = Counter[str]()
    others = FOLDER / "others"
    shutil.rmtree(others, ignore_errors=True)
    others.mkdir()
    for path in files:
        if path.suffix == ".html":
            navigation[path.name] = _copy_content(path, others / path.name)
        else:
            (others / path.name).symlink_to(path)
    read = {
        "Ashiato": {path.name: _ours(path) for path in files},
        "pandoc": {path.name: _pandoc(others / path.name) for path in files},
        "pdftotext": {path.name: _pdftotext(path) for path in files},
        "markitdown": _markitdown(files, others),
    }
    lower: list[str] = []
    recalls: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    rows: dict[str, Counter[str]] = defaultdict(Counter)
    unread: Counter[str] = Counter()
    for path in files:
        kind = path.suffix[1:]
        expected = _expected_words([read[tool][path.name] for tool in list(read)[1:]])
        if expected.total() < 20:
            continue
        unread[kind] += not read["Ashiato"][path.name]
        for tool, texts in read.items():
            words = Counter(WORD.findall(_plain(texts[path.name]).lower()))
            common = sum(min(count, words[word]) for word, count in expected.items())
            recalls[kind][tool].append(common / expected.total())
            if tool == "Ashiato" and common < LOW * expected.total():
                lower.append(f"{path.name} ({common / expected.total():.0%})")
        tools = () if kind == "pdf" else ("pandoc", "markitdown")
        tables = [Counter(), *(_rows(read[tool][path.name]) for tool in tools)]
        wanted = max(tables, key=lambda each: each.total())
        ours = _rows(read["Ashiato"][path.name])
        rows[kind]["wanted"] += wanted.total()
        rows[kind]["same"] += sum(min(count, ours[row]) for row, count in wanted.items())
        rows[kind]["ours"] += ours.total()
    lines = [
        "| kind | files | not read | text: Ashiato | pandoc | pdftotext | markitdown "
        "| rows of the best other | of these the same here | all rows here |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    totals: dict[str, list[float]] = defaultdict(list)
    for kind, by_tool in sorted(recalls.items()):
        cells = [kind, f"{len(by_tool['Ashiato'])}", f"{unread[kind]}"]
        for tool in read:
            totals[tool] += by_tool[tool]
            cells.append(_share(by_tool[tool]) if any(by_tool[tool]) else "–")
        wanted_rows = rows[kind]["wanted"]
        same = f"{rows[kind]['same'] / wanted_rows:.1%}" if wanted_rows else "–"
        cells += [f"{wanted_rows:,}", same, f"{rows[kind]['ours']:,}"]
        lines.append(f"| {' | '.join(cells)} |")
    share = _share(totals["Ashiato"])
    count = len(totals["Ashiato"])
    wanted_rows = sum(counts["wanted"] for counts in rows.values())
    same_rows = sum(counts["same"] for counts in rows.values())
    return "\n".join(lines) + (
        f"\n\nOver all {count} files, {share} of the expected words and "
        f"{same_rows / wanted_rows:.1%} of the rows are read. {navigation.total():,} words of "
        f"{len(navigation)} web pages are navigation. Below {LOW:.0%} of the words: "
        f"{', '.join(lower) or 'none'}."
    )


def _share(values: list[float]) -> str:
    return f"{sum(values) / len(values):.1%}"


def _files() -> list[Path]:
    """Download the packages, once, and return their files."""
    folder = FOLDER / "files"
    folder.mkdir(parents=True, exist_ok=True)
    for line in LISTED.read_text().splitlines():
        package, name = line.split("\t")
        target = folder / f"{package}__{name}"
        if target.exists():
            continue
        with unpacked(package) as files:
            for path in files.rglob(f"{name}*"):
                if path.name == f"{name}.gz":
                    subprocess.run(["gunzip", str(path)], check=True)
                    path = path.with_suffix("")
                if path.name == name and path.is_file():
                    shutil.copy(path, target)
                    break
    return sorted(folder.iterdir())


@contextmanager
def unpacked(package: str) -> Iterator[Path]:
    """Download a Debian package and yield the folder of its files."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["apt-get", "download", "-q", package], cwd=folder, check=False)
        files = Path(folder) / "files"
        files.mkdir()
        for archive in Path(folder).glob("*.deb"):
            subprocess.run(["dpkg", "-x", str(archive), str(files)], check=True)
        yield files


def _ours(path: Path) -> str:
    try:
        with patch.object(ocr, "is_available", return_value=False):
            document = parse(SourceFile(data=path.read_bytes(), name=path.name))
    except UnreadableDocument as error:
        print(f"{path.name}: {error}", file=sys.stderr)
        return ""
    text = "\n\n".join(f"{part.label}\n\n{part.text}" for part in document.parts)
    return _with_short_numbers(text) if path.suffix in SHEETS else text


def _pandoc(path: Path) -> str:
    kind = path.suffix[1:]
    if kind not in PANDOC_KINDS:
        return ""
    reader = PANDOC_READERS.get(kind, kind)
    return _output(["pandoc", "-f", reader, "-t", "html", "--wrap=none", str(path)])


def _pdftotext(path: Path) -> str:
    return _output(["pdftotext", "-layout", str(path), "-"]) if path.suffix == ".pdf" else ""


def _output(command: list[str]) -> str:
    try:
        ended = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return ""
    return ended.stdout.decode(errors="replace")


def _copy_content(path: Path, target: Path) -> int:
    """Write a page without its navigation, and return how many words that has."""
    tree = LexborHTMLParser(path.read_bytes().decode(errors="replace"))
    word_count = len(WORD.findall(tree.body.text(separator=" ")))
    for part in tree.css(NAMED_PARTS):
        names = f"{part.attributes.get('class')} {part.attributes.get('id')}"
        words = re.findall(r"[A-Z]?[a-z]+", names)
        if any(map(NAVIGATION_NAMES.fullmatch, words)) and not part.css_first("h1, h2, h3"):
            part.attrs["role"] = "navigation"
    while part := tree.css_first(NAVIGATION):
        part.decompose()
    target.write_text(tree.html)
    return word_count - len(WORD.findall(tree.body.text(separator=" ")))


def _markitdown(files: list[Path], folder: Path) -> dict[str, str]:
    """Convert all files in one process, because importing it takes seconds."""
    environment = FOLDER / "venv"
    if not environment.exists():
        subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
        package = "markitdown[pdf,docx,pptx,xlsx,xls,outlook]"
        subprocess.run([f"{environment}/bin/pip", "install", "-q", package], check=True)
    results = FOLDER / "markitdown"
    results.mkdir(exist_ok=True)
    arguments = [str(CONVERTER), str(folder), str(results)]
    subprocess.run([f"{environment}/bin/python", *arguments], check=False, capture_output=True)
    texts: dict[str, str] = {}
    for path in files:
        result = results / f"{path.name}.md"
        is_read = result.exists() and path.suffix not in COPIED_KINDS
        text = result.read_text() if is_read else ""
        texts[path.name] = _with_short_numbers(text) if path.suffix in SHEETS else text
    return texts


def _with_short_numbers(text: str) -> str:
    """Return a sheet's text with 6 decimals at most, and without pandas' words for nothing."""
    text = re.sub(r"\b(?:NaN|NA|Unnamed: \d+)\b", "", text)
    return DECIMALS.sub(lambda match: f"{float(match[0]):.6f}".rstrip("0").rstrip("."), text)


def _expected_words(texts: list[str]) -> Counter[str]:
    """Return the words that two of the tools agree on, or those of the only one."""
    counts = [Counter(WORD.findall(_plain(text).lower())) for text in texts if text.strip()]
    if len(counts) < 2:
        return counts[0] if counts else Counter()
    agreed = counts[0] & counts[1]
    for number, first in enumerate(counts):
        for second in counts[number + 1 :]:
            agreed |= first & second
    return agreed


def _plain(text: str) -> str:
    """Return text without tags, links and pictures, so that only words are compared."""
    if text.lstrip().startswith("<"):  # as pandoc writes; elsewhere it may be code
        text = unescape(UNSAID.sub(" ", INLINE.sub("", text)))
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"\\([_*#|\[\]])", r"\1", text)


def _rows(text: str) -> Counter[Row]:
    """Return the rows with at least two filled cells, each by its words."""
    rows: Counter[Row] = Counter()
    for cells in _cells(text):
        words = [" ".join(WORD.findall(_plain(cell).lower())) for cell in cells]
        filled = tuple(word for word in words if word)
        if len(filled) > 1:
            rows[filled] += 1
    return rows


def _cells(text: str) -> Iterator[list[str]]:
    for row in ROW.findall(text):
        yield CELL.findall(row)
    for match in MARKDOWN_ROW.finditer(text):
        yield re.split(r"(?<!\\)\|", match[1])
