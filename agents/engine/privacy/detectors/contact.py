"""Detectors of email addresses, phone numbers and IP addresses."""

from .. import validators
from .detector import DIGITS, GAP, LEFT_BOUNDARY, PiiKind, make_detector

OTHER_LETTERS = r"\p{Latin}\p{Cyrillic}\p{Greek}"
LABEL = r"[\p{L}\p{N}](?:[\p{L}\p{N}-]*[\p{L}\p{N}])?"
# A domain may end in another script; Japanese text often follows without a space.
TOP_LEVEL_DOMAIN = (
    r"(?:xn--[A-Za-z0-9-]{2,59}|[A-Za-z]{2,24}|[\p{Cyrillic}\p{Greek}\p{Arabic}\p{Hangul}"
    r"\p{Thai}\p{Devanagari}]{2,24}|コム|テスト|みんな|世界|中国|中國|公司|网络|香港|台湾)"
)
DOMAIN = rf"(?:{LABEL}\.)+{TOP_LEVEL_DOMAIN}"
EMAIL_DETECTORS = (
    make_detector(
        PiiKind.EMAIL,
        rf"([A-Za-z0-9_{OTHER_LETTERS}][A-Za-z0-9._%+'{OTHER_LETTERS}-]*@{DOMAIN})",
        validators.email,
        "@",
    ),
    make_detector(
        PiiKind.EMAIL,
        rf"(?:^|[^\p{{L}}\p{{N}}._-])([\p{{Han}}\p{{Hiragana}}\p{{Katakana}}ー]{{1,20}}@{DOMAIN})",
        validators.email,
        "@",
    ),
    make_detector(PiiKind.EMAIL, rf"(\"[^\"\n@‹›]{{1,60}}\"@{DOMAIN})", validators.email, "@"),
)
PHONE_DETECTORS = (
    make_detector(
        PiiKind.PHONE,
        rf"{LEFT_BOUNDARY}(\+[1-9](?:[ .()-]{{0,2}}[0-9]){{7,14}})",
        validators.international_phone,
        "+",
    ),
    make_detector(
        PiiKind.PHONE,
        rf"{LEFT_BOUNDARY}(\(?0[0-9]{{1,4}}(?:[ .()-]{{1,2}}[0-9]{{1,8}}){{1,2}})",
        validators.grouped_phone,
        "0",
    ),
    make_detector(
        PiiKind.PHONE, rf"{LEFT_BOUNDARY}(0[5789]0[0-9]{{8}})", validators.any_phone, "0"
    ),
    make_detector(
        PiiKind.PHONE,
        rf"{LEFT_BOUNDARY}(0[1-9](?:[ .][0-9]{{2}}){{4}})",
        validators.any_phone,
        "0",
    ),
    make_detector(
        PiiKind.PHONE,
        rf"{LEFT_BOUNDARY}((?:1[ .-])?(?:\([2-9][0-9]{{2}}\) ?|[2-9][0-9]{{2}}[ .-])"
        r"[0-9]{3}[ .-][0-9]{4})",
        validators.any_phone,
        DIGITS,
    ),
    make_detector(
        PiiKind.PHONE,
        r"(?i)(?:(?:^|[^a-z])(?:tel|telephone|phone|mobile|cell phone|cell is|cell:|fax"
        rf"|whatsapp|call me)|電話|携帯|ファックス|ファクス|連絡先){GAP}"
        r"(\+?\(?[0-9]{1,15}(?:[ .()-]{1,2}[0-9]{1,8}){0,4})",
        validators.labelled_phone,
        DIGITS,
        words="tel phone mobile cell fax whatsapp call 電話 携帯 ファ 連絡先",
    ),
)
IP_DETECTORS = (
    make_detector(
        PiiKind.IP,
        r"(?:^|[^0-9A-Za-z_])((?:[0-9]{1,3}\.){3}[0-9]{1,3})(?:$|[^0-9A-Za-z])",
        validators.ip4,
        ".",
    ),
    make_detector(
        PiiKind.IP,
        r"(?:^|[^0-9A-Fa-f:]:|[^0-9A-Za-z_:.])([0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7})"
        r"(?:$|[^0-9A-Za-z_:])",
        validators.ip6,
        ":",
    ),
)
