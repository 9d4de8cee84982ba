"""What a question asks for: groups of words that mean the same, and exact strings."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from agents.engine.text import STOP_WORDS, bigrams

from .tokenizer import CJK_RUN, HIRAGANA_RUN, MAX_TERMS, WORD, is_japanese, normalize
from .translations import split_words, translate

# An identifier, a figure or a quotation is found as it is written, or it isn't there.
QUOTED = re.compile(r'"([^"]{2,80})"|“([^”]{2,80})”|「([^」]{2,40})」|`([^`]{2,80})`')
ASCII_WORD = re.compile(r"[!-~]*[A-Za-z0-9][!-~]*")
EDGES = "()[]{}<>,;:!?'\"`"
IDENTIFIER = re.compile(
    r"[A-Za-z0-9]*[a-z][A-Z]\w*"  # camelCase
    r"|\w+[_./:\\@#=+-]+\w.*"  # a_name, a.name, a/path
    r"|-{1,2}[A-Za-z][\w-]*"  # an option
    r"|[/~.$%][\w/.-]+"  # a path or a variable
    r"|(?=.*\d)[\w.,%-]{2,}"  # a figure, a version, a code
    r"|[A-Z][A-Z0-9]{2,}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A question as words. Each group has a word first, then what else it can be called."""

    text: str
    groups: tuple[tuple[str, ...], ...]
    exact: tuple[str, ...] = ()

    @property
    def language(self) -> str:
        return "ja" if is_japanese(self.text) else "en"


def parse_query(text: str, *others: str) -> Query:
    """Read a question; `others` are further wordings, whose words are added."""
    words = _significant_words(chain.from_iterable(map(_words, (text, *others))))
    groups = tuple((word, *translate(word)) for word in words[:MAX_TERMS])
    return Query(text=text, groups=groups, exact=tuple(_exact_strings(text)))


def _significant_words(words: Iterable[str]) -> list[str]:
    """Leave out stop words.

    Hiragana is mostly grammar, and only used if there is nothing else.
    """
    distinct = [word for word in dict.fromkeys(words) if word not in STOP_WORDS]
    return [word for word in distinct if not HIRAGANA_RUN.match(word)] or distinct


def _words(text: str) -> Iterator[str]:
    for run in WORD.findall(normalize(text)):
        if HIRAGANA_RUN.match(run) or not CJK_RUN.match(run):
            yield run
            continue
        for word, is_known in split_words(run):
            if is_known:
                yield word
            else:
                yield from bigrams(word) or word


def _exact_strings(text: str) -> Iterator[str]:
    for found in QUOTED.findall(text):
        yield normalize("".join(found))
    for word in ASCII_WORD.findall(QUOTED.sub(" ", text)):
        word = word.strip(EDGES).rstrip(".")
        if IDENTIFIER.fullmatch(word) and len(word) > 1:
            yield normalize(word)
