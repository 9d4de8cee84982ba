import pytest
from asgiref.sync import sync_to_async

from agents import runs
from agents.models import Run
from agents.review import rerunning
from agents.workflows import starting
from tests.conftest import checked

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "workshop"),
]


@pytest.fixture
async def finished(workflow, person):
    wish = await sync_to_async(starting.wished)("/workflow データ分析パイプライン", person)
    run = await sync_to_async(starting.start)(wish, person, "chat.1")
    runs.launch(run)
    await runs.wait(run)
    return await checked(run)


async def test_a_workflow_that_is_run_again_is_the_same_workflow(finished, person):
    def again():
        return rerunning.prepare(finished, 1, rerunning.Setup(finished).before, person)

    run = await sync_to_async(again)()
    runs.resume(run)
    await runs.wait(run)

    await run.arefresh_from_db()
    assert run.workflow_id == finished.workflow_id
    assert run.agent_name == finished.agent_name


async def test_a_workflow_left_in_the_middle_goes_on_where_it_was(finished, workflow, person):
    """As after a process that died: the events of the first steps are all that is left."""
    half = finished.events.order_by("seq")
    cut = await half.filter(type="tool_response").aget(data__name="data_preprocessor")
    run = await Run.objects.acreate(
        user=person,
        topic="chat.2",
        query=finished.query,
        agent=await sync_to_async(lambda: finished.agent)(),
        agent_name=finished.agent_name,
        model=finished.model,
        workflow_id=finished.workflow_id,
    )
    async for event in half.filter(seq__lte=cut.seq):
        event.pk, event.run = None, run
        await event.asave(force_insert=True)

    assert await runs.take_over() == 1
    await runs.wait(run)

    run = await checked(run)
    assert run.status == "completed"
    called = run.events.filter(type="tool_call").order_by("seq")
    names = [event.data["function"]["name"] async for event in called]
    assert names == ["data_collector", "data_preprocessor", "analyzer", "report_generator"]
