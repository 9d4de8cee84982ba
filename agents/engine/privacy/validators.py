"""Checks that decide how much of a match is personal data.

Each check gets a candidate and returns its personal part, or an empty string.
"""

import math
import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from ipaddress import AddressValueError, IPv4Address, IPv6Address

from stdnum import luhn, numdb
from stdnum.iso7064 import mod_97_10
from stdnum.jp import in_ as individual_number


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A match of a pattern, with the text around it."""

    value: str
    before: str
    after: str

    @property
    def digits(self) -> str:
        return re.sub(r"[^0-9]", "", self.value)

    @property
    def groups(self) -> list[str]:
        return re.findall(r"[0-9]+", self.value)


def any_value(candidate: Candidate) -> str:
    return candidate.value


def separate_value(candidate: Candidate) -> str:
    return "" if _is_joined(candidate) else candidate.value


# Another kind of number, by the label before it or the text after it.
_LABEL_WORD = r"[\W_]?(?:number|no|num|code|id|番号|コード|ナンバー)"
OTHER_IDENTIFIER = re.compile(
    r"(?:(?:order|invoice|ticket|tracking|shipment|receipt|serial|isbn|issn|jan|ean|upc|sku"
    r"|build|commit|ref|注文|受注|発注|伝票|追跡|請求書|領収書|品番|型番|型式|商品|製品|製造|チケット|法人)"
    rf"(?:{_LABEL_WORD})?|(?:part|item|model|product|job|batch|lot|case|issue|reference|corporate"
    rf"|customer|member|受付|予約|登録|会員|管理|顧客|社員|案件|問い?合わ?せ)(?:{_LABEL_WORD})"
    r"|(?:\b|_)id|(?-i:[a-z]Id))"
    r"[^0-9A-Za-z\n‹›]{0,6}\Z",
    re.I,
)
LETTER = re.compile(r"[^\W\d_]")
# A comma separates the fields of a row, so none of these numbers contains one. So does a slash
# if another number of that length follows, such as a fax after a phone number.
JOINED_BEFORE = re.compile(r"[0-9][.:-]|[A-Za-z_]-|[A-Za-z0-9]/")
CONTINUES_AFTER = re.compile(r"[.:-]?[0-9]|/(?![0-9+(][0-9 ()-]{8})[0-9]|[-_/]?[A-Za-z]")
AFTER_NUMBER = re.compile(r"[0-9][0-9 ()-]{7,}[0-9]/\Z")
DATE = re.compile(r"(?:19|20)[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])")
UNIT_AFTER = re.compile(
    r" ?(?:[年月日時分秒人円件個歳本回位倍度週万億社台枚点名%]|yen|dollars)"
)


def _is_standalone(candidate: Candidate) -> bool:
    """Whether the number isn't part of another one and isn't labeled as something else."""
    return not (
        _is_joined(candidate)
        or CONTINUES_AFTER.match(candidate.after)
        or UNIT_AFTER.match(candidate.after)
        or (LETTER.search(candidate.before) and OTHER_IDENTIFIER.search(candidate.before))
    )


def _is_joined(candidate: Candidate) -> bool:
    is_joined = JOINED_BEFORE.fullmatch(candidate.before[-2:]) is not None
    return is_joined and AFTER_NUMBER.search(candidate.before) is None


def _is_date(digits: str) -> bool:
    return DATE.match(digits) is not None


PHONE_SHAPES = {(2, 4, 4), (3, 3, 4), (4, 2, 4), (5, 1, 4), (3, 4, 4), (4, 3, 4), (5, 3, 3)}
TWO_PART_SHAPES = {(5, 6), (4, 7), (3, 8), (5, 5)}
TOLL_FREE_PREFIXES = ("0120", "0570", "0800", "0990", "0180")
MIN_INTERNATIONAL_DIGITS = 9
MAX_PHONE_DIGITS = 15


def grouped_phone(candidate: Candidate) -> str:
    shape = tuple(len(group) for group in candidate.groups)
    is_spaced = re.fullmatch(r"\(?[0-9]+\)? [0-9]+", candidate.value) is not None
    is_free = shape == (4, 3, 3) and candidate.value.startswith(TOLL_FREE_PREFIXES)
    fits = shape in PHONE_SHAPES or is_free or (shape in TWO_PART_SHAPES and is_spaced)
    return candidate.value if fits and _is_standalone(candidate) else ""


def any_phone(candidate: Candidate) -> str:
    return candidate.value if _is_standalone(candidate) else ""


def international_phone(candidate: Candidate) -> str:
    is_long = MIN_INTERNATIONAL_DIGITS <= len(candidate.digits) <= MAX_PHONE_DIGITS
    return candidate.value if is_long and not CONTINUES_AFTER.match(candidate.after) else ""


def labelled_phone(candidate: Candidate) -> str:
    is_phone = 7 <= len(candidate.digits) <= MAX_PHONE_DIGITS and not _is_date(candidate.digits)
    is_whole = not re.match(r"[0-9]|\.[0-9]", candidate.after) and not UNIT_AFTER.match(
        candidate.after
    )
    return candidate.value if is_phone and is_whole else ""


CARD_ISSUERS = re.compile(
    r"4[0-9]{15}(?:[0-9]{3})?"  # Visa; 13 digits are obsolete
    r"|(?:5[1-5][0-9]{2}|222[1-9]|22[3-9][0-9]|2[3-6][0-9]{2}|27[01][0-9]|2720)[0-9]{12}"
    r"|3[47][0-9]{13}"  # American Express
    r"|35(?:2[89]|[3-8][0-9])[0-9]{12}"  # JCB
    r"|3(?:0[0-5]|[68][0-9])[0-9]{11}"  # Diners Club
    r"|6(?:011|5[0-9]{2}|4[4-9][0-9])[0-9]{12}"  # Discover
    r"|62[0-9]{14,17}"  # UnionPay
)


def card(candidate: Candidate) -> str:
    """Return a card number; extra digits after it may be something else."""
    if _is_joined(candidate):
        return ""
    values = [candidate.value, re.sub(r"[ -][0-9]{3}\Z", "", candidate.value)]
    if re.match(r"[0-9A-Za-z_]", candidate.after):
        values = [value for value in values if value != candidate.value]
    for value in values:
        digits = re.sub(r"[^0-9]", "", value)
        if CARD_ISSUERS.fullmatch(digits) and luhn.is_valid(digits):
            return value
    return ""


def iban(candidate: Candidate) -> str:
    """Return an IBAN with its country's length, without what follows."""
    length = _iban_length(candidate.value[:2].upper())
    match = re.match(rf"(?:[ -]?[0-9A-Za-z]){{{length}}}", candidate.value) if length else None
    if match is None or re.match(
        "[0-9A-Za-z]", (candidate.value + candidate.after)[match.end() :]
    ):
        return ""
    code = re.sub(r"[ -]", "", match[0]).upper()
    # The checksum alone: an account number with a typo in its bank code is still personal.
    return match[0] if mod_97_10.is_valid(code[4:] + code[:4]) else ""


