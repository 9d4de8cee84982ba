"""A model whose question says what to do, turn by turn: "pay:17 words:20@0.05".

It depends only on the request, so a retry gets the same.
"""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from threading import Lock

from tests import wire
from tests.wire import Reply, Request

TOOLS = {"pay": "order", "sign": "order", "look": "word", "wait": "seconds"}
PLAIN = "plain__"
DEFAULT = "words:5"
SENTENCE = "Sentence {} of an answer that goes on and on. "
BROKEN = b'data: {"choices": [{"index": 0, "delta": {"content": "\xff\xfe"}}]}\n\n'


class Model:
    """The script of a wire server; `times` counts the requests per chat and turn."""

    def __init__(self) -> None:
        self.times: Counter[str] = Counter()
        self._lock = Lock()

    def __call__(self, request: Request) -> Reply:
        messages = request.body["messages"]
        if "You plan work" in str(messages[0]["content"]):
            return wire.say(plan(messages))
        question, turn = last_question(messages)
        if question.startswith("<question>"):  # for a title; the list displays it on every page
            return wire.say("A title")
        if question.startswith("User: "):  # for a summary of a long chat
            return wire.say("A summary")
        if question.startswith("The plan was carried out"):
            question = DEFAULT
        with self._lock:
            self.times[f"{question}#{turn}"] += 1
            nth = self.times[f"{question}#{turn}"]
        turns = question.split()
        wanted = turns[turn] if turn < len(turns) else DEFAULT
        return reply(wanted, nth)


def last_question(messages: list[dict]) -> tuple[str, int]:
    """Return the last question, and how many replies followed it."""
    at = max(at for at, message in enumerate(messages) if message["role"] == "user")
    spoken = sum(message["role"] == "assistant" for message in messages[at:])
    return messages[at]["content"], spoken


def plan(messages: list[dict]) -> str:
    """Return the question's turns as a plan: all parallel after the first."""
    question = next(str(m["content"]) for m in messages if "Question: " in str(m["content"]))
    turns = question.split("Question: ")[1].split()
    known = [
        (name, told) for name, _, told in (t.partition(":") for t in turns) if name in TOOLS
    ]
    steps = [
        {
            "name": f"{name} {at}",
            "tool": name,
            "arguments": {TOOLS[name]: float(what) if name == "wait" else what},
            "parallel": at > 0,
        }
        for at, (name, what) in enumerate(known)
    ]
    return json.dumps({"description": "As it was said.", "steps": steps})


def reply(wanted: str, nth: int = 1) -> Reply:
    name, _, told = wanted.partition(":")
    if name in TOOLS:
        value = float(told) if name == "wait" else told
        return wire.call((name, json.dumps({TOOLS[name]: value})))
    if name.startswith(PLAIN):
        return wire.call((name, told or "{}"))
    if name == "first":  # "first:429/words:5": this once, then what follows the slash
        before, _, after = told.partition("/")
        return reply(before if nth == 1 else after)
    return MODES[name](told)


def words(told: str) -> Reply:
    count, _, delay = told.partition("@")
    text = "".join(f"word{n} " for n in range(int(count)))
    return wire.say(text, chunks=int(count), delay=float(delay or 0))


def _say_words(told: str) -> Reply:
    return words(f"{told or 20}@0.01")


def _half(told: str) -> Reply:
    return wire.call(("look", '{"word": "hal'))


def _many(told: str) -> Reply:
    return wire.call(*[("look", json.dumps({"word": str(n)})) for n in range(int(told))])


def _rate_limited(told: str) -> Reply:
    headers = {"Retry_After": told} if told else {}
    return wire.fail(429, "Too many requests.", code="rate_limit_exceeded", **headers)


def _too_long(told: str) -> Reply:
    return wire.fail(400, "This is too much.", code="context_length_exceeded")


def _prose(chars: int) -> str:
    """Return a long text; the same sentence again and again would be stopped."""
    return "".join(map(SENTENCE.format, range(chars // 40 + 1)))[:chars]


def _hang(told: str) -> Reply:
    """Hang after this many words, sent one by one so that a page displays them."""
    return wire.hang(words("20@0.01"), after=2 * int(told or 0))


def _drip(told: str) -> Reply:
    return words(f"1000@{told}")


def _read_prompt(told: str) -> Reply:
    """Answer after this many comments, as a server that reads a long prompt sends them."""
    waiting: tuple[wire.Part, ...] = (0.5, b": reading the prompt\n\n") * int(told)
    answer = words("3")
    return replace(answer, parts=(*waiting, *answer.parts))


MODES: dict[str, Callable[[str], Reply]] = {
    "words": words,
    "cut": lambda told: wire.cut(_say_words(""), after=2 * int(told)),
    "hang": _hang,
    "drip": _drip,
    "read": _read_prompt,
    "garbage": lambda told: wire.spoil(_say_words(""), b"data: {nonsense\n\n", after=6),
    "utf8": lambda told: wire.spoil(_say_words(""), BROKEN, after=6),
    "half": _half,
    "limited": _rate_limited,
    "http": lambda told: wire.fail(int(told), "The provider is not well."),
    "toolong": _too_long,
    "empty": lambda told: wire.say("", finish="stop"),
    "nothing": lambda told: Reply(),
    "flood": lambda told: wire.flood(int(told)),
    "big": lambda told: wire.say(_prose(int(told))),
    "long": lambda told: wire.say(_prose(int(told)), chunks=200),
    "finish": lambda told: wire.say("Said in full.", finish=told),
    "unknown": lambda told: wire.call(("no_such_tool", "{}")),
    "many": _many,
}
