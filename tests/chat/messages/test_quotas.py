"""Limits per user: concurrent runs, messages per minute, tokens per day."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import Group
from django.db import connections, transaction
from django.utils import timezone

from agents import runs
from agents.access import recently_deleted
from agents.metering import budgets
from agents.metering.budgets import limits
from agents.models import BudgetCounter, Quota, Run
from chat import messages
from chat.errors import MessageRejected
from chat.messages import message_actions, session_status
from chat.models import ChatSession, Message
from chat.sessions import deletion

pytestmark = [
    pytest.mark.both_databases,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]

begin = partial(sync_to_async(messages.save), None)


async def rejection(*about):
    with pytest.raises(MessageRejected) as reason:
        await begin(*about)
    return str(reason.value)


async def test_the_concurrent_runs_of_a_user_are_limited(person, stranger, settings):
    settings.USER_RUNS = 2
    first = await begin(person, "one", "a")
    await begin(person, "two", "b")

    sentence = "You already have 2 runs in progress. Wait for one to finish, or stop one."
    assert await rejection(person, "three", "c") == sentence
    assert await ChatSession.objects.acount() == 2  # a rejected message leaves no rows
    await begin(stranger, "others may", "d")

    await runs.stop(first.run)
    assert (await begin(person, "three", "c")).is_new


def ask_at_once(person, count):
    """Send so many questions from ten threads, and return the runs of those that were saved."""

    def ask(number):
        try:
            return messages.save(None, person, f"question {number}", f"id {number}").run_id
        except MessageRejected:
            return None
        finally:
            connections.close_all()

    with ThreadPoolExecutor(10) as threads:
        return [run for run in threads.map(ask, range(count)) if run]


def test_fifty_concurrent_requests_do_not_exceed_the_limit(person, settings):
    settings.USER_RUNS = 5

    assert len(ask_at_once(person, 50)) == 5
    assert Run.objects.running().count() == Message.objects.count() == 5


async def test_messages_per_minute_are_limited(person, settings):
    settings.USER_MESSAGES = 3
    chat = (await begin(person, "one", "a")).session
    say = sync_to_async(messages.save)
    for text in ("two", "three"):
        await say(chat, person, text, text)

    with pytest.raises(MessageRejected, match="ve sent 3 messages in the last minute."):
        await say(chat, person, "four", "four")
    assert not (await say(chat, person, "three", "three")).is_new  # it was taken before

    await Message.objects.aupdate(created_at=timezone.now() - timedelta(minutes=2))
    assert (await say(chat, person, "four", "four")).is_new


async def test_tokens_are_limited_per_day(person, settings):
    settings.USER_TOKENS = 1000
    spent = {"user": person, "query": "q", "status": "completed"}
    run = await Run.objects.acreate(**spent, prompt_tokens=700, completion_tokens=300)

    reason = await rejection(person, "more", "a")
    expected = "You've reached your limit of 1,000 tokens per day (used: 1,000). The limit"
    assert reason.startswith(expected)

    await BudgetCounter.objects.aupdate(start=timezone.now() - timedelta(days=1))
    run.started_at -= timedelta(days=1)
    await run.asave()
    assert (await begin(person, "more", "a")).is_new


async def test_deleting_resets_no_limit(person, settings):
    """Limits count what was done, not the rows that are left of it."""
    settings.USER_MESSAGES = 1
    sent = await begin(person, "one", "a")
    await runs.stop(sent.run)
    await Run.objects.aupdate(prompt_tokens=700, completion_tokens=200)
    await ChatSession.objects.aupdate(title_tokens=100)
    settings.USER_TOKENS = 1000

    await message_actions.delete(sent.session, person, sent.pk, below=True)
    assert "message in the last minute" in await rejection(person, "two", "b")

    await deletion.delete(sent.session)
    settings.USER_MESSAGES = 0
    await ChatSession.objects.aupdate(deleted_at=timezone.now() - timedelta(days=31))
    await sync_to_async(recently_deleted.erase_due)()
    assert not await Run.objects.aexists()
    assert not await ChatSession.objects.aexists()
    assert "limit of 1,000 tokens per day" in await rejection(person, "two", "b")

    await BudgetCounter.objects.aupdate(start=timezone.now() - timedelta(days=2))
    assert (await begin(person, "two", "b")).is_new


async def test_a_deleted_user_leaves_no_usage(person, settings):
    settings.USER_TOKENS = 1000
    sent = await begin(person, "one", "a")
    await runs.stop(sent.run)
    await Run.objects.aupdate(prompt_tokens=1000)

    await sync_to_async(person.delete)()

    assert not await BudgetCounter.objects.aexists()


async def test_a_queued_message_says_what_it_waits_for(person, settings):
    chat = (await begin(person, "one", "a")).session
    await sync_to_async(messages.save)(chat, person, "two", "b")
    settings.USER_TOKENS = 10
    await Run.objects.aupdate(status="completed", prompt_tokens=10)

    await messages.answer_waiting()

    standing = await sync_to_async(session_status.get_status)(chat, None)
    assert [message.text for message in standing.queued] == ["two"]
    assert standing.blocked_reason.startswith("You've reached your limit of 10 tokens per day")


async def test_messages_of_a_month_are_limited_and_deleting_changes_nothing(person, configure):
    await sync_to_async(configure)(quota_messages_month=1)
    sent = await begin(person, "one", "a")
    await runs.stop(sent.run)

    reason = await rejection(person, "two", "b")
    assert reason.startswith("You've reached your limit of 1 message per month (used: 1)")

    await deletion.delete(sent.session)
    await ChatSession.objects.aupdate(deleted_at=timezone.now() - timedelta(days=31))
    await sync_to_async(recently_deleted.erase_due)()
    assert "limit of 1 message per month" in await rejection(person, "two", "b")


async def test_the_cost_of_a_month_is_limited_in_dollars(person, configure):
    await sync_to_async(configure)(quota_cost_month=1_500_000)
    spent = {"user": person, "query": "q", "status": "completed", "prompt_tokens": 9}
    await Run.objects.acreate(**spent, cost=None)  # an unknown price isn't counted
    assert (await begin(person, "one", "a")).is_new

    await BudgetCounter.objects.aupdate(cost=1_600_000)
    assert "limit of $1.50 per month (used: $1.60)" in await rejection(person, "two", "b")


def test_own_quotas_beat_groups_and_the_most_generous_group_counts(person, configure):
    configure(user_tokens=10)
    sales, lab = (Group.objects.create(name=name) for name in ("Sales", "Lab"))
    day = {"measure": "tokens", "window": "day"}
    resolve = partial(limits.resolve_one, ("tokens", "day"), person.pk)
    assert (resolve([]).amount, resolve([]).source) == (10, "default")

    Quota.objects.create(group=sales, limit=5, **day)
    Quota.objects.create(group=lab, limit=50, **day)
    both = resolve([sales.pk, lab.pk])
    assert (both.amount, both.source, both.group) == (50, "group", lab.pk)
    assert resolve([sales.pk]).amount == 5

    own = Quota.objects.create(user=person, limit=1, **day)
    assert resolve([lab.pk]).amount == 1
    own.limit = None
    own.save()
    assert resolve([lab.pk]).amount is None


def test_a_group_quota_counts_for_its_members(person, stranger):
    group = Group.objects.create(name="Sales")
    person.groups.add(group)
    Quota.objects.create(group=group, measure="runs", window="day", limit=1)
    save = partial(messages.save, None)
    save(person, "one", "a")

    with pytest.raises(MessageRejected, match="limit of 1 run per day"):
        save(person, "two", "b")
    save(stranger, "one", "c")
    save(stranger, "two", "d")


def test_racing_messages_do_not_exceed_a_quota(person):
    Quota.objects.create(user=person, measure="messages", window="day", limit=4)
    Quota.objects.create(user=person, measure="runs", window="month", limit=3)

    assert len(ask_at_once(person, 24)) == Run.objects.count() == 3


def test_quotas_cost_few_queries_and_none_no_query(
    person, configure, django_assert_max_num_queries
):
    with django_assert_max_num_queries(0):
        budgets.count_message(person)
        budgets.start_run(person)
    Quota.objects.create(user=person, measure="messages", window="day", limit=4)
    Quota.objects.create(user=person, measure="tokens", window="month", limit=3)
    with transaction.atomic():  # creates the counters
        budgets.count_message(person)
        budgets.start_run(person)

    with django_assert_max_num_queries(7), transaction.atomic():  # BEGIN and COMMIT are two
        budgets.count_message(person)
        budgets.start_run(person)
