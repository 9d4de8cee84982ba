"""What the demo model is told: the question, the tools on offer and what they have found."""

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, takewhile
from typing import Any, Literal

from agents.engine.state import INTERRUPTED, NOT_STARTED

from . import verdicts

Message = Mapping[str, Any]
Dialect = Literal["native", "react", "direct"]
Word = Literal["", "changed", "declined", "lost"]

LONGEST_QUESTION = 2_000
OBSERVATION = "Observation: "
NO_ANSWER = "(No answer: "
_SAID_BEFORE = "Said before:\n"
_QUESTION = "\n\nQuestion: "
_SPEAKER = re.compile(r"^(user|assistant): ", re.MULTILINE)
_JAPANESE = re.compile(r"[\u3041-\u30ff\u4e00-\u9fff]")
_GRAMMAR = re.compile(
    r"[はがをにでのへ](?![ぁ-ん])|です|ます|ください|して|した|教え|ない|いる|ある"
)
_ENGLISH = re.compile(
    r"\b(?:what|which|who|when|where|how|did|does|do|is|are|was|were|has|have|the|of|for|from|by"
    r"|in|and|show|list|tell|give|compare|orders?|revenue)\b",
    re.IGNORECASE,
)
_GO_ON = re.compile(
    r"(?:please )?(?:continue|go on|carry on|keep going)"
    r"(?: (?:from )?where you (?:stopped|left off))?[\s.!。]*"
    r"|(?:中断したところから)?(?:続けて|続きを)(?:ください|下さい|お願い(?:します)?)?[\s.!。]*"
)
_USUAL = {
    "what sold": "which product sold",
    "what sells": "which product sells",
    "bestsellers": "best selling products",
    "best sellers": "best selling products",
    "いちばん": "一番",
    "もっとも": "最も",
    "売れ筋": "人気",
}
_SPELT = re.compile("|".join(_USUAL))


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What the person asked; `plain` has one width of letters, no capitals, one spelling.

    `voice` is the text whose language it is in, where that is not its own.
    """

    text: str
    voice: str = ""

    @property
    def plain(self) -> str:
        plain = unicodedata.normalize("NFKC", self.text).lower()
        return _SPELT.sub(lambda found: _USUAL[found[0]], plain)

    @property
    def is_japanese(self) -> bool:
        """By the words around the names: 佐藤 in an English sentence leaves it English."""
        text = self.voice or self.text
        if not _JAPANESE.search(text):
            return False
        return bool(_GRAMMAR.search(text)) or not _ENGLISH.search(text)

    def say(self, english: str, japanese: str) -> str:
        """Whichever is in the language of the question."""
        return japanese if self.is_japanese else english

    @property
    def goes_on(self) -> bool:
        """Whether it asks nothing of its own, only to go on with what was asked before."""
        return _GO_ON.fullmatch(self.plain.strip()) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A tool as the model is told of it."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def argument(self) -> str:
        """The parameter that takes the text: a required one first."""
        properties = self.parameters.get("properties") or {}
        names = [*(self.parameters.get("required") or ()), *properties]
        texts = [name for name in names if properties.get(name, {}).get("type") == "string"]
        return next(iter(texts), "input")

    @property
    def agent(self) -> str:
        """The agent that is asked with it; empty where it is no other agent."""
        is_handoff = self.name.startswith("ask_") and self.argument == "task"
        return self.name.removeprefix("ask_") if is_handoff else ""

    def fill(self, text: str) -> dict[str, str]:
        return {self.argument: text}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a tool answered, and to what; `word` is what a person had to say about the call.

    With a changed call the input is the person's; with one that was declined, or whose result
    was lost, the text is.
    """

    tool: str
    input: str = ""
    text: str = ""
    word: Word = ""

    @property
    def failed(self) -> bool:
        return self.is_settled or self.text.startswith("Error")

    @property
    def is_settled(self) -> bool:
        """Whether a person has seen to the call, so that it is not to be made again."""
        return self.word in ("declined", "lost")


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """All that the next step is decided from; `words` are an answer that was given already."""

    question: Question
    earlier: Question | None = None
    tools: tuple[Offer, ...] = ()
    findings: tuple[Finding, ...] = ()
    words: str = ""
    dialect: Dialect = "direct"

    def tool(self, word: str, *arguments: str) -> Offer | None:
        """The offered tool of this name, of a name with this word, or with such an argument."""
        own = [tool for tool in self.tools if not tool.agent]
        return (
            next((tool for tool in own if tool.name == word), None)
            or next((tool for tool in own if word in _name_words(tool.name)), None)
            or next((tool for tool in own if tool.argument in arguments), None)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A question, and what was said and found after it."""

    question: Question
    messages: Sequence[Message]

    @property
    def answer(self) -> str:
        """The answer that it ended with; empty where there was none."""
        words = _words(self.messages[-1]) if self.messages else ""
        return "" if words.startswith(NO_ANSWER) else words

    @property
    def findings(self) -> list[Finding]:
        return list(_findings(self.messages))


def read(messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] | None) -> Situation:
    """The situation that a conversation leaves the model in."""
    messages = [told for message in messages for told in _unfolded(message)]
    system = "\n".join(spoken(message) for message in messages if message["role"] == "system")
    dialect: Dialect = "native" if tools else "direct"
    offers = tuple(_offer(tool["function"]) for tool in tools or ())
    if not tools and "Action Input:" in system:
        dialect, offers = "react", tuple(listed(system))
    exchanges = _exchanges(messages)
    *begun, now = _in_hand(exchanges)
    first = begun[0] if begun else now
    before = takewhile(lambda exchange: exchange is not first, exchanges)
    earlier = [exchange.question for exchange in before if not exchange.question.goes_on]
    found = [finding for exchange in begun for finding in exchange.findings]
    kept = [finding for finding in found if finding.text not in {INTERRUPTED, NOT_STARTED}]
    return Situation(
        question=first.question,
        earlier=earlier[-1] if earlier else None,
        tools=offers,
        findings=(*kept, *now.findings),
        words=now.answer,
        dialect=dialect,
    )


def _unfolded(message: Message) -> list[Message]:
    """A task that says what was said before it, as the messages that it tells of."""
    before, found, question = spoken(message).rpartition(_QUESTION)
    if message["role"] != "user" or not found or not before.startswith(_SAID_BEFORE):
        return [message]
    _, *told = _SPEAKER.split(before)
    pairs = zip(told[::2], told[1::2], strict=True)
    said = [{"role": role, "content": words.strip()} for role, words in pairs]
    return [*said, {**message, "content": question}]


def _exchanges(messages: Sequence[Message]) -> list[Exchange]:
    asked = [at for at, message in enumerate(messages) if _is_asked(message)]
    return [
        Exchange(
            question=Question(text=spoken(messages[at])[:LONGEST_QUESTION]),
            messages=messages[at + 1 : end],
        )
        for at, end in pairwise([*asked, len(messages)])
    ] or [Exchange(question=Question(text=""), messages=messages)]


def _in_hand(exchanges: Sequence[Exchange]) -> list[Exchange]:
    """The last exchange, after those that it goes on with: a question not answered yet."""
    *past, now = exchanges
    begun: list[Exchange] = []
    for exchange in past:
        if exchange.question.goes_on:
            begun = [*begun, exchange] if begun and not exchange.answer else []
        elif not exchange.answer:
            begun = [exchange]
    return [*begun, now] if now.question.goes_on else [now]


def _words(message: Message) -> str:
    """The answer in a message; empty where it is none."""
    text = spoken(message)
    is_answer = message["role"] == "assistant" and not _calls(message) and not _action(text)
    return text.removeprefix("Final Answer:").strip() if is_answer else ""


def _is_asked(message: Message) -> bool:
    return message["role"] == "user" and not spoken(message).startswith(OBSERVATION.strip())


def spoken(message: Message) -> str:
    """The text of a message, whatever form it has."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text") or "" for part in content if part.get("type") == "text")


