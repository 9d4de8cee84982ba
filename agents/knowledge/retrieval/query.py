"""What a question asks for: groups of words that mean the same, and exact strings."""

import re
from collections.abc import Iterator
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


def parse_query(text: str, *wordings: str) -> Query:
    """Read a question; the words of further wordings are added."""
    tokens = dict.fromkeys(chain.from_iterable(map(_tokenize, (text, *wordings))))
    terms = [token for token in tokens if token not in STOP_WORDS]
    # Hiragana is mostly grammar, and only used if there is nothing else.
    terms = [term for term in terms if not HIRAGANA_RUN.match(term)] or terms
    groups = tuple((term, *translate(term)) for term in terms[:MAX_TERMS])
    # What is quoted is found as it is written; outside of quotes, what looks like a name.
    exact = [normalize("".join(quotation)) for quotation in QUOTED.findall(text)]
    for candidate in ASCII_WORD.findall(QUOTED.sub(" ", text)):
        identifier = candidate.strip(EDGES).rstrip(".")
        if IDENTIFIER.fullmatch(identifier) and len(identifier) > 1:
            exact.append(normalize(identifier))
    return Query(text=text, groups=groups, exact=tuple(exact))


def _tokenize(text: str) -> Iterator[str]:
    for run in WORD.findall(normalize(text)):
        if HIRAGANA_RUN.match(run) or not CJK_RUN.match(run):
            yield run
            continue
        for token, is_known in split_words(run):
            if is_known:
                yield token
            else:
                yield from bigrams(token) or token
