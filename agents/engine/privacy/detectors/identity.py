"""Detectors of who a person is: national numbers, documents and dates of birth."""

from .. import validators
from .detector import DIGITS, LABEL_SUFFIX, LEFT_BOUNDARY, PiiKind, make_detector

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
IDENTITY_DETECTORS = (
    make_detector(
        PiiKind.SSN, rf"{LEFT_BOUNDARY}([0-9]{{3}}-[0-9]{{2}}-[0-9]{{4}})", validators.ssn, "-"
    ),
    make_detector(
        PiiKind.SSN,
        r"(?i)(?:\bssn|social[ _-]?security|社会保障番号)[^0-9\n‹›]{0,16}?"
        r"([0-9]{3}[ .-]?[0-9]{2}[ .-]?[0-9]{4})",
        validators.labelled_ssn,
        DIGITS,
        words="ssn social 社会保障",
    ),
    make_detector(
        PiiKind.NI_NUMBER,
        rf"{LEFT_BOUNDARY}([A-Z]{{2}} ?[0-9]{{2}} ?[0-9]{{2}} ?[0-9]{{2}} ?[A-D])"
        r"(?:$|[^0-9A-Za-z])",
        validators.ni_number,
        DIGITS,
    ),
    make_detector(
        PiiKind.NI_NUMBER,
        r"(?i)(?:national[ _]insurance|\bnino|\bni)[ _]?(?:number|no\.?|num)?"
        r"[^0-9A-Za-z\n‹›]{0,6}(?:is )?"
        r"([a-z]{2}[ -]?[0-9]{2}[ -]?[0-9]{2}[ -]?[0-9]{2}(?:[ -]?[a-d])?)",
        validators.labelled_ni_number,
        DIGITS,
        words="insurance nino ni",
    ),
    make_detector(
        PiiKind.BIRTH_DATE,
        r"(?i)(?:date[ _-]?of[ _-]?birth|birth[ _-]?(?:date|day)|\bborn(?:[ _-]on)?"
        rf"|\bd\.?o\.?b\b\.?|生年月日|誕生日|出生日)[^0-9\n‹›]{{0,12}}?({BIRTH_DATE})",
        validators.birth_date,
        DIGITS,
        words="birth born dob d.o 生年 誕生 出生",
    ),
    make_detector(
        PiiKind.BIRTH_DATE,
        rf"{LEFT_BOUNDARY}({JAPANESE_DATE}) ?生",
        validators.japanese_birth_date,
        "生",
    ),
    make_detector(
        PiiKind.LICENCE,
        r"(?:運転免許(?:証)?|免許証|免許番号|免許[^0-9\n‹›]{0,16}第)(?:の)?(?:番号)?[^0-9\n‹›]{0,8}"
        r"([0-9]{4}[ -]?[0-9]{4}[ -]?[0-9]{4})",
        validators.labelled_number,
        "免",
    ),
    make_detector(
        PiiKind.LICENCE,
        rf"(?i)(?:driver'?s?|driving)[ _](?:licen[cs]e|permit){LABEL_SUFFIX}"
        r"([a-z0-9](?:[ -]?[a-z0-9]){5,18})",
        validators.licence,
        DIGITS,
        words="driv",
    ),
    make_detector(
        PiiKind.PENSION,
        r"(?:(?:基礎)?年金(?:番号|手帳)|(?i:basic pension|pension (?:number|no)))"
        r"(?:の?記号番号|番号)?[^0-9\n‹›]{0,12}?([0-9]{4}[ -]?[0-9]{6})",
        validators.labelled_number,
        DIGITS,
        words="pension 年金",
    ),
    make_detector(
        PiiKind.INSURANCE,
        r"(?:保険者|被保険者(?:証)?|保険証|健康保険(?:証)?|介護保険)(?:の)?"
        r"(?:記号)?[・ ]?(?:番号)?[^0-9\n‹›]{0,8}([0-9]{1,8}(?:[・ -][0-9]{1,8}){0,2})",
        validators.insurance,
        "険",
    ),
    make_detector(
        PiiKind.INSURANCE,
        r"(?:保険|被保険者)[^\n‹›]{0,12}記号[^0-9\n‹›]{0,4}"
        r"([0-9][0-9・ -]{0,9}[^0-9\n‹›]{0,4}番号[^0-9\n‹›]{0,4}[0-9]{1,8})",
        needs="険",
    ),
    make_detector(
        PiiKind.INSURANCE,
        r"記号・?番号[^0-9\n‹›]{0,6}([0-9]{1,8}[・ -][0-9]{1,8})",
        validators.insurance,
        "記",
    ),
    make_detector(
        PiiKind.INSURANCE,
        rf"(?i)(?:\bnhs|health insurance|medical insurance|\binsurance (?:id|policy|member))"
        rf"(?: (?:id|card))?{LABEL_SUFFIX}([a-z]{{0,3}}[0-9](?:[ -]?[0-9]){{5,13}})",
        validators.labelled_number,
        DIGITS,
        words="nhs insurance",
    ),
    make_detector(
        PiiKind.RESIDENCE_CARD,
        rf"{LEFT_BOUNDARY}([A-Z]{{2}} ?[0-9]{{8}} ?[A-Z]{{2}})(?:$|[^0-9A-Za-z])",
        validators.any_number,
        DIGITS,
    ),
    make_detector(
        PiiKind.RESIDENCE_CARD,
        rf"(?i)(?:在留カード|residence card|zairyu card){LABEL_SUFFIX}"
        r"([a-z]{2}[ -]?[0-9]{8}[ -]?[a-z]{2})",
        validators.passport,
        DIGITS,
        words="在留 residence zairyu",
    ),
)
# After cards and accounts, whose numbers are as long.
DOCUMENT_DETECTORS = (
    make_detector(
        PiiKind.MY_NUMBER,
        rf"{LEFT_BOUNDARY}([0-9]{{4}}[ -]?[0-9]{{4}}[ -]?[0-9]{{4}})(?:$|[^0-9])",
        validators.my_number,
        DIGITS,
    ),
    make_detector(
        PiiKind.MY_NUMBER,
        r"(?i)(?:my[ _]?number|individual[ _]number|マイナンバー|個人番号)[^0-9\n‹›]{0,12}"
        r"([0-9]{4}[ -]?[0-9]{4}[ -]?[0-9]{4})",
        validators.labelled_number,
        DIGITS,
        words="number マイナ 個人番号",
    ),
    make_detector(
        PiiKind.PASSPORT,
        rf"(?i)(?:passport|旅券|パスポート){LABEL_SUFFIX}([a-z]{{0,2}}[0-9]{{6,9}})",
        validators.passport,
        DIGITS,
        words="passport 旅券 パスポート",
    ),
)
