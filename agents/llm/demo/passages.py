"""Answers out of passages that a search found: the best sentences, each with its number."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from . import help
from .history import Question
from .schema import singular

SENTENCES = (4, 2)
RELEVANT = 0.4
CERTAIN = 0.75

_HEAD = re.compile(r"^\[(\d{1,3})\] (.+)$", re.MULTILINE)
_BORDER = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])(?![」』）])\s*")
_WORD = re.compile(r"[a-z0-9_]{3,}")
_RUN = re.compile(r"[\u30a0-\u30ff\u4e00-\u9fff]{2,}")
_STEM = re.compile(r"(?<![\u4e00-\u9fff])[\u4e00-\u9fff][\u3041-\u309f]")
_LITTLE_WORDS = """
    the and for are was were can could does did how what when where which who why will would
    should with from this that there their them they you your its into about tell explain please
    work works use used using have has may much many been being not any all ashiato
"""
_COMMON = frozenset(_LITTLE_WORDS.split())


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A passage with the number that it is cited by."""

    number: str
    source: str
    text: str

    @property
    def is_japanese(self) -> bool:
        return Question(text=self.text).is_japanese


def parse(text: str) -> list[Found]:
    """The passages in an observation: `[1] Title › Heading (source #1)`, then the text."""
    heads = list(_HEAD.finditer(text))
    ends = [*(head.start() for head in heads[1:]), len(text)][: len(heads)]
    return [
        Found(number=head[1], source=head[2].strip(), text=text[head.end() : end].strip())
        for head, end in zip(heads, ends, strict=True)
    ]


def answer(observation: str, question: Question) -> str:
    """The answer with its citations, or that there is none."""
    found = parse(observation)
    passages = _relevant(found, question)
    if not passages:
        return _none(found, question)
    quoted = [
        line
        for passage, most in zip(passages, SENTENCES, strict=False)
        for line in _quotation(passage, question, most)
    ]
    parts = [_foreign(passages, question), "\n\n".join(quoted), _sources(passages, question)]
    return "\n\n".join(part for part in parts if part)


def quoted(observation: str, question: Question) -> str:
    """The best sentences with their sources, or nothing where none bears on the question."""
    terms, best = _terms(question.plain), _relevant(parse(observation), question)[:1]
    shares = [_score(terms, f"{passage.source}\n{passage.text}") for passage in best]
    return answer(observation, question) if max(shares, default=0) >= CERTAIN else ""


def query(question: Question) -> str:
    """What to search for: the question without its courtesies."""
    text = _COURTESY.sub("", question.text.strip())
    return _COURTESY_JA.sub("", text).rstrip(" ?？。.!！") or question.text.strip()


def key_words(query: str) -> str:
    """The words of a query that say what it is about."""
    return " ".join(dict.fromkeys([*_keys(query.lower()), *_RUN.findall(query)]))


def _keys(text: str) -> Iterator[str]:
    return (word for word in _WORD.findall(text) if word not in _COMMON)


_COURTESY = re.compile(
    r"^(?:(?:please|hey|hi|hello|can you|could you|tell me|explain|show me|i want to know"
    r"|i'd like to know|do you know)[\s,]+)+(?:about\s+)?",
    re.IGNORECASE,
)
_COURTESY_JA = re.compile(
    r"(?:(?:について|を|か)?(?:詳しく)?(?:教えて|説明して)(?:ください|下さい|くれますか|ほしい|欲しい)?"
    r"|でしょうか|ですか|ますか)[?？。]*$"
)


def _none(found: list[Found], question: Question) -> str:
    nothing = question.say(
        "I looked in the documents and found nothing that clearly answers this.",
        "文書を検索しましたが、この質問にはっきり答える内容は見つかりませんでした。",
    )
    nearest = [p for p in found if p.is_japanese == question.is_japanese][: len(SENTENCES)]
    if not nearest:
        return f"{nothing}\n\n{help.nature(question)}"
    near = question.say("The nearest passages are:", "近い箇所は次のとおりです。")
    sources = (f"- [{p.number}] {p.source}" for p in nearest)
    return "\n".join([nothing, "", near, *sources, "", help.nature(question)])


