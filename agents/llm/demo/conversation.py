"""Parses a request for the demo model: the question, the tools and their results."""

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any, Literal, NamedTuple

from agents.engine.loop import ApprovalDecision
from agents.engine.material import unwrap
from agents.engine.state import INTERRUPTED, NOT_STARTED
from agents.engine.text import fold, is_japanese

Message = Mapping[str, Any]

_FOLDER = Path(__file__).parent
LIBRARY = tomllib.loads((_FOLDER / "intents.toml").read_text("utf-8"))
SENTENCES: dict[str, Any] = tomllib.loads((_FOLDER / "sentences.toml").read_text("utf-8"))
MAX_QUESTION = 2_000
_OBSERVATION = "Observation:"
_NO_ANSWER = "(No answer: "
# Prefixes of the engine's messages about a rejected call or a lost result.
DECLINED = ApprovalDecision(is_approved=False).refusal.partition(".")[0]
LOST = ApprovalDecision(is_approved=False).outcome.partition(".")[0]
_QUOTED = re.compile(r"\ASaid before:\n.*\n\nQuestion: ", re.DOTALL)
_FILES = re.compile(
    r"\s*<(?P<mark>attached_files|passages|user_memory|project_memory|experiences)>"
    r".*?(?:</(?P=mark)>|\Z)\s*",
    re.DOTALL,
)
_PARTICLES = re.compile(r"[はがをにでのへ](?![ぁ-ん])|です|ます|ください|して|した|ない")
_CONTINUE = re.compile(LIBRARY["words"]["continue"])


class Question(NamedTuple):
    """The user's question; `voice` is the text that sets the language, if it isn't its own."""

    text: str
    voice: str = ""

    @property
    def plain(self) -> str:
        """Return the text as it is compared."""
        return fold(self.text)

    @property
    def is_japanese(self) -> bool:
        """Whether its words are Japanese: 佐藤 in an English sentence is only a name."""
        text = self.voice or self.text
        is_english = re.search("[A-Za-z]{2,} [A-Za-z]", text) and not _PARTICLES.search(text)
        return is_japanese(text) and not is_english

    def say(self, key: str, **fields: Any) -> str:
        return str(SENTENCES[key][self.is_japanese]).format_map(fields)

    def part(self, text: str) -> "Question":
        """Return a part of the question, with the language of the whole."""
        return Question(text, self.voice or self.text)

    @property
    def is_continue(self) -> bool:
        """Whether it only continues an earlier question."""
        return _CONTINUE.fullmatch(self.plain) is not None


class Offer(NamedTuple):
    """A tool that the request offers."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = {}

    @property
    def argument(self) -> str:
        """Return the text parameter, a required one first."""
        properties = self.parameters.get("properties") or {}
        names = [*(self.parameters.get("required") or ()), *properties]
        texts = [name for name in names if properties.get(name, {}).get("type") == "string"]
        return next(iter(texts), "input")

    @property
    def agent(self) -> str:
        """Return the agent it hands off to; empty for other tools."""
        is_handoff = self.name.startswith("ask_") and self.argument == "task"
        return self.name.removeprefix("ask_") if is_handoff else ""


class Finding(NamedTuple):
    """A tool call and its result; a person may have edited its input."""

    tool: str
    input: str
    text: str
    is_changed: bool = False

    @property
    def is_error(self) -> bool:
        return self.text.startswith(("Error", DECLINED, LOST))


class Situation(NamedTuple):
    """The state that decides the next step; `works` says whether a step may have a result.

    `administrator` is where the user asks for a real model: a URL, if there is one, and None
    for users who can connect a model themselves.
    """

    question: Question
    earlier: Question | None = None
    tools: tuple[Offer, ...] = ()
    findings: tuple[Finding, ...] = ()
    answer: str = ""
    dialect: Literal["native", "react", "direct"] = "direct"
    today: date = date.min
    is_planner: bool = False
    works: Callable[[str], bool] = lambda name: True
    administrator: str | None = None

    def tool(self, keyword: str, argument: str) -> Offer | None:
        """Return the tool with this name, this word in its name, or this argument."""
        tools = [tool for tool in self.tools if not tool.agent]
        similar = [
            tool for tool in tools if keyword in re.split(r"[^a-z0-9]+", tool.name.lower())
        ]
        fitting = [tool for tool in tools if tool.argument == argument]
        exact = [tool for tool in similar if tool.name == keyword]
        return next(iter([*exact, *similar, *fitting]), None)

    @property
    def calculator(self) -> Offer | None:
        return self.tool("calculator", "expression")

    @property
    def agents(self) -> dict[str, Offer]:
        return {tool.agent: tool for tool in self.tools if tool.agent}

    def about(self, text: str) -> "Situation":
        return self._replace(question=self.question.part(text), earlier=None)


class _Exchange(NamedTuple):
    """A question and the messages after it."""

    question: Question
    messages: Sequence[Message]

    @property
    def answer(self) -> str:
        last = self.messages[-1] if self.messages else {"role": "user"}
        is_call = last.get("tool_calls") or _action(message_text(last))
        text = message_text(last) if last["role"] == "assistant" and not is_call else ""
        text = text.removeprefix("Final Answer:").strip()
        return "" if text.startswith(_NO_ANSWER) else text


def read(messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] | None) -> Situation:
    """Read a request; a question that continues another one takes over its findings."""
    system = "\n".join(
        message_text(message) for message in messages if message["role"] == "system"
    )
    is_react = not tools and "Action Input:" in system
    functions = [tool["function"] for tool in tools or ()]
    offered = [
        Offer(f["name"], f.get("description") or "", f.get("parameters") or {})
        for f in functions
    ]
    exchanges = _exchanges(messages)
    *previous, current = _continued(exchanges)
    first = previous[0] if previous else current
    older = takewhile(lambda exchange: exchange is not first, exchanges)
    earlier = [exchange.question for exchange in older if not exchange.question.is_continue]
    findings = [finding for exchange in previous for finding in _findings(exchange.messages)]
    done = [finding for finding in findings if finding.text not in {INTERRUPTED, NOT_STARTED}]
    return Situation(
        question=first.question,
        earlier=earlier[-1] if earlier else None,
        tools=tuple(listed_tools(system) if is_react else offered),
        findings=(*done, *_findings(current.messages)),
        answer=current.answer,
        dialect="native" if tools else "react" if is_react else "direct",
    )


def message_text(message: Message) -> str:
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text") or "" for part in content if part.get("type") == "text")


def listed_tools(prompt: str, label: str = "Input") -> Iterator[Offer]:
    """Parse the tools listed in a prompt: `- NAME: DESCRIPTION`, then `  Input: SCHEMA`."""
    name = ""
    description = ""
    for line in prompt.splitlines():
        if line.startswith("- ") and ":" in line:
            name, _, description = line[2:].partition(":")
        elif name and line.startswith(f"  {label}:"):
            yield Offer(name.strip(), description.strip(), _object(line.partition(":")[2]))
            name = ""
        elif name:
            description += f"\n{line}"


def pattern(template: str) -> re.Pattern[str]:
    """Compile one of the engine's templates, with a group per `{field}`."""
    groups = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>.*?)", re.escape(template))
    return re.compile(groups, re.DOTALL)


