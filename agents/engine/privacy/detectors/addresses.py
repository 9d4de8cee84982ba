"""Detectors of postal addresses in Japan and in English-speaking countries."""

from .. import validators
from .detector import DIGITS, LEFT_BOUNDARY, PiiKind, make_detector

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
ADDRESS_DETECTORS = (
    make_detector(PiiKind.ADDRESS, r"(〒 ?[0-9]{3}-?[0-9]{4})(?:$|[^0-9])", needs="〒"),
    make_detector(
        PiiKind.ADDRESS,
        r"郵便番号[^0-9\n‹›]{0,6}([0-9]{3}-?[0-9]{4})(?:$|[^0-9])",
        needs="郵",
    ),
    make_detector(
        PiiKind.ADDRESS,
        rf"{LEFT_BOUNDARY}([0-9]{{3}}-[0-9]{{4}}) ?{CITY}",
        validators.separate_value,
        "都道府県",
    ),
    make_detector(
        PiiKind.ADDRESS, rf"({JAPANESE_ADDRESS})", validators.japanese_address, "都道府県市区"
    ),
    make_detector(
        PiiKind.ADDRESS,
        r"(?:住所|所在地|居所|お届け先|届け先)[ :はが]{1,3}([^\s、。‹›][^\n、。‹›]{3,60})",
        validators.labelled_address,
        "住所届",
    ),
    make_detector(
        PiiKind.ADDRESS, rf"{LEFT_BOUNDARY}({STREET_LINE})", validators.street, DIGITS
    ),
    make_detector(PiiKind.ADDRESS, r"(?i)(\bP\.? ?O\.? Box [0-9]{1,6})", words="box"),
)
