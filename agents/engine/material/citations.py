"""Citations such as [1], [1, 2], [1–3] or 【1】 in an answer.

`check_citations` removes those that no source has, and changes nothing else: code, links,
formulas and what the question or a source itself says stay as they are.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass

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
    found = list(CITATION.finditer(plain))
    if not found:
        return CitationCheck(text)
    skipped = [part.span() for part in _SKIPPED.finditer(text)]
    cited = [one for one in found if _is_citation(one, plain, skipped, is_quoted)]
    parts: list[str] = []
    removed: dict[int, None] = {}
    at = 0
    for chain in _chains(cited, plain):
        start, end = chain[0].start(), chain[-1].end()
        unknown = [n for one in chain for n in cited_numbers(one) if n not in citable]
        if not unknown:
            continue
        removed |= dict.fromkeys(unknown)
        kept = _kept_citations(chain, text, citable)
        start, end = (start, end) if kept else _with_space(text, start, end, at)
        parts += [text[at:start], kept]
        at = end
    return CitationCheck("".join([*parts, text[at:]]), tuple(removed))


def cited_numbers(citation: re.Match[str]) -> list[int]:
    """Return the numbers of a citation, those of ranges one by one."""
    numbers: list[int] = []
    for item in re.split(r"[,、;]", citation["numbers"] or citation["number"]):
        first, *last = map(int, re.findall(r"\d+", item))
        numbers += range(first, last[0] + 1) if last else [first]
    return numbers


def listed_numbers(observations: Iterable[str]) -> set[int]:
    """Return the numbers under which other tools list their results."""
    found: set[int] = set()
    for text in observations:
        text = text[:MAX_LIST_CHARS]
        found.update(map(int, _HEAD.findall(text)))
        if text.startswith(("[", "{")):
            found.update(range(1, _list_size(text) + 1))
    return found


def _is_citation(
    found: re.Match[str],
    plain: str,
    skipped: Collection[tuple[int, int]],
    is_quoted: Callable[[str], bool],
) -> bool:
    start, end = found.span()
    if any(a < end and start < b for a, b in skipped) or plain[end : end + 1] == "(":
        return False
    if plain[:start].endswith("\\") or is_quoted(found[0]):
        return False
    return all(_is_range(item) for item in (found["numbers"] or found["number"]).split(","))


def _is_range(item: str) -> bool:
    numbers = [int(number) for number in re.findall(r"\d+", item)]
    pairs = zip(numbers, numbers[1:], strict=False)
    has_dash = re.search(r"[-–—〜～]", item) is not None
    return not has_dash or all(0 < last - first < MAX_RANGE for first, last in pairs)


def _chains(found: list[re.Match[str]], plain: str) -> Iterator[list[re.Match[str]]]:
    """Group citations with nothing but a comma or a space between them."""
    chain: list[re.Match[str]] = []
    for one in found:
        if chain and not _SEPARATOR.fullmatch(plain, chain[-1].end(), one.start()):
            yield chain
            chain = []
        chain.append(one)
    if chain:
        yield chain


def _kept_citations(chain: list[re.Match[str]], text: str, citable: Collection[int]) -> str:
    kept: list[str] = []
    end = chain[0].start()
    for one in chain:
        separator, end = text[end : one.start()], one.end()
        numbers = cited_numbers(one)
        known = [number for number in numbers if number in citable]
        if not known:
            continue
        whole = text[one.start() : one.end()]
        comma = "、" if "、" in whole else ", "
        fewer = f"{whole[0]}{comma.join(map(str, known))}{whole[-1]}"
        kept += [separator if kept else "", whole if len(known) == len(numbers) else fewer]
    return "".join(kept)


def _with_space(text: str, start: int, end: int, least: int) -> tuple[int, int]:
    """Include one space that would be left over beside a removed citation."""
    if start > least and text[start - 1] in " \t\u3000" and _FOLLOWING.match(text, end):
        return start - 1, end
    if (start == 0 or text[start - 1] == "\n") and text[end : end + 1] == " ":
        return start, end + 1
    return start, end


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
