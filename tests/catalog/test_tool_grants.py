"""Tools that a user always allows: who can allow what, where it holds, and when it ends."""

import pytest
from asgiref.sync import sync_to_async

from agents import runs
from agents.catalog.tools import tool_factory, tool_grants
from agents.engine.testing import Says
from agents.engine.tool import ToolResult
from agents.models import Agent, Approval, AuditEntry, Membership, Run, ToolGrant
from agents.models import ToolRegistration as Tool
from agents.runs.approvals import DecisionRejected
from agents.web.presentation import ApprovalView
from tests.conftest import as_async_user, run_question
from tests.runs.conftest import decide
from tests.sampling import one_in

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]

WRITE = Says.call("calculator", "I have to write.", to="a@example.org")
DONE = Says(answer="It is written.")
CHAT, OTHER_CHAT = "chat.901", "chat.902"


class Letter:
    name, needs_approval, effect = "calculator", True, "idempotent"
    parameters = {"type": "object", "properties": {"to": {"type": "string"}}}

    def __init__(self):
        self.sent, self.description = [], "Writes."

    async def execute(self, input):
        self.sent.append(dict(input))
        return ToolResult("Sent.")


@pytest.fixture
def letter(monkeypatch):
    tool = Letter()
    monkeypatch.setitem(tool_factory.BUILT_IN_TOOLS, "calculator", lambda: tool)
    return tool


@pytest.fixture
async def permitted(letter, scripted):
    """Let users allow the tool everywhere; every question calls it once."""
    await Tool.objects.filter(name="calculator").aupdate(always_allow="user")
    scripted(*[WRITE, DONE] * 4)
    return letter


async def ask(user, topic=CHAT, **more):
    return await run_question("Write to her.", user=user, topic=topic, **more)


async def waiting_in(run):
    assert run.status == "waiting"
    return await Approval.objects.select_related("run").aget(run=run)


async def allow(user, run, scope="chat", **more):
    approval = await waiting_in(run)
    await decide(user, approval, always=scope, **more)
    await runs.wait(run)
    return await ToolGrant.objects.alast()


async def test_an_allowed_tool_runs_without_asking_and_says_so(permitted, person):
    await allow(person, await ask(person))

    run = await ask(person)

    assert run.status == "completed"
    assert len(permitted.sent) == 2
    approval = await Approval.objects.select_related("decided_by", "run").aget(run=run)
    assert (approval.verdict, approval.granted_scope) == ("approved", "chat")
    assert approval.decided_by == person
    assert run.waited == 0  # nobody was asked
    sentence = await sync_to_async(lambda: ApprovalView(approval).automatic_sentence)()
    assert sentence == "Approved automatically: ada always allows calculator in this chat."
    event = await run.events.aget(type="approval_resolved")
    assert event.data["grant"]["scope"] == "chat"
    recorded = AuditEntry.objects.values_list("action", flat=True)
    actions = [action async for action in recorded.filter(action__startswith="approval.")]
    assert "approval.always_allowed" in actions
    assert "approval.automatic" in actions


async def test_a_plain_approval_allows_nothing(permitted, person):
    run = await ask(person)
    approval = await waiting_in(run)
    await decide(person, approval)
    await runs.wait(run)

    assert not await ToolGrant.objects.aexists()
    assert (await ask(person)).status == "waiting"


async def test_calls_that_already_wait_beside_an_allowed_one_are_approved_with_it(
    letter, scripted, person
):
    await Tool.objects.filter(name="calculator").aupdate(always_allow="user")
    scripted(Says(calls=(*WRITE.calls, *WRITE.calls)), DONE)
    run = await ask(person)
    first = await Approval.objects.filter(run=run).afirst()

    await decide(person, first, always="chat")
    await runs.wait(run)

    assert (await Run.objects.aget(pk=run.pk)).status == "completed"
    assert len(letter.sent) == 2


async def test_a_permission_for_one_chat_does_not_apply_to_another(permitted, person):
    await allow(person, await ask(person), "chat")

    assert (await ask(person, OTHER_CHAT)).status == "waiting"


async def test_a_permission_for_a_user_applies_to_all_their_chats_only(
    permitted, person, stranger
):
    await allow(person, await ask(person), "user")

    assert (await ask(person, OTHER_CHAT)).status == "completed"
    assert (await ask(stranger, "chat.903")).status == "waiting"


async def test_a_revoked_permission_ends_at_once(permitted, person, stranger):
    grant = await allow(person, await ask(person))

    with pytest.raises(ToolGrant.DoesNotExist):
        await sync_to_async(tool_grants.revoke)(stranger, grant.pk)
    await sync_to_async(tool_grants.revoke)(person, grant.pk)

    assert (await ask(person)).status == "waiting"


async def test_a_changed_tool_requires_approval_again(permitted, person):
    await allow(person, await ask(person))
    permitted.description = "Writes and sends money."

    assert (await ask(person)).status == "waiting"


@pytest.mark.parametrize(
    "change",
    one_in(
        4,
        [
            {"always_allow": "never"},
            {"effect": "at_most_once"},
            {"definition": {"name": "calculator"}},
            {"endpoint": "https://elsewhere.example"},
            {"pending": {"name": "calculator"}},
        ],
    ),
)
async def test_a_permission_ends_when_the_tool_changes_or_is_restricted(
    permitted, person, change
):
    await allow(person, await ask(person))
    await Tool.objects.filter(name="calculator").aupdate(**change)

    assert (await ask(person)).status == "waiting"


