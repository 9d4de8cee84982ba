"""Citations such as [1], [1, 2], [1–3] or 【1】 in an answer.

`check_citations` removes those that no source has, and changes nothing else: code, links,
formulas and what the question or a source itself says stay as they are.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

MAX_RANGE = 30
MAX_LIST_CHARS = 20_000
LIST_KEYS = ("results", "items", "documents", "passages", "hits", "data")
# One character each, so that positions stay the same.
_HALF_WIDTH = str.maketrans("０１２３４５６７８９，－［］", "0123456789,-[]")
_ITEM = r"\d{1,3}(?:\s?[-–—〜～]\s?\d{1,3})?"
_ITEMS = rf"{_ITEM}(?:\s?[,、;]\s?{_ITEM}){{0,9}}"
CITATION = re.compile(
    rf"\[(?P<numbers>{_ITEMS})\]|【(?P<number>{_ITEMS})(?:[†:][^】<\n]{{0,60}})?】"
)
_SEPARATOR = re.compile(r"[ \t]?[,、;]?[ \t]?")
_FOLLOWING = re.compile(r"[\s.,;:!?)\]}」』）。、！？：；…]|\Z")
_SKIPPED = re.compile(
    r"^[ \t>]*(?P<fence>`{3,}|~{3,})[^\n]*$(?:.*?^[ \t>]*(?P=fence)[`~]*[ \t]*$|.*\Z)"
    r"|(?<!`)(?P<ticks>`+)(?!`).{1,2000}?(?<!`)(?P=ticks)(?!`)"
    r"|\$\$.{1,2000}?\$\$|\$(?!\s)[^$\n]{1,200}(?<!\s)\$(?!\d)"
    r"|\\\[.{1,2000}?\\\]|\\\(.{1,2000}?\\\)"
    r"|https?://[^\s<>()「」（）、。]{1,2000}"
    r"|^(?: {4,}|\t+)(?![-*+] |\d{1,3}[.)] )[^\n]+$"
    r"|^ {0,3}\[[^\]\n]{1,100}\]:[ \t]*\S+"
    r"|\]\([^)\n]{0,2000}\)",
    re.MULTILINE | re.DOTALL,
)
_HEAD = re.compile(r"^\[(\d{1,3})\] ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class CitationCheck:
    """An answer with only valid citations, and the numbers that were removed."""

    text: str
    removed: tuple[int, ...] = ()


def check_citations(
    text: str, citable: Collection[int], is_quoted: Callable[[str], bool] = lambda _: False
) -> CitationCheck:
    """Remove the numbers that no source has; `is_quoted` text in brackets isn't a citation."""
    plain = text.translate(_HALF_WIDTH)
    candidates = list(CITATION.finditer(plain))
    if not candidates:
        return CitationCheck(text)
    skipped = [match.span() for match in _SKIPPED.finditer(text)]
    citations = [c for c in candidates if _is_citation(c, plain, skipped, is_quoted)]
    pieces: list[str] = []
    removed: dict[int, None] = {}
    copied = 0
    for chain in _chains(citations, plain):
        start = chain[0].start()
        end = chain[-1].end()
        unknown = [n for citation in chain for n in cited_numbers(citation) if n not in citable]
        if not unknown:
            continue
        removed |= dict.fromkeys(unknown)
        valid = _valid_citations(chain, text, citable)
        if not valid:
            # One space would be left over beside the removed citation.
            has_space = start > copied and text[start - 1] in " \t\u3000"
            if has_space and _FOLLOWING.match(text, end):
                start -= 1
            elif (start == 0 or text[start - 1] == "\n") and text[end : end + 1] == " ":
                end += 1
        pieces += [text[copied:start], valid]
        copied = end
    return CitationCheck("".join([*pieces, text[copied:]]), tuple(removed))


def cited_numbers(citation: re.Match[str]) -> list[int]:
    """Return the numbers of a citation, those of ranges one by one."""
    numbers: list[int] = []
    for item in re.split(r"[,、;]", citation["numbers"] or citation["number"]):
        first, *last = map(int, re.findall(r"\d+", item))
        numbers += range(first, last[0] + 1) if last else [first]
    return numbers


def listed_numbers(observations: Iterable[str]) -> set[int]:
    """Return the numbers under which other tools list their results."""
    numbers: set[int] = set()
    for text in observations:
        text = text[:MAX_LIST_CHARS]
        numbers.update(map(int, _HEAD.findall(text)))
        if text.startswith(("[", "{")):
            numbers.update(range(1, _list_size(text) + 1))
    return numbers


def _is_citation(
    candidate: re.Match[str],
    plain: str,
    skipped: Collection[tuple[int, int]],
    is_quoted: Callable[[str], bool],
) -> bool:
    start, end = candidate.span()
    if any(a < end and start < b for a, b in skipped) or plain[end : end + 1] == "(":
        return False
    if plain[:start].endswith("\\") or is_quoted(candidate[0]):
        return False
    for item in (candidate["numbers"] or candidate["number"]).split(","):
        if re.search(r"[-–—〜～]", item):
            numbers = [int(number) for number in re.findall(r"\d+", item)]
            if not all(0 < last - first < MAX_RANGE for first, last in pairwise(numbers)):
                return False
    return True


def _chains(citations: list[re.Match[str]], plain: str) -> Iterator[list[re.Match[str]]]:
    """Group citations with nothing but a comma or a space between them."""
    chain: list[re.Match[str]] = []
    for citation in citations:
        if chain and not _SEPARATOR.fullmatch(plain, chain[-1].end(), citation.start()):
            yield chain
            chain = []
        chain.append(citation)
    if chain:
        yield chain


def _valid_citations(chain: list[re.Match[str]], text: str, citable: Collection[int]) -> str:
    """Return the citations without the numbers that no source has."""
    pieces: list[str] = []
    end = chain[0].start()
    for citation in chain:
        separator = text[end : citation.start()]
        end = citation.end()
        numbers = cited_numbers(citation)
        valid = [number for number in numbers if number in citable]
        if not valid:
            continue
        original = text[citation.start() : citation.end()]
        comma = "、" if "、" in original else ", "
        shortened = f"{original[0]}{comma.join(map(str, valid))}{original[-1]}"
        pieces.append(separator if pieces else "")
        pieces.append(original if len(valid) == len(numbers) else shortened)
    return "".join(pieces)


def _list_size(text: str) -> int:
    """Return how many results a JSON text lists, which models cite by position."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return 0
    if isinstance(value, dict):
        value = next((value[key] for key in LIST_KEYS if isinstance(value.get(key), list)), [])
    is_list = isinstance(value, list) and all(isinstance(item, dict) for item in value)
    return len(value) if is_list else 0
