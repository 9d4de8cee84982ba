"""Figures of answers: read in every usual form, found in results, or computed from them."""

from datetime import date
from decimal import Decimal

import pytest

from agents.engine.material.figures import FigureIndex, FigureReader, Status, figures_in
from agents.engine.material.figures.parsing import Period
from agents.engine.material.figures.tables import tables_in

SALES = (
    '{"columns":["month","orders","revenue"],"rows":'
    '[["January",860,31020.25],["February",1240,45210.5],["March",700,28100]]}'
)


def read(sentence, *results, known="", counts=frozenset()):
    """Return what is said of each figure of a sentence, by its text."""
    reader = FigureReader(FigureIndex(results, known=known), counts)
    return {sentence[f.start : f.end]: f for f in reader.read(sentence)}


def statuses(sentence, *results, **more):
    return {
        text: found.status.value for text, found in read(sentence, *results, **more).items()
    }


def unsupported(sentence, *results, known=""):
    index = FigureIndex(results, known=known)
    reader = FigureReader(index)
    found = [*reader.read(sentence), *reader.names(sentence)]
    return [sentence[f.start : f.end] for f in found if f.status is Status.UNSUPPORTED]


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("$1.2M", Decimal("1200000.0"), "$"),
        ("¥120万", Decimal(1_200_000), "¥"),
        ("EUR 3,400", Decimal(3400), "€"),
        ("1.234,56 €", Decimal("1234.56"), "€"),
        ("12,5 %", Decimal("12.5"), "%"),
        ("1 234 567", Decimal(1234567), ""),
        ("三千二百円", Decimal(3200), "¥"),
        ("1億2,000万円", Decimal(120_000_000), "¥"),
        ("3万5千件", Decimal(35_000), "件"),
        ("3割", Decimal(30), "%"),
        ("2 h 30 min", Decimal(150), "min"),
        ("1年2か月", Decimal(14), "か月"),
        ("143円62銭", Decimal(14362), "銭"),
        ("12.5 m³", Decimal("12.5"), "m³"),
        ("令和7年3月1日", date(2025, 3, 1), ""),
        ("令和元年", Period(2019), ""),
        ("二〇二五年", Period(2025), ""),
        ("March 1, 2025", date(2025, 3, 1), ""),
        ("1st of March 2025", date(2025, 3, 1), ""),
        ("3月1日", Period(0, 3, 1), ""),
        ("May 2025", Period(2025, 5), ""),
        ("Q1 2025", Period(2025, quarter=1), ""),
        ("2025年第1四半期", Period(2025, quarter=1), ""),
        ("午後2時30分", Period(minute=870), ""),
        ("2:30 p.m.", Period(minute=870), ""),
        ("3.11.2", "3.11.2", ""),
        ("INV-2025-0042", "INV-2025-0042", ""),
        ("03-1234-5678", "03-1234-5678", ""),
        ("twelve days", Decimal(12), "day"),
    ],
)
def test_a_figure_is_read_in_each_usual_form(text, value, unit):
    [figure] = figures_in(f"{text} " if text.endswith(".") else text, words=True)

    assert (figure.value, figure.unit) == (value, unit)


@pytest.mark.parametrize(
    ("sentence", "result"),
    [
        ("It is 12.5 km away.", "distance_m: 12500"),
        ("It weighs 2.5 kg.", "weight: 2500 g"),
        ("It takes 90 minutes.", "Duration: 1.5 hours"),
        ("The disk has 2 TB.", "size: 2,000 GB"),
        ("About 3.5 million people live there.", "population 3482190"),
        ("人口は約350万人です。", "population 3482190"),
        ("The share is 12.5%.", "share: 0.125"),
        ("It was signed on March 1, 2025.", "signed 2025-03-01"),
        ("契約日は令和7年3月1日です。", "signed 2025-03-01"),
        ("It began in Q1 2025.", "start: 2025-02-11"),
        ("It starts at 2:30 pm.", "開始 14:30"),
        ("資本金は三千二百万円です。", "capital: 32000000"),
        ("The notice period is 3 months.", "a notice period of three months"),
        ("Employees have twenty days.", "20 days of leave"),
        ("Over 1,200 orders came in.", "1,240 orders"),
        ("It began on 8 October 2024.", "Lisbon, 8–9 October 2024"),
        ("It is 1.18 m wide.", "Dimensions: 1,180 x 960 x 410 mm"),
        ("She won in 2時間18分44秒.", "women: 2:18:44"),
        ("In May it has 18 °C.", "Sea temperature in May 18 °C"),
        ("令和4年が最多、6年が最少です。", "令和4年 412、令和6年 378"),
        ("The disk has 468 GB.", "/dev/sda1 468G 391G"),
    ],
)
def test_a_figure_is_found_in_another_form(sentence, result):
    assert unsupported(sentence, result) == []
    assert set(statuses(sentence, result).values()) <= {"supported", "known"}


