import pytest
from asgiref.sync import sync_to_async

from agents import runs
from agents.workflows import starting
from tests.conftest import checked

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "workshop"),
]

GREETING = """\
name: Greeting card
parameters: {to: null, times: 2, loud: false, words: [a, b]}
steps:
  - name: write
    tool: report_generator
    condition: parameters.times > 0
"""


async def carried_out(text, user):
    wish = await sync_to_async(starting.wished)(text, user)
    run = await sync_to_async(starting.start)(wish, user, "chat.1")
    runs.launch(run)
    await runs.wait(run)
    return await checked(run)


async def test_the_pipeline_runs_from_end_to_end(workflow, person):
    run = await carried_out("/workflow データ分析パイプライン", person)

    assert run.status == "completed", run.detail
    assert run.answer == "平均は 2 です。"
    assert run.agent_name == "データ分析パイプライン"
    assert (await sync_to_async(lambda: run.workflow)()).number == 1
    called = run.events.filter(type="tool_call").order_by("seq")
    names = [event.data["function"]["name"] async for event in called]
    assert names == ["data_collector", "data_preprocessor", "analyzer", "report_generator"]
