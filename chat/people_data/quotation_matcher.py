"""Recognizes a user's texts in other texts: as written, as JSON, and where they were cut off.

Sentences of longer text are found too. Short text is found where a user wrote it, and in a chat
of theirs also where it is quoted.
"""

import json
import os.path
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from types import MappingProxyType
from typing import Any

import re2

from agents.access import masking
from agents.engine.loop import AskPersonTool

REDACTED = "‹…›"
# Shorter text may be anyone's; longer text isn't repeated by chance.
MIN_TEXT_CHARS = 12
MIN_SENTENCE_CHARS = 30
MIN_DISTINCTIVE_CHARS = 40
MIN_BARE_CHARS = 4  # of short text that is found without quotation marks
QUOTATION_MARKS = ('""', "''", "``", "“”", "‘’", "„“", "«»", "‹›", "「」", "『』")
PREFIX_CHARS = 40  # enough of the start to recognize text that was cut off
PATTERN_BATCH = 1_000
MAX_REGEX_BYTES = 64 << 20
SENTENCE_ENDS = " \n.!?…。！？"
SENTENCE_BREAK = re.compile(r"(?<=[.!?。！？])\s*|\n+")
MASK_PATTERN = re.compile(r"‹[^›]*›")
# Keys and kinds that rows depend on; these are never replaced.
STRUCTURAL_KEYS = {
    "role",
    "type",
    "kind",
    "status",
    "id",
    "tool_call_id",
    "call_id",
    "model",
    "digest",
    "name",
    "tool",
    "effect",
    "agent",
    "why",
    "action",
    "stopped_reason",
    "limit",
}
CONTENT_KEYS = ("content", "content_preview", "observation")


class QuotationMatcher:
    """A user's texts, to be found in other rows."""

    def __init__(
        self,
        texts: Iterable[str],
        phrases: Iterable[str] = (),
        answers: Mapping[str, str] = MappingProxyType({}),
        quotable: Iterable[str] = (),
    ) -> None:
        """`phrases` match at any length; `answers` are the answers by call.

        Short texts of `quotable` are also found where someone else quotes them.
        """
        quoted = {text.strip() for text in texts} - {"", REDACTED}
        self._answers = {call: text for call, text in answers.items() if text}
        self.short = {text for text in quoted if len(text) < MIN_TEXT_CHARS}
        long_texts = quoted - self.short
        self._quotable = self.short & {text.strip() for text in quotable}
        longest_first = sorted(self._quotable, key=len, reverse=True)
        self._short_patterns = [
            _compile_pattern(batch) for batch in batches(longest_first, PATTERN_BATCH)
        ]
        self._all = "\n".join(long_texts)
        pieces = {piece for text in long_texts for piece in _text_variants(text)} | {*phrases}
        self._forms: dict[str, list[str]] = {}
        for form in {form for piece in pieces for form in _json_encodings(piece)}:
            self._forms.setdefault(form[:PREFIX_CHARS], []).append(form)
        keys = sorted(self._forms, key=len, reverse=True)
        self._patterns = [_compile_pattern(batch) for batch in batches(keys, PATTERN_BATCH)]

    def __bool__(self) -> bool:
        return bool(self._patterns or self.short or self._answers)

    def matches(self, text: str) -> bool:
        return any(pattern.search(text) for pattern in self._patterns)

    def may_match(self, text: str) -> bool:
        """Whether a row is worth parsing: short text is only recognized by its place."""
        has_place = '"role"' in text or f'"{AskPersonTool.name}"' in text
        is_answer = any(call in text for call in self._answers)
        is_short = any(pattern.search(text) for pattern in self._short_patterns)
        return bool(self.short and has_place) or is_answer or is_short or self.matches(text)

    def without(self, value: Any) -> Any:
        """Return the value with the texts replaced in all its strings."""
        if isinstance(value, str):
            return self._redact_text(value)
        if isinstance(value, list):
            return [self.without(item) for item in value]
        if isinstance(value, dict):
            return {name: self._redact_field(value, name, item) for name, item in value.items()}
        return value

    def _redact_field(self, container: dict[str, Any], name: str, item: Any) -> Any:
        if name in STRUCTURAL_KEYS and isinstance(item, str):
            return item
        if isinstance(item, str) and item in self.short:
            is_asked = name == "observation" and container.get("tool") == AskPersonTool.name
            if is_asked or (name == "content" and container.get("role") == "user"):
                return REDACTED
        if name in CONTENT_KEYS and isinstance(item, str):
            answer = self._answers.get(str(container.get("tool_call_id", "")))
            item = item.replace(answer, REDACTED) if answer else item
        if name == "replaced" and isinstance(item, dict):
            # Pseudonyms of a request: aliases and their values.
            return {
                alias: REDACTED
                if isinstance(value, str) and value and value in self._all
                else self.without(value)
                for alias, value in item.items()
            }
        return self.without(item)

    def _redact_text(self, text: str) -> str:
        for pattern in self._patterns:
            pieces = []
            end = 0
            for match in pattern.finditer(text):
                start = match.start()
                if start >= end:
                    pieces += [text[end:start], REDACTED]
                    end = start + self._match_length(text[start:], match[0])
            text = "".join([*pieces, text[end:]])
        # Short texts that are quoted, or that stand alone and aren't just a word.
        for pattern in self._short_patterns:
            spans = [m.span() for m in pattern.finditer(text) if _is_quoted(text, *m.span())]
            if spans and (value := _json_container(text)) is not None:
                return json.dumps(self.without(value), ensure_ascii=False)
            for start, end in reversed(spans):
                text = f"{text[:start]}{REDACTED}{text[end:]}"
        return text

    def _match_length(self, text: str, key: str) -> int:
        """Return how far the text continues like one of these."""
        forms = self._forms[key]
        common_prefix = max((os.path.commonprefix([text, form]) for form in forms), key=len)
        if common_prefix in forms:
            return len(common_prefix)
        # Half a JSON escape would break the JSON around it.
        escape_index = common_prefix.rfind("\\", max(len(common_prefix) - 6, 0))
        return len(common_prefix) if escape_index < 0 else max(escape_index, 1)


