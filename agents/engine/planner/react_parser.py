"""Parses ReAct text, which a model without native tool calls writes, while it streams.

    Thought: …
    Action: the tool's name
    Action Input: {…}

or `Final Answer: …` instead of the last two. One parser serves the live page and the plan,
so what was displayed is what is saved. Whether a line starts with a label is known after a
few characters; nothing longer is held back, and nothing is parsed twice.
"""

import re
from typing import Any, Literal

from agents.engine.errors import PlanParseError
from agents.engine.turn.assembly import PlanResult, ToolCall, Turn, VisibleText

from ..sentences import Sentence as _
from ..sentences import joined
from . import react_action
from .react_labels import (
    ALLOWED_AFTER,
    BEFORE_ANSWER,
    LABELS,
    MARKER,
    SPECIAL_TOKEN,
    ReactSection,
    cut_at_label,
    safe_marker_end,
    safe_token_end,
)

FORMAT_HELP = (
    'Write "Thought:", then either "Action:" with the name of one tool and "Action Input:" '
    'with its input as a JSON object, or "Final Answer:" with the answer. Start each on a new '
    "line, outside code fences."
)


def parse_react(text: str) -> PlanResult:
    """Parse a reply; raise PlanParseError with a message the model can act on."""
    parser = ReactParser()
    parser.feed(text)
    parser.finish()
    return parser._build_plan()


_SHOWN_KINDS: dict[ReactSection, Literal["thought", "answer"]] = {
    ReactSection.OPENING: "answer",
    ReactSection.THOUGHT: "thought",
    ReactSection.ANSWER: "answer",
}


