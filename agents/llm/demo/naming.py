"""What the steps of a plan are called: by its name a result is known again when it is told."""

import re
from collections.abc import Sequence

from .history import Question
from .request import Request
from .rows import subject

Words = tuple[str, str]

LONGEST = 150

DIFFERENCE: Words = ("difference", "差")
CHANGE: Words = ("change in percent", "増減率（%）")
MAKEUP: Words = ("number and average", "件数と平均額")
LOOKUP: Words = ("look up: ", "文書を調べる: ")
REASON: Words = ("look for the reason: ", "理由を調べる: ")
SUM: Words = ("work out: ", "計算: ")
TOTAL: Words = ("sum and number: ", "合計と件数: ")
AT_ONCE: Words = ("This needs no steps.", "手順は必要ありません。")


def of_request(request: Request, question: Question) -> str:
    name = subject(request, question).removeprefix("the ")
    if request.is_plain_list and request.limit:
        most = request.limit
        return question.say(f"first {most} {name}", f"{name}（最初の{most}件）")
    return name


def short(words: str) -> str:
    """On one line, and not too long for a name."""
    line = " ".join(words.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"


def rest(name: str, words: Words) -> str:
    """What stands behind one of the words, where the name begins with one."""
    found = next((word for word in words if name.startswith(word)), None)
    return name[len(found) :] if found else ""


def whom(name: str) -> str:
    """Who is asked in a step of this name; empty where nobody is."""
    found = _ASKED.match(name)
    return (found[1] or found[2]) if found else ""


def given_up(lost: Sequence[str], instead: Sequence[str], question: Question) -> str:
    """What a plan had to give up: its description begins so, and so does its answer."""
    return question.say(
        f"Nothing was found for “{'” and “'.join(lost)}”, "
        f"so “{'” and “'.join(instead)}” is used instead.",
        f"{'、'.join(lost)}が見つからなかったため、{'、'.join(instead)}を使います。",
    )


def what_was_given_up(description: str) -> str:
    found = _GIVEN_UP.match(description)
    return found[0] if found else ""


_GIVEN_UP = re.compile(
    r"Nothing was found for “.+?” is used instead\.|.+?が見つからなかったため、.+?を使います。"
)
_ASKED = re.compile(r"ask ([^:]+)(?:: |$)|([^:]+)に聞く(?:: |$)")
