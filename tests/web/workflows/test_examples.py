"""The example workflows do what they say."""

import pytest
from asgiref.sync import sync_to_async
from django.utils import translation

from agents import runs
from agents.models import Approval
from agents.runs import approvals
from agents.runs.approvals import Decision
from agents.web.workflows import start, versions
from agents.web.workflows.examples import EXAMPLES
from tests.conftest import verify_run
from tests.sampling import one_in

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "samples", "run_executor"),
]


async def start_workflow(query, person):
    wish = await sync_to_async(start.parse_command)(query, person)
    run = await sync_to_async(start.prepare_run)(wish, person, "chat.1")
    runs.launch(run)
    await runs.wait(run)
    asked = await Approval.objects.aget(run=run)
    await approvals.decide(person, asked.pk, Decision(digest=asked.digest, is_approved=True))
    await runs.wait(run)
    return await verify_run(run)


@pytest.mark.parametrize(
    ("count", "second"),
    one_in(4, [(1, ""), (2, " Next: **"), (3, "), **"), (6, "), **")]),
)
async def test_the_best_products_example_summarizes_in_two_sentences(
    editor, person, count, second
):
    await sync_to_async(versions.save)(EXAMPLES["sales"].text, editor)

    run = await start_workflow(f"/workflow Top products count={count}", person)

    figures = (await run.steps.filter(action="database").afirst()).observation
    assert run.status == "completed", run.detail
    assert run.answer.split("**")[1] in figures
    assert second in run.answer
    assert run.answer.count(".") == (2 if second else 1)


def test_an_example_is_in_the_readers_language():
    with translation.override("ja"):
        japanese = EXAMPLES["sales"].text

    assert 'ask: "この数値をレポートに使いますか？ ${steps.figures.output}"' in japanese
    assert EXAMPLES["pipeline"].text.isascii()
