"""Visitors of an embedded chat: what they can send, and what they see."""

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from agents import runs
from agents.engine.errors import ModelError
from agents.engine.testing import Says
from agents.models import Agent, AgentStep, EmbedVisitor, Quota, Run, Workflow
from agents.review.models import Rating
from agents.runs import pubsub
from chat.embedding.socket import EmbedConsumer
from chat.errors import MessageRejected
from chat.messages.run_factory import reject_agent_errors
from chat.models import ChatSession, Message
from tests.conftest import frames_until

from .conftest import ask, close_code, connect, frame, new_token, sign

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]
FINISHED = 'class="run" data-status="completed"'


async def test_a_visitor_is_answered_by_the_agent_of_the_embedded_chat(embed):
    token = new_token()
    async with frame(embed, token) as page:
        await ask(page, "What is 12.5% of 3480?")
        shown = "".join(await frames_until(page, FINISHED))

    run = await Run.objects.select_related("user").aget()
    assert "<strong>435</strong>" in shown
    assert run.agent_id == embed.agent_id
    assert not run.user.has_usable_password()
    assert await run.user.groups.aget() == embed.group
    assert (await ChatSession.objects.aget()).title_source == ChatSession.TitleSource.PERSON


async def test_nothing_links_into_the_product_and_no_step_is_visible(embed):
    async with frame(embed, new_token()) as page:
        await ask(page, "What is 12.5% of 3480?")
        shown = "".join(await frames_until(page, FINISHED))

    assert 'href="/' not in shown
    assert "/traces/" not in shown
    assert "hx-post" not in shown
    assert "calculator" not in shown
    assert 'class="step"' not in shown
    assert "Calculated" in shown


async def test_an_embedded_chat_can_hide_what_its_agent_does(make_embed):
    embed = await sync_to_async(make_embed)(shows_steps=False)
    async with frame(embed, new_token()) as page:
        await ask(page, "What is 12.5% of 3480?")
        shown = "".join(await frames_until(page, FINISHED))

    assert "alculat" not in shown
    assert "Thinking…" in shown


async def test_no_visitor_is_saved_before_something_is_asked(embed):
    async with frame(embed, new_token()) as page:
        assert await page.receive_nothing()

    assert not await EmbedVisitor.objects.aexists()


async def test_the_same_token_continues_the_conversation(embed):
    token = new_token()
    async with frame(embed, token) as page:
        await ask(page)
        await frames_until(page, FINISHED)
    async with frame(embed, token) as page:
        shown = "".join(await frames_until(page, "composer-state"))
    async with frame(embed, token, b"new=1") as page:
        assert await page.receive_nothing()

    assert "6 * 7" in shown
    assert await User.objects.filter(embed_visit__embed=embed).acount() == 1


async def test_other_visitors_see_and_stop_nothing(embed, model):
    async with frame(embed, new_token()) as mine:
        await ask(mine, "Wait")
        await frames_until(mine, "Well,")
        run = await Run.objects.aget()
        message = await Message.objects.aget()
        async with frame(embed, new_token(), b"after=%d" % message.pk) as theirs:
            await theirs.send_json_to({"type": "stop", "run": run.pk})
            await theirs.send_json_to({"type": "rate", "run": run.pk, "rating": "good"})
            regenerate = {"type": "regenerate", "message": message.pk, "client_id": "r"}
            await theirs.send_json_to(regenerate)
            assert await theirs.receive_nothing()
        await run.arefresh_from_db()
        assert run.is_live
        model.let_go.set()
        await runs.wait(run)


async def test_options_mentions_and_workflows_of_visitors_are_ignored(embed, agent):
    other = await Agent.objects.acreate(name="secretary", model=agent.model)
    await Workflow.objects.acreate(name="payroll")
    async with frame(embed, new_token()) as page:
        await ask(page, "@secretary hello", agent="secretary", model="demo", temperature=1)
        await frames_until(page, FINISHED)
        await ask(page, "/workflow payroll", client_id="b")
        await frames_until(page, FINISHED)

    assert await Run.objects.filter(agent=other).acount() == 0
    assert [run.query async for run in Run.objects.order_by("pk")] == [
        "@secretary hello",
        "/workflow payroll",
    ]
    assert not await Run.objects.exclude(workflow=None).aexists()
    assert (await ChatSession.objects.aget()).options == {}


@pytest.mark.parametrize("kind", ["edit", "correct", "delete_message", "show_branch"])
async def test_a_frame_has_no_other_ways_to_change_a_chat(kind, embed):
    async with frame(embed, new_token()) as page:
        await page.send_json_to({"type": kind, "message": 1, "text": "x", "client_id": "c"})
        await frames_until(page, "invalid request")


