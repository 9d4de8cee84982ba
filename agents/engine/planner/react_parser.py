"""ReAct text: what a model without tool calls of its own writes, read as it arrives.

    Thought: …
    Action: the tool's name
    Action Input: {…}

or `Final Answer: …` in place of the last two. One reader does it for the live page and for
the plan, so that what was watched is what is kept. Whether a line begins with a label is known
after its first few characters; nothing longer is held back, and nothing is read twice.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Literal

from agents.engine.errors import PlanParseError
from agents.engine.turn.assembly import PlanResult, Shown, ToolCall, Turn

from . import react_action as actions
from .react_labels import (
    BEFORE_ANSWER,
    LABELS,
    MARK,
    ONLY_AFTER,
    TOKEN,
    Part,
    sure_of_marks,
    sure_of_tokens,
    unlabelled,
)

FORM = (
    'Write "Thought:", then either "Action:" with the name of one tool and "Action Input:" '
    'with its input as a JSON object, or "Final Answer:" with the answer. Each stands at the '
    "start of a line, outside code fences."
)


def parse_react(text: str) -> PlanResult:
    """What the model decided; raises PlanParseError with words that it can learn from."""
    reader = ReactReader()
    reader.feed(text)
    reader.finish()
    return reader._plan()


_SHOWN: dict[Part, Literal["thought", "answer"]] = {
    Part.OPENING: "answer",
    Part.THOUGHT: "thought",
    Part.ANSWER: "answer",
}


class ReactReader:
    """Reads a reply piece by piece, and says what of it to show.

    Text before the first label is given as answer, since most replies that begin so are
    answers. Where a label follows after all, `answer_was_thought` turns True.
    """

    def __init__(self) -> None:
        self.done = False
        self.answer_was_thought = False
        self._raw: list[str] = []
        self._pieces: list[Shown] = []
        self._texts: dict[Part, list[str]] = {part: [] for part in Part}
        self._reasoning: list[str] = []
        self._part = Part.OPENING
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

    def feed(self, text: str) -> list[Shown]:
        """Take the next piece of the reply, and give what can be shown now."""
        if not self.done:
            self._raw.append(text)
            self._take(text)
        return self._flush()

    def finish(self) -> list[Shown]:
        """The reply has ended: give what was still held back."""
        if not self.done:
            self._take("", final=True)
            self._read("", final=True)
        if self._has_action and self._choice is None:
            self._decide()
        if self._instead and self._choice is None and not self._texts[Part.ANSWER]:
            self._part = Part.ANSWER
            self._show(self._instead)
        return self._flush()

    def result(self) -> PlanResult:
        """The plan, if the reply ended here."""
        return parse_react("".join(self._raw))

    def _flush(self) -> list[Shown]:
        pieces, self._pieces = self._pieces, []
        return pieces

    def _take(self, text: str, final: bool = False) -> None:
        for tag, piece in self._tokens(text, final):
            if self.done:
                return
            if tag:
                self._take_tag(tag, piece)
            elif self._is_thinking:
                self._reason(piece)
            else:
                self._read(piece)

    def _tokens(self, text: str, final: bool) -> Iterable[tuple[str, str]]:
        """The text without special tokens, cut at think tags, with plain line ends."""
        text = self._token + text
        if "<" not in text and "\r" not in text:
            self._token = ""
            return [("", text)]
        end = len(text) if final else sure_of_tokens(text)
        self._token = text[end:]
        return _cut(text[:end].replace("\r\n", "\n").replace("\r", "\n"))

    def _take_tag(self, tag: str, text: str) -> None:
        if self._is_thinking:
            if tag.startswith("/"):
                self._reason("\n")
                self._is_thinking = False
            return
        self._read("", final=True)
        if not self._fence and tag.startswith("/") and self._part in BEFORE_ANSWER:
            self._think_back()
        elif self._fence or not self._is_blank_line:
            self._read(text)
        elif not tag.startswith("/"):
            self._is_thinking = True
            self._is_mid_line = False

    def _think_back(self) -> None:
        """Some models' thinking is opened in the prompt, so that only its end is seen."""
        opening, thought = self._texts[Part.OPENING], self._texts[Part.THOUGHT]
        self.answer_was_thought |= bool(opening)
        self._reasoning += [*opening, *thought, "\n"]
        opening.clear()
        thought.clear()
        self._around.clear()
        self._part = Part.OPENING
        self._is_mid_line, self._is_blank_line = False, True

    def _reason(self, text: str) -> None:
        if not self._reasoning:
            text = text.lstrip()
        if text:
            self._reasoning.append(text)
            self._pieces.append(("thought", text))

    def _read(self, text: str, final: bool = False) -> None:
        """Cut the text at labels and fences, holding back a line's doubtful beginning."""
        text = self._head + text
        at = 0
        if self._is_mid_line:
            at = text.find("\n") + 1 or len(text)
            self._put(text[:at])
        if at == len(text):
            self._note_line(text, is_new=False)
            return
        end = len(text) if final else sure_of_marks(text, at)
        line = 0
        for mark in MARK.finditer(text, at, end):
            self._put(text[at : mark.start()])
            at = mark.end()
            if self._take_mark(mark):
                line = at
            if self.done:
                return
        self._put(text[at:end])
        self._head = text[end:]
        self._note_line(text[line:end], is_new=line > 0)

    def _note_line(self, text: str, is_new: bool) -> None:
        """Remember whether we are within a line, and whether it has said anything yet."""
        line = text[text.rfind("\n") + 1 :]
        is_begun = len(line) < len(text)
        self._is_blank_line = not line.strip() and (is_begun or is_new or self._is_blank_line)
        self._is_mid_line = bool(line) or (not is_begun and (is_new or self._is_mid_line))

    def _take_mark(self, mark: re.Match[str]) -> bool:
        """Act on a label or a fence; True if it was a label."""
        if mark["fence"]:
            self._take_fence(mark["fence"], mark["fence_info"], mark[0])
            return False
        if not self._is_label(mark):
            self._put(mark[0])
            return False
        self._enter(LABELS[mark["label"].lower()])
        if mark["block"] and not self.done:
            block = mark[0][mark.start("block") - mark.start() :]
            self._take_fence(mark["block"], mark["block_info"], block)
        return True

    def _is_label(self, mark: re.Match[str]) -> bool:
        if self._fence or self._part is Part.ANSWER:
            return False
        places = ONLY_AFTER.get(mark["label"].lower())
        return places is None or self._part in places

    def _enter(self, part: Part) -> None:
        if self._around:
            self._around.clear()
            self._is_wrapped = not self._is_wrapped
        if self._part is Part.OPENING:
            opening = self._texts[Part.OPENING]
            self.answer_was_thought |= bool(opening)
            self._texts[Part.THOUGHT] += opening
            opening.clear()
        if self._has_action and not (self._part is Part.ACTION and part is Part.INPUT):
            self._decide()
        self._has_action |= part is Part.ACTION
        self.done = self._choice is not None
        self._part = part

    def _decide(self) -> None:
        """The action is complete: settle what it is, or that it is none."""
        input = "".join(self._texts[Part.INPUT])
        if self._fence:
            input = unlabelled(input)
        name, value = actions.read("".join(self._texts[Part.ACTION]), input)
        if not actions.is_none(name):
            self._choice = name, value
            return
        self._instead = self._instead or actions.answer(value)
        self._has_action = False
        self._texts[Part.ACTION].clear()
        self._texts[Part.INPUT].clear()

    def _take_fence(self, marker: str, info: str, line: str) -> None:
        """Fences are text that hides labels, but for one around the whole reply."""
        is_bare = not info.strip()
        if self._around:
            self._open_around()
        if self._fence:
            if is_bare and marker.startswith(self._fence):
                self._fence = ""
            self._show(line)
        elif self._may_be_around(is_bare):
            self._around = [marker, line]
        else:
            self._fence = marker
            self._show(line)

    def _may_be_around(self, is_bare: bool) -> bool:
        if self._is_wrapped:
            return is_bare
        return self._part is Part.OPENING and not self._texts[Part.OPENING]

    def _open_around(self) -> None:
        """No label came after it: an ordinary fence."""
        self._fence, *lines = self._around
        self._around = []
        self._show("".join(lines))

    def _put(self, text: str) -> None:
        if not text:
            return
        if self._around:
            if not text.strip():
                self._around.append(text)
                return
            self._open_around()
        self._show(text)

    def _show(self, text: str) -> None:
        texts = self._texts[self._part]
        if not texts:
            text = text.lstrip()
        if text:
            texts.append(text)
            if kind := _SHOWN.get(self._part):
                self._pieces.append((kind, text))

    def _plan(self) -> PlanResult:
        texts = {part: "".join(texts).strip() for part, texts in self._texts.items()}
        turn = Turn(content="".join(self._raw), reasoning="".join(self._reasoning).strip())
        thought = texts[Part.THOUGHT]
        if self._choice and self._choice[0]:
            name, value = self._choice
            call = ToolCall(id="react", name=name, arguments=actions.arguments(value))
            return PlanResult(
                thought=thought, action=name, action_input=value, calls=(call,), turn=turn
            )
        if answer := texts[Part.ANSWER] or texts[Part.OPENING]:
            return PlanResult(thought=thought, final_answer=answer, turn=turn)
        raise PlanParseError(f"{self._complaint(texts)} {FORM}")

    def _complaint(self, texts: dict[Part, str]) -> str:
        if self._choice:
            return "The Action names no tool."
        if self._part is Part.ANSWER:
            return "The Final Answer is empty."
        if texts[Part.INPUT]:
            return "There is an Action Input without an Action."
        if texts[Part.THOUGHT]:
            return "There is a Thought, but neither an Action nor a Final Answer after it."
        return "The reply has neither an Action nor a Final Answer."


def _cut(text: str) -> Iterator[tuple[str, str]]:
    at = 0
    for token in TOKEN.finditer(text):
        if at < token.start():
            yield "", text[at : token.start()]
        if token["tag"]:
            yield token["tag"], token[0]
        at = token.end()
    yield "", text[at:]
