"""Removes echoes of our own prompts from an answer: weak models repeat what they were sent."""

import re

from agents.engine.prompt_parts import (
    BARE_MARKS,
    ENVELOPES,
    NOTE_PROMPT,
    TOOL_HEADING,
    TOOL_INPUT,
    TOOLS_HEADING,
)

MAX_HELD_CHARS = 50_000
_MAX_MARK_CHARS = 120
_HEADINGS = (TOOLS_HEADING, TOOL_HEADING)
_NAMES = "|".join([*ENVELOPES, *BARE_MARKS])
# What can open or close code, where a mark is only quoted, and what can be a mark.
_TOKEN = re.compile(
    rf"`+|^[ ]{{0,3}}~{{3,}}|^(?:{'|'.join(_HEADINGS)})\n|^{re.escape(NOTE_PROMPT)}[ \n]?|\n"
    rf"|<(?P<end>/?)(?P<name>{_NAMES})\b[^<>\n]*>",
    re.M,
)
_SPECIAL = re.compile("[<`~]|You|Yo?$|This|T(?:hi?)?$")
_PARTIAL_MARKS = [f"<{end}{name}" for name in (*ENVELOPES, *BARE_MARKS) for end in ("", "/")]


class PromptEchoFilter:
    """Filters streamed text; what may be half a mark waits for the next piece.

    A part between marks is an echo of the prompt and left out with them, unless it is markup
    that only has the same name. Marks in code are left as they are.
    """

    def __init__(self) -> None:
        self._held = ""
        self._part = ""  # the mark that is open
        self._fence = ""
        self._ticks = ""
        self._follows_echo = False
        self._note = ""  # what our prompts say after a mark
        self._markup: set[str] = set()  # names that this answer uses as its own

    def feed(self, text: str) -> str:
        """Return the text that can be displayed now."""
        has_state = self._held or self._part or self._fence or self._ticks or self._note
        if not has_state and not self._follows_echo and not _SPECIAL.search(text):
            return text
        text = self._held + text
        self._held = ""
        pieces: list[str] = []
        position = 0
        sure = len(text) - _unsure_chars(text)
        while position < len(text):
            if self._part:
                position = self._skip_part(text, position, pieces)
                continue
            if self._note and self._note.startswith(
                text[position : position + len(self._note)]
            ):
                if len(text) - position < len(self._note):
                    self._held = text[position:]
                    break
                position += len(self._note)
            self._note = ""
            end = max(position, sure)
            token = _TOKEN.search(text, position, end)
            if token is None:
                pieces.append(text[position:end])
                self._held = text[end:]
                break
            pieces.append(text[position : token.start()])
            position = token.end()
            is_mark = token["name"] and token["name"] not in self._markup
            if is_mark and not self._fence and not self._ticks:
                if token["name"] in BARE_MARKS:
                    self._note = "" if token["end"] else f"\n{NOTE_PROMPT}\n"
                elif not token["end"]:
                    self._part = token[0]
                continue  # the mark itself is left out
            if token[0].startswith(NOTE_PROMPT) and not self._fence:
                continue
            if token[0].startswith(_HEADINGS) and not self._fence:
                self._part = token[0]
                continue
            self._follow_code(token[0].strip())
            pieces.append(token[0])
        visible = "".join(pieces)
        if self._follows_echo and visible:
            visible = visible.lstrip("\n")
            self._follows_echo = not visible
        return visible

    def rest(self) -> str:
        """Return what was held back, once the text has ended."""
        text = self._held
        mark = self._part
        self._held = ""
        self._part = ""
        if not mark:
            return "" if text == NOTE_PROMPT else text
        if mark.startswith(_HEADINGS) and TOOL_INPUT not in text:
            return mark + text
        # The echo has no end, so it is what comes before the first empty line.
        return text.partition("\n\n")[2]

    def _skip_part(self, text: str, start: int, pieces: list[str]) -> int:
        """Return where the text goes on after the open part; hold it if it isn't closed."""
        mark = self._part
        is_list = mark.startswith(_HEADINGS)
        name = mark[1:].rstrip(">").split()[0]
        end_mark = "\n\n" if is_list else f"</{name}>"
        closing = text.find(end_mark, start)
        if closing < 0 and len(text) - start < MAX_HELD_CHARS:
            self._held = text[start:]
            return len(text)
        self._part = ""
        content = text[start:closing]
        is_echo = TOOL_INPUT in content if is_list else not content.lstrip().startswith("<")
        if closing < 0 or not is_echo:
            self._markup.add(name)
            pieces.append(mark)
            return start
        self._follows_echo = True
        return closing + len(end_mark)

    def _follow_code(self, mark: str) -> None:
        """Note where code begins and ends; inline code ends with its line."""
        if not mark:
            self._ticks = ""
        elif self._fence:
            self._fence = "" if mark.startswith(self._fence) else self._fence
        elif mark.startswith(("```", "~~~")) and not self._ticks:
            self._fence = mark
        elif mark.startswith("`"):
            self._ticks = "" if mark == self._ticks else self._ticks or mark


def _unsure_chars(text: str) -> int:
    """Return how much of the text's end may become a mark or a longer run of backticks."""
    start = text.rfind("<", max(0, len(text) - _MAX_MARK_CHARS))
    if start >= 0:
        tail = text[start:]
        is_partial = any(
            mark.startswith(tail) or tail.startswith(mark) for mark in _PARTIAL_MARKS
        )
        if is_partial and ">" not in tail and "\n" not in tail:
            return len(tail)
    line = text[text.rfind("\n") + 1 :]
    if line and any(heading.startswith(line) for heading in (*_HEADINGS, NOTE_PROMPT)):
        return len(line)
    return len(text) - len(text.rstrip("`~"))
