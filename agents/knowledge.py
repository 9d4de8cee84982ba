"""Documents are read, split into passages, and found again.

On SQLite a full-text index answers. It cannot tell Japanese words apart, so it is given what
it can: Latin words as they are, and Japanese as overlapping pairs of characters.
"""

import codecs
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from hashlib import sha256
from itertools import pairwise
from operator import add as plus
from pathlib import Path
from typing import Any, Literal

from channels.db import database_sync_to_async
from django.conf import settings
from django.db import connection, transaction
from django.db.models import Case, Q, When
from django.db.models.signals import post_delete
from django.dispatch import receiver
from markdown_it import MarkdownIt

from agents.engine import faults
from agents.models import Chunk, Document
from agents.tools.search import Passage

MAX_BYTES = 5_000_000
MAX_TERMS = 64
CHUNK_SIZE = 1_200
SUFFIXES = (".md", ".markdown", ".txt")
OWN_LANGUAGE = 1.5  # how much more a passage in the language of the question is worth

MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
PIECE = re.compile(
    rf"(?s:.{{1,{CHUNK_SIZE}}})(?:(?<=[\n。！？])|(?<=[.!?]\s)|\Z)|(?s:.{{1,{CHUNK_SIZE}}})"
)

KANJI = "々〆㐀-䶿一-鿿\uf900-\ufaff\U00020000-\U0003ffff"
WIDE = f"゠-ヿㇰ-ㇿ{KANJI}가-힣"
CJK = f"ぁ-ゟ{WIDE}"
KANA = re.compile("[ぁ-ゟァ-ヺー]")
HIRAGANA = re.compile("[ぁ-ゟ]+")
RUN = re.compile(f"[{CJK}]+")
WORD = re.compile(rf"[ぁ-ゟ]+|[{WIDE}]+|[^\W_{CJK}](?:[^\W{CJK}]*[^\W_{CJK}])?")

SMALL_WORDS = """
a about an and any are as at be been but by can could d did do does don for from get had has
have how i if in into is it its ll m may me my no not of on or our re s shall should so t tell
than that the their them then there these they this those to us ve was we were what when where
which who whom whose why will with would you your 何 方法 教 下 とは それは これは ですか
"""
STOP_WORDS = frozenset(SMALL_WORDS.split())

Outcome = Literal["added", "updated", "unchanged"]


class Unreadable(ValueError):
    """This cannot be read as a document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingested:
    """What became of a document that was handed in."""

    document: Document
    outcome: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A piece of a document and the headings that it stands under."""

    heading: str
    text: str


def ingest(path: Path) -> Ingested:
    """Take in a Markdown or text file, again where it changed."""
    path = path.resolve()
    inside = path.is_relative_to(settings.BASE_DIR)
    source = path.relative_to(settings.BASE_DIR) if inside else path
    return add(read(path), source=source.as_posix(), title=path.stem)


def add(text: str, *, source: str, title: str) -> Ingested:
    """Take in a text; `title` is for one that has no main heading."""
    digest = sha256(text.encode()).hexdigest()
    if known := Document.objects.filter(source=source, digest=digest).first():
        return Ingested(document=known, outcome="unchanged")

    title, sections = split(text, title=title)
    if not sections:
        raise Unreadable(f"There is no text in {source!r}.")
    fields = {"title": title[:200], "digest": digest, "language": language_of(text)}
    return _keep(source, fields, sections)


def search(query: str, top_k: int = 5) -> list[Passage]:
    """The passages that say most about the query, best first."""
    terms = terms_of(query)
    if not terms or top_k < 1:
        return []
    look_up = _look_up_index if has_index() else _look_up_rows
    found = look_up(terms, "ja" if RUN.search(_plain(query)) else "en", top_k * 4)
    return found[:top_k]


asearch = database_sync_to_async(search)


def has_index() -> bool:
    return connection.vendor == "sqlite"


def files_in(folder: Path) -> list[Path]:
    """The documents in a folder and below it."""
    paths = folder.rglob("*")
    return sorted(path for path in paths if path.suffix.lower() in SUFFIXES and path.is_file())


