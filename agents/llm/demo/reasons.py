"""A wish for a reason, apart from the rest of a question, and where one may be found."""

import re

from . import steps
from .brief import Brief
from .history import Question
from .naming import of_request
from .request import Dimension, Request
from .steps import Fields

_WISH = re.compile(
    r",?\s*(?:and|then|also)?\s*(?:please )?(?:explain|tell me|say)?\s*"
    r"\b(?:explain|why|the reasons?|what explains)\b[^.?!;]*"
    r"|[、,。]?\s*(?:その|違いの|差の)?(?:理由|原因|なぜ|要因)[^。？?]*"
    r"|[、,]?\s*(?:それを|違いを|差を)?(?:説明し|解説し)[^。？?]*",
    re.IGNORECASE,
)


def parted(question: Question) -> tuple[Question, bool]:
    """What is asked beside the reason, and whether there is a wish for one.

    A question that is nothing but the wish stays as it is.
    """
    text = " ".join(question.text.split())
    if _WISH.search(text) is None:
        return question, False
    rest = _WISH.sub(" ", text, count=1).strip(" ?？。.")
    voice = question.voice or question.text
    return (Question(text=rest, voice=voice) if rest else question), True


def lookup(request: Request, by: Dimension | None, brief: Brief) -> list[Fields]:
    """A look into the documents, where there are any: why is it different elsewhere?"""
    question, search = brief.question, brief.situation.tool("search")
    if search is None:
        return []
    measure, name = request.measure, of_request(request, question)
    query = (
        question.say(
            f"why {measure.english} differs from {by.english} to {by.english}",
            f"{measure.japanese}が{by.japanese}によって違う理由",
        )
        if by
        else question.say(f"why {name}", f"{name}の理由")
    )
    return [steps.reason(search, query, question)]
