"""What the names in a schema are called by people, in English and in Japanese."""

import re
from functools import cache

from .schema import singular

# A name in a schema: other English words for it / Japanese words for it, the best one first.
_CONCEPTS = {
    "customer": "client buyer shopper / 顧客 お客様 お客さん 取引先 客",
    "user": "member / ユーザー 利用者 会員",
    "employee": "staff worker / 社員 従業員 スタッフ",
    "product": "item article good / 商品 製品 品目",
    "order": "purchase / 注文 受注 オーダー",
    "city": "town / 都市 市町村 街",
    "country": "nation / 国",
    "region": "area / 地域 エリア",
    "category": "genre / カテゴリー カテゴリ 分類 ジャンル",
    "department": "division / 部署 部門",
    "status": "state / ステータス 状態 状況",
    "amount": "value / 金額 注文額 購入額",
    "price": "cost / 価格 値段 単価",
    "quantity": "unit piece / 数量 個数 販売数 点数",
    "salary": "wage pay / 給与 給料 年収",
    "invoice": "bill / 請求書 請求",
    "revenue": "/ 売上",
    "joined on": "/ 登録日",
    "ordered on": "/ 注文日",
    "name": "/ 名前",
    "month": "/ 月",
    "year": "/ 年",
    "day": "/ 日",
}
PEOPLE = ("customer", "user", "employee", "member", "person", "client")

# The kind of column that a place is found in, and how it may be spelt.
_PLACES = """
city Tokyo 東京
city Osaka 大阪
city Kyoto 京都
city Nagoya 名古屋
city Sapporo 札幌
city Fukuoka 福岡
city Yokohama 横浜
city Kobe 神戸
city Sendai 仙台
city Hiroshima 広島
city London ロンドン
city Paris パリ
city Berlin ベルリン
city Seoul ソウル
city Sydney シドニー
city New_York ニューヨーク
city San_Francisco サンフランシスコ
country Japan 日本
country Germany ドイツ
country France フランス
country Canada カナダ
country Australia オーストラリア
country South_Korea Korea 韓国
country United_States USA US アメリカ 米国
country United_Kingdom UK イギリス 英国
"""

# A state of affairs: what it is called in the rows, how words for it begin, and in Japanese.
STATES = {
    ("refunded",): ("refund 返金", "返金済み"),
    ("cancelled", "canceled"): ("cancel キャンセル 取り消", "キャンセル済み"),
    ("shipped",): ("shipped 発送 出荷", "発送済み"),
    ("delivered",): ("delivered 配達 配送済", "配達済み"),
    ("pending",): ("pending 保留 処理待", "保留中"),
    ("paid",): ("paid 支払済 支払い済 入金済", "支払い済み"),
    ("completed",): ("completed 完了", "完了"),
    ("returned",): ("returned 返品", "返品済み"),
}


@cache
def pattern(noun: str) -> re.Pattern[str]:
    """Finds a noun of the schema in a question, in either language."""
    english, japanese = _synonyms(noun)
    plural = "|".join(re.escape(form) for word in english for form in _forms(word))
    others = "".join(f"|{re.escape(word)}" for word in japanese)
    return re.compile(rf"(?<![a-z])(?:{plural})(?![a-z]){others}")


def japanese(noun: str) -> str:
    """The Japanese word for a noun of the schema; the noun itself where there is none."""
    words = _synonyms(noun)[1]
    return words[0] if words else noun.replace("_", " ")


def plural(noun: str) -> str:
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + ("es" if noun.endswith(("s", "x", "sh", "ch")) else "s")


def _synonyms(noun: str) -> tuple[list[str], list[str]]:
    name = singular(noun.lower().replace("_", " "))
    english, _, japanese = _CONCEPTS.get(name, "").partition("/")
    return [name, *english.split()], japanese.split()


def _forms(word: str) -> list[str]:
    return sorted({word, plural(word)}, key=len, reverse=True)


def _spelt(line: str) -> tuple[str, ...]:
    return tuple(word.replace("_", " ") for word in line.split())


PLACES = {
    name.lower(): (kind, tuple(names))
    for kind, *names in map(_spelt, _PLACES.strip().splitlines())
    for name in names
}
