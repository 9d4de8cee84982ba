import sqlite3
from contextlib import closing
from datetime import date

import pytest

from agents.catalog.samples import sample_data
from agents.models import Document

TODAY = date(2025, 3, 10)


@pytest.fixture
def shop(tmp_path):
    sample_data.create_database(tmp_path / "shop.sqlite3", TODAY)
    with closing(sqlite3.connect(tmp_path / "shop.sqlite3")) as database:
        yield database


def test_the_shop_is_the_same_for_the_same_day(shop, tmp_path):
    sample_data.create_database(tmp_path / "again.sqlite3", TODAY)

    with closing(sqlite3.connect(tmp_path / "again.sqlite3")) as again:
        assert list(again.iterdump()) == list(shop.iterdump())


def test_the_shop_has_orders_for_24_months_and_until_yesterday(shop):
    months = shop.execute(
        "SELECT count(DISTINCT strftime('%Y-%m', ordered_on)), min(ordered_on), max(ordered_on)"
        " FROM orders"
    ).fetchone()

    assert months[0] == 25
    assert "2023-03-01" <= months[1] <= "2023-03-31"
    assert "2025-03-01" <= months[2] <= "2025-03-09"


def test_on_the_first_of_a_month_that_month_has_no_orders_yet(tmp_path):
    sample_data.create_database(tmp_path / "shop.sqlite3", date(2024, 3, 1))

    with closing(sqlite3.connect(tmp_path / "shop.sqlite3")) as database:
        [(last,)] = database.execute("SELECT max(ordered_on) FROM orders")
    assert "2024-02-20" <= last <= "2024-02-29"


def test_the_shop_sells_most_in_december(shop):
    [(best,)] = shop.execute(
        "SELECT strftime('%m', ordered_on) AS month FROM orders"
        " GROUP BY month ORDER BY sum(amount) DESC LIMIT 1"
    )

    assert best == "12"


def test_the_rows_of_the_shop_agree_with_one_another(shop):
    wrong = shop.execute(
        "SELECT * FROM orders JOIN products ON products.id = product_id"
        " JOIN customers ON customers.id = customer_id"
        " WHERE abs(amount - price * quantity) > 0.001 OR ordered_on < joined_on"
    ).fetchall()
    [(orders,)] = shop.execute("SELECT count(*) FROM orders")
    statuses = {status for (status,) in shop.execute("SELECT DISTINCT status FROM orders")}

    assert wrong == []
    assert shop.execute("PRAGMA foreign_key_check").fetchall() == []
    assert 300 < orders < 900
    assert statuses == {"paid", "shipped", "refunded"}


def test_a_shop_is_replaced_completely(shop, tmp_path):
    sample_data.create_database(tmp_path / "shop.sqlite3", date(2025, 4, 10))

    assert [path.name for path in tmp_path.iterdir()] == ["shop.sqlite3"]


@pytest.mark.django_db
def test_the_samples_can_be_loaded_again(settings, tmp_path):
    settings.SAMPLE_DATABASE = tmp_path / "var" / "sample.sqlite3"
    sample_data.load(TODAY)

    again = sample_data.load(TODAY)

    assert {done.outcome for done in again} == {"unchanged"}
    assert Document.objects.filter(language="en").count() == 9
    assert Document.objects.filter(language="ja").count() == 9