class ReactParser:
    """Parses a reply piece by piece and returns the text to display.

    Text before the first label counts as the answer, since most such replies are answers. If a
    label follows after all, `answer_was_thought` is set.
    """

    def __init__(self) -> None:
        self.is_done = False
        self.answer_was_thought = False
        self._raw: list[str] = []
        self._pieces: list[VisibleText] = []
        self._texts: dict[ReactSection, list[str]] = {section: [] for section in ReactSection}
        self._reasoning: list[str] = []
        self._section = ReactSection.OPENING
        self._choice: tuple[str, Any] | None = None
        self._has_action = False
        self._instead = ""

        self._token = ""
        self._head = ""
        self._is_mid_line = False
        self._is_blank_line = True
        self._is_thinking = False

        self._fence = ""
        self._around: list[str] = []
        self._is_wrapped = False

    def feed(self, text: str) -> list[VisibleText]:
        """Parse the next piece and return what can be displayed."""
        if not self.is_done:
            self._raw.append(text)
            self._process(text)
        return self._flush()

    def finish(self) -> list[VisibleText]:
        """End the reply and return the text still held back."""
        if not self.is_done:
            self._process("", final=True)
            self._process_text("", final=True)
        if self._has_action and self._choice is None:
            self._settle_action()
        if self._instead and self._choice is None and not self._texts[ReactSection.ANSWER]:
            self._section = ReactSection.ANSWER
            self._emit_text(self._instead)
        return self._flush()

    def result(self) -> PlanResult:
        """Return the plan, as if the reply ended here."""
        return parse_react("".join(self._raw))

    def _flush(self) -> list[VisibleText]:
        pieces = self._pieces
        self._pieces = []
        return pieces

    def _process(self, text: str, final: bool = False) -> None:
        for tag, piece in self._split_at_tags(text, final):
            if self.is_done:
                return
            if tag:
                self._process_tag(tag, piece)
            elif self._is_thinking:
                self._add_reasoning(piece)
            else:
                self._process_text(piece)

    def _split_at_tags(self, text: str, final: bool) -> list[tuple[str, str]]:
        """Strip special tokens, split at think tags and normalize line ends."""
        text = self._token + text
        if "<" not in text and "\r" not in text:
            self._token = ""
            return [("", text)]
        end = len(text) if final else safe_token_end(text)
        self._token = text[end:]
        text = text[:end].replace("\r\n", "\n").replace("\r", "\n")
        pieces: list[tuple[str, str]] = []
        start = 0
        for token in SPECIAL_TOKEN.finditer(text):
            if start < token.start():
                pieces.append(("", text[start : token.start()]))
            if token["tag"]:
                pieces.append((token["tag"], token[0]))
            start = token.end()
        pieces.append(("", text[start:]))
        return pieces

    def _process_tag(self, tag: str, text: str) -> None:
        if self._is_thinking:
            if tag.startswith("/"):
                self._add_reasoning("\n")
                self._is_thinking = False
            return
        self._process_text("", final=True)
        if not self._fence and tag.startswith("/") and self._section in BEFORE_ANSWER:
            # Some models' thinking is opened in the prompt, so only its end is visible: the
            # text so far was a thought.
            opening = self._texts[ReactSection.OPENING]
            thought = self._texts[ReactSection.THOUGHT]
            self.answer_was_thought |= bool(opening)
            self._reasoning += [*opening, *thought, "\n"]
            opening.clear()
            thought.clear()
            self._around.clear()
            self._section = ReactSection.OPENING
            self._is_mid_line = False
            self._is_blank_line = True
        elif self._fence or not self._is_blank_line:
            self._process_text(text)
        elif not tag.startswith("/"):
            self._is_thinking = True
            self._is_mid_line = False

    def _add_reasoning(self, text: str) -> None:
        if not self._reasoning:
            text = text.lstrip()
        if text:
            self._reasoning.append(text)
            self._pieces.append(("thought", text))

    def _process_text(self, text: str, final: bool = False) -> None:
        """Split the text at labels and fences, holding back an ambiguous line start."""
        text = self._head + text
        position = 0
        if self._is_mid_line:
            position = text.find("\n") + 1 or len(text)
            self._add_text(text[:position])
        if position == len(text):
            self._track_line(text, is_new=False)
            return
        end = len(text) if final else safe_marker_end(text, position)
        line = 0
        for mark in MARKER.finditer(text, position, end):
            self._add_text(text[position : mark.start()])
            position = mark.end()
            if self._process_marker(mark):
                line = position
            if self.is_done:
                return
        self._add_text(text[position:end])
        self._head = text[end:]
        self._track_line(text[line:end], is_new=line > 0)

    def _track_line(self, text: str, is_new: bool) -> None:
        """Track whether the position is within a line and whether that line is blank."""
        line = text[text.rfind("\n") + 1 :]
        is_begun = len(line) < len(text)
        self._is_blank_line = not line.strip() and (is_begun or is_new or self._is_blank_line)
        self._is_mid_line = bool(line) or (not is_begun and (is_new or self._is_mid_line))

    def _process_marker(self, mark: re.Match[str]) -> bool:
        """Handle a label or a fence; return True for a label."""
        if mark["fence"]:
            self._process_fence(mark["fence"], mark["fence_info"], mark[0])
            return False
        label = mark["label"].lower()
        allowed_sections = ALLOWED_AFTER.get(label)
        is_expected = allowed_sections is None or self._section in allowed_sections
        if self._fence or self._section is ReactSection.ANSWER or not is_expected:
            self._add_text(mark[0])
            return False
        if self._around:
            self._around.clear()
            self._is_wrapped = not self._is_wrapped
        if self._section is ReactSection.OPENING:
            opening = self._texts[ReactSection.OPENING]
            self.answer_was_thought |= bool(opening)
            self._texts[ReactSection.THOUGHT] += opening
            opening.clear()
        section = LABELS[label]
        is_input = self._section is ReactSection.ACTION and section is ReactSection.INPUT
        if self._has_action and not is_input:
            self._settle_action()
        self._has_action |= section is ReactSection.ACTION
        self.is_done = self._choice is not None
        self._section = section
        if mark["block"] and not self.is_done:
            block = mark[0][mark.start("block") - mark.start() :]
            self._process_fence(mark["block"], mark["block_info"], block)
        return True

    def _settle_action(self) -> None:
        """Decide what the complete action is, or that it is none."""
        input = "".join(self._texts[ReactSection.INPUT])
        if self._fence:
            input = cut_at_label(input)
        name, value = react_action.parse_action(
            "".join(self._texts[ReactSection.ACTION]), input
        )
        if not react_action.is_no_action(name):
            self._choice = name, value
            return
        self._instead = self._instead or react_action.answer_text(value)
        self._has_action = False
        self._texts[ReactSection.ACTION].clear()
        self._texts[ReactSection.INPUT].clear()

    def _process_fence(self, marker: str, info: str, line: str) -> None:
        """Handle a fence: it hides labels, unless it encloses the whole reply."""
        is_bare = not info.strip()
        if self._around:
            self._treat_as_fence()
        is_opening = self._section is ReactSection.OPENING
        may_open_wrap = is_opening and not self._texts[ReactSection.OPENING]
        if self._fence:
            if is_bare and marker.startswith(self._fence):
                self._fence = ""
            self._emit_text(line)
        elif is_bare if self._is_wrapped else may_open_wrap:
            self._around = [marker, line]
        else:
            self._fence = marker
            self._emit_text(line)

    def _treat_as_fence(self) -> None:
        """Treat it as an ordinary fence, because no label followed."""
        self._fence, *lines = self._around
        self._around = []
        self._emit_text("".join(lines))

    def _add_text(self, text: str) -> None:
        if not text:
            return
        if self._around:
            if not text.strip():
                self._around.append(text)
                return
            self._treat_as_fence()
        self._emit_text(text)

    def _emit_text(self, text: str) -> None:
        texts = self._texts[self._section]
        if not texts:
            text = text.lstrip()
        if text:
            texts.append(text)
            if kind := _SHOWN_KINDS.get(self._section):
                self._pieces.append((kind, text))

    def _build_plan(self) -> PlanResult:
        texts = {section: "".join(texts).strip() for section, texts in self._texts.items()}
        turn = Turn(content="".join(self._raw), reasoning="".join(self._reasoning).strip())
        thought = texts[ReactSection.THOUGHT]
        if self._choice and self._choice[0]:
            name, value = self._choice
            call = ToolCall(id="react", name=name, arguments=react_action.to_arguments(value))
            return PlanResult(
                thought=thought, action=name, action_input=value, calls=(call,), turn=turn
            )
        if answer := texts[ReactSection.ANSWER] or texts[ReactSection.OPENING]:
            return PlanResult(thought=thought, final_answer=answer, turn=turn)
        if self._choice:
            message = _("The Action doesn't name a tool.")
        elif self._section is ReactSection.ANSWER:
            message = _("The Final Answer is empty.")
        elif texts[ReactSection.INPUT]:
            message = _("The response has an Action Input without an Action.")
        elif thought:
            message = _("The response has a Thought, but no Action or Final Answer after it.")
        else:
            message = _("The response has no Action and no Final Answer.")
        raise PlanParseError(joined(" ", (message, FORMAT_HELP)))
