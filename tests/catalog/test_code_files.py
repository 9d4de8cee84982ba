"""Python code with the files of a chat: in a run, and in the console."""

import pytest
from asgiref.sync import sync_to_async

from agents import runs
from agents.catalog.tools import tool_factory
from agents.console.agent_admin.agent_tools import ToolRow
from agents.console.tool_admin.tool_settings import unavailable_reason
from agents.engine.testing import Says
from agents.knowledge.files import save
from agents.models import RunAttachment, ToolRegistration
from agents.tools import sandbox
from tests.conftest import verify_run

pytestmark = pytest.mark.django_db(transaction=True)
DRAW = """
import csv
from PIL import Image
prices = [int(row["price"]) for row in csv.DictReader(open("orders.csv"))]
Image.new("RGB", (40, 30), "teal").save("chart.png")
sum(prices)
"""


def test_no_sample_agent_runs_code(agent):
    assert "run_python" not in tool_factory.usable_names()
    assert not agent.tools.filter(name="run_python").exists()


def test_the_console_says_where_code_cannot_be_confined(agent, monkeypatch):
    row = ToolRegistration.objects.get_or_create(name="run_python")[0]
    monkeypatch.setattr(sandbox, "confines_foreign_code", lambda: False)

    assert "Linux" in unavailable_reason(row)
    assert ToolRow(row).state


@pytest.mark.skipif(
    not sandbox.confines_foreign_code(), reason="the kernel can't confine foreign code"
)
@pytest.mark.usefixtures("run_executor")
async def test_code_reads_the_chats_files_and_its_files_are_the_steps(agent, scripted):
    row, _created = await ToolRegistration.objects.aget_or_create(name="run_python")
    await agent.tools.aadd(row)
    scripted(
        Says.call("run_python", code=DRAW),
        Says.call("run_python", code="import os\nsorted(os.listdir())"),
        Says(answer="It is 7."),
    )
    file = await sync_to_async(save)(b"price\n3\n4\n", name="orders.csv", owner=None)
    ref = {"name": "orders.csv", "mime_type": "text/csv", "size": file.size}
    ref |= {"kind": "table", "digest": file.digest, "document": None}

    run = await sync_to_async(runs.prepare)(query="Draw them", topic="chat.1", files=[ref])
    runs.launch(run)
    await runs.wait(run)

    run = await verify_run(run)
    chart = await RunAttachment.objects.aget(run=run, mime_type="image/png")
    first, second = [step async for step in run.steps.filter(kind="tool")]
    assert chart.name == "chart.png"
    assert first.observation.startswith("7")
    assert "chart.png" in first.observation
    assert "['chart.png', 'orders.csv']" in second.observation
