"""A program raises the limit of its user's run as far as its user can, and no further."""

import pytest
from django.contrib.auth.models import Permission, User

from agents.db import database
from agents.engine.testing import Says
from agents.metering.budgets import limits
from agents.models import Approval, Quota, ToolRegistration
from tests.chat.api.rest.conftest import finished

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]

CALL = Says.call("calculator", expression="1+1")
DONE = Says(answer="It is 2.")


@pytest.fixture
async def limited(agent):
    """An agent whose first turn alone passes its token limit."""
    await agent.tools.aadd(await ToolRegistration.objects.aget(name="calculator"))
    agent.max_run_tokens = 20
    agent.max_raise = 100
    await agent.asave()
    return agent


async def start(program):
    """Start a chat whose run passes its limit, and wait until it asks; return its id."""
    assert (await program.post("/chats", {"text": "How much is 1+1?"})).status_code == 201
    [run] = (await program.get("/runs")).json()["items"]
    assert (await finished(program, run["id"]))["status"] == "waiting"
    return run["id"]


async def limit_request(program):
    """Return a run that has passed its limit, and the request to raise it."""
    run = await start(program)
    [request] = (await program.get("/approvals")).json()["items"]
    assert request["why"] == "budget"
    return run, request


async def decide(program, request, verdict="approve"):
    body = {"verdict": verdict, "digest": request["digest"]}
    return await program.post(f"/approvals/{request['id']}/decision", body)


async def test_a_program_raises_the_limit_of_its_users_run(program, limited, scripted):
    scripted(CALL, DONE)
    run, request = await limit_request(program)

    assert (await decide(program, request)).status_code == 200

    assert (await finished(program, run))["answer"] == "It is 2."
    saved = await Approval.objects.aget(pk=request["id"])
    assert (saved.verdict, saved.new_arguments) == ("approved", "raise")


async def test_a_run_without_a_chat_ends_at_its_limit(program, limited, scripted):
    scripted(CALL)
    run = (await program.post("/runs", {"text": "How much is 1+1?"})).json()["id"]

    ended = await finished(program, run)

    assert (ended["status"], ended["stopped_reason"]) == ("stopped", "budget_exceeded")


async def test_that_needs_the_scope_approve(program, connect, limited, scripted):
    scripted(CALL, DONE)
    _run, request = await limit_request(program)
    asking = await connect("ask", "read")

    assert (await decide(asking, request)).status_code == 403
    assert (await Approval.objects.aget(pk=request["id"])).verdict == "waiting"


async def test_beyond_what_users_can_raise_a_person_decides(program, person, limited, scripted):
    """Also if the key's user is an administrator, who may do so in the browser."""
    limited.max_raise = 1
    await limited.asave()
    person.is_staff = True
    await person.asave()
    await person.user_permissions.aadd(await Permission.objects.aget(codename="raise_budgets"))
    scripted(CALL, DONE)
    run, request = await limit_request(program)

    refused = await decide(program, request)
    stopped = await decide(program, request, "stop")

    assert (refused.status_code, refused.json()["code"]) == (403, "limit_reached")
    assert stopped.status_code == 200
    assert (await finished(program, run))["status"] == "stopped"


async def test_nobody_elses_limit_is_raised(program, connect, stranger, limited, scripted):
    limited.max_raise = 1
    await limited.asave()
    scripted(CALL, DONE)
    run = await start(program)
    waiting = await Approval.objects.aget(run=run)
    request = {"id": waiting.pk, "digest": waiting.digest}
    stranger.is_staff = True
    await stranger.asave()
    await stranger.user_permissions.aadd(
        await Permission.objects.aget(codename="raise_budgets")
    )
    others = await connect(user=await User.objects.aget(pk=stranger.pk))

    refused = await decide(others, request)

    assert (refused.status_code, refused.json()["code"]) == (403, "not_yours")


async def test_the_keys_own_limits_stay(program, limited, scripted):
    scripted(CALL, DONE)
    run, request = await limit_request(program)
    await Quota.objects.acreate(api_key=program.key, measure="calls", window="month", limit=1)
    await database.run(limits.ROWS.refresh)

    assert (await decide(program, request)).status_code == 200

    ended = await finished(program, run)
    assert (ended["status"], ended["stopped_reason"]) == ("stopped", "budget_exceeded")
    assert "This API key" in ended["detail"]
