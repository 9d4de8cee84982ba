"""What the steps of a plan are called: by its name a result is known again when it is told."""

import re

from .history import Question
from .request import Request
from .rows import subject

Words = tuple[str, str]

DIFFERENCE: Words = ("difference", "差")
CHANGE: Words = ("change in percent", "増減率（%）")
MAKEUP: Words = ("orders and their average", "注文数と平均額")
LOOKUP: Words = ("look up: ", "文書を調べる: ")
REASON: Words = ("look for the reason: ", "理由を調べる: ")
SUM: Words = ("work out: ", "計算: ")
TOTAL: Words = ("sum and number: ", "合計と件数: ")
AT_ONCE: Words = ("This needs no steps.", "手順は必要ありません。")
# A plan that had to give something up begins with these words, and so does its answer.
NOTHING: Words = ("Nothing was found for ", "見つかりませんでした: ")


def of_request(request: Request, question: Question) -> str:
    name = subject(request, question).removeprefix("the ")
    if request.is_plain_list and request.limit:
        return question.say(
            f"first {request.limit} {name}", f"{name}（最初の{request.limit}件）"
        )
    return name


def rest(name: str, words: Words) -> str:
    """What stands behind one of the words, where the name begins with one."""
    found = next((word for word in words if name.startswith(word)), None)
    return name[len(found) :] if found else ""


def whom(name: str) -> str:
    """Who is asked in a step of this name; empty where nobody is."""
    found = _ASKED.match(name)
    return (found[1] or found[2]) if found else ""


_ASKED = re.compile(r"ask ([^:]+)(?:: |$)|([^:]+)に聞く(?:: |$)")