def read(path: Path) -> str:
    """The text of a file, whichever of the usual encodings it was saved in."""
    if path.is_dir():
        raise Unreadable(f"There are no Markdown or text files in {str(path)!r}.")
    try:
        if path.stat().st_size > MAX_BYTES:
            raise Unreadable(f"{str(path)!r} is larger than {MAX_BYTES // 1_000_000} MB.")
        text = decode(path.read_bytes())
    except OSError as error:
        raise Unreadable(f"{str(path)!r} cannot be read: {error.strerror}.") from error
    if text is None or CONTROL.search(text):
        raise Unreadable(f"{str(path)!r} is not a text file.")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def decode(data: bytes) -> str | None:
    """Bytes as text, or None where they are text in no encoding known here."""
    for mark, encoding in MARKS.items():
        if data.startswith(mark):
            return _decode_as(encoding, data)
    if (text := _decode_as("utf-8", data)) is not None:
        return text
    # Hardly any Shift_JIS is also valid EUC-JP, so that comes first. Western text has no kana,
    # and accents only here and there.
    is_dense = sum(byte > 127 for byte in data) * 3 > len(data)
    readings = (_decode_as(encoding, data) for encoding in ("euc_jp", "cp932"))
    japanese = (text for text in readings if text and (is_dense or KANA.search(text)))
    return next(japanese, None) or _decode_as("cp1252", data)


def language_of(text: str) -> str:
    words = re.findall(r"[a-z]+", text.lower())
    if len(KANA.findall(text)) * 5 > len(text) - sum(map(len, words)):
        return Document.Language.JAPANESE
    if sum(word in STOP_WORDS for word in words) * 6 > len(words):
        return Document.Language.ENGLISH
    return ""


def split(text: str, *, title: str) -> tuple[str, list[Section]]:
    """The title, and the text in passages that end where headings and paragraphs do."""
    blocks = list(_blocks(FRONT_MATTER.sub("", text)))
    title = next((block for level, block in blocks if level == 1), title)
    path: dict[int, str] = {}
    sections: list[tuple[str, list[str]]] = [("", [])]
    for level, block in blocks:
        if level:
            path = {key: above for key, above in path.items() if key < level} | {level: block}
            names = [name for key, name in path.items() if (key, name) != (1, title)]
            sections.append((" › ".join(names)[:500], []))
        else:
            sections[-1][1].append(block)
    return title, [
        Section(heading=heading, text=text)
        for heading, paragraphs in sections
        for text in _packed(paragraphs)
    ]


def terms_of(query: str) -> list[str]:
    """What to look for. Hiragana is mostly grammar, and counts where there is nothing else."""
    words = [word for word in dict.fromkeys(_words(query)) if word not in STOP_WORDS]
    telling = [word for word in words if not HIRAGANA.match(word)]
    return (telling or words)[:MAX_TERMS]


def index_terms(text: str) -> str:
    """The text in the words that the index tells apart."""
    return RUN.sub(lambda run: f" {_pairs(run[0])} {run[0][-1]} ", _plain(text))


def _decode_as(encoding: str, data: bytes) -> str | None:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        return None


def _blocks(text: str) -> Iterator[tuple[int, str]]:
    """Headings with their level, and everything between them with level 0."""
    lines = text.split("\n")
    tokens = MarkdownIt().parse(text)
    starts = [(at, token.map[0]) for at, token in enumerate(tokens) if _is_block(token)]
    for (at, start), (_, end) in pairwise([*starts, (len(tokens), len(lines))]):
        if tokens[at].type == "heading_open":
            yield int(tokens[at].tag[1]), _inline_text(tokens[at + 1])
        else:
            yield 0, "\n".join(lines[start:end]).strip()


def _is_block(token: Any) -> bool:
    return token.level == 0 and token.map is not None


def _inline_text(token: Any) -> str:
    return "".join(child.content or " " for child in token.children).strip()


def _packed(paragraphs: Iterable[str]) -> Iterator[str]:
    passage = ""
    for piece in (piece for text in paragraphs for piece in PIECE.findall(text)):
        if passage and len(passage) + len(piece) > CHUNK_SIZE:
            yield passage
            passage = ""
        passage = f"{passage}\n\n{piece.strip()}".strip()
    if passage:
        yield passage


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _words(text: str) -> Iterator[str]:
    for word in WORD.findall(_plain(text)):
        if RUN.match(word) and not HIRAGANA.match(word):
            yield from _pairs(word).split() or word
        else:
            yield word


