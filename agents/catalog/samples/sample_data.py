"""Sample data: a small shop and a handbook."""

import os
import sqlite3
from calendar import monthrange
from collections.abc import Iterator
from contextlib import closing
from datetime import date, timedelta
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from django.conf import settings

from agents import knowledge

HANDBOOK = settings.BASE_DIR / "docs" / "handbook"
MONTHS = 24
ORDERS_PER_MONTH = 17
SEASONAL_FACTORS = (0.7, 0.6, 0.9, 1.0, 0.9, 0.8, 1.2, 0.7, 0.9, 1.0, 1.5, 2.2)

SCHEMA = """
CREATE TABLE customers (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    city TEXT NOT NULL,
    country TEXT NOT NULL,
    joined_on DATE NOT NULL
);
CREATE TABLE products (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    category TEXT NOT NULL,
    price REAL NOT NULL CHECK (price > 0)
);
CREATE TABLE orders (
    id INTEGER PRIMARY KEY,
    customer_id INTEGER NOT NULL REFERENCES customers (id),
    product_id INTEGER NOT NULL REFERENCES products (id),
    quantity INTEGER NOT NULL CHECK (quantity > 0),
    amount REAL NOT NULL,
    ordered_on DATE NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('paid', 'shipped', 'refunded'))
);
CREATE INDEX orders_by_customer ON orders (customer_id);
CREATE INDEX orders_by_product ON orders (product_id);
CREATE INDEX orders_by_date ON orders (ordered_on);
"""

CUSTOMERS = (
    ("佐藤 美咲", "Tokyo", "Japan"),
    ("Emma Clarke", "London", "United Kingdom"),
    ("鈴木 健太", "Osaka", "Japan"),
    ("Liam Murphy", "Dublin", "Ireland"),
    ("Olivia Martin", "Toronto", "Canada"),
    ("高橋 陽子", "Kyoto", "Japan"),
    ("Noah Williams", "New York", "United States"),
    ("Lena Fischer", "Berlin", "Germany"),
    ("田中 直樹", "Nagoya", "Japan"),
    ("Chloé Bernard", "Paris", "France"),
    ("Ava Thompson", "Chicago", "United States"),
    ("伊藤 さくら", "Sapporo", "Japan"),
    ("Mateo García", "Madrid", "Spain"),
    ("Grace Wilson", "Sydney", "Australia"),
    ("渡辺 翔", "Fukuoka", "Japan"),
    ("Lucas Meyer", "Munich", "Germany"),
    ("Sofia Rossi", "Milan", "Italy"),
    ("山本 由美", "Yokohama", "Japan"),
    ("Ethan Brown", "Seattle", "United States"),
    ("Isla Campbell", "Edinburgh", "United Kingdom"),
    ("中村 大輔", "Kobe", "Japan"),
    ("Hannah Lee", "Vancouver", "Canada"),
    ("Oscar Lindqvist", "Stockholm", "Sweden"),
    ("小林 葵", "Sendai", "Japan"),
    ("Mia Johnson", "Boston", "United States"),
    ("Jan de Vries", "Amsterdam", "Netherlands"),
    ("加藤 誠", "Hiroshima", "Japan"),
    ("Zoe Anderson", "Melbourne", "Australia"),
    ("Henry Evans", "Cardiff", "United Kingdom"),
    ("吉田 真央", "Tokyo", "Japan"),
    ("Camille Dubois", "Lyon", "France"),
    ("Daniel Kim", "San Francisco", "United States"),
    ("山田 浩二", "Osaka", "Japan"),
    ("Amelia Scott", "Auckland", "New Zealand"),
    ("Elena Novak", "Vienna", "Austria"),
    ("松本 恵", "Kanazawa", "Japan"),
)

