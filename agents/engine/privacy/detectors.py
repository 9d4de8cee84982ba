"""Patterns of personal data in English and Japanese.

A detector is a pattern and a check: check digits and labels decide, because a bare number is
mostly an order, a date or a price. The patterns are RE2, so no text takes long.
"""

from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import re2

from . import validators
from .validators import Candidate

CONTEXT_CHARS = 32


class PiiKind(StrEnum):
    EMAIL = "email"
    PHONE = "phone"
    CARD = "card"
    ACCOUNT = "account"
    IBAN = "IBAN"
    MY_NUMBER = "My Number"
    PASSPORT = "passport"
    SSN = "SSN"
    NI_NUMBER = "NI number"
    BIRTH_DATE = "date of birth"
    LICENCE = "driving licence"
    PENSION = "pension number"
    INSURANCE = "insurance number"
    RESIDENCE_CARD = "residence card"
    ADDRESS = "address"
    IP = "IP address"
    KEY = "key"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRange:
    start: int
    end: int


CandidateCheck = Callable[[Candidate], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Detector:
    """How one kind is written. Group 1 is the value; the check returns the part that counts."""

    kind: PiiKind
    pattern: Any
    check: CandidateCheck
    needs: frozenset[str] = frozenset()  # the text must contain one of these characters
    words: tuple[str, ...] = ()  # or one of these words, in lower case

    def may_match(self, characters: Set[str], small: str) -> bool:
        if self.needs and self.needs.isdisjoint(characters):
            return False
        return not self.words or any(word in small for word in self.words)

    def find_ranges(self, text: str) -> Iterator[TextRange]:
        for match in self.pattern.finditer(text):
            start, end = match.span(1)
            before, after = (
                text[max(0, start - CONTEXT_CHARS) : start],
                text[end : end + CONTEXT_CHARS],
            )
            counts = self.check(Candidate(value=text[start:end], before=before, after=after))
            if counts:
                yield TextRange(start=start, end=start + len(counts))


LEFT_BOUNDARY = r"(?:^|[^0-9A-Za-z_])"
GAP = r"[^0-9\n‹›]{0,16}?"
LABEL_SUFFIX = r"(?:[\W_]{0,2}(?:number|numbers|no|num|nr|code|is|was|番号|は|が))*\W{0,4}"
KANJI_DIGITS = "一二三四五六七八九十"
PREFECTURES = (
    "東京都|北海道|京都府|大阪府|(?:青森|岩手|宮城|秋田|山形|福島|茨城|栃木|群馬|埼玉|千葉|神奈川|新潟"
    "|富山|石川|福井|山梨|長野|岐阜|静岡|愛知|三重|滋賀|兵庫|奈良|和歌山|鳥取|島根|岡山|広島|山口|徳島"
    "|香川|愛媛|高知|福岡|佐賀|長崎|熊本|大分|宮崎|鹿児島|沖縄)県"
)
TOWN = r"[^\s0-9、。,‹›]"
HOUSE = (
    rf"[0-9{KANJI_DIGITS}]{{1,4}}"
    rf"(?:(?:丁目|番地|番|号)[0-9{KANJI_DIGITS}]{{0,4}}|[の-][0-9]{{1,5}}){{1,5}}"
)
BUILDING_NAME = r" ?[^\sぁ-ん、。,()「」‹›]{1,15}"
BUILDING = (
    rf"(?:{BUILDING_NAME}(?:ビル|マンション|ハイツ|コーポ|アパート|タワー|荘)"
    rf"(?: ?[0-9]{{1,4}}(?:号室|号|階|F)?)?|{BUILDING_NAME}(?:号室|号|階|F))?"
)
# Cities and wards that are used without their prefecture.
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
# The prefix identifies a key, so the rest needs no digit.
ISSUED_KEYS = (
    r"(?:sk|pk)-(?:proj|svcacct|admin|ant|or|lf)-[A-Za-z0-9_-]{16,}|sk-[A-Za-z0-9]{24,}|hf_[A-Za-z0-9]{16,}"
    r"|(?:glpat|gldt|glptt|glrt|gloas|glsoat|glagent|glcbt)-[A-Za-z0-9_.-]{16,}"
    r"|gh[opsur]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,}|GOCSPX-[A-Za-z0-9_-]{16,}"
    r"|whsec_[A-Za-z0-9+/=]{16,}|xox[abceprs]-[A-Za-z0-9-]{10,}|xapp-[0-9]-[A-Za-z0-9-]{10,}"
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}|AIza[A-Za-z0-9_-]{30,}|ya29\.[A-Za-z0-9_-]{16,}"
    r"|npm_[A-Za-z0-9]{30,}|pypi-AgE[A-Za-z0-9_-]{16,}|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"
    r"|(?:gsk|fw|r8|rg|tgp_v1|dop_v1|doo_v1|dckr_pat|lin_api|ntn|figd|sntry[su]|shp(?:at|ca|pa|ss)"
    r"|sk_live|sk_test|rk_live|rk_test|pk_live|pk_test)_[A-Za-z0-9]{16,}"
    r"|(?:xai|nvapi|pplx|csk|tvly|NRAK|tskey-(?:auth|api))-[A-Za-z0-9_-]{16,}"
    r"|hv[bs]\.[A-Za-z0-9_-]{20,}|ATATT3[A-Za-z0-9_=-]{20,}|[0-9]{8,10}:AA[A-Za-z0-9_-]{33}"
    r"|[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}"
    r"|rubygems_[a-f0-9]{40,}|PMAK-[a-f0-9]{24}-[a-f0-9]{30,}|AGE-SECRET-KEY-1[A-Z0-9]{20,}|sq0(?:atp|csp)-[A-Za-z0-9_-]{20,}"
)
GENERIC_KEYS = r"(?:sk|pk|rk)[-_][A-Za-z0-9_-]{16,}|(?:npm|gsk|csk|ntn)[-_][A-Za-z0-9_-]{16,}"
# Anyone who has the URL can post there.
WEBHOOKS = (
    r"hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/[A-Za-z0-9_/-]{10,}"
    r"|(?:canary\.|ptb\.)?discord(?:app)?\.com/api/(?:v[0-9]+/)?webhooks/[0-9]{5,}/[A-Za-z0-9_-]{10,}"
    r"|[A-Za-z0-9.-]{1,80}webhook\.office\.com/webhookb2/[A-Za-z0-9@/_-]{10,}"
    r"|outlook\.office(?:365)?\.com/webhook/[A-Za-z0-9@/_-]{10,}"
    r"|[A-Za-z0-9.:-]{1,80}(?:logic\.azure|powerplatform|api\.powerautomate)\.com(?::[0-9]+)?/[^\s‹›\"'<>]{1,400}sig=[A-Za-z0-9_%-]{10,}"
    r"|chat\.googleapis\.com/v1/spaces/[^\s‹›\"'<>]{1,200}(?:key|token)=[A-Za-z0-9_%&=-]{10,}"
    r"|hooks\.zapier\.com/hooks/catch/[0-9]+/[A-Za-z0-9]+|api\.telegram\.org/bot[0-9]{5,}:[A-Za-z0-9_-]{20,}"
)
BASE64 = r"[A-Za-z0-9+/=]"
LINE_BREAK = r"(?:\s|\\[nr])"
PEM = (
    rf"-----BEGIN [A-Z0-9 ]{{3,40}}-----{LINE_BREAK}*"
    rf"(?:[A-Za-z-]{{1,20}}: [^\n\\]{{1,80}}{LINE_BREAK}+)*"
    rf"(?:{BASE64}{{16,}}{LINE_BREAK}*)+{BASE64}*{LINE_BREAK}*"
    r"(?:-----END [A-Z0-9 ]{3,40}-----)?"
)
MONTH = (
    "(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?"
    "|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)"
)
JAPANESE_DATE = (
    r"(?:[0-9]{4}|(?:明治|大正|昭和|平成|令和|[MTSHR])[ .]?(?:[0-9]{1,2}|元))"
    r" ?[年./-] ?[0-9]{1,2} ?[月./-] ?[0-9]{1,2}日?"
)
BIRTH_DATE = (
    rf"{JAPANESE_DATE}|[0-9]{{1,2}}[ ./-][0-9]{{1,2}}[ ./-](?:19|20)?[0-9]{{2}}"
    r"|(?:19|20)[0-9]{6}"
    rf"|{MONTH}\.? [0-9]{{1,2}}(?:st|nd|rd|th)?,? (?:19|20)[0-9]{{2}}"
    rf"|[0-9]{{1,2}}(?:st|nd|rd|th)?[ -](?:of )?{MONTH}\.?,?[ -](?:19|20)[0-9]{{2}}"
)
SECRET_NAMES = (
    r"(?:api|access|secret|private|client|auth|encryption|signing|webhook|master|refresh|session"
    r"|bearer|bot|id)?[_ -]?(?:key|token|secret|credentials?)"
)