@cache
def _iban_length(country: str) -> int:
    """Return the length of a country's account numbers; 0 if it has none."""
    [(_, facts)] = numdb.get("iban").info(country)
    lengths = re.findall(r"([0-9]+)![nac]", facts.get("bban", ""))
    return 4 + sum(map(int, lengths)) if lengths else 0


def account(candidate: Candidate) -> str:
    is_long = 6 <= len(candidate.digits) <= 17 and not _is_date(candidate.digits)
    is_whole = not re.match(r"\.?[0-9]", candidate.after) and not UNIT_AFTER.match(
        candidate.after
    )
    is_count = re.search("口座数[^0-9]*\\Z", candidate.before)
    return candidate.value if is_long and is_whole and not is_count else ""


def my_number(candidate: Candidate) -> str:
    is_more = re.match(r"[ -][0-9]{2}", candidate.after) or re.search(
        r"[0-9][ -]\Z", candidate.before
    )
    digit = individual_number.calc_check_digit(candidate.digits[:-1])
    proves = candidate.digits[-1] == digit and not _is_date(candidate.digits)
    return candidate.value if proves and not is_more and _is_standalone(candidate) else ""


def labelled_number(candidate: Candidate) -> str:
    return "" if re.match("-?[0-9]", candidate.after) else candidate.value


