"""The words that tell what a question about data is after."""

import re

NO_ORDER = re.compile(r"\bin (?:(?:what|which|that|this|any) )?order\b|\border (?:of|in)\b")
ELSEWHERE = re.compile(
    r"\b(?:ashiato|runs?|agents?|tokens?|models?|tools?|guardrails?|traces?|sessions?|chats?"
    r"|steps?|servers?)\b|エージェント|モデル|ツール|トークン|ガードレール|トレース|セッション|サーバー"
)
COUNT = re.compile(
    r"\b(?:how many|number of|count(?: of)?)\b|何(?:件|人|個|種類|社|名|回)|いくつ|件数|人数"
    r"|(?:顧客|注文|商品|会員|社員|ユーザー)数"
)
AVERAGE = re.compile(r"\b(?:average|mean|avg)\b|平均")
SUM = re.compile(r"\b(?:total|sum|overall)\b|合計|総|累計")
SHARE = re.compile(
    r"\b(?:share|percent(?:age)?|proportion)\b|割合|比率|何%|何パーセント|シェア|占め"
)
MONEY = re.compile(
    r"\b(?:revenues?|sales|turnover|income|earn\w*|spen[dt]|spending)\b"
    r"|\bhow much (?:did|do|have|was|were|is) [a-z ]{0,30}\b(?:sell|sold|make|made)\b"
    r"|売り?上げ?|収益|総額"
)
TRADE = re.compile(
    r"\b(?:sold|sells?|selling|bought|buys?|made?)\b|売れ|稼|購入|金額|注文額|買"
)
ORDERED = re.compile(r"\b(?:ordered|bought|purchased)\b|(?:注文|購入)を?した|買った")
_NOT_BUY = (
    r"(?:\bnever|\bnot|n't) (?:(?:ever|yet|been|be) )*"
    r"(?:order|buy|bought|purchase|place|spen[dt]|sold|sell)[a-z]*"
)
# Not ordered at all: "did not order tea" and 「お茶を注文していない」 say of one thing only.
NEVER_ORDERED = re.compile(
    rf"{_NOT_BUY}"
    r"(?=\s*(?:$|[?.!,]|(?:in|this|last|since|during|yet|anything|any|an order|orders?)\b))"
    r"|\b(?:no|without(?: any)?) (?:orders|purchases|sales)\b"
    r"|(?<!を)(?:注文|購入)を?(?:して|したことが|が|の|は)?(?:一度も|1件も|一件も|まだ)?い?な[いし]"
    r"|(?<!を)(?:売れて|買って)い?ない"
)
NEVER = re.compile(
    rf"\bnever\b|{_NOT_BUY}|[一1](?:度|回)も|(?:注文|購入|買っ|売れ)(?:して|した|て)\w{{0,4}}ない"
)
COMPARED = re.compile(
    r"\b(?:compar\w+|versus|vs|grow\w*|grew|year[- ]over[- ]year|yoy)\b"
    r"|前年比|成長|伸び|比べ|比較|対比"
)
LIST = re.compile(
    r"\b(?:list|show|display|give me|which)\b|一覧|リスト|見せ|表示|教えて|どの|(?<!と)は\??$"
)
KINDS = re.compile(
    r"\b(?:what|which|list|show)\b.* (?:are there|exist|do we have|are used)|どんな"
)
NEWEST = re.compile(r"\b(?:latest|newest|most recent|recent)\b|最新|最近|直近(?!\d)")
OLDEST = re.compile(r"\b(?:oldest|earliest)\b|最も古い|一番古い|最古")
WHEN = re.compile(r"\b(?:when|what date|date of)\b|いつ")
FIRST = re.compile(r"\b(?:first|oldest|earliest)\b|最初|初めて|(?:最も|一番)古い|最古")
FINAL = re.compile(
    r"\b(?:last|latest|newest|most recent)\b|最後|最新|直近|一番最近|(?:最も|一番)新しい"
)
DEAR = re.compile(
    r"\b(?:most expensive|priciest|highest[- ]priced?|highest price)\b"
    r"|(?:最も|一番|もっとも)高い|最高額|高額"
)
CHEAP = re.compile(
    r"\b(?:cheapest|least expensive|lowest[- ]priced?|lowest price)\b"
    r"|(?:最も|一番|もっとも)安い|最安"
)
BIG = re.compile(r"\b(?:biggest|largest|highest)\b|最大|(?:最も|一番)大きい|最高額")
SMALL = re.compile(r"\b(?:smallest|lowest)\b|最小|(?:最も|一番)小さい")
BEST = re.compile(
    r"\b(?:top|bottom|leading|strongest|weakest|favou?rite|popular|valuable|best|worst|highest"
    r"|lowest|biggest|largest|smallest|most|least|fewest)\b"
    r"|最|一番|もっとも|トップ|上位|ベスト|ワースト|下位|人気|ランキング|良い|よい"
)
WORST = re.compile(
    r"\b(?:worst|least|lowest|fewest|bottom|weakest|smallest)\b"
    r"|最低|最小|(?<!より)(?:少な(?!くとも)|低い)|ワースト|下位"
)
MANY_JA = re.compile(r"ランキング|上位|トップ|ベスト|最近")
FEW = "two|three|four|five|six|seven|eight|nine|ten"
LIMIT = re.compile(
    r"\b(?:top|best|worst|bottom|last|latest|newest|first|cheapest|biggest|largest|smallest"
    rf"|most expensive|most recent)[ -](\d{{1,3}}|{FEW})\b(?! days| months)"
    rf"|\b(\d{{1,3}}|{FEW}) (?:best|top|worst|latest|newest|cheapest|biggest|largest|most)\b"
    r"|(?:トップ|上位|ベスト|下位|ワースト|最新)の?(\d{1,3})"
    r"|(?<!\d)(\d{1,3})(?:つ|件|個|人|位)(?!以上|以下|未満|超)"
)

EVERY = (
    *(COUNT, AVERAGE, SUM, SHARE, MONEY, TRADE, ORDERED, COMPARED, LIST, NEWEST, OLDEST),
    *(DEAR, CHEAP, BIG, SMALL, WORST, MANY_JA, ELSEWHERE),
)
