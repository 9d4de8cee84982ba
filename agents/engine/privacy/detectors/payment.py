"""Detectors of cards and bank accounts."""

from .. import validators
from .detector import BETWEEN_WORDS, DIGITS, GAP, LEFT_BOUNDARY, PiiKind, make_detector

PAYMENT_DETECTORS = (
    make_detector(PiiKind.CARD, rf"{LEFT_BOUNDARY}([0-9]{{14,19}})", validators.card, DIGITS),
    make_detector(
        PiiKind.CARD,
        rf"{LEFT_BOUNDARY}([0-9]{{4}}(?:[ ._/-][0-9]{{4}}){{3}}(?:[ -][0-9]{{3}})?)",
        validators.card,
        DIGITS,
    ),
    make_detector(
        PiiKind.CARD,
        rf"{LEFT_BOUNDARY}([0-9]{{4}}[ .-][0-9]{{6}}[ .-][0-9]{{4,5}})",
        validators.card,
        DIGITS,
    ),
    make_detector(
        PiiKind.IBAN,
        r"(?:^|[^0-9A-Za-z])([A-Za-z]{2}[0-9]{2}(?:[ -]?[0-9A-Za-z]){11,32})",
        validators.iban,
        DIGITS,
    ),
    make_detector(
        PiiKind.ACCOUNT,
        rf"(?i)(?:(?:account|acct|a/c){BETWEEN_WORDS}(?:number|no|num|#)"
        r"|(?:bank|savings|checking|current)[ _]acc(?:ount|t)?|routing[ _]?number|sort[ _]?code"
        rf"|口座番号|口座){GAP}"
        r"([0-9][0-9 -]{4,20}[0-9])",
        validators.account,
        DIGITS,
        words="acc a/c routing sort 口座",
    ),
    make_detector(
        PiiKind.ACCOUNT,
        r"(?i)sort[ _]?code[^0-9\n‹›]{0,8}"
        r"([0-9]{2}[ -]?[0-9]{2}[ -]?[0-9]{2}[^0-9\n‹›]{1,30}[0-9]{8})(?:$|[^0-9])",
        needs=DIGITS,
        words="sort",
    ),
    make_detector(
        PiiKind.ACCOUNT,
        r"(?:普通|当座|貯蓄|\(普\)|\(当\))(?:預金)?(?:口座)?[^0-9\n‹›]{0,6}([0-9]{7})",
        validators.account,
        DIGITS,
        words="普 当 貯蓄",
    ),
    make_detector(
        PiiKind.ACCOUNT,
        r"記号[^0-9\n‹›]{0,4}([0-9]{5}[^0-9\n‹›]{0,3}番号[^0-9\n‹›]{0,4}[0-9]{6,8})",
        needs=DIGITS,
        words="記号",
    ),
)