def _offer(function: Mapping[str, Any]) -> Offer:
    return Offer(
        name=function["name"],
        description=function.get("description") or "",
        parameters=function.get("parameters") or {},
    )


def listed(prompt: str, label: str = "Input") -> Iterable[Offer]:
    """The tools that a prompt lists: `- NAME: DESCRIPTION`, then `  Input: SCHEMA`."""
    name, description = "", ""
    for line in prompt.splitlines():
        if line.startswith("- ") and ":" in line:
            name, _, description = line[2:].partition(":")
        elif name and line.startswith(f"  {label}:"):
            schema = _object(line.partition(":")[2])
            yield Offer(name=name.strip(), description=description.strip(), parameters=schema)
            name = ""
        elif name:
            description += f"\n{line}"


def _findings(messages: Sequence[Message]) -> Iterable[Finding]:
    calls: dict[str, tuple[str, str]] = {}
    action = ("", "")
    for message in messages:
        text = spoken(message)
        if message["role"] == "assistant":
            calls |= {call["id"]: _call(call["function"]) for call in _calls(message)}
            action = _action(text) or action
        elif message["role"] == "tool":
            tool, input = calls.get(message.get("tool_call_id") or "", ("", ""))
            yield _finding(tool, input, text)
        elif message["role"] == "user":
            found = text.removeprefix(OBSERVATION.strip()).strip()
            yield _finding(*action, found)


def _finding(tool: str, input: str, observation: str) -> Finding:
    """What was found, apart from what the model is told of a person's part in it."""
    if changed := verdicts.changed(observation):
        arguments, result = changed
        return Finding(tool=tool, input=_first_text(arguments), text=result, word="changed")
    if (said := verdicts.declined(observation)) is not None:
        return Finding(tool=tool, input=input, text=said, word="declined")
    if (said := verdicts.lost(observation)) is not None:
        return Finding(tool=tool, input=input, text=said, word="lost")
    return Finding(tool=tool, input=input, text=observation)


def _calls(message: Message) -> Sequence[Mapping[str, Any]]:
    return message.get("tool_calls") or ()


def _call(function: Mapping[str, Any]) -> tuple[str, str]:
    return function["name"], _first_text(function.get("arguments") or "")


def _action(text: str) -> tuple[str, str] | None:
    """The action and the input in the model's own ReAct text."""
    said: dict[str, str] = {}
    for line in text.splitlines():
        label, colon, rest = line.partition(":")
        if colon and label.strip().lower() in ("action", "action input"):
            said.setdefault(label.strip().lower(), rest.strip())
    if "action" not in said:
        return None
    return said["action"], _first_text(said.get("action input", ""))


def _first_text(arguments: str) -> str:
    values = (value for value in _object(arguments).values() if isinstance(value, str))
    return next(values, arguments)


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _name_words(name: str) -> list[str]:
    return re.split(r"[^a-z0-9]+", name.lower())