async def test_the_answer_can_be_stopped_rated_and_written_again(embed, model):
    async with frame(embed, new_token()) as page:
        await ask(page, "Wait")
        await frames_until(page, "Well,")
        run = await Run.objects.aget()
        await page.send_json_to({"type": "stop", "run": run.pk})
        await frames_until(page, 'data-status="stopped"')
        await page.send_json_to({"type": "rate", "run": run.pk, "rating": "bad"})
        await frames_until(page, 'data-rated="bad"')
        model.let_go.set()
        message = await Message.objects.aget()
        again = {"type": "regenerate", "message": message.pk, "client_id": "r"}
        await page.send_json_to(again)
        await frames_until(page, FINISHED)

    assert not (await Rating.objects.aget()).is_good
    assert await Run.objects.acount() == 2


async def test_one_message_at_a_time(embed, model):
    async with frame(embed, new_token()) as page:
        await ask(page, "Wait")
        await frames_until(page, "Well,")
        await ask(page, "And now?", client_id="b")
        await frames_until(page, "An answer is being written")
        model.let_go.set()

    assert await Message.objects.acount() == 1


async def test_long_messages_are_refused(embed):
    async with frame(embed, new_token()) as page:
        await ask(page, "x" * 4001)
        await frames_until(page, "too long")

    assert not await EmbedVisitor.objects.aexists()


async def test_visitors_have_the_limits_of_their_group(embed):
    limit = {"group": embed.group, "measure": "messages", "window": "day", "limit": 1}
    await Quota.objects.acreate(**limit)
    async with frame(embed, new_token()) as page:
        await ask(page)
        await frames_until(page, FINISHED)
        await ask(page, "7 * 7", client_id="b")
        await frames_until(page, 'data-level="problem"')

    assert await Message.objects.acount() == 1


async def test_a_disabled_chat_ends_open_frames(embed):
    token = new_token()
    async with frame(embed, token) as page:
        await ask(page)
        await frames_until(page, FINISHED)
        embed.enabled = False
        await embed.asave()
        await pubsub.publish(embed.topic, pubsub.REFRESH_KIND)
        while (output := await page.receive_output(10))["type"] != "websocket.close":
            pass

    assert output["code"] == 4403
    assert await close_code(embed, token) == 4403


async def test_a_new_secret_ends_what_was_signed_with_the_old_one(embed):
    signed = sign(embed)
    async with frame(embed, signed) as page:
        await ask(page)
        await frames_until(page, FINISHED)
        embed.new_secret()
        await embed.asave()
        await ask(page, "7 * 7", client_id="b")
        while (output := await page.receive_output(10))["type"] != "websocket.close":
            pass

    assert output["code"] == 4401
    assert await Message.objects.acount() == 1


async def test_figures_of_limits_are_not_for_visitors(embed):
    shared = {"group": embed.group, "measure": "cost", "window": "day", "is_shared": True}
    await Quota.objects.acreate(**shared, limit=0)
    async with frame(embed, new_token()) as page:
        await ask(page)
        (*_others, notice) = await frames_until(page, "The limit of this chat is reached.")

    assert "Visitors:" not in notice
    assert "$" not in notice


def test_errors_of_models_are_not_for_visitors():
    with pytest.raises(MessageRejected) as rejection, reject_agent_errors():
        raise ModelError("gpt-7 refused the key of the connection “Trial”.")

    assert "Trial" in str(rejection.value)
    assert "Trial" not in str(EmbedConsumer().rejection_text(rejection.value))


async def test_a_rejected_message_leaves_no_more_than_one_empty_chat(embed):
    limit = {"group": embed.group, "measure": "messages", "window": "day", "limit": 0}
    await Quota.objects.acreate(**limit)
    token = new_token()
    for _again in range(3):
        async with frame(embed, token, b"new=1") as page:
            await ask(page)
            await frames_until(page, 'data-level="problem"')

    assert await ChatSession.objects.acount() == 1


async def test_one_address_has_so_many_open_frames(embed, monkeypatch):
    monkeypatch.setattr("chat.embedding.socket.MAX_OPEN", 1)
    async with frame(embed, new_token()):
        with pytest.raises(AssertionError):
            await connect(embed, new_token())
    async with frame(embed, new_token()):
        pass


async def test_names_of_tools_and_failures_are_not_for_visitors(embed, scripted):
    scripted(Says.call("calculator", input="1/0"), Says(answer="Done."))
    token = new_token()
    async with frame(embed, token) as page:
        await ask(page)
        await frames_until(page, FINISHED)
    await AgentStep.objects.filter(action="calculator").aupdate(action="payroll_lookup")
    async with frame(embed, token) as page:
        shown = "".join(await frames_until(page, "composer-state"))

    assert "Done." in shown
    assert "payroll" not in shown
    assert "failed" not in shown
