"""What personal data looks like, in English and in Japanese.

A form is a pattern and a check: check digits and labels decide, because a number alone is
mostly an order, a date or a price. The patterns are RE2, so no text takes long.
"""

from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import re2

from . import evidence
from .evidence import Seen

AROUND = 32


class Kind(StrEnum):
    EMAIL = "email"
    PHONE = "phone"
    CARD = "card"
    ACCOUNT = "account"
    IBAN = "IBAN"
    MY_NUMBER = "My Number"
    PASSPORT = "passport"
    ADDRESS = "address"
    IP = "IP address"
    KEY = "key"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    start: int
    end: int


Check = Callable[[Seen], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How one kind is written. Group 1 is the value; the check says how much of it counts."""

    kind: Kind
    pattern: Any
    check: Check
    needs: frozenset[str] = frozenset()  # no text without one of these characters has it

    def may_be_in(self, characters: Set[str]) -> bool:
        return not self.needs or not self.needs.isdisjoint(characters)

    def places(self, text: str) -> Iterator[Place]:
        for match in self.pattern.finditer(text):
            start, end = match.span(1)
            before, after = text[max(0, start - AROUND) : start], text[end : end + AROUND]
            counts = self.check(Seen(value=text[start:end], before=before, after=after))
            if counts:
                yield Place(start=start, end=start + len(counts))


EDGE = r"(?:^|[^0-9A-Za-z_])"
GAP = r"[^0-9\n‹›]{0,16}?"
ASK = r"(?:[\W_]{0,2}(?:number|numbers|no|num|nr|code|is|was|番号|は|が))*\W{0,4}"
KANJI = "一二三四五六七八九十"
PREFECTURES = (
    "東京都|北海道|京都府|大阪府|(?:青森|岩手|宮城|秋田|山形|福島|茨城|栃木|群馬|埼玉|千葉|神奈川|新潟"
    "|富山|石川|福井|山梨|長野|岐阜|静岡|愛知|三重|滋賀|兵庫|奈良|和歌山|鳥取|島根|岡山|広島|山口|徳島"
    "|香川|愛媛|高知|福岡|佐賀|長崎|熊本|大分|宮崎|鹿児島|沖縄)県"
)
TOWN = r"[^\s0-9、。,‹›]"
HOUSE = (
    rf"[0-9{KANJI}]{{1,4}}(?:(?:丁目|番地|番|号)[0-9{KANJI}]{{0,4}}|[の-][0-9]{{1,5}}){{1,5}}"
)
NAME = r" ?[^\sぁ-ん、。,()「」‹›]{1,15}"
BUILDING = (
    rf"(?:{NAME}(?:ビル|マンション|ハイツ|コーポ|アパート|タワー|荘)"
    rf"(?: ?[0-9]{{1,4}}(?:号室|号|階|F)?)?|{NAME}(?:号室|号|階|F))?"
)
# Cities and wards that are known without their prefecture.
CITIES = (
    "(?:札幌|仙台|さいたま|千葉|横浜|川崎|相模原|新潟|静岡|浜松|名古屋|京都|大阪|堺|神戸|岡山|広島|北九州"
    "|福岡|熊本)市|(?:千代田|新宿|文京|台東|墨田|江東|品川|目黒|大田|世田谷|渋谷|中野|杉並|豊島|荒川|板橋"
    "|練馬|足立|葛飾|江戸川)区"
)
CITY = rf"(?:(?:{PREFECTURES}) ?{TOWN}{{0,10}}[市区町村郡]|{CITIES})"
JAPANESE_ADDRESS = (
    rf"(?:〒 ?[0-9]{{3}}-?[0-9]{{4}}\s{{0,3}})?{CITY} ?{TOWN}{{0,15}}"
    rf"(?:[0-9]{{1,2}}条{TOWN}{{0,4}})? ?{HOUSE}{BUILDING}"
)
STREETS = (
    "Street|St|Avenue|Ave|Road|Rd|Boulevard|Blvd|Lane|Ln|Drive|Dr|Court|Ct|Square|Sq|Place|Pl"
    "|Terrace|Close|Crescent|Gardens|Mews|Parkway|Pkwy|Highway|Hwy|Way|Row|Hill"
)
STREET_NAME = r"(?:[A-Z][A-Za-z'.]{0,20}|[0-9]{1,3}(?:st|nd|rd|th))"
ZIP = r"(?:[A-Z]{2},? [0-9]{5}(?:-[0-9]{4})?|[A-Z]{1,2}[0-9][0-9A-Z]? [0-9][A-Z]{2}|[0-9]{5})"
FLAT = r"(?:,? (?:Apt|Apartment|Suite|Ste|Unit|Flat|Floor|#)\.? ?[0-9A-Za-z-]{1,6})?"
STREET_LINE = (
    rf"[0-9]{{1,5}}[A-Za-z]? (?:{STREET_NAME} ){{1,4}}(?:{STREETS})\b\.?{FLAT}"
    rf"(?:(?:,? [A-Z][A-Za-z]{{1,20}}){{1,3}},? {ZIP}\b)?"
)
KEYS = (
    r"(?:sk|pk|rk)[-_][A-Za-z0-9_-]{16,}|(?:gsk|xai|csk|nvapi|pplx|glpat|npm)[-_][A-Za-z0-9_-]{16,}"
    r"|xox[abeprs]-[A-Za-z0-9-]{10,}|gh[opsur]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,}"
    r"|hf_[A-Za-z0-9]{16,}|AIza[A-Za-z0-9_-]{20,}|(?:AKIA|ASIA)[A-Z0-9]{16}|ya29\.[A-Za-z0-9_-]{16,}"
    r"|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"
)
BASE64 = r"[A-Za-z0-9+/=]"
BREAK = r"(?:\s|\\[nr])"
PEM = (
    rf"-----BEGIN [A-Z0-9 ]{{3,40}}-----{BREAK}*(?:[A-Za-z-]{{1,20}}: [^\n\\]{{1,80}}{BREAK}+)*"
    rf"(?:{BASE64}{{16,}}{BREAK}*)+{BASE64}*{BREAK}*(?:-----END [A-Z0-9 ]{{3,40}}-----)?"
)
NAMES = (
    r"(?:api|access|secret|private|client|auth|encryption|signing|webhook|master|refresh|session"
    r"|bearer|bot|id)?[_ -]?(?:key|token|secret|credentials?)"
)


def _form(kind: Kind, pattern: str, check: Check = evidence.whole, needs: str = "") -> Form:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = 32 << 20
    compiled = re2.compile(pattern, options)
    return Form(kind=kind, pattern=compiled, check=check, needs=frozenset(needs))


DIGIT = "0123456789"
FORMS = (
    _form(
        Kind.EMAIL,
        r"([A-Za-z0-9_](?:[A-Za-z0-9._%+'-]*[A-Za-z0-9_+-])?"
        r"@(?:[\p{L}\p{N}](?:[\p{L}\p{N}-]*[\p{L}\p{N}])?\.)+[A-Za-z]{2,24})",
        evidence.email,
        "@",
    ),
    _form(Kind.KEY, r"://([^\s/@:‹›]+:[^\s/@‹›]+)@", needs="@"),
    _form(
        Kind.PHONE,
        rf"{EDGE}(\+[1-9](?:[ .()-]{{0,2}}[0-9]){{7,14}})",
        evidence.abroad,
        "+",
    ),
    _form(
        Kind.PHONE,
        rf"{EDGE}(\(?0[0-9]{{1,4}}(?:[ .()-]{{1,2}}[0-9]{{1,8}}){{1,2}})",
        evidence.grouped_phone,
        "0",
    ),
    _form(Kind.PHONE, rf"{EDGE}(0[5789]0[0-9]{{8}})", evidence.any_phone, "0"),
    _form(Kind.PHONE, rf"{EDGE}(0[1-9](?:[ .][0-9]{{2}}){{4}})", evidence.any_phone, "0"),
    _form(
        Kind.PHONE,
        rf"{EDGE}((?:1[ .-])?(?:\([2-9][0-9]{{2}}\) ?|[2-9][0-9]{{2}}[ .-])"
        r"[0-9]{3}[ .-][0-9]{4})",
        evidence.any_phone,
        DIGIT,
    ),
    _form(
        Kind.PHONE,
        r"(?i)(?:(?:^|[^a-z])(?:tel|telephone|phone|mobile|cell phone|cell is|cell:|fax"
        rf"|whatsapp|call me)|電話|携帯|ファックス|ファクス|連絡先){GAP}"
        r"(\+?\(?[0-9]{1,15}(?:[ .()-]{1,2}[0-9]{1,8}){0,4})",
        evidence.labelled_phone,
        DIGIT,
    ),
    _form(Kind.CARD, rf"{EDGE}([0-9]{{14,19}})", evidence.card, DIGIT),
    _form(
        Kind.CARD,
        rf"{EDGE}([0-9]{{4}}(?:[ -][0-9]{{4}}){{3}}(?:[ -][0-9]{{3}})?)",
        evidence.card,
        DIGIT,
    ),
    _form(
        Kind.CARD,
        rf"{EDGE}([0-9]{{4}}[ -][0-9]{{6}}[ -][0-9]{{4,5}})",
        evidence.card,
        DIGIT,
    ),
    _form(
        Kind.IBAN,
        r"(?:^|[^0-9A-Za-z])([A-Za-z]{2}[0-9]{2}(?:[ -]?[0-9A-Za-z]){11,32})",
        evidence.iban,
        DIGIT,
    ),
    _form(
        Kind.ACCOUNT,
        r"(?i)(?:(?:account|acct|a/c)[\W_]{0,2}(?:number|no|num|#)"
        r"|(?:bank|savings|checking|current)[ _]acc(?:ount|t)?|routing[ _]?number|sort[ _]?code"
        rf"|口座番号|口座){GAP}"
        r"([0-9][0-9 -]{4,20}[0-9])",
        evidence.account,
        DIGIT,
    ),
    _form(
        Kind.ACCOUNT,
        r"(?:普通|当座|貯蓄|\(普\)|\(当\))(?:預金)?(?:口座)?[^0-9\n‹›]{0,6}([0-9]{7})",
        evidence.account,
        DIGIT,
    ),
    _form(
        Kind.ACCOUNT,
        r"記号[^0-9\n‹›]{0,4}([0-9]{5}[^0-9\n‹›]{0,3}番号[^0-9\n‹›]{0,4}[0-9]{6,8})",
        needs=DIGIT,
    ),
    _form(
        Kind.MY_NUMBER,
        rf"{EDGE}([0-9]{{4}}[ -]?[0-9]{{4}}[ -]?[0-9]{{4}})(?:$|[^0-9])",
        evidence.my_number,
        DIGIT,
    ),
    _form(
        Kind.MY_NUMBER,
        r"(?i)(?:my[ _]?number|individual[ _]number|マイナンバー|個人番号)[^0-9\n‹›]{0,12}"
        r"([0-9]{4}[ -]?[0-9]{4}[ -]?[0-9]{4})",
        evidence.labelled_number,
        DIGIT,
    ),
    _form(
        Kind.PASSPORT,
        rf"(?i)(?:passport|旅券|パスポート){ASK}([a-z]{{0,2}}[0-9]{{6,9}})",
        evidence.passport,
        DIGIT,
    ),
    _form(Kind.ADDRESS, r"(〒 ?[0-9]{3}-?[0-9]{4})(?:$|[^0-9])", needs="〒"),
    _form(
        Kind.ADDRESS,
        r"郵便番号[^0-9\n‹›]{0,6}([0-9]{3}-?[0-9]{4})(?:$|[^0-9])",
        needs="郵",
    ),
    _form(Kind.ADDRESS, rf"{EDGE}([0-9]{{3}}-[0-9]{{4}}) ?{CITY}", evidence.apart, "都道府県"),
    _form(Kind.ADDRESS, rf"({JAPANESE_ADDRESS})", evidence.japanese_address, "都道府県市区"),
    _form(
        Kind.ADDRESS,
        r"(?:住所|所在地|居所|お届け先|届け先)[ :はが]{1,3}([^\s、。‹›][^\n、。‹›]{3,60})",
        evidence.said_address,
        "住所届",
    ),
    _form(Kind.ADDRESS, rf"{EDGE}({STREET_LINE})", evidence.street, DIGIT),
    _form(Kind.ADDRESS, r"(?i)(\bP\.? ?O\.? Box [0-9]{1,6})", needs="Xx"),
    _form(
        Kind.IP,
        r"(?:^|[^0-9A-Za-z_])((?:[0-9]{1,3}\.){3}[0-9]{1,3})(?:$|[^0-9A-Za-z])",
        evidence.ip4,
        ".",
    ),
    _form(
        Kind.IP,
        r"(?:^|[^0-9A-Fa-f:]:|[^0-9A-Za-z_:.])([0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7})"
        r"(?:$|[^0-9A-Za-z_:])",
        evidence.ip6,
        ":",
    ),
    _form(Kind.KEY, rf"(?:^|[^0-9A-Za-z])({KEYS})", evidence.with_digit, "-_.AIz"),
    _form(Kind.KEY, r"(?:^|[^0-9A-Za-z])(eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*){0,2})"),
    _form(
        Kind.KEY, r"(?i)\b(?:bearer|basic)\s{1,4}([A-Za-z0-9._~+/=-]{8,})", evidence.credentials
    ),
    _form(
        Kind.KEY,
        r"(?i)authorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:[a-z]{1,20}\s{1,4})?([^\s\"',;‹›]{8,})",
        evidence.credentials,
    ),
    _form(Kind.KEY, rf"({PEM})", needs="-"),
    _form(
        Kind.KEY,
        rf"(?i)(?:^|[^A-Za-z0-9]){NAMES}[\"']?\s{{0,3}}[:=]\s{{0,3}}[\"']?"
        r"([^\s\"',;&‹›]{16,})",
        evidence.secret,
        ":=",
    ),
    _form(
        Kind.KEY,
        r"(?i)(?:password|passwd|passcode|passphrase|\bpwd|パスワード|暗証番号)[\"']?\s{0,3}"
        r"(?:[:=]|は|\bis\b)\s{0,3}[\"'「]?([!#-&(-+\-./0-:<-~]{4,})",
        evidence.password,
    ),
)