# Name, category, price in US dollars, and relative frequency.
PRODUCTS = (
    ("Sencha Green Tea", "Tea", 14.50, 9),
    ("Hojicha Roasted Tea", "Tea", 12.00, 7),
    ("Ceremonial Matcha", "Tea", 32.00, 6),
    ("Genmaicha Brown Rice Tea", "Tea", 11.00, 5),
    ("Tenmoku Tea Bowl", "Ceramics", 68.00, 2),
    ("Arita Porcelain Cup", "Ceramics", 28.00, 5),
    ("Cast Iron Teapot", "Ceramics", 89.00, 2),
    ("Washi Notebook", "Stationery", 18.00, 8),
    ("Fountain Pen", "Stationery", 54.00, 3),
    ("Indigo Ink", "Stationery", 16.00, 4),
    ("Furoshiki Cloth", "Textiles", 24.00, 6),
    ("Linen Noren Curtain", "Textiles", 46.00, 2),
    ("Tenugui Towel", "Textiles", 13.00, 6),
    ("Hinoki Incense", "Home", 15.00, 4),
    ("Paper Lantern", "Home", 38.00, 3),
    ("Bamboo Wind Chime", "Home", 22.00, 3),
)


def load(today: date) -> list[knowledge.IngestResult]:
    """Create the shop and the handbook; safe to repeat."""
    create_database(settings.SAMPLE_DATABASE, today)
    return ingest_handbook()


def ingest_handbook() -> list[knowledge.IngestResult]:
    """Ingest the handbook; its vectors follow in the background, so that the start is quick."""
    collection = knowledge.default_collection()
    return [
        knowledge.ingest(path, collection, embeds=False)
        for path in knowledge.find_files(HANDBOOK)
    ]


def create_database(path: Path, today: date) -> None:
    """Write the shop's database atomically, the same for the same day."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=path.parent) as folder:
        draft = Path(folder) / path.name
        with closing(sqlite3.connect(draft)) as database, database:
            database.execute("PRAGMA foreign_keys = ON")
            database.executescript(SCHEMA)
            _insert_rows(database, Random(7), today)
        os.replace(draft, path)


def _insert_rows(database: sqlite3.Connection, random: Random, today: date) -> None:
    begin = _month_start(today, -MONTHS)
    joined: list[date] = []
    customers = []
    for number, customer in enumerate(CUSTOMERS, start=1):
        if number % 2:  # half of the customers from the start, the others later
            day = begin - timedelta(days=random.randint(1, 300))
        else:
            day = begin + timedelta(days=random.randint(0, 600))
        joined.append(day)
        customers.append((number, *customer, day.isoformat()))
    products = [(number, *product[:3]) for number, product in enumerate(PRODUCTS, start=1)]
    orders = [
        (number, *order)
        for number, order in enumerate(_generate_orders(random, today, joined), start=1)
    ]
    database.executemany("INSERT INTO customers VALUES (?, ?, ?, ?, ?)", customers)
    database.executemany("INSERT INTO products VALUES (?, ?, ?, ?)", products)
    database.executemany("INSERT INTO orders VALUES (?, ?, ?, ?, ?, ?, ?)", orders)


def _generate_orders(random: Random, today: date, joined: list[date]) -> Iterator[tuple]:
    # More of them in season and as the shop grows.
    for offset in range(-MONTHS, 1):
        month = _month_start(today, offset)
        growth = 1 + (offset + MONTHS) / MONTHS / 3
        count = round(ORDERS_PER_MONTH * SEASONAL_FACTORS[month.month - 1] * growth)
        last = monthrange(month.year, month.month)[1]
        days = sorted(random.randint(1, last) for _ in range(count))
        for day in (month.replace(day=number) for number in days):
            if day >= today:
                break
            members = [number for number, since in enumerate(joined, start=1) if since <= day]
            customer = random.choice(members)
            product = random.choices(range(len(PRODUCTS)), [row[3] for row in PRODUCTS])[0]
            quantity = random.choices((1, 2, 3, 4), (10, 5, 2, 1))[0]
            amount = round(PRODUCTS[product][2] * quantity, 2)
            status = "paid" if today - day < timedelta(days=5) else "shipped"
            if random.random() < 0.04:
                status = "refunded"
            yield customer, product + 1, quantity, amount, day.isoformat(), status


def _month_start(today: date, offset: int) -> date:
    """Return the first day of the month at this offset."""
    year, month = divmod(today.year * 12 + today.month - 1 + offset, 12)
    return date(year, month + 1, 1)