def passport(candidate: Candidate) -> str:
    return "" if re.match("[0-9A-Za-z]", candidate.after) else candidate.value


def any_number(candidate: Candidate) -> str:
    return candidate.value if _is_standalone(candidate) else ""


def ssn(candidate: Candidate) -> str:
    return candidate.value if _is_ssn(candidate.digits) and _is_standalone(candidate) else ""


def labelled_ssn(candidate: Candidate) -> str:
    is_more = re.match("-?[0-9]", candidate.after)
    return "" if is_more or not _is_ssn(candidate.digits) else candidate.value


def _is_ssn(digits: str) -> bool:
    """Whether an SSN can exist: zeros, 666 and 900 to 999 were never issued."""
    area = digits[:3]
    is_area = area not in {"000", "666"} and area < "900"
    return is_area and digits[3:5] != "00" and digits[5:] != "0000"


UNISSUED_PREFIXES = {"BG", "GB", "KN", "NK", "NT", "TN", "ZZ"}


def _is_ni_number(value: str) -> bool:
    letters = value[:2].upper()
    has_wrong = re.search("[DFIQUV]|.O", letters)
    is_example = letters == "QQ"  # used in documentation
    return is_example or (has_wrong is None and letters not in UNISSUED_PREFIXES)


def ni_number(candidate: Candidate) -> str:
    return (
        candidate.value if _is_ni_number(candidate.value) and _is_standalone(candidate) else ""
    )


def labelled_ni_number(candidate: Candidate) -> str:
    is_more = re.match("[0-9A-Za-z]", candidate.after)
    return "" if is_more or not _is_ni_number(candidate.value) else candidate.value


NOT_BIRTH = re.compile("まれ(?:では|じゃ)|産|鮮")


def birth_date(candidate: Candidate) -> str:
    return "" if re.match("[0-9]", candidate.after) else candidate.value


def japanese_birth_date(candidate: Candidate) -> str:
    """Return a date followed by the Japanese word for born."""
    return "" if NOT_BIRTH.match(candidate.after.lstrip(" ")[1:]) else candidate.value


def licence(candidate: Candidate) -> str:
    """Return a licence number: letters and digits, not a word."""
    match = re.match("[0-9A-Za-z]*[0-9][0-9A-Za-z -]*", candidate.value)
    value = match[0].rstrip(" -") if match else ""
    value = re.split("[ -](?=[a-z]{2,})", value)[0]
    return value if len(re.findall("[0-9]", value)) >= 4 else ""


def insurance(candidate: Candidate) -> str:
    is_whole = not re.match("[0-9]", candidate.after) and not UNIT_AFTER.match(candidate.after)
    return candidate.value if len(candidate.digits) >= 4 and is_whole else ""


PARTICLE = re.compile("[はがでにをとへも、][0-9一二三四五六七八九十]")
BLOCK_NUMBER = re.compile("[0-9一二三四五六七八九十](?:丁目|番|号|-[0-9])")
PLACE_NAME = re.compile(r".{2,3}[都道府県].{1,20}[市区町村].{1,20}[0-9]\s*\Z")
YEAR = re.compile(r"(?:19|20)[0-9]{2} ")
BEFORE_YEAR = re.compile(r"(?:in|since|by|until|from|of|during|before|after|top) \Z", re.I)


def japanese_address(candidate: Candidate) -> str:
    is_sentence = PARTICLE.search(candidate.value) or UNIT_AFTER.match(candidate.after)
    return "" if is_sentence else candidate.value