async def test_by_default_no_tool_can_be_allowed(letter, scripted, person):
    scripted(WRITE, DONE)
    approval = await waiting_in(await ask(person))

    for scope in ("chat", "user", "everywhere"):
        with pytest.raises(DecisionRejected):
            await decide(person, approval, always=scope)

    await approval.arefresh_from_db()
    assert approval.is_waiting  # nothing was decided
    assert letter.sent == []
    assert not await ToolGrant.objects.aexists()


async def test_an_irreversible_tool_is_allowed_in_one_chat_at_most(permitted, person):
    await Tool.objects.filter(name="calculator").aupdate(effect="at_most_once")
    approval = await waiting_in(await ask(person))

    assert await sync_to_async(tool_grants.scopes)(approval, person.pk) == ("chat",)
    with pytest.raises(DecisionRejected):
        await decide(person, approval, always="user")


async def test_a_wide_permission_shrinks_when_the_tool_becomes_irreversible(permitted, person):
    await allow(person, await ask(person), "user")
    permitted.effect = "at_most_once"

    assert (await ask(person, OTHER_CHAT)).status == "waiting"


async def test_another_member_can_approve_but_not_allow(permitted, person, stranger):
    run = await ask(person)
    for user in (person, stranger):
        await Membership.objects.acreate(topic=CHAT, user=user, may_write=True)
    approval = await waiting_in(run)

    assert await sync_to_async(tool_grants.scopes)(approval, stranger.pk) == ()
    with pytest.raises(DecisionRejected):
        await decide(stranger, approval, always="chat")
    assert not await ToolGrant.objects.aexists()


async def test_a_permission_is_not_used_for_a_question_of_another_member(
    permitted, person, stranger
):
    await allow(person, await ask(person))

    assert (await ask(stranger)).status == "waiting"


async def test_another_agent_requires_approval(permitted, person):
    await allow(person, await ask(person))
    await ToolGrant.objects.aupdate(agent_name="someone else")

    assert (await ask(person)).status == "waiting"


async def test_a_decision_sent_again_allows_nothing(permitted, person):
    run = await ask(person)
    approval = await waiting_in(run)
    grant = await allow(person, run)
    await grant.adelete()

    with pytest.raises(DecisionRejected, match="already closed"):
        await decide(person, approval, always="user")
    assert not await ToolGrant.objects.aexists()


async def test_a_rejection_allows_nothing(permitted, person):
    approval = await waiting_in(await ask(person))

    with pytest.raises(DecisionRejected):
        await decide(person, approval, is_approved=False, always="chat")


@pytest.mark.parametrize("why", ["unknown", "plan", "step", "question", "sharing"])
async def test_only_a_tools_call_can_be_allowed(permitted, person, why):
    approval = await waiting_in(await ask(person))
    approval.why = why

    assert await sync_to_async(tool_grants.scopes)(approval, person.pk) == ()


@pytest.mark.parametrize("about", [{"topic": "draft.1"}, {"origin_step": 2}, {"user_id": None}])
async def test_reruns_and_tests_of_drafts_have_no_permissions(about):
    run = Run(**({"topic": CHAT, "user_id": 1} | about))

    assert tool_grants.grants(run, "helper", {"calculator"}) == []


async def test_an_agent_that_requires_every_approval_uses_the_permission(permitted, person):
    await Agent.objects.aupdate(auto_execute_tools=False)
    permitted.needs_approval = False
    run = await ask(person)
    assert (await waiting_in(run)).why == "agent"
    await allow(person, run)

    assert (await ask(person)).status == "completed"


async def test_the_buttons_are_offered_to_the_user_who_asked(permitted, person):
    run = await ask(person)
    approval = await waiting_in(run)
    client = await as_async_user(person)

    page = (await client.get("/approvals/")).text
    assert 'value="always-chat"' in page
    assert 'value="always-user"' in page
    form = {"verdict": "always-chat", f"digest-{approval.pk}": approval.digest}
    await client.post(f"/approvals/{approval.pk}/", form)
    await runs.wait(run)

    grant = await ToolGrant.objects.aget()
    for address in ("/approvals/", "/account/"):
        page = (await client.get(address)).text
        assert f"/approvals/permissions/{grant.pk}/revoke/" in page
    await client.post(f"/approvals/permissions/{grant.pk}/revoke/")
    assert not await ToolGrant.objects.aexists()


async def test_several_calls_are_approved_with_one_confirmation(letter, scripted, person):
    scripted(WRITE, WRITE, DONE, DONE)
    first = await waiting_in(await ask(person))
    second = await waiting_in(await ask(person, OTHER_CHAT))
    client = await as_async_user(person)

    page = (await client.get("/approvals/batch/")).text
    assert page.count("a@example.org") == 2
    assert letter.sent == []
    form = {
        "confirm": "1",
        "pick": [first.pk, second.pk, 999_999],
        f"digest-{first.pk}": first.digest,
        f"digest-{second.pk}": "0" * 64,
    }
    answer = await client.post("/approvals/batch/", form)

    await runs.wait(first.run)
    assert answer.status_code == 422
    assert "1 call approved." in answer.text
    assert "has changed since you opened the page" in answer.text
    assert len(letter.sent) == 1
    await second.arefresh_from_db()
    assert second.is_waiting


async def test_other_users_calls_cannot_be_approved_in_a_batch(
    letter, scripted, person, stranger
):
    scripted(WRITE, DONE)
    approval = await waiting_in(await ask(person))
    client = await as_async_user(stranger)

    page = (await client.get(f"/approvals/batch/?pick={approval.pk}")).text
    form = {"confirm": "1", "pick": approval.pk, f"digest-{approval.pk}": approval.digest}
    await client.post("/approvals/batch/", form)

    assert "a@example.org" not in page
    await approval.arefresh_from_db()
    assert approval.is_waiting
    assert letter.sent == []