def _pairs(run: str) -> str:
    return " ".join(first + second for first, second in pairwise(run))


@transaction.atomic
def _keep(source: str, fields: dict[str, str], sections: list[Section]) -> Ingested:
    document, is_new = Document.objects.update_or_create(source=source, defaults=fields)
    document.chunks.all().delete()
    chunks = Chunk.objects.bulk_create(
        Chunk(document=document, ordinal=at, heading=section.heading, text=section.text)
        for at, section in enumerate(sections, start=1)
    )
    faults.point("P15")
    if has_index():
        _index(document, chunks)
    return Ingested(document=document, outcome="added" if is_new else "updated")


def _index(document: Document, chunks: list[Chunk]) -> None:
    title = index_terms(document.title)
    rows = [(c.pk, title, index_terms(c.heading), index_terms(c.text)) for c in chunks]
    with connection.cursor() as cursor:
        # REPLACE, because `manage.py flush` gives ids out again and leaves the index alone.
        cursor.executemany(
            "INSERT OR REPLACE INTO agents_chunk_index (rowid, title, heading, terms)"
            " VALUES (%s, %s, %s, %s)",
            rows,
        )


@receiver(post_delete, sender=Chunk)
def _forget(instance: Chunk, **kwargs: Any) -> None:
    if has_index():
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM agents_chunk_index WHERE rowid = %s", [instance.pk])


def _look_up_index(terms: list[str], language: str, limit: int) -> list[Passage]:
    """Passages with every term come before those with some."""
    phrases = [_phrase(term) for term in terms]
    every = _matches(" AND ".join(phrases), limit)
    some = _matches(" OR ".join(phrases), limit)
    chunks = Chunk.objects.select_related("document").in_bulk([*every, *some]).values()
    best = {chunk: every[chunk.pk] for chunk in chunks if chunk.pk in every}
    rest = {chunk: some[chunk.pk] for chunk in chunks if chunk.pk not in every}
    return [*_ranked(best, language), *_ranked(rest, language)]


def _phrase(term: str) -> str:
    """In quotes no term is an operator; a character alone is found where it begins a pair."""
    if RUN.match(term):
        return f'"{_pairs(term)}"' if len(term) > 1 else f'"{term}" *'
    return f'"{term}"'


def _matches(expression: str, limit: int) -> dict[int, float]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT agents_chunk.id, -rank FROM agents_chunk_index"
            " JOIN agents_chunk ON agents_chunk.id = agents_chunk_index.rowid"
            " WHERE agents_chunk_index MATCH %s AND rank MATCH 'bm25(2.0, 8.0, 1.0)'"
            " ORDER BY rank LIMIT %s",
            [expression, limit],
        )
        return dict(cursor.fetchall())


def _look_up_rows(terms: list[str], language: str, limit: int) -> list[Passage]:
    """For databases without the index: the more terms a passage has, the better."""
    counts = (Case(When(_mentions(term), then=1), default=0) for term in terms)
    chunks = Chunk.objects.select_related("document").annotate(hits=reduce(plus, counts))
    best = chunks.filter(hits__gt=0).order_by("-hits", "pk")[:limit]
    return _ranked({chunk: float(chunk.hits) for chunk in best}, language)


def _mentions(term: str) -> Q:
    return (
        Q(text__icontains=term)
        | Q(heading__icontains=term)
        | Q(document__title__icontains=term)
    )


def _ranked(scores: dict[Chunk, float], language: str) -> list[Passage]:
    found = [
        Passage(
            document=chunk.document.title,
            source=chunk.document.source,
            heading=chunk.heading,
            chunk=chunk.ordinal,
            text=chunk.text,
            score=score * (OWN_LANGUAGE if chunk.document.language == language else 1),
            lang=chunk.document.language,
        )
        for chunk, score in scores.items()
    ]
    return sorted(found, key=lambda passage: -passage.score)