@pytest.mark.parametrize(
    ("sentence", "figure", "formula"),
    [
        ("January and February had 2,100 orders in total.", "2,100", "860 + 1,240"),
        ("February had 380 more orders than January (860).", "380", "1,240 − 860"),
        ("Orders rose from 860 to 1,240, up 44.2%.", "44.2%", "(1,240 − 860) ÷ 860"),
        ("Of all orders, 44.3% came in February.", "44.3%", "1,240 ÷ 2,800"),
    ],
)
def test_a_figure_can_be_computed_from_results(sentence, figure, formula):
    found = read(sentence, SALES)[figure]

    assert found.status is Status.COMPUTED
    assert found.computation.formula == formula


@pytest.mark.parametrize(
    ("sentence", "figure", "kind"),
    [
        ("There were 2,800 orders in total.", "2,800", "sum"),
        ("The average was 933.3 orders a month.", "933.3", "average"),
        ("There are 3 months in the result.", "3 months", "count"),
    ],
)
def test_a_figure_can_be_computed_over_rows(sentence, figure, kind):
    found = read(sentence, SALES)[figure]

    assert (found.status, found.computation.kind) == (Status.COMPUTED, kind)


def test_rows_above_a_limit_are_counted():
    rows = "| Item | Stock |\n|--|--|\n" + "".join(
        f"| P{n} | {n * 7} |\n" for n in range(1, 21)
    )

    assert statuses("There are 16 items over 30.", rows)["16"] == "computed"
    assert statuses("There are 15 items over 30.", rows)["15"] == "unsupported"


@pytest.mark.parametrize(
    ("sentence", "figure"),
    [
        ("There were 2,900 orders in total.", "2,900"),
        ("February had 390 more orders than January (860).", "390"),
        ("Orders rose from 860 to 1,240, up 45.2%.", "45.2%"),
        ("It happened on April 3, 2025.", "April 3, 2025"),
        ("The delivery takes 9 days.", "9 days"),
        ("See invoice INV-2041.", "INV-2041"),
        ("It was on 33 August, a Monday.", "33 August"),
        ("Commit b07d19e broke it.", "b07d19e"),
    ],
)
def test_an_invented_figure_is_marked(sentence, figure):
    assert unsupported(sentence, SALES) == [figure]


def test_chance_is_no_computation():
    values = "\n".join(f"item {n}: {n * n + 17}" for n in range(60))

    assert statuses("The fee is 63 dollars.", values)["63 dollars"] == "unsupported"


@pytest.mark.parametrize(
    "sentence",
    [
        "The top 3 are below.",
        "In step 2, press the button.",
        "Support is available 24/7.",
        "See page 12 and section 4.",
        "It is 100% certain.",
        "These are the two that matter.",
    ],
)
def test_ways_of_speaking_are_not_marked(sentence):
    assert unsupported(sentence, SALES) == []


def test_the_question_is_known():
    assert unsupported("In 2024 there were 99 stores.", SALES, known="99 stores in 2024?") == []
    assert unsupported("In 2024 there were 99 stores.", SALES) == ["2024", "99"]


@pytest.mark.parametrize(
    ("sentence", "names"),
    [
        ("The contact is Maria Lopez.", []),
        ("The contact is Elena Vasquez.", ["Elena Vasquez"]),
        ("Ask Dr. Harding about it.", ["Dr. Harding"]),
        ("担当は佐藤さんです。", []),
        ("担当は高橋さんです。", ["高橋"]),
        ("On Monday, Excel opens.", []),
    ],
)
def test_names_that_nothing_has_are_marked(sentence, names):
    assert unsupported(sentence, "Contact: Maria Lopez, 佐藤") == names


def test_tables_of_each_kind_are_read():
    for text in (
        SALES,
        '[{"month":"January","orders":860},{"month":"February","orders":1240}]',
        "| month | orders |\n|--|--:|\n| January | 860 |\n| February | 1,240 |",
        "month,orders\nJanuary,860\nFebruary,1240\n",
        "- January: 860 orders\n- February: 1,240 orders",
    ):
        [table, *_] = tables_in(text)
        assert list(table.columns[0].values.values())[:2] == [860, 1240]