_CHANGED = pattern(ApprovalDecision(is_approved=True, arguments="{arguments}").annotate(""))


def _exchanges(messages: Sequence[Message]) -> list[_Exchange]:
    starts = [
        index
        for index, message in enumerate(messages)
        if message["role"] == "user" and not message_text(message).startswith(_OBSERVATION)
    ]
    exchanges = []
    for start, end in pairwise([*starts, len(messages)]):
        # Without attached files and what was recalled. A handed-off task may quote the
        # conversation before its question.
        text = _QUOTED.sub("", _FILES.sub("", message_text(messages[start])))
        exchanges.append(_Exchange(Question(text[:MAX_QUESTION]), messages[start + 1 : end]))
    return exchanges or [_Exchange(Question(""), messages)]


def _continued(exchanges: Sequence[_Exchange]) -> list[_Exchange]:
    """Return the last exchange, after the unanswered ones that it continues."""
    *past, last = exchanges
    if not last.question.is_continue:
        return [last]
    open_exchanges: list[_Exchange] = []
    for exchange in past:
        if exchange.question.is_continue:
            open_exchanges = (
                [*open_exchanges, exchange] if open_exchanges and not exchange.answer else []
            )
        elif not exchange.answer:
            open_exchanges = [exchange]
    return [*open_exchanges, last]


def _findings(messages: Sequence[Message]) -> Iterable[Finding]:
    calls: dict[str, tuple[str, str]] = {}
    action = ("", "")
    for message in messages:
        text = message_text(message)
        if message["role"] == "assistant":
            for call in message.get("tool_calls") or ():
                function = call["function"]
                arguments = _first_text(function.get("arguments") or "")
                calls[call["id"]] = (function["name"], arguments)
            action = _action(text) or action
        elif message["role"] == "tool":
            yield _finding(*calls.get(message.get("tool_call_id") or "", ("", "")), text)
        elif message["role"] == "user":
            yield _finding(*action, text.removeprefix(_OBSERVATION).strip())


def _finding(tool: str, input: str, observation: str) -> Finding:
    """Remove the marks of text from outside, and the note about edited arguments."""
    observation = unwrap(observation)
    # A result without text has no line break after the note.
    if changed := _CHANGED.match(f"{observation}\n"):
        result = observation[changed.end() :]
        return Finding(tool, _first_text(changed["arguments"]), result, is_changed=True)
    return Finding(tool, input, observation)


def _action(text: str) -> tuple[str, str] | None:
    """Return the action and its input from the model's own ReAct text."""
    action = re.search(r"^\s*Action:\s*(.+)$", text, re.MULTILINE)
    input = re.search(r"^\s*Action Input:\s*(.+)$", text, re.MULTILINE)
    return (action[1].strip(), _first_text(input[1] if input else "")) if action else None


def _first_text(arguments: str) -> str:
    values = (value for value in _object(arguments).values() if isinstance(value, str))
    return next(values, arguments)


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
