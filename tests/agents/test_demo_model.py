"""The demo model over a small shop whose numbers can be checked by hand."""

import json
import sqlite3
import time
from contextlib import closing
from datetime import date

import pytest

from agents.engine.planner.react_planner import ReActPlanner
from agents.engine.state import AgentState
from agents.engine.tool import ToolResult, specification, text_argument
from agents.engine.turn.assembly import assemble
from agents.llm.demo import arithmetic
from agents.llm.demo import schema as schemas
from agents.llm.demo.history import Offer, Question, Situation
from agents.llm.demo_model import DEMO_LABEL, DemoModel, decide, pieces
from agents.tools.calculator import CalculatorTool
from agents.tools.database import sql_guard
from agents.tools.database.tool import DatabaseTool
from agents.tools.search import Passage, SearchTool

TODAY = date(2026, 11, 15)
CALCULATOR, DATABASE, SEARCH = "calculator", "database", "search"
SHOP = """
CREATE TABLE customers (id INTEGER, name TEXT, city TEXT, country TEXT, joined_on TEXT);
CREATE TABLE products (id INTEGER, name TEXT, category TEXT, price REAL);
CREATE TABLE orders (
    id INTEGER, customer_id INTEGER REFERENCES customers(id),
    product_id INTEGER REFERENCES products(id), quantity INTEGER, amount REAL,
    ordered_on TEXT, status TEXT
);
INSERT INTO customers VALUES
    (1, 'Aiko', 'Tokyo', 'Japan', '2025-02-01'),
    (2, 'Ben', 'London', 'United Kingdom', '2025-05-01'),
    (3, 'Chie', 'Osaka', 'Japan', '2026-01-10'),
    (4, 'Dora', 'Berlin', 'Germany', '2026-03-05');
INSERT INTO products VALUES
    (1, 'Matcha', 'Tea', 30), (2, 'Teapot', 'Ceramics', 90), (3, 'Notebook', 'Paper', 20);
INSERT INTO orders VALUES
    (1, 1, 1, 2, 60.0, '2025-03-10', 'shipped'),
    (2, 2, 2, 1, 90.0, '2025-12-05', 'shipped'),
    (3, 1, 3, 5, 100.0, '2025-12-20', 'refunded'),
    (4, 3, 1, 4, 120.0, '2026-02-14', 'shipped'),
    (5, 4, 2, 1, 90.0, '2026-02-20', 'shipped'),
    (6, 1, 2, 2, 180.0, '2026-07-01', 'shipped'),
    (7, 2, 1, 1, 30.0, '2026-10-03', 'refunded'),
    (8, 3, 3, 3, 60.5, '2026-11-10', 'paid');
"""
HANDBOOK = (
    Passage(
        document="Security",
        source="security.md",
        heading="Where are my secrets kept?",
        chunk=1,
        text="Secrets are kept in the data folder. Only the server may read them.",
    ),
    Passage(
        document="安全",
        source="ja/security.md",
        heading="秘密情報はどこに保存されますか？",
        chunk=1,
        text="秘密情報はデータフォルダーに保存されます。読めるのはサーバーだけです。",
    ),
)


class ShopTool:
    """The database tool's own words and wall, and the query run in this process."""

    name = DATABASE
    parameters = DatabaseTool.parameters

    def __init__(self, path):
        self.path = path
        self.description = DatabaseTool(f"sqlite:///{path}").description

    async def execute(self, input, /):
        query = sql_guard.validate(
            text_argument(input, "sql"), ["customers", "products", "orders"]
        )
        with closing(sqlite3.connect(self.path)) as shop:
            found = shop.execute(query.sql)
            columns = [column[0] for column in found.description]
            rows = found.fetchall()
        return ToolResult(json.dumps({"columns": columns, "rows": rows, "truncated": False}))


@pytest.fixture(scope="session")
def shop(tmp_path_factory):
    path = tmp_path_factory.mktemp("shop") / "shop.sqlite3"
    with closing(sqlite3.connect(path)) as database:
        database.executescript(SHOP)
    return path


async def find_in_handbook(query, top_k):
    return HANDBOOK[:top_k]


@pytest.fixture(scope="session")
def tools(shop):
    return [CalculatorTool(), ShopTool(shop), SearchTool(find_in_handbook)]


async def converse(question, tools, dialect="native", history=(), model=None):
    """Everything the model does for a question: the calls it makes and what it answers."""
    planner = ReActPlanner(model or demo(), "demo", dialect=dialect)
    state, calls = AgentState(), []
    for said in history:
        remember(state, *said)
    state.add_message("user", question)
    for _ in range(8):
        decision = await planner.plan(question, state, tools)
        if decision.action is None:
            return calls, decision.final_answer
        call = decision.calls[0]
        tool = next(tool for tool in tools if tool.name == call.name)
        result = await tool.execute(call.input)
        calls.append((call.name, call.input[next(iter(tool.parameters["properties"]))]))
        remember(state, call.name, call.arguments, result.text)
    raise AssertionError(f"no answer to {question!r} after {calls}")


def remember(state, name, text, result=None):
    """What somebody said; or with a result, what a tool was asked with this text."""
    if result is None:
        return state.add_message(name, text)
    id, function = f"call_{len(state.get_messages())}", {"name": name, "arguments": text}
    asked = {"id": id, "type": "function", "function": function}
    state.add_message("assistant", None, tool_calls=[asked])
    state.add_message("tool", result, tool_call_id=id)


def demo():
    return DemoModel(delay=0, today=lambda: TODAY)


