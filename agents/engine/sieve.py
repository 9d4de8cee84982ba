"""Looking for patterns in texts, also in one that is still being written."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from .plain import Plain, plain
from .reach import Reach

MOST_MATCHES = 2_000


class Rule(Protocol):
    """A pattern, and what is done about what it matches."""

    @property
    def compiled(self) -> Any: ...

    @property
    def reach(self) -> Reach: ...

    @property
    def marker(self) -> str:
        """What is shown instead of a match; nothing where that is shown itself."""

    @property
    def is_exception(self) -> bool: ...

    @property
    def blocks(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Match:
    """From where to where, in the text as a reader takes it."""

    rule: Rule
    start: int
    end: int


class Seeker:
    """What one rule matches, one after the other, while the text grows.

    After more matches than anybody would read all the rest counts as one, because each of
    them may have taken a look at all of it.
    """

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.at = 0
        self._left = MOST_MATCHES

    def matches(self, text: str, offset: int, until: int) -> Iterator[Match]:
        """Those that begin before `until`; the first character of the text is no. `offset`."""
        if self._left:
            yield from self._next(text, offset, until)
        if not self._left and self.rule.marker and self.at < until:
            yield Match(self.rule, self.at - 1, until)
        self.at = max(self.at, until)

    def _next(self, text: str, offset: int, until: int) -> Iterator[Match]:
        for found in self.rule.compiled.finditer(text, self.at - offset):
            start, end = found.start() + offset, found.end() + offset
            if start >= until:
                return
            if start == end:
                continue
            self._left -= 1
            self.at = end
            yield Match(self.rule, start, end)
            if not self._left:
                return


class Sieve:
    """Lets text through, a little behind: what is blocked or hidden is never shown.

    A text is held for as long as a match may begin in it: for so many characters as the longest
    match can have, or to the next break that none can have in it, be it the end of a word, of
    the line or of the text. A match that lies within one of an
    exception is none. `counts` says how often each rule matched; once there is one that it is
    `blocked_by`, nothing more is shown.
    """

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._exceptions = [Seeker(rule) for rule in rules if rule.is_exception]
        self._others = [Seeker(rule) for rule in rules if not rule.is_exception]
        self._reaches = _distinct(rule.reach for rule in rules)
        endless = {reach.breaks for reach in self._reaches if reach.most == math.inf}
        self._endless = dict.fromkeys(endless, False)  # and whether such a break has come
        self._new: list[str] = []
        self._before = ""  # the letter before what is held: it says where a word begins
        self._held = ""
        self._base = 0  # which character of the plain text the first one held is
        self._hidden = 0  # up to where there is nothing to show but a marker that was shown
        self._allowed: list[Match] = []
        self.counts: dict[Rule, int] = {}
        self.blocked_by: Rule | None = None

    def feed(self, piece: str) -> str:
        """What can be shown by now and was not before."""
        if not self._others:
            return piece
        self._new.append(piece)
        for breaks in self._endless:
            self._endless[breaks] |= not breaks.isdisjoint(piece)
        return self._look(is_over=False) if self._is_due() else ""

    def rest(self) -> str:
        """What was still waiting, once the text has ended."""
        return self._look(is_over=True) if self._others and not self.blocked_by else ""

    @property
    def waiting(self) -> int:
        """How many characters are held."""
        return len(self._held) + sum(map(len, self._new))

    def _is_due(self) -> bool:
        """A match without an end waits for a break; what is held may be long until then."""
        return self.blocked_by is None and all(self._endless.values())

    def _look(self, *, is_over: bool) -> str:
        self._held += "".join(self._new)
        self._new = []
        read = plain(self._before + self._held)
        first = len(plain(self._before).text)
        until = len(read.text) if is_over else self._frontier(read)
        if until <= first and not is_over:
            return ""
        hidden = self._found(read, self._base - first, until)
        if self.blocked_by is not None:
            return ""
        shown = "".join(self._pieces(read, hidden, first, until))
        self._let_go(read, first, until)
        return shown

    def _frontier(self, read: Plain) -> int:
        """Before it everything is known that can be found; the last letter may yet change."""
        closed = read.first(max(len(read.text) - 1, 0))
        until = min(_decided(reach, read.text, closed) for reach in self._reaches)
        return read.first(until)

    def _found(self, read: Plain, offset: int, until: int) -> list[Match]:
        """What is to be hidden, in characters of what was read."""
        self._allowed = [match for match in self._allowed if match.end > self._base]
        for seeker in self._exceptions:
            self._allowed += seeker.matches(read.text, offset, until + offset)
        hidden = []
        for seeker in self._others:
            for match in seeker.matches(read.text, offset, until + offset):
                if _lies_within(match, self._allowed):
                    continue
                rule = match.rule
                self.counts[rule] = self.counts.get(rule, 0) + 1
                if rule.blocks:
                    self.blocked_by = rule
                    return []
                if rule.marker:
                    start, end = match.start - offset, match.end - offset
                    hidden.append(Match(rule, read.first(start), read.after(end)))
        return sorted(hidden, key=lambda match: (match.start, -match.end))

    def _pieces(
        self, read: Plain, matches: Iterable[Match], first: int, until: int
    ) -> Iterator[str]:
        text, hidden = self._before + self._held, self._hidden - self._base + first
        start = read.place(hidden) if hidden > first else len(self._before)
        for match in matches:
            if match.start < hidden:  # it goes on in what a marker stands for already
                hidden = max(hidden, match.end)
            else:
                yield text[start : read.place(match.start)]
                yield match.rule.marker
                hidden = match.end
            start = read.place(hidden)
        yield text[start : read.place(until)]
        self._hidden = hidden - first + self._base

    def _let_go(self, read: Plain, first: int, until: int) -> None:
        text = self._before + self._held
        cut, last = read.place(until), read.first(max(until - 1, 0))
        self._before, self._held = text[read.place(last) : cut], text[cut:]
        self._base += until - first
        self._endless = dict.fromkeys(self._endless, False)


def _distinct(reaches: Iterable[Reach]) -> list[Reach]:
    """The farthest of those with the same breaks."""
    found: dict[frozenset[str], Reach] = {}
    for reach in reaches:
        found[reach.breaks] = found.get(reach.breaks, reach) | reach
    return list(found.values())


def _decided(reach: Reach, text: str, closed: int) -> int:
    """Before this no match can begin whose end is not known yet."""
    since = max((text.rfind(mark, 0, closed) for mark in reach.breaks), default=-1) + 1
    far = closed - int(reach.most) - 1 if math.isfinite(reach.most) else 0
    return max(since, far, 0)


def found_in(text: str, rules: Sequence[Rule]) -> list[Match]:
    """What these rules match beside their exceptions, in places of the text as it is."""
    read = plain(text)
    allowed = [m for r in rules if r.is_exception for m in _all(r, read.text)]
    found = [m for r in rules if not r.is_exception for m in _all(r, read.text)]
    return [
        Match(m.rule, read.place(read.first(m.start)), read.place(read.after(m.end)))
        for m in found
        if not _lies_within(m, allowed)
    ]


def _all(rule: Rule, text: str) -> Iterator[Match]:
    return Seeker(rule).matches(text, 0, len(text))


def _lies_within(match: Match, others: Iterable[Match]) -> bool:
    return any(o.start <= match.start and match.end <= o.end for o in others)
