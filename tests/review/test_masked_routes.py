"""Another user's personal data is masked by any route."""

import pytest
from django.contrib.auth.models import Permission

from agents.engine.testing import Says
from agents.models import AgentStep, Approval, Run
from agents.review.models import Review
from tests.conftest import as_async_user, run_question

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]

ALONE = ["", "steps/", "steps/1/", "compare/", "replay/"]
ADDRESS = "ada.lovelace@example.org"
ROUTES = [
    "/traces/",
    "/traces/{run}/",
    "/traces/{run}/steps/",
    "/traces/{run}/steps/1/?tab=request",
    "/traces/{run}/steps/1/request/",
    "/traces/{run}/steps/2/",
    "/traces/{run}/steps/2/review/",
    "/traces/{run}/export.json",
    "/traces/{run}/export.md",
    "/traces/{run}/compare/",
    "/traces/{run}/compare/{other}/",
    "/traces/{run}/replay/",
    "/traces/{run}/replay/?at=999",
    "/traces/{run}/replay/scene/",
    "/traces/{run}/again/1/",
    "/traces/{run}/again/3/",
    "/review/",
    "/api/runs/{run}/events/",
]


@pytest.fixture
async def runs(person, scripted):
    call = Says.call("calculator", input=f"'{ADDRESS}'")
    scripted(call, Says(answer=f"It is {ADDRESS}."), Says(answer=f"Write to {ADDRESS}."))
    run = await run_question(f"Who is {ADDRESS}?", user=person)
    other = await run_question(f"And where is {ADDRESS}?", user=person, topic="chat.2")
    await Review.objects.acreate(run=run)
    return run, other


@pytest.fixture
async def page(reviewer):
    await reviewer.user_permissions.aadd(await Permission.objects.aget(codename="rerun_runs"))
    client = await as_async_user(reviewer)

    async def page(path):
        answer = await client.get(path)
        assert answer.status_code == 200, path
        parts = [part async for part in answer] if answer.streaming else [answer.content]
        return b"".join(parts).decode()

    return page


async def test_a_reviewer_sees_masked_text_on_every_route(runs, page):
    run, other = runs

    for route in ROUTES:
        shown = await page(route.format(run=run.pk, other=other.pk))
        assert "lovelace" not in shown, route
        assert "example.org" not in shown, route


async def test_every_page_that_masks_something_says_so(runs, page):
    run, _other = runs

    for route in ALONE:
        shown = await page(f"/traces/{run.pk}/{route}")
        assert "Personal data is masked, and your access is recorded." in shown, route
        assert shown.count("<h1") == 1, route


async def test_the_owner_reads_the_original_text(runs, person):
    run, other = runs
    client = await as_async_user(person)

    for route in [d for d in ROUTES if "{run}" in d and "review" not in d]:
        answer = await client.get(route.format(run=run.pk, other=other.pk))
        parts = [part async for part in answer] if answer.streaming else [answer.content]
        assert answer.status_code == 200, route
        assert "lovelace" in b"".join(parts).decode(), route


async def test_a_rerun_keeps_the_text_of_its_origin_masked(runs, page, reviewer):
    run, _other = runs
    again = await Run.objects.acreate(
        user=reviewer, topic="again", query=run.query, origin=run, origin_step=3
    )

    assert "lovelace" not in await page(f"/traces/{again.pk}/")

    await Run.objects.filter(pk=again.pk).aupdate(origin=None)
    assert "lovelace" not in await page(f"/traces/{again.pk}/")


async def test_a_masked_call_cannot_be_approved(runs, page, reviewer):
    run, _other = runs
    again = await Run.objects.acreate(
        user=reviewer, topic="again", query="q", origin=run, origin_step=1, status="waiting"
    )
    await AgentStep.objects.acreate(
        run=again, number=1, kind="tool", status="waiting", started_at=again.started_at
    )
    await Approval.objects.acreate(
        run=again,
        step=1,
        tool="send",
        arguments=f'{{"to": "{ADDRESS}"}}',
        asked_at=again.started_at,
    )

    shown = await page(f"/traces/{again.pk}/")

    assert 'class="approval"' in shown
    assert 'name="verdict"' not in shown
