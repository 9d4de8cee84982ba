"""What the words around a figure say about it: its operation, and how exact it is."""

import re

from .index import TOLERANCE, Form, forms_of
from .operands import Context
from .parsing import Figure

CUE_CHARS = 70  # on each side of the figure
MIN_SENTENCE_CHARS = 30  # of one that says enough by itself
MAX_CUED_CHARS = 300  # of the question
_WORDS_BY_CUE = {
    "sum": (
        r"total|sum|combin|together|altogether|in all|overall|both|plus|across"
        r"|aggregate|entire|whole"
        r"|cumulativ|grand|all (?:of|the|\w+)|between them|合計|総|計|合わせ"
        r"|あわせ|全体|累計|トータル|全部|のべ|延べ|年間|半期|通期|四半期"
    ),
    "difference": (
        r"more|less|fewer|differ|gap|increas|decreas|grew|grow|rose|rise|fell"
        r"|fall|drop|declin|higher|lower|above"
        r"|below|than|remain|left|sav(?:e|ing)|ahead|behind|margin|spread|chang"
        r"|up\b|down\b|gain|lost|loss|short|exceed"
        r"|longer|later|earlier|older|younger|surplus|deficit|profit|net|cheaper"
        r"|faster|slower|discount|away|range|extra|heav|lighter|bigger|smaller"
        r"|wider|taller|thick|thin|additional|under|over"
        r"|差|増|減|上回|下回|多|少|高|低|残|伸|上昇|下落|短|長|早|遅|安|黒字"
        r"|赤字|利益|引|余|不足|超|改善|悪化|縮|離|開き|マイナス|プラス"
    ),
    "average": r"averag|mean\b|typical|平均",
    "rate": (
        r"every|ratio|rate\b|P/E|multiple|密度|率|比|averag|mean\b|\bper\b|each"
        r"|\ban? (?:day|week|month|year|hour|night)"
        r"|\ban? (?:unit|piece|person|head|share|litre|liter|mile|visitor)|typical"
        r"|平均|あたり|当たり|ごと|毎"
        r"|1[人件日台個]"
    ),
    "product": (
        r"total|make|need|use|take|leave|pay|require|cost|each|per\b|times|at\b"
        r"|for\b|come|amount|worth|annual|year|month|×|合計|計|円|総|年間|月間"
        r"|分|あたり|費用|代金|金額"
    ),
    "year": r"year|annual|年",
}
CUES = {name: re.compile(words, re.IGNORECASE) for name, words in _WORDS_BY_CUE.items()}
ABOVE = re.compile(
    r"(?:over|above|more than|exceed\w*|at least|greater than)\s*\S{0,3}$"
    r"|^\S{0,6}\s?(?:以上|超|を上回|を超|より多|or more|\+)"
)
BELOW = re.compile(
    r"(?:under|below|less than|fewer than|at most|up to)\s*\S{0,3}$"
    r"|^\S{0,6}\s?(?:以下|未満|を下回|より少|or less|or fewer)"
)
HEDGE = re.compile(
    r"(?:about|around|roughly|approx\w*\.?|some|circa|close to|~|≈|約"
    r"|およそ|おおよそ|ほぼ|ざっと)"
    r"\s?[$€£¥]?$",
    re.IGNORECASE,
)
HEDGED_AFTER = re.compile(r"^\s?[^\s\d]{0,3}(?:程度|前後|ほど|くらい|ぐらい|or so)")
BEYOND = re.compile(
    r"(?:over|more than|under|up to|at least|less than|nearly|almost|just (?:over|under))"
    r"\s?[$€£¥]?$",
    re.IGNORECASE,
)
BEYOND_AFTER = re.compile(r"^\s?[^\s\d]{0,3}(?:余り|あまり|余|弱|強|超|以上|近く|台|\+)")
DATE_CUE = re.compile(
    r"due|deadline|\bby\b|until|till|expir|end|later|after|before|between"
    r"|latest|renew|from|arriv|finish|start|clos|open|next"
    r"|まで|期限|期日|締|以内|後|前|満了|終了|到着|開始|次",
    re.IGNORECASE,
)


def cues_of(figure: Figure, context: Context, question: str) -> frozenset[str]:
    """Return the operations that the words around a figure, or the question, suggest."""
    start = max(0, figure.start - CUE_CHARS)
    words = context.sentence[start : figure.end + CUE_CHARS]
    if len(context.sentence) < MIN_SENTENCE_CHARS:
        words = f"{context.surroundings} {words}"
    cues = {name for name, cue in CUES.items() if cue.search(words)}
    if CUES["product"].search(question[:MAX_CUED_CHARS]):
        cues.add("product")
    return frozenset(cues)


def limit_directions(sentence: str, limit: str) -> tuple[bool, bool]:
    """Return whether a sentence speaks of what is above a limit, and of what is below."""
    start = sentence.find(limit)
    end = start + len(limit)
    preceding = sentence[max(0, start - 24) : start].lower()
    following = sentence[end : end + 16]
    return (
        bool(ABOVE.search(preceding) or ABOVE.search(following)),
        bool(BELOW.search(preceding) or BELOW.search(following)),
    )


def suggests_date(sentence: str) -> bool:
    """Whether a sentence speaks of a deadline, a beginning or an end."""
    return DATE_CUE.search(sentence) is not None


def hedged_forms(figure: Figure, sentence: str) -> list[Form]:
    """Return the values that a figure can stand for; after "about", zeros are no digits."""
    forms = list(forms_of(figure))
    preceding = sentence[max(0, figure.start - 14) : figure.start]
    following = sentence[figure.end : figure.end + 8]
    is_about = HEDGE.search(preceding) or HEDGED_AFTER.search(following)
    is_beyond = BEYOND.search(preceding) or BEYOND_AFTER.search(following)
    if not (is_about or is_beyond) or not forms or not forms[0].value or figure.is_word:
        return forms
    value = forms[0].value
    step = figure.step
    while (
        step < value and abs(round(value / (10 * step)) * 10 * step - value) < TOLERANCE * value
    ):
        step *= 10
    margin = min(step if is_beyond else step / 2, 0.1 * value) / value
    return [
        Form(form.value, max(form.margin, margin * form.value), form.unit) for form in forms
    ]