def _detector(
    kind: PiiKind,
    pattern: str,
    check: CandidateCheck = validators.any_value,
    needs: str = "",
    words: str = "",
) -> Detector:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = 32 << 20
    compiled = re2.compile(pattern, options)
    return Detector(
        kind=kind,
        pattern=compiled,
        check=check,
        needs=frozenset(needs),
        words=tuple(words.split()),
    )


DIGITS = "0123456789"
OTHER_LETTERS = r"\p{Latin}\p{Cyrillic}\p{Greek}"
LABEL = r"[\p{L}\p{N}](?:[\p{L}\p{N}-]*[\p{L}\p{N}])?"
# A domain may end in another script; Japanese text often follows without a space.
TOP_LEVEL_DOMAIN = (
    r"(?:xn--[A-Za-z0-9-]{2,59}|[A-Za-z]{2,24}|[\p{Cyrillic}\p{Greek}\p{Arabic}\p{Hangul}"
    r"\p{Thai}\p{Devanagari}]{2,24}|コム|テスト|みんな|世界|中国|中國|公司|网络|香港|台湾)"
)
DOMAIN = rf"(?:{LABEL}\.)+{TOP_LEVEL_DOMAIN}"
DETECTORS = (
    # Specific kinds first: of two that match the same text, the first names it.
    _detector(
        PiiKind.SSN, rf"{LEFT_BOUNDARY}([0-9]{{3}}-[0-9]{{2}}-[0-9]{{4}})", validators.ssn, "-"
    ),
    _detector(
        PiiKind.SSN,
        r"(?i)(?:\bssn|social[ _-]?security|社会保障番号)[^0-9\n‹›]{0,16}?"
        r"([0-9]{3}[ .-]?[0-9]{2}[ .-]?[0-9]{4})",
        validators.labelled_ssn,
        DIGITS,
        words="ssn social 社会保障",
    ),
    _detector(
        PiiKind.NI_NUMBER,
        rf"{LEFT_BOUNDARY}([A-Z]{{2}} ?[0-9]{{2}} ?[0-9]{{2}} ?[0-9]{{2}} ?[A-D])"
        r"(?:$|[^0-9A-Za-z])",
        validators.ni_number,
        DIGITS,
    ),
    _detector(
        PiiKind.NI_NUMBER,
        r"(?i)(?:national[ _]insurance|\bnino|\bni)[ _]?(?:number|no\.?|num)?"
        r"[^0-9A-Za-z\n‹›]{0,6}(?:is )?"
        r"([a-z]{2}[ -]?[0-9]{2}[ -]?[0-9]{2}[ -]?[0-9]{2}(?:[ -]?[a-d])?)",
        validators.labelled_ni_number,
        DIGITS,
        words="insurance nino ni",
    ),
    _detector(
        PiiKind.BIRTH_DATE,
        r"(?i)(?:date[ _-]?of[ _-]?birth|birth[ _-]?(?:date|day)|\bborn(?:[ _-]on)?"
        rf"|\bd\.?o\.?b\b\.?|生年月日|誕生日|出生日)[^0-9\n‹›]{{0,12}}?({BIRTH_DATE})",
        validators.birth_date,
        DIGITS,
        words="birth born dob d.o 生年 誕生 出生",
    ),
    _detector(
        PiiKind.BIRTH_DATE,
        rf"{LEFT_BOUNDARY}({JAPANESE_DATE}) ?生",
        validators.japanese_birth_date,
        "生",
    ),
    _detector(
        PiiKind.LICENCE,
        r"(?:運転免許(?:証)?|免許証|免許番号|免許[^0-9\n‹›]{0,16}第)(?:の)?(?:番号)?[^0-9\n‹›]{0,8}"
        r"([0-9]{4}[ -]?[0-9]{4}[ -]?[0-9]{4})",
        validators.labelled_number,
        "免",
    ),
    _detector(
        PiiKind.LICENCE,
        rf"(?i)(?:driver'?s?|driving)[ _](?:licen[cs]e|permit){LABEL_SUFFIX}"
        r"([a-z0-9](?:[ -]?[a-z0-9]){5,18})",
        validators.licence,
        DIGITS,
        words="driv",
    ),
    _detector(
        PiiKind.PENSION,
        r"(?:(?:基礎)?年金(?:番号|手帳)|(?i:basic pension|pension (?:number|no)))"
        r"(?:の?記号番号|番号)?[^0-9\n‹›]{0,12}?([0-9]{4}[ -]?[0-9]{6})",
        validators.labelled_number,
        DIGITS,
        words="pension 年金",
    ),
    _detector(
        PiiKind.INSURANCE,
        r"(?:保険者|被保険者(?:証)?|保険証|健康保険(?:証)?|介護保険)(?:の)?"
        r"(?:記号)?[・ ]?(?:番号)?[^0-9\n‹›]{0,8}([0-9]{1,8}(?:[・ -][0-9]{1,8}){0,2})",
        validators.insurance,
        "険",
    ),
    _detector(
        PiiKind.INSURANCE,
        r"(?:保険|被保険者)[^\n‹›]{0,12}記号[^0-9\n‹›]{0,4}"
        r"([0-9][0-9・ -]{0,9}[^0-9\n‹›]{0,4}番号[^0-9\n‹›]{0,4}[0-9]{1,8})",
        needs="険",
    ),
    _detector(
        PiiKind.INSURANCE,
        r"記号・?番号[^0-9\n‹›]{0,6}([0-9]{1,8}[・ -][0-9]{1,8})",
        validators.insurance,
        "記",
    ),
    _detector(
        PiiKind.INSURANCE,
        rf"(?i)(?:\bnhs|health insurance|medical insurance|\binsurance (?:id|policy|member))"
        rf"(?: (?:id|card))?{LABEL_SUFFIX}([a-z]{{0,3}}[0-9](?:[ -]?[0-9]){{5,13}})",
        validators.labelled_number,
        DIGITS,
        words="nhs insurance",
    ),
    _detector(
        PiiKind.RESIDENCE_CARD,
        rf"{LEFT_BOUNDARY}([A-Z]{{2}} ?[0-9]{{8}} ?[A-Z]{{2}})(?:$|[^0-9A-Za-z])",
        validators.any_number,
        DIGITS,
    ),
    _detector(
        PiiKind.RESIDENCE_CARD,
        rf"(?i)(?:在留カード|residence card|zairyu card){LABEL_SUFFIX}"
        r"([a-z]{2}[ -]?[0-9]{8}[ -]?[a-z]{2})",
        validators.passport,
        DIGITS,
        words="在留 residence zairyu",
    ),
    _detector(
        PiiKind.EMAIL,
        rf"([A-Za-z0-9_{OTHER_LETTERS}][A-Za-z0-9._%+'{OTHER_LETTERS}-]*@{DOMAIN})",
        validators.email,
        "@",
    ),
    _detector(
        PiiKind.EMAIL,
        rf"(?:^|[^\p{{L}}\p{{N}}._-])([\p{{Han}}\p{{Hiragana}}\p{{Katakana}}ー]{{1,20}}@{DOMAIN})",
        validators.email,
        "@",
    ),
    _detector(PiiKind.EMAIL, rf"(\"[^\"\n@‹›]{{1,60}}\"@{DOMAIN})", validators.email, "@"),
    _detector(PiiKind.KEY, r"://([^\s/@:‹›]+:[^\s/@‹›]+)@", needs="@"),
    _detector(
        PiiKind.PHONE,
        rf"{LEFT_BOUNDARY}(\+[1-9](?:[ .()-]{{0,2}}[0-9]){{7,14}})",
        validators.international_phone,
        "+",
    ),
    _detector(
        PiiKind.PHONE,
        rf"{LEFT_BOUNDARY}(\(?0[0-9]{{1,4}}(?:[ .()-]{{1,2}}[0-9]{{1,8}}){{1,2}})",
        validators.grouped_phone,
        "0",
    ),
    _detector(
        PiiKind.PHONE, rf"{LEFT_BOUNDARY}(0[5789]0[0-9]{{8}})", validators.any_phone, "0"
    ),
    _detector(
        PiiKind.PHONE,
        rf"{LEFT_BOUNDARY}(0[1-9](?:[ .][0-9]{{2}}){{4}})",
        validators.any_phone,
        "0",
    ),
    _detector(
        PiiKind.PHONE,
        rf"{LEFT_BOUNDARY}((?:1[ .-])?(?:\([2-9][0-9]{{2}}\) ?|[2-9][0-9]{{2}}[ .-])"
        r"[0-9]{3}[ .-][0-9]{4})",
        validators.any_phone,
        DIGITS,
    ),
    _detector(
        PiiKind.PHONE,
        r"(?i)(?:(?:^|[^a-z])(?:tel|telephone|phone|mobile|cell phone|cell is|cell:|fax"
        rf"|whatsapp|call me)|電話|携帯|ファックス|ファクス|連絡先){GAP}"
        r"(\+?\(?[0-9]{1,15}(?:[ .()-]{1,2}[0-9]{1,8}){0,4})",
        validators.labelled_phone,
        DIGITS,
        words="tel phone mobile cell fax whatsapp call 電話 携帯 ファ 連絡先",
    ),
    _detector(PiiKind.CARD, rf"{LEFT_BOUNDARY}([0-9]{{14,19}})", validators.card, DIGITS),
    _detector(
        PiiKind.CARD,
        rf"{LEFT_BOUNDARY}([0-9]{{4}}(?:[ ._/-][0-9]{{4}}){{3}}(?:[ -][0-9]{{3}})?)",
        validators.card,
        DIGITS,
    ),
    _detector(
        PiiKind.CARD,
        rf"{LEFT_BOUNDARY}([0-9]{{4}}[ .-][0-9]{{6}}[ .-][0-9]{{4,5}})",
        validators.card,
        DIGITS,
    ),
    _detector(
        PiiKind.IBAN,
        r"(?:^|[^0-9A-Za-z])([A-Za-z]{2}[0-9]{2}(?:[ -]?[0-9A-Za-z]){11,32})",
        validators.iban,
        DIGITS,
    ),
    _detector(
        PiiKind.ACCOUNT,
        r"(?i)(?:(?:account|acct|a/c)[\W_]{0,2}(?:number|no|num|#)"
        r"|(?:bank|savings|checking|current)[ _]acc(?:ount|t)?|routing[ _]?number|sort[ _]?code"
        rf"|口座番号|口座){GAP}"
        r"([0-9][0-9 -]{4,20}[0-9])",
        validators.account,
        DIGITS,
        words="acc a/c routing sort 口座",
    ),
    _detector(
        PiiKind.ACCOUNT,
        r"(?i)sort[ _]?code[^0-9\n‹›]{0,8}"
        r"([0-9]{2}[ -]?[0-9]{2}[ -]?[0-9]{2}[^0-9\n‹›]{1,30}[0-9]{8})(?:$|[^0-9])",
        needs=DIGITS,
        words="sort",
    ),
    _detector(
        PiiKind.ACCOUNT,
        r"(?:普通|当座|貯蓄|\(普\)|\(当\))(?:預金)?(?:口座)?[^0-9\n‹›]{0,6}([0-9]{7})",
        validators.account,
        DIGITS,
        words="普 当 貯蓄",
    ),
    _detector(
        PiiKind.ACCOUNT,
        r"記号[^0-9\n‹›]{0,4}([0-9]{5}[^0-9\n‹›]{0,3}番号[^0-9\n‹›]{0,4}[0-9]{6,8})",
        needs=DIGITS,
        words="記号",
    ),
    _detector(
        PiiKind.MY_NUMBER,
        rf"{LEFT_BOUNDARY}([0-9]{{4}}[ -]?[0-9]{{4}}[ -]?[0-9]{{4}})(?:$|[^0-9])",
        validators.my_number,
        DIGITS,
    ),
    _detector(
        PiiKind.MY_NUMBER,
        r"(?i)(?:my[ _]?number|individual[ _]number|マイナンバー|個人番号)[^0-9\n‹›]{0,12}"
        r"([0-9]{4}[ -]?[0-9]{4}[ -]?[0-9]{4})",
        validators.labelled_number,
        DIGITS,
        words="number マイナ 個人番号",
    ),
    _detector(
        PiiKind.PASSPORT,
        rf"(?i)(?:passport|旅券|パスポート){LABEL_SUFFIX}([a-z]{{0,2}}[0-9]{{6,9}})",
        validators.passport,
        DIGITS,
        words="passport 旅券 パスポート",
    ),
    _detector(PiiKind.ADDRESS, r"(〒 ?[0-9]{3}-?[0-9]{4})(?:$|[^0-9])", needs="〒"),
    _detector(
        PiiKind.ADDRESS,
        r"郵便番号[^0-9\n‹›]{0,6}([0-9]{3}-?[0-9]{4})(?:$|[^0-9])",
        needs="郵",
    ),
    _detector(
        PiiKind.ADDRESS,
        rf"{LEFT_BOUNDARY}([0-9]{{3}}-[0-9]{{4}}) ?{CITY}",
        validators.separate_value,
        "都道府県",
    ),
    _detector(
        PiiKind.ADDRESS, rf"({JAPANESE_ADDRESS})", validators.japanese_address, "都道府県市区"
    ),
    _detector(
        PiiKind.ADDRESS,
        r"(?:住所|所在地|居所|お届け先|届け先)[ :はが]{1,3}([^\s、。‹›][^\n、。‹›]{3,60})",
        validators.labelled_address,
        "住所届",
    ),
    _detector(PiiKind.ADDRESS, rf"{LEFT_BOUNDARY}({STREET_LINE})", validators.street, DIGITS),
    _detector(PiiKind.ADDRESS, r"(?i)(\bP\.? ?O\.? Box [0-9]{1,6})", words="box"),
    _detector(
        PiiKind.IP,
        r"(?:^|[^0-9A-Za-z_])((?:[0-9]{1,3}\.){3}[0-9]{1,3})(?:$|[^0-9A-Za-z])",
        validators.ip4,
        ".",
    ),
    _detector(
        PiiKind.IP,
        r"(?:^|[^0-9A-Fa-f:]:|[^0-9A-Za-z_:.])([0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7})"
        r"(?:$|[^0-9A-Za-z_:])",
        validators.ip6,
        ":",
    ),
    _detector(PiiKind.KEY, rf"(?:^|[^0-9A-Za-z])({ISSUED_KEYS})", needs="-_.:AIz"),
    _detector(
        PiiKind.KEY, rf"(?:^|[^0-9A-Za-z])({GENERIC_KEYS})", validators.key_with_digit, "-_"
    ),
    _detector(
        PiiKind.KEY,
        rf"(?i)(?:^|[^0-9A-Za-z.-])((?:https?://)?(?:{WEBHOOKS}))",
        words="hook logic.azure power chat.google telegram",
    ),
    _detector(
        PiiKind.KEY,
        r"(?i)(?:AccountKey|SharedAccessKey|SharedAccessSignature)=([A-Za-z0-9+/=%&_.:-]{16,})",
        needs="=",
        words="accountkey sharedaccess",
    ),
    _detector(
        PiiKind.KEY,
        r"(?:^|[^0-9A-Za-z])(eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*){0,2})",
        words="eyj",
    ),
    _detector(
        PiiKind.KEY,
        r"(?i)\b(?:bearer|basic)\s{1,4}([A-Za-z0-9._~+/=-]{8,})",
        validators.credentials,
        words="bearer basic",
    ),
    _detector(
        PiiKind.KEY,
        r"(?i)authorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:[a-z]{1,20}\s{1,4})?([^\s\"',;‹›]{8,})",
        validators.credentials,
        words="authorization",
    ),
    _detector(PiiKind.KEY, rf"({PEM})", words="-----begin"),
    _detector(
        PiiKind.KEY,
        rf"(?i)(?:^|[^A-Za-z0-9]){SECRET_NAMES}[\"']?\s{{0,3}}[:=]\s{{0,3}}[\"']?"
        r"([^\s\"',;&‹›]{16,})",
        validators.secret,
        ":=",
        words="key token secret credential",
    ),
    _detector(
        PiiKind.KEY,
        r"(?i)(?:password|passwd|passcode|passphrase|\bpwd|パスワード|暗証番号)[\"']?[ \t]{0,3}"
        r"(?:[:=]|は|\bis\b)[ \t]{0,3}[\"'「]?([!#-&(-+\-./0-:<-~]{4,})",
        validators.password,
        words="passw passc passp pwd パスワード 暗証",
    ),
)