C, D, S = CALCULATOR, DATABASE, SEARCH
ENGLISH = [
    ("What is 12.5% of 3480?", [C], "**435**"),
    ("12 times 7 plus 3", [C], "**87**"),
    ("what's 15% off 80", [C], "**68**"),
    ("add 20 and 22", [C], "**42**"),
    ("square of 12", [C], "**144**"),
    ("(3+4)*12", [C], "**84**"),
    ("2 to the power of 10", [C], "**1,024**"),
    ("1,234 + 5,678", [C], "**6,912**"),
    ("How many customers are there?", [D], "There are **4** customers."),
    ("What is the total revenue?", [D], "**730.50**"),
    ("What was the revenue in 2025?", [D], "**250**"),
    ("revenue last month", [D], "**30**"),
    ("average order amount", [D], "**91.31**"),
    ("top 2 products by revenue", [D], "| Teapot | 360 |"),
    ("best customers", [D], "| Aiko | 340.00 |"),
    ("revenue by month this year", [D], "**February 2026** was the best month"),
    ("revenue by category", [D], "| Ceramics | 360.00 |"),
    ("orders by status", [D], "| refunded | 2 |"),
    ("How many orders were refunded?", [D], "**2** orders"),
    ("revenue in Tokyo", [D], "**340**"),
    ("How many customers joined this year?", [D], "**2** customers"),
    ("Which country has the most customers?", [D], "**Japan**, with **2**"),
    ("What is the most expensive product?", [D], "Name **Teapot**"),
    ("latest 2 orders", [D], "| 8 | 3 | 60.50 |"),
    ("Which products cost more than 25?", [D], "| 2 | Teapot | Ceramics | 90 |"),
    ("revenue of Tea", [D], "**210**"),
    ("Compare revenue in Tokyo and Osaka", [D], "| Osaka | 180.50 |"),
    ("How many different countries are our customers from?", [D], "**3** countries"),
    ("How many tea products are there?", [D], "**1** product for tea"),
    ("What is the price of the Teapot?", [D], "price **90**"),
    ("Which customers are from Japan?", [D], "| 3 | Chie | Osaka | Japan | 2026-01-10 |"),
    ("How much did Ben spend?", [D], "**120**"),
    ("How much did we sell last year?", [D], "**250**"),
    ("If I buy 3 items at 19.99 each, what's the total?", [C], "**59.97**"),
    ("average monthly revenue in 2025", [D, C], "**125**"),
    ("revenue in July 2026 compared to February 2026", [D, D, C], "**-14.3%**"),
    ("How many customers are there, and what is 15% of that?", [D, C], "**0.6**"),
    ("What is the average order amount, plus 10%?", [D, C], "**100.44**"),
    ("What is 10% of total revenue?", [D, C], "**73.05**"),
    ("What share of this year's revenue did the best product make?", [D, D, C], "**56.2%**"),
    ("What percentage of orders were refunded?", [D, D, C], "**25.0%**"),
    ("compare this year's best month with last year's", [D, D, C], "**+10.5%**"),
    ("How did revenue grow in 2026?", [D, D, C], "**+92.2%**"),
    ("What is 6 times 7? And how many products are there?", [C, D], "**3** products"),
    ("Where are my secrets kept?", [S], "kept in the data folder"),
    ("What is the capital of France?", [S], "found nothing"),
    ("hello", [], "not AI"),
    ("Write me a poem", [], "no rule for this"),
    ("Which tables are there?", [], "**customers**: id, name"),
    ("What was revenue in the best month, and what is 8% of that?", [D, C], "**16.8**"),
    ("How many orders did the best customer place and what is 10% of that?", [D, C], "**0.3**"),
    ("Add 15% to 200", [C], "**230**"),
    ("Add 10% and 20%", [C], "**0.3**"),
    ("How many orders were refunded or paid?", [D], "**3** orders that were refunded or paid"),
    ("100 divided by 7, remainder", [C], "**2**"),
    ("What is the remainder when 100 is divided by 7?", [C], "**2**"),
    ("1e3 + 1", [C], "**1,001**"),
    ("2 + 5k", [], "no rule for this"),
    ("square root of 144", [C], "**12**"),
    ("20% tip on 45.50", [C], "**9.1**"),
    ("bottom 2 products by revenue", [D], "| Notebook | 160.50 |\n| Matcha | 210.00 |"),
    ("Which customers have never ordered?", [D], "no customers without any order"),
    ("Which customers have never placed an order in 2025?", [D], "| 4 | Dora |"),
    ("How many customers did not order in 2025?", [D], "**2** customers without any order"),
    ("Which customers did not order tea?", [S], "found nothing"),
    ("Which customers were never refunded?", [S], "found nothing"),
    ("Which products did Ben never buy?", [S], "found nothing"),
    ("Which orders were never shipped?", [D], "The 3 orders that were not shipped:"),
    ("What did 佐藤 美咲 spend in total?", [D], "no revenue for 佐藤 美咲."),
    ("How much did 伊藤 さくら spend?", [D], "no revenue for 伊藤 さくら."),
    ("When was revenue highest last year?", [D], "best month by revenue in 2025 is"),
    ("When was the first order?", [D], "first order is **2025-03-10**"),
    ("When was Ben's last order?", [D], "last order for Ben is **2026-10-03**"),
    ("List all products", [D], "The 3 products:"),
    ("Who is the president of France?", [S], "a demo model that follows rules"),
    ("total revenue that was not refunded", [D], "revenue that was not refunded is **600.50**"),
    ("How many orders in London were refunded?", [D], "**1** order that was refunded"),
]
JAPANESE = [
    ("3480の12.5%は？", [C], "**435**"),
    ("12かける7足す3", [C], "**87**"),
    ("80の15%引きは", [C], "**68**"),
    ("１２＋３４", [C], "**46**"),
    ("100から30を引いて2で割ると？", [C], "**35**"),
    ("2の10乗", [C], "**1,024**"),
    ("90の半分はいくつ？", [C], "**45**"),
    ("三百の二割", [C], "**60**"),
    ("注文は何件ありますか", [D], "注文数は **8** 件です。"),
    ("顧客は何人いますか？", [D], "**4** 人"),
    ("売上合計", [D], "**730.50**"),
    ("2025年の売上は？", [D], "2025年の売上は **250** です。"),
    ("先月の売上を教えて", [D], "**30**"),
    ("平均注文額はいくらですか", [D], "**91.31**"),
    ("売上トップ2の商品", [D], "| Teapot | 360 |"),
    ("月別の売上", [D], "**2026年2月**（**210**）"),
    ("カテゴリー別の売上", [D], "| Ceramics | 360.00 |"),
    ("国別の顧客数", [D], "| Japan | 2 |"),
    ("東京の売上は？", [D], "**340**"),
    ("返金された注文は何件？", [D], "返金済みの注文数は **2** 件です。"),
    ("今年一番売れた商品は？", [D], "**Teapot**（**270**）"),
    ("What sold best this year?", [D], "**Teapot**, with **270**"),
    ("今年いちばん売れた商品は？", [D], "**Teapot**（**270**）"),
    ("売れ筋の商品を教えて", [D], "**Teapot**（**360**）"),
    ("一番注文が多い顧客は？", [D], "**Aiko**（**3**）"),
    ("一番高い商品は？", [D], "価格 **90**"),
    ("100以上の注文を見せて", [D], "| 6 | 2 | 180 |"),
    ("お茶の売上は？", [D], "「お茶」の売上に当たるデータはありません"),
    ("売上が一番高い都市は？", [D], "**Tokyo**（**340**）"),
    ("2025年の月平均の売上は？", [D, C], "**125**"),
    ("顧客は何人いますか。その15%は？", [D, C], "**0.6**"),
    ("平均注文額に10%を足すと？", [D, C], "**100.44**"),
    ("売上合計の10%は？", [D, C], "**73.05**"),
    ("今年の売上のうち、一番売れた商品の割合は？", [D, D, C], "**56.2%**"),
    ("返金された注文の割合は？", [D, D, C], "**25.0%**"),
    ("今年と去年の売上を比べて", [D, D, C], "**+92.2%**"),
    ("今年と去年の最高の月を比べて", [D, D, C], "**+10.5%**"),
    ("秘密情報はどこに保存されますか？", [S], "データフォルダーに保存されます。"),
    ("天気予報を教えて", [S], "見つかりませんでした"),
    ("こんにちは", [], "AI ではなく"),
    ("どんな表がありますか", [], "**orders**"),
    ("売上が一番多い月の売上の8%は？", [D, C], "**16.8**"),
    ("200に15%を足すと？", [C], "**230**"),
    ("100を7で割った余りは？", [C], "**2**"),
    ("金額が70より少ない注文は何件？", [D], "**3** 件"),
    ("144の平方根", [C], "**12**"),
    ("1000円から2割引き", [C], "**800**"),
    ("売上が少ない商品を3つ", [D], "| Notebook | 160.50 |\n| Matcha | 210.00 |"),
    ("売上が多い商品を3つ", [D], "| Teapot | 360.00 |\n| Matcha | 210.00 |"),
    ("一度も注文していない顧客は？", [D], "注文のない顧客に当たるデータはありません"),
    ("2025年に注文していない顧客は？", [D], "| 4 | Dora |"),
    ("お茶を注文していない顧客は？", [S], "見つかりませんでした"),
    ("佐藤 美咲の売上は？", [D], "「佐藤 美咲」の売上に当たるデータはありません"),
    ("最初の注文はいつですか", [D], "最初の注文の日付は **2025-03-10** です。"),
    ("最後の注文はいつ？", [D], "**2026-11-10**"),
    ("商品をすべて一覧にして", [D], "商品（全3件）"),
    ("フランスの大統領は誰ですか", [S], "規則で動くデモモデル"),
    ("返金されていない売上は？", [D], "**600.50**"),
]


