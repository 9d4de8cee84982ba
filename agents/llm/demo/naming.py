"""What the steps of a plan are called: by its name a result is known again when it is told."""

from .history import Question
from .request import Request
from .rows import subject

Words = tuple[str, str]

DIFFERENCE: Words = ("difference", "差")
CHANGE: Words = ("change in percent", "増減率（%）")
MAKEUP: Words = ("orders and their average", "注文数と平均額")
LOOKUP: Words = ("look up: ", "文書を調べる: ")
SUM: Words = ("work out: ", "計算: ")
# A plan that had to give something up begins with these words, and so does its answer.
NOTHING: Words = ("Nothing was found for the ", "データがありませんでした: ")


def of_request(request: Request, question: Question) -> str:
    return subject(request, question).removeprefix("the ")


def is_called(name: str, words: Words) -> bool:
    return name in words


def rest(name: str, words: Words) -> str:
    """What stands behind one of the words, where the name begins with one."""
    found = next((word for word in words if name.startswith(word)), None)
    return name[len(found) :] if found else ""
