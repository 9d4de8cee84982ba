"""Finds pattern matches in text, including text that is still streamed."""

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Protocol

from .compilation import compile_any
from .confusables import fold
from .match_length import MatchBound
from .normalization import READING_COUNT, NormalizedText, StreamNormalizer, readings

MAX_MATCHES = 2_000
MIN_NEW_CHARS = 16  # characters; a scan costs about the same for a few as for many
MatchEnd = tuple[float, tuple[tuple[str, int], ...]]  # match length, separators that end it


class Rule(Protocol):
    """A pattern and what is done about its matches."""

    @property
    def regex(self) -> Any: ...

    @property
    def reach(self) -> MatchBound: ...

    @property
    def marker(self) -> str:
        """Text that replaces a match; empty if the match stays visible."""

    @property
    def is_exception(self) -> bool: ...

    @property
    def blocks(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Match:
    """A match, by its position in a normalized text or in the original text."""

    rule: Rule
    start: int
    end: int


class PatternScanner:
    """Finds the matches of one rule while the text grows.

    After a maximum number of matches the rest counts as one, because each match can take a scan
    of the whole text.
    """

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.position = 0
        self.matches_left = MAX_MATCHES

    def matches(self, text: str, offset: int, until: int) -> Iterator[Match]:
        """Yield matches that start before `until`; `offset` is the text's position."""
        if self.matches_left:
            for match in self.rule.regex.finditer(text, self.position - offset):
                start = match.start() + offset
                end = match.end() + offset
                if start >= until:
                    break
                if start == end:
                    continue
                self.matches_left -= 1
                self.position = end
                yield Match(self.rule, start, end)
                if not self.matches_left:
                    break
        if not self.matches_left and self.rule.marker and self.position < until:
            yield Match(self.rule, self.position - 1, until)
        self.position = max(self.position, until)


class NormalizedView:
    """One reading of a text and how far each rule has scanned it."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.scanners = [PatternScanner(rule) for rule in rules]
        self.text = ""
        self.starts: Sequence[int] = ()
        self.ends: Sequence[int] = ()
        self.base = 0  # position of the first character within everything read

    def show(self, normalized: NormalizedText, text: str | None = None) -> None:
        self.text = normalized.text if text is None else text
        self.starts = normalized.starts
        self.ends = normalized.ends

    def safe_end(self, reaches: Iterable[MatchEnd], end: int) -> int:
        """Return the position before which no further match can be found."""
        text = self.text
        until = len(text)
        for max_length, ends in reaches:
            # The position before which no unfinished match of this reach can start.
            decided = max(len(text) - int(max_length) - 1, 0) if max_length < math.inf else 0
            for separator, count in ends:
                # After the separator that has at most `count` others behind it.
                position = len(text)
                for _ in range(count + 1):
                    position = text.rfind(separator, decided, position)
                    if position < 0:
                        break
                decided = max(decided, position + 1)
            until = min(until, decided)
        return self.starts[until] if until < len(text) else end

    def is_prefix_of(self, other: "NormalizedView") -> bool:
        """Whether the other view starts with this one, so matches found here are the same."""
        length = len(self.text)
        return self is other or (
            other.text.startswith(self.text)
            and other.starts[:length] == self.starts
            and other.ends[:length] == self.ends
        )

    def state(self, number: int) -> tuple[int, int]:
        """Return where a rule continues to scan and how many matches it has left."""
        scanner = self.scanners[number]
        return scanner.position - self.base, scanner.matches_left

    def follow(self, number: int, state: tuple[int, int]) -> None:
        scanner = self.scanners[number]
        scanner.position = state[0] + self.base
        scanner.matches_left = state[1]

    def matches(self, number: int, until: int) -> Iterator[Match]:
        """Yield matches that start before this position, as positions in the original text."""
        last = bisect_left(self.starts, until)
        base = self.base
        for match in self.scanners[number].matches(self.text, base, base + last):
            start = self.starts[match.start - base]
            end = self.ends[match.end - base - 1]
            yield Match(match.rule, start, end)

    def droppable_chars(self, until: int) -> int:
        """Return how many characters can be dropped; one stays for word boundaries."""
        return max(bisect_left(self.starts, until) - 1, 0)


class RuleSet:
    """Rules, exceptions first, with what is the same for every text they are applied to."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        exceptions = [rule for rule in rules if rule.is_exception]
        self.rules = [*exceptions, *(rule for rule in rules if not rule.is_exception)]
        self.exception_count = len(exceptions)
        self.is_active = len(self.rules) > len(exceptions)

    @cached_property
    def any_rule(self) -> Any:
        """A pattern that matches what any of the rules matches; None if it is too large."""
        return compile_any(tuple(rule.regex.pattern for rule in self.rules))

    @cached_property
    def match_ends(self) -> tuple[list[MatchEnd], set[frozenset[str]]]:
        return _match_ends(tuple(rule.reach for rule in self.rules))


class StreamFilter:
    """Releases streamed text with a delay, so that blocked or masked text is never visible.

    Each rule scans all readings of a text. Text is held as long as a match may start in it: for
    the maximum match length, or until a separator that no match can contain. A match inside a
    match of an exception doesn't count. `counts` has the number of matches per rule; once
    `blocked_by` is set, nothing more is released.
    """

    def __init__(self, rule_set: RuleSet) -> None:
        self._rule_set = rule_set
        self._rules = rule_set.rules
        self._exception_count = rule_set.exception_count
        self._is_active = rule_set.is_active
        self._reaches, endless = rule_set.match_ends
        self._endless = dict.fromkeys(endless, False)  # whether it was received
        self._source = StreamNormalizer()
        self._page = StreamNormalizer(as_rendered=True)
        self._new: list[str] = []
        self._unread = 0
        self._held = ""
        self._from = 0  # where the held text starts
        self._mask_end = 0  # end of the masked text whose marker was already released
        self._allowed: list[Match] = []
        self._counted: dict[Rule, int] = {}
        self.counts: dict[Rule, int] = {}
        self.blocked_by: Rule | None = None

    @cached_property
    def _views(self) -> list[NormalizedView]:
        return [NormalizedView(self._rules) for _ in range(READING_COUNT)]

    def feed(self, piece: str) -> str:
        """Add a piece and return what can be released."""
        if not self._is_active:
            return piece
        self._new.append(piece)
        self._unread += len(piece)
        for breaks in self._endless:
            self._endless[breaks] |= not breaks.isdisjoint(piece)
        if self.blocked_by is not None or self._unread < MIN_NEW_CHARS:
            return ""
        if not all(self._endless.values()):  # an unbounded match waits for a separator
            return ""
        return self._scan(is_over=False)

    def rest(self) -> str:
        """Return the text still held back, once the stream has ended."""
        return self._scan(is_over=True) if self._is_active and not self.blocked_by else ""

    def whole(self, text: str) -> str:
        """Filter a complete text."""
        if not self._is_active:
            return text
        self._held = text
        normalized_texts = readings(text)
        # Nearly all texts have no match, and nothing else is needed to know that.
        any_rule = self._rule_set.any_rule
        if any_rule is not None and not any(
            any_rule.search(normalized.text) for normalized in normalized_texts
        ):
            return text
        for view, normalized in zip(self._views, normalized_texts, strict=False):
            view.show(normalized)
        views = self._views[: len(normalized_texts)]
        hidden = self._find_hidden(views, range(len(views)), len(text))
        return "" if self.blocked_by else "".join(self._visible_pieces(hidden, len(text)))

    @property
    def held_chars(self) -> int:
        """Number of characters held."""
        return len(self._held) + self._unread

    def _scan(self, *, is_over: bool) -> str:
        """Read the new text and return what can be released."""
        piece = "".join(self._new)
        self._new = []
        self._unread = 0
        self._held += piece
        source, page, folded = self._views
        self._source.feed(piece, is_over=is_over)
        self._page.feed(piece, is_over=is_over)
        source.show(self._source.plain)
        page.show(self._page.plain)
        folded.show(self._page.plain, fold(self._page.plain.text))
        until = self._from + len(self._held) if is_over else self._safe_end()
        if until <= self._from and not is_over:
            return ""
        # Per view, the first view with the same text; at the end, of the same length.
        twins = [
            next(
                number
                for number, candidate in enumerate(self._views)
                if view.is_prefix_of(candidate)
                and (not is_over or len(view.text) == len(candidate.text))
            )
            for view in self._views
        ]
        hidden = self._find_hidden(self._views, twins, until)
        if self.blocked_by is not None:
            return ""
        visible = "".join(self._visible_pieces(hidden, until))
        self._held = self._held[until - self._from :]
        self._from = until
        for normalizer, views in ((self._source, [source]), (self._page, [page, folded])):
            spare = views[0].droppable_chars(until)
            normalizer.plain.drop(spare)
            for view in views:
                view.base += spare
        self._endless = dict.fromkeys(self._endless, False)
        return visible

    def _safe_end(self) -> int:
        source, page, folded = self._views
        until = page.safe_end(self._reaches, self._page.end)
        # Text that isn't rendered still has characters in the source.
        is_shown = bool(page.ends) and until < page.ends[-1]
        if not is_shown or not page.is_prefix_of(source):
            until = min(until, source.safe_end(self._reaches, self._source.end))
        if folded.text != page.text:
            until = min(until, folded.safe_end(self._reaches, self._page.end))
        return until

    def _find_hidden(
        self, views: Sequence[NormalizedView], twins: Sequence[int], until: int
    ) -> list[Match]:
        """Return the matches to mask, as positions in the original text."""
        self._allowed = [match for match in self._allowed if match.end > self._from]
        if not _may_match(views, twins, self._rule_set.any_rule, until):
            return []
        for number in range(self._exception_count):
            self._allowed += _find_matches(views, twins, number, until)
        hidden = []
        for number in range(self._exception_count, len(self._rules)):
            rule = self._rules[number]
            for match in _find_matches(views, twins, number, until):
                if _lies_within(match, self._allowed):
                    continue
                if match.start >= self._counted.get(rule, 0):  # otherwise it was counted before
                    self.counts[rule] = self.counts.get(rule, 0) + 1
                self._counted[rule] = max(match.end, self._counted.get(rule, 0))
                if rule.blocks:
                    self.blocked_by = rule
                    return []
                if rule.marker:
                    hidden.append(match)
        return sorted(hidden, key=lambda match: (match.start, -match.end))

    def _visible_pieces(self, matches: Iterable[Match], until: int) -> Iterator[str]:
        text = self._held
        base = self._from
        mask_end = self._mask_end
        start = max(mask_end, base)
        for match in matches:
            if match.start < mask_end:  # continues in text that a marker already replaced
                mask_end = max(mask_end, match.end)
            else:
                yield text[start - base : match.start - base]
                yield match.rule.marker
                mask_end = match.end
            start = mask_end
        yield text[start - base : max(until, start) - base]
        self._mask_end = mask_end


def _may_match(
    views: Sequence[NormalizedView], twins: Sequence[int], any_rule: Any, until: int
) -> bool:
    """Whether any rule may match new text; if not, mark it as scanned."""
    if any_rule is None or not all(s.matches_left for view in views for s in view.scanners):
        return True
    firsts: list[int] = []
    for index, (view, twin) in enumerate(zip(views, twins, strict=True)):
        first = min([scanner.position for scanner in view.scanners]) - view.base
        is_known = twin < index and first >= firsts[twin]
        if not is_known and any_rule.search(view.text, first) is not None:
            return True
        firsts.append(first)
    for view in views:
        last = view.base + bisect_left(view.starts, until)
        for scanner in view.scanners:
            scanner.position = max(scanner.position, last)
    return False


def _find_matches(
    views: Sequence[NormalizedView], twins: Sequence[int], number: int, until: int
) -> list[Match]:
    """Return a rule's matches in all views, in order; identical views are scanned once."""
    states = [view.state(number) for view in views]
    matches: list[Match] = []
    for index, (view, twin) in enumerate(zip(views, twins, strict=True)):
        twin_state = views[twin].state(number)
        is_same = twin < index and states[twin] == states[index]
        if is_same and twin_state[0] <= len(view.text):
            view.follow(number, twin_state)
        else:
            matches += view.matches(number, until)
    return sorted(matches, key=lambda match: (match.start, -match.end))


def _match_ends(
    bounds: tuple[MatchBound, ...],
) -> tuple[list[MatchEnd], set[frozenset[str]]]:
    """Return how matches end, and the separators of those without a limit."""
    # The longest bound of those with the same separators.
    distinct: dict[tuple[tuple[str, int], ...], MatchBound] = {}
    for bound in bounds:
        key = tuple(sorted(bound.ends.items()))
        distinct[key] = distinct.get(key, bound) | bound
    ends = [(bound.max_length, tuple(bound.ends.items())) for bound in distinct.values()]
    endless = {frozenset(b.ends) for b in distinct.values() if b.max_length == math.inf}
    return ends, endless


def find_matches(text: str, rules: Sequence[Rule]) -> list[Match]:
    """Return the rules' matches outside their exceptions, as positions in the text."""
    views = [NormalizedView(rules) for _ in range(READING_COUNT)]
    normalized_texts = readings(text)
    for view, normalized in zip(views, normalized_texts, strict=False):
        view.show(normalized)
    views = views[: len(normalized_texts)]
    seek = partial(_find_matches, views, range(len(views)), until=len(text))
    allowed = [m for n, rule in enumerate(rules) if rule.is_exception for m in seek(n)]
    matches: list[Match] = []
    for number, rule in enumerate(rules):
        if not rule.is_exception:
            merged: list[Match] = []  # those that share a character
            for match in seek(number):
                if _lies_within(match, allowed):
                    continue
                if merged and match.start < merged[-1].end:
                    merged[-1] = replace(merged[-1], end=max(merged[-1].end, match.end))
                else:
                    merged.append(match)
            matches += merged
    return matches


def _lies_within(match: Match, allowed: Iterable[Match]) -> bool:
    return any(a.start <= match.start and match.end <= a.end for a in allowed)