@pytest.mark.parametrize(
    ("question", "expected", "said"), ENGLISH + JAPANESE, ids=lambda value: str(value)[:40]
)
async def test_a_question_is_answered_with_the_tools_it_needs(question, expected, said, tools):
    calls, answer = await converse(question, tools, "native")
    as_text = await converse(question, tools, "react")

    assert (calls, answer) == as_text
    assert [name for name, _ in calls] == expected
    assert said in answer
    assert Question(text=answer).is_japanese == Question(text=question).is_japanese


@pytest.mark.parametrize("dialect", ["native", "react"])
async def test_the_real_database_tool_takes_what_is_composed(dialect, shop):
    tools = [DatabaseTool(f"sqlite:///{shop}"), CalculatorTool()]

    calls, answer = await converse("What share of revenue came from Tokyo?", tools, dialect)

    assert [name for name, _ in calls] == [DATABASE, DATABASE, CALCULATOR]
    assert "**340**" in answer
    assert "**46.5%**" in answer


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("half of 90", "90 / 2"),
        ("subtract 5 from 12", "12 - 5"),
        ("200 is what percent of 800", "200 / 800 * 100"),
        ("the average of 10, 20 and 30", "(10 + 20 + 30) / 3"),
        ("increase 200 by 15%", "200 * (100 + 15) / 100"),
        ("twenty-five times four", "25 * 4"),
        ("10% of 20% of 50", "50 * 20 / 100 * 10 / 100"),
        ("-5 + 3", "-5 + 3"),
        ("17 % 5", "17 % 5"),
        ("square root of 144", "144 ** 0.5"),
        ("3に4を足して12をかけると", "(3 + 4) * 12"),
        ("3と4の和", "3 + 4"),
        ("200は800の何%ですか", "200 / 800 * 100"),
        ("1200円の10%増し", "1200 * (100 + 10) / 100"),
        ("3万円の8%", "30000 * 8 / 100"),
        ("what is 15% of that", "that * 15 / 100"),
        ("その15%は", "that * 15 / 100"),
    ],
)
def test_words_become_one_expression(text, expression):
    assert arithmetic.find(text).expression == expression


@pytest.mark.parametrize(
    "text",
    [
        "orders since 2025-01-15",
        "explain in 2-3 sentences how this works",
        "how does gpt-4 think",
        "call me at 03-1234-5678",
        "top 5 products by revenue",
        "support 24/7 for every paying customer",
    ],
)
def test_numbers_alone_are_no_sum(text):
    assert arithmetic.find(text) is None


async def test_another_schema_is_read_from_the_description_too():
    staff = Offer(
        name="database",
        description=(
            "SQL over\n"
            "departments(id INTEGER PRIMARY KEY, title VARCHAR(80))\n"
            "employees(id INT, name TEXT, department_id INT REFERENCES departments(id), "
            "salary DECIMAL(10, 2), hired_at TIMESTAMP)"
        ),
        parameters={"properties": {"query": {"type": "string"}}},
    )

    def asked(text):
        return decide(Situation(question=Question(text=text), tools=(staff,)), TODAY).input

    assert asked("How many employees were hired in 2025?") == {
        "query": "SELECT COUNT(*) AS employees\nFROM employees\n"
        "WHERE hired_at >= '2025-01-01' AND hired_at < '2026-01-01'"
    }
    assert asked("average salary by department") == {
        "query": "SELECT departments.title AS department, "
        "AVG(employees.salary) AS average_employee_salary\nFROM employees\n"
        "JOIN departments ON departments.id = employees.department_id\n"
        "GROUP BY departments.id, departments.title\nORDER BY average_employee_salary DESC"
    }


def test_revenue_is_quantity_times_price_where_no_column_has_it():
    schema = schemas.read(
        "lines(id INT, item_id INT -> items.id, qty INT)\nitems(id INT, name TEXT, price REAL)"
    )

    assert schema.money(schema.table("lines")) == "lines.qty * items.price"


def test_tables_that_refer_to_each_other_do_not_go_round_in_circles():
    schema = schemas.read("a(id INT, b_id INT → b.id)\nb(id INT, a_id INT → a)\nc(id INT)")

    assert [table.name for table in schema.reach("a")] == ["a", "b"]


async def test_citations_name_the_passages_they_come_from(tools):
    _, answer = await converse("Where are my secrets kept?", tools)

    assert "Only the server may read them. [1]" in answer
    assert answer.endswith("- [1] Security › Where are my secrets kept? (security.md #1)")


async def test_only_offered_tools_are_called(tools):
    calls, answer = await converse("How many customers are there?", tools[:1])
    _, sum = await converse("What is 6 times 7?", tools[2:])

    assert calls == []
    assert "12.5% of 3480" in answer
    assert "database" not in answer
    assert "found nothing" in sum


class Failing:
    """A tool that says the same of everything it is asked."""

    def __init__(self, tool, error):
        self.name, self.description, self.parameters = (
            tool.name,
            tool.description,
            tool.parameters,
        )
        self.error = error

    async def execute(self, input, /):
        return ToolResult(error=self.error, mendable=True)


@pytest.mark.parametrize("dialect", ["native", "react"])
async def test_a_column_that_is_not_there_is_done_without_once(tools, dialect):
    broken = Failing(tools[1], "no such column: orders.amount")

    calls, answer = await converse("total revenue", [broken], dialect)

    assert [sql.splitlines()[0] for _, sql in calls] == [
        "SELECT SUM(amount) AS revenue",
        "SELECT SUM(orders.quantity * products.price) AS revenue",
    ]
    assert "could not do this: no such column: orders.amount" in answer


async def test_what_cannot_be_mended_is_told_as_it_is(tools):
    calls, answer = await converse("1 / 0", tools)

    assert calls == [(CALCULATOR, "1 / 0")]
    assert "Division by zero has no result." in answer


async def test_a_follow_up_takes_the_question_before_with_it(tools):
    history = [("user", "What was the revenue in 2025?"), ("assistant", "It was 250.")]

    calls, answer = await converse("And in 2026?", tools, history=history)

    assert len(calls) == 1
    assert "in 2026 is **480.50**" in answer


async def test_nothing_found_is_said_with_the_period_that_was_looked_at(tools):
    _, answer = await converse("What was the revenue in 2019?", tools)

    assert answer == "The database has no revenue in 2019."


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("List all products", "The first 20 of **25** products:"),
        ("商品の一覧", "商品（全 **25** 件のうち最初の20件）:"),
    ],
)
async def test_a_list_that_is_cut_says_how_many_there_are(question, said, tmp_path):
    path = tmp_path / "shop.sqlite3"
    with closing(sqlite3.connect(path)) as database:
        database.executescript(SHOP)
        more = [(id, f"Cup {id}", "Ceramics", 10) for id in range(4, 26)]
        database.executemany("INSERT INTO products VALUES (?, ?, ?, ?)", more)
        database.commit()

    calls, answer = await converse(question, [ShopTool(path)])

    assert [name for name, _ in calls] == [DATABASE, DATABASE]
    assert answer.startswith(said)
    assert "| 20 | Cup 20 |" in answer


async def chunks_of(messages, **more):
    return [chunk async for chunk in demo().stream(model="demo", messages=messages, **more)]


async def test_a_call_is_streamed_as_openai_streams_it(tools):
    specs = [specification(tool) for tool in tools]
    chunks = await chunks_of([{"role": "user", "content": "12 times 7"}], tools=specs)
    turn = assemble(chunks)

    assert turn.reasoning == "This is arithmetic, so I let the calculator work it out."
    assert turn.tool_calls[0].input == {"expression": "12 * 7"}
    assert turn.finish_reason == "tool_calls"
    assert turn.content == ""
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"]["total_tokens"] == sum(
        chunks[-1]["usage"][name] for name in ("prompt_tokens", "completion_tokens")
    )
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    assert len({chunk["id"] for chunk in chunks}) == 1


async def test_the_same_conversation_gives_the_same_words_and_ids(tools):
    specs = [specification(tool) for tool in tools]
    first, second = [
        await chunks_of([{"role": "user", "content": "売上合計"}], tools=specs) for _ in "12"
    ]

    assert [c["choices"] for c in first] == [c["choices"] for c in second]


async def test_without_tools_it_says_honestly_that_it_is_a_demo():
    turn = assemble(await chunks_of([{"role": "user", "content": "Who wrote Genji?"}]))

    assert "rules, not AI" in turn.content
    assert "ANTHROPIC_API_KEY" in turn.content
    assert turn.finish_reason == "stop"
    assert DEMO_LABEL == "Demo model (rules, no AI)"


async def test_results_in_the_history_are_answered_from_when_no_tools_are_left(tools):
    call = {"name": "database", "arguments": '{"sql": "SELECT 1"}'}
    messages = [
        {"role": "user", "content": "total revenue"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "a", "function": call}]},
        {"role": "tool", "tool_call_id": "a", "content": '{"columns": ["x"], "rows": [[7]]}'},
    ]

    turn = assemble(await chunks_of(messages))

    assert turn.content == "| X |\n| ---: |\n| 7 |"


@pytest.mark.parametrize("text", ["Two  words\n\n- and more", "今年の 売上は **5** です。", ""])
def test_the_pieces_of_a_text_make_the_text_again(text):
    assert "".join(pieces(text)) == text
    assert all(len(piece.strip()) < 20 for piece in pieces(text))


@pytest.mark.parametrize("messages", [[], [{"role": "system", "content": "Be brief."}]])
async def test_a_conversation_without_a_question_is_answered_with_an_introduction(messages):
    turn = assemble(await chunks_of(messages))

    assert "demo model" in turn.content


@pytest.mark.parametrize(
    "seed", ["(", "1+", "1と", "half of ", "% of ", "売上の", "「", "in A ", "a? "]
)
def test_a_long_strange_question_is_read_in_no_time(seed, tools):
    offers = tuple(
        Offer(name=t.name, description=t.description, parameters=t.parameters) for t in tools
    )
    question = Question(text=(seed * 2_000)[:2_000])

    begin = time.perf_counter()
    decide(Situation(question=question, tools=offers), TODAY)

    assert time.perf_counter() - begin < 2


async def test_rows_that_another_model_asked_for_are_shown_as_they_are(tools):
    specs = [specification(tool) for tool in tools]
    call = {"name": "database", "arguments": '{"sql": "SELECT name FROM customers"}'}
    messages = [
        {"role": "user", "content": "How many customers are there?"},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "a", "function": call}]},
        {"role": "tool", "tool_call_id": "a", "content": '{"columns": ["n"], "rows": [["A"]]}'},
    ]

    turn = assemble(await chunks_of(messages, tools=specs))

    assert turn.content == "| N |\n| --- |\n| A |"


@pytest.mark.parametrize("tools", [(), (Offer(name=SEARCH),)])
@pytest.mark.parametrize(
    ("wish", "rows", "answer"),
    [
        (
            "Say what these figures show:",
            [["抹茶の箱", 3], ["Tea", 9.5]],
            "Of these 2, **Tea** has the highest total, with **9.50**. "
            "After it comes **抹茶の箱** (3).",
        ),
        (
            "次の数字から分かることを述べてください:",
            [["Tea", 9], ["Cup", 3], ["Pot", 4]],
            "3件のうち最も多いのは **Tea**（**9**）です。"
            "次いで **Pot**（4）、**Cup**（3）です。",
        ),
        ("Explain this:", [], "There are no figures in this."),
        ("Explain this:", [["a", "b"]], "Name **a**, total **b**."),
    ],
)
def test_figures_in_the_question_are_told_without_a_tool(wish, rows, answer, tools):
    given = json.dumps({"columns": ["name", "total"], "rows": rows}, ensure_ascii=False)
    situation = Situation(question=Question(text=f"{wish} {given}"), tools=tools)

    assert decide(situation, TODAY).answer == answer
