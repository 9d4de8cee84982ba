"""The seeded default agent: its rows are created once and copied for each further test."""

from django.db import connection, transaction

from agents.management.commands import seed_demo
from agents.models import (
    Agent,
    AgentTool,
    DatabaseConnection,
    GuardrailPattern,
    ToolRegistration,
)

# In the order in which they refer to each other.
MODELS = (DatabaseConnection, ToolRegistration, Agent, AgentTool, GuardrailPattern)
TABLES = [model._meta.db_table for model in MODELS]
IS_FILLED = " OR ".join(f"EXISTS (SELECT 1 FROM {table})" for table in TABLES)
TOOLS = ("calculator", "database", "search")  # that tests call
_rows: dict[str, list[tuple]] = {}


def create() -> Agent:
    """Create the agent with its guardrails, and with the tools that tests call."""
    is_filled = _select(f"SELECT {IS_FILLED}")[0][0]
    if _rows and not is_filled:
        _insert()
        return Agent.objects.get(name="helper")
    helper = _seed()
    if not is_filled:
        _rows.update({table: _select(f"SELECT * FROM {table}") for table in TABLES})
    return helper


def _seed() -> Agent:
    seed_demo.make_tools()
    helper = seed_demo.make_helper()
    helper.tools.set(ToolRegistration.objects.filter(name__in=TOOLS))
    seed_demo.make_guardrails()
    return helper


def _select(query: str) -> list[tuple]:
    with connection.cursor() as cursor:
        cursor.execute(query)
        return cursor.fetchall()


@transaction.atomic
def _insert() -> None:
    with connection.cursor() as cursor:
        for table, rows in _rows.items():
            values = ", ".join(["%s"] * len(rows[0]))
            cursor.executemany(f"INSERT INTO {table} VALUES ({values})", rows)