def labelled_address(candidate: Candidate) -> str:
    return (
        candidate.value
        if BLOCK_NUMBER.search(candidate.value) or PLACE_NAME.match(candidate.value)
        else ""
    )


def street(candidate: Candidate) -> str:
    is_year = YEAR.match(candidate.value) and BEFORE_YEAR.search(candidate.before)
    is_ranked = candidate.before.lower().endswith("top ")
    return "" if is_year or is_ranked or _is_joined(candidate) else candidate.value


NOT_PERSONAL = re.compile(r"0\.0\.0\.0|127\.|255\.255\.")
VERSION_SIGN = re.compile(r"(?:[A-Za-z][/-]|[=<>~!]=\s?|[~^]|§ ?|第 ?|版 ?|バージョン:? ?)\Z")
VERSION_WORD = re.compile(
    r"(?:\b(?:version|ver|v|release|rev|revision|build|firmware|driver|section|sec|chapter"
    r"|clause|ios|android|macos|windows|linux|kernel|python|node|java|php|ruby|chrome|firefox"
    r"|safari|nginx|openssl|oid)s?[\"']?\.?[:=]? ?[\"']?(?:is |of |to |from )?)\Z",
    re.I,
)


def ip4(candidate: Candidate) -> str:
    try:
        IPv4Address(candidate.value)
    except AddressValueError:
        return ""
    is_version = VERSION_SIGN.search(candidate.before) or VERSION_WORD.search(candidate.before)
    is_more = re.match(r"\.[0-9]|-[A-Za-z]|[+_]", candidate.after)
    is_dull = NOT_PERSONAL.match(candidate.value) or re.search(r"[0-9]\.\Z", candidate.before)
    return "" if is_version or is_more or is_dull else candidate.value


def ip6(candidate: Candidate) -> str:
    """Return an assigned IPv6 address; code paths and times look similar."""
    try:
        IPv6Address(candidate.value)
    except AddressValueError:
        return ""
    is_given = re.match("[23][0-9a-f]{3}:|f[cdef][0-9a-f]{2}:", candidate.value, re.I)
    has_parts = len(re.findall("[0-9a-f]+", candidate.value, re.I)) > 1
    return (
        candidate.value
        if is_given and has_parts and re.search("[0-9]", candidate.value)
        else ""
    )


UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.I)
MIN_ENTROPY_BITS = 3.0


def key_with_digit(candidate: Candidate) -> str:
    return candidate.value if re.search("[0-9]", candidate.value) else ""


def credentials(candidate: Candidate) -> str:
    value = candidate.value.rstrip(".")
    is_mixed = re.search(r"[0-9]|[a-z][A-Z]|=", value)
    return value if is_mixed and len(value) >= 8 else ""


def secret(candidate: Candidate) -> str:
    """Return a random-looking value."""
    value = candidate.value
    is_named = re.search(
        r"(?:api|access|secret|client|private|auth|token)", candidate.before, re.I
    )
    if UUID.fullmatch(value) and not is_named:
        return ""
    if not re.search("[0-9]", value) or not re.search("[A-Za-z]", value):
        return ""
    shares = [count / len(value) for count in Counter(value).values()]
    entropy = -sum(share * math.log2(share) for share in shares)  # bits per character
    return value if entropy >= MIN_ENTROPY_BITS else ""


def password(candidate: Candidate) -> str:
    """Return a password; in a URL, the next field ends it."""
    value = re.split(r"&\w+=", candidate.value)[0]
    is_word = (
        re.fullmatch(r"[A-Za-z]+\W*|[A-Za-z_][\w.]*\.\w+[(\[].*|\w+\(.*", value) is not None
    )
    return value if re.search("[0-9A-Za-z]", value) and not is_word else ""


def email(candidate: Candidate) -> str:
    """Return an email address, except double-size images, git remotes and URL credentials."""
    is_other = re.search(r"@[0-9]x\.|^git@", candidate.value) or re.search(
        r"://[^\s/?#]*\Z", candidate.before
    )
    return "" if is_other else candidate.value