def _is_quoted(text: str, start: int, end: int) -> bool:
    """Whether a short text is quoted here; an ordinary word needs quotation marks."""
    left = text[:start][-1:]
    right = text[end:][:1]
    if left and right and left + right in QUOTATION_MARKS:
        return True
    quoted = text[start:end]
    is_word = quoted.isalpha() and _weighted_length(quoted) < MIN_TEXT_CHARS
    # Japanese has no spaces between words.
    edges = (left + quoted[0], quoted[-1] + right)
    stands_alone = not any(len(e) == 2 and e.isascii() and e.isalnum() for e in edges)
    return stands_alone and not is_word and len(quoted) >= MIN_BARE_CHARS


def _json_container(text: str) -> Any:
    """Return a text that is a JSON object or list; None if it isn't."""
    if text[:1] not in ("{", "["):
        return None
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict | list) else None


def _text_variants(text: str) -> Iterator[str]:
    """Yield a text, its lines and sentences, also with personal data masked."""
    yield text
    yield " ".join(text.split())
    sentences = map(str.strip, SENTENCE_BREAK.split(text))
    yield from (line for line in sentences if _weighted_length(line) >= MIN_SENTENCE_CHARS)
    masked = masking.mask_text(text)
    if masked != text:
        pieces = map(str.strip, MASK_PATTERN.split(masked))
        yield from (piece for piece in pieces if len(piece) >= MIN_TEXT_CHARS)


def _json_encodings(text: str) -> Iterator[str]:
    """Yield the text as it is, in JSON, and in nested JSON."""
    yield text
    for is_ascii in (True, False):
        once = json.dumps(text, ensure_ascii=is_ascii)[1:-1]
        yield from (once, json.dumps(once, ensure_ascii=is_ascii)[1:-1])


def _compile_pattern(keys: Iterable[str]) -> Any:
    options = re2.Options()
    options.max_mem = MAX_REGEX_BYTES
    options.log_errors = False
    return re2.compile("|".join(map(re2.escape, keys)), options)


def is_distinctive(text: str) -> bool:
    """Whether the text is too long to be repeated by chance."""
    return _weighted_length(text) >= MIN_DISTINCTIVE_CHARS


def _weighted_length(text: str) -> int:
    """Return the length in letters; a Japanese character counts as two."""
    return len(text) + sum(ord(char) > 0x2E80 for char in text)


def batches(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """Yield the items in lists of up to this size."""
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch
