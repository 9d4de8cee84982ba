"""What the demo model is told: the question, the tools on offer and what they have found."""

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Message = Mapping[str, Any]
Dialect = Literal["native", "react", "direct"]

LONGEST_QUESTION = 2_000
OBSERVATION = "Observation: "
_JAPANESE = re.compile(r"[\u3041-\u30ff\u4e00-\u9fff]")
_GRAMMAR = re.compile(
    r"[はがをにでのへ](?![ぁ-ん])|です|ます|ください|して|した|教え|ない|いる|ある"
)
_ENGLISH = re.compile(
    r"\b(?:what|which|who|when|where|how|did|does|do|is|are|was|were|has|have|the|of|for|from|by"
    r"|in|and|show|list|tell|give|compare|orders?|revenue)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What the person asked; `plain` has one width of letters and no capitals."""

    text: str

    @property
    def plain(self) -> str:
        return unicodedata.normalize("NFKC", self.text).lower()

    @property
    def is_japanese(self) -> bool:
        """By the words around the names: 佐藤 in an English sentence leaves it English."""
        if not _JAPANESE.search(self.text):
            return False
        return bool(_GRAMMAR.search(self.text)) or not _ENGLISH.search(self.text)

    def say(self, english: str, japanese: str) -> str:
        """Whichever is in the language of the question."""
        return japanese if self.is_japanese else english


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
    """What a tool answered, and to what."""

    tool: str
    input: str = ""
    text: str = ""

    @property
    def failed(self) -> bool:
        return self.text.startswith("Error")


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


def read(messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] | None) -> Situation:
    """The situation that a conversation leaves the model in."""
    system = "\n".join(spoken(message) for message in messages if message["role"] == "system")
    dialect: Dialect = "native" if tools else "direct"
    offers = tuple(_offer(tool["function"]) for tool in tools or ())
    if not tools and "Action Input:" in system:
        dialect, offers = "react", tuple(_listed(system))
    asked = [at for at, message in enumerate(messages) if _is_asked(message)]
    questions = [Question(text=spoken(messages[at])[:LONGEST_QUESTION]) for at in asked]
    since = messages[asked[-1] + 1 :] if asked else messages
    return Situation(
        question=questions[-1] if questions else Question(text=""),
        earlier=questions[-2] if len(questions) > 1 else None,
        tools=offers,
        findings=tuple(_findings(since)),
        words=_words(since[-1]) if since else "",
        dialect=dialect,
    )


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


def _listed(prompt: str) -> Iterable[Offer]:
    """The tools that a ReAct prompt lists: `- NAME: DESCRIPTION`, then `  Input: SCHEMA`."""
    name, description = "", ""
    for line in prompt.splitlines():
        if line.startswith("- ") and ":" in line:
            name, _, description = line[2:].partition(":")
        elif name and line.startswith("  Input:"):
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
            yield Finding(tool=tool, input=input, text=text)
        elif message["role"] == "user":
            found = text.removeprefix(OBSERVATION.strip()).strip()
            yield Finding(tool=action[0], input=action[1], text=found)


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