def _relevant(passages: list[Found], question: Question) -> list[Found]:
    """The passages that bear on the question, best first; those in its own language win."""
    own = [p for p in passages if p.is_japanese == question.is_japanese]
    terms = _terms(question.plain)
    if not own or not terms:
        return (own or passages)[:1]
    best = sorted(own, key=lambda p: -_weight(terms, p))[: len(SENTENCES)]
    bar = 0.75 * _weight(terms, best[0])
    return [p for p in best if _weight(terms, p) >= bar and _bears_on(terms, p)]


def _weight(terms: frozenset[str], passage: Found) -> float:
    return _score(terms, passage.source) + _score(terms, passage.text)


def _bears_on(terms: frozenset[str], passage: Found) -> bool:
    """Enough of the same words; one alone may be chance."""
    shared = terms & _terms(f"{passage.source}\n{passage.text}".lower())
    enough = len(shared) >= max(2, RELEVANT * len(terms))
    return enough or shared == terms


def _terms(text: str) -> frozenset[str]:
    """What the text is about: the beginnings of its words, and pairs of Japanese signs."""
    english = (singular(word)[:6] for word in _WORD.findall(text) if word not in _COMMON)
    runs = _RUN.findall(text)
    pairs = (run[at : at + 2] for run in runs for at in range(len(run) - 1))
    return frozenset([*english, *pairs, *_STEM.findall(text)])


def _score(terms: frozenset[str], text: str) -> float:
    return len(terms & _terms(text.lower())) / max(1, len(terms))


def _quotation(passage: Found, question: Question, most: int) -> Iterator[str]:
    """The sentences that say most, in their own order, with the passage's number."""
    pieces, terms = list(_pieces(passage.text)), _terms(question.plain)
    order = list(range(len(pieces)))
    # A heading that asks the same is answered by the text under it, from its beginning.
    if _score(terms, passage.source) < 0.5:
        order.sort(key=lambda at: -_score(terms, pieces[at]))
    return _marked([pieces[at] for at in sorted(order[:most])], passage.number)


def _marked(pieces: list[str], number: str) -> Iterator[str]:
    """Prose in one paragraph and lists and code as they are, with the passage's number."""
    prose = ""
    for piece in pieces:
        if not _is_block(piece):
            prose += piece if piece[-1] in "。！？" else f"{piece} "
            continue
        if prose:
            yield f"{prose.strip()} [{number}]"
            prose = ""
        yield piece if piece.startswith("```") else f"{piece} [{number}]"
    if prose:
        yield f"{prose.strip()} [{number}]"


def _is_block(piece: str) -> bool:
    return piece.startswith(("```", "- ", "* ", "1. ", "|"))


def _pieces(text: str) -> Iterator[str]:
    """Sentences of prose; lists, tables and code whole."""
    for block in _blocks(text):
        if _is_block(block):
            yield block
        elif not block.startswith("#"):
            joined = re.sub(r"(?<=[^\x00-\x7f])\n(?=[^\x00-\x7f])", "", block).replace(
                "\n", " "
            )
            yield from (part.strip() for part in _BORDER.split(joined) if part.strip())


def _blocks(text: str) -> Iterator[str]:
    """What stands between empty lines, but code as one."""
    block: list[str] = []
    fenced = False
    for line in [*text.splitlines(), ""]:
        fenced ^= line.lstrip().startswith("```")
        if line.strip() or fenced:
            block.append(line)
        elif block:
            yield "\n".join(block).strip()
            block = []
    if block:
        yield "\n".join(block).strip()


def _foreign(passages: list[Found], question: Question) -> str:
    if any(p.is_japanese == question.is_japanese for p in passages):
        return ""
    return question.say(
        "The nearest passage is in Japanese, so I quote it without judging whether it answers:",
        "最も近い文書は英語です。答えになっているか判断せずに、そのまま引用します。",
    )


def _sources(passages: list[Found], question: Question) -> str:
    lines = [f"- [{passage.number}] {passage.source}" for passage in passages]
    return "\n".join([question.say("Sources:", "出典:"), *lines])
