"""The seeded agents with the demo model, over the sample shop and the handbook."""

import json
import re
import sqlite3
from contextlib import closing
from datetime import date

from django.conf import settings

from agents.engine import (
    AgentRuntime,
    FallbackStrategy,
    Guardrails,
    Handoff,
    Orchestrator,
    OutputSchema,
    Panel,
    ReActPlanner,
    ToolRegistry,
)
from agents.engine.loop.tool_calls.approval import AskPersonTool
from agents.engine.material import Passage
from agents.engine.state import AgentState
from agents.engine.tool import ToolResult, text_argument
from agents.llm.demo import DemoModel
from agents.management.commands.seed_demo import REPORT
from agents.tools.calculator import CalculatorTool
from agents.tools.database import sql_guard
from agents.tools.database.tool import DatabaseTool
from agents.tools.search import SearchTool

TODAY = date(2026, 11, 15)


class ShopTool:
    """The database tool's description and SQL guard, with the query run in this process."""

    name = "database"
    parameters, effect = DatabaseTool.parameters, DatabaseTool.effect

    def __init__(self, path):
        self.path = path
        tool = DatabaseTool(f"sqlite:///{path}")
        self.description, self.schema = tool.description, tool.schema

    async def execute(self, input, /):
        query = sql_guard.validate(text_argument(input, "sql"), self.schema)
        with closing(sqlite3.connect(self.path)) as shop:
            found = shop.execute(query.sql)
            columns = [column[0] for column in found.description]
            rows = found.fetchall()
        return ToolResult(json.dumps({"columns": columns, "rows": rows, "truncated": False}))


def _handbook():
    for path in sorted((settings.BASE_DIR / "docs" / "handbook").rglob("*.md")):
        title, *parts = re.split(r"^##? ", path.read_text("utf-8"), flags=re.MULTILINE)[1:]
        for at, part in enumerate(parts, start=1):
            heading, _, text = part.partition("\n")
            yield Passage(
                title=title.partition("\n")[0],
                path=path.name,
                heading=heading,
                ordinal=at,
                text=text.strip(),
            )


def _words(text):
    runs = re.findall(r"[\u3041-\u30ff\u4e00-\u9fff]+", text)
    pairs = (run[at : at + 2] for run in runs for at in range(len(run) - 1))
    return {*re.findall(r"[a-z]{4,}", text.lower()), *pairs}


HANDBOOK = [(passage, _words(passage.heading), _words(passage.text)) for passage in _handbook()]


async def find_in_handbook(query, top_k):
    asked = _words(query)
    ranked = sorted(HANDBOOK, key=lambda p: -(2 * len(asked & p[1]) + len(asked & p[2])))
    return [passage for passage, *_ in ranked[:top_k]]


def demo():
    return DemoModel(delay=0, today=lambda: TODAY)


def tools(shop):
    return [CalculatorTool(), ShopTool(shop), SearchTool(find_in_handbook)]


def runtime(name, tools, *, make=AgentRuntime, dialect="native", model=None, **options):
    planner = ReActPlanner(model or demo(), "demo", dialect=dialect)
    rest = (ToolRegistry(tools), Guardrails(), FallbackStrategy(pause=0))
    return make(planner, *rest, name=name, **options)


def seeded_agent(name, shop, dialect="native"):
    """Return a seeded agent by name."""
    own = tools(shop)
    if name in ("lead", "panel"):
        names = ["helper", "librarian", *(["reporter"] if name == "lead" else [])]
        members = [seeded_agent(each, shop, dialect) for each in names]
        own = [Handoff(member.name, lambda member=member: member) for member in members]
        make = Panel if name == "panel" else AgentRuntime
        return runtime(name, own, make=make, dialect=dialect)
    if name == "planner":
        person = AskPersonTool((), asker_approves=False)
        return runtime(name, [*own, person], make=Orchestrator, dialect=dialect)
    if name == "librarian":
        return runtime(name, own[2:], dialect="react")
    output = {"output": OutputSchema(REPORT)} if name == "reporter" else {}
    return runtime(name, own, dialect=dialect, **output)


async def converse(question, tools, dialect="native", history=(), model=None):
    """Return everything the model does for a question: its calls and its answer."""
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
        calls.append((call.name, next(iter(call.input.values()))))
        remember(state, call.name, call.arguments, result.text)
    raise AssertionError(f"no answer to {question!r} after {calls}")


def remember(state, name, text, result=None):
    """Add a message or, with a result, a tool call with this text."""
    if result is None:
        return state.add_message(name, text)
    id, function = f"call_{len(state.get_messages())}", {"name": name, "arguments": text}
    asked = {"id": id, "type": "function", "function": function}
    state.add_message("assistant", None, tool_calls=[asked])
    state.add_message("tool", result, tool_call_id=id)
