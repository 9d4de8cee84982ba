"""The fast path to the database thread behaves like the regular one."""

import asyncio
from contextlib import asynccontextmanager
from contextvars import ContextVar
from threading import Event, get_ident

import pytest
from asgiref.sync import ThreadSensitiveContext, async_to_sync, sync_to_async
from django.contrib.auth.models import Group
from django.db import DEFAULT_DB_ALIAS, connection, connections, transaction
from django.utils import translation

from agents.db import database
from agents.models import Run

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db(transaction=True)]

noted = ContextVar("noted")


async def test_queries_run_in_the_thread_of_sync_to_async():
    assert await database.run(get_ident) == await sync_to_async(get_ident)() != get_ident()


async def test_a_request_uses_its_own_thread():
    everybodys = await database.run(get_ident)
    async with ThreadSensitiveContext():
        own = await database.run(get_ident)

        assert own == await sync_to_async(get_ident)() != everybodys


def test_a_command_uses_its_own_thread():
    assert async_to_sync(database.run)(get_ident) == get_ident()


async def test_context_variables_are_passed_on():
    noted.set("here")

    assert await database.run(noted.get) == "here"


async def test_the_language_is_passed_on_and_stays_with_the_call():
    with translation.override("ja"):
        assert await database.run(translation.get_language) == "ja"

    assert await database.run(translation.get_language) == "en"


def test_a_commands_transaction_stays_open():
    with transaction.atomic():
        group = Group.objects.create(name="unsaved")
        exists = Group.objects.filter(pk=group.pk).exists

        assert async_to_sync(database.run)(exists)
        assert connection.in_atomic_block
        assert not connection.needs_rollback


async def test_a_task_can_outlive_its_request():
    shared = await database.run(get_ident)
    async with ThreadSensitiveContext():
        own = await database.run(get_ident)
        context = database.detached_context()
        detached = asyncio.create_task(database.run(get_ident), context=context)

    assert await detached == shared != own


async def test_keyword_arguments_are_passed_on():
    assert await database.run(sorted, [1, 3, 2], reverse=True) == [3, 2, 1]


async def test_exceptions_are_raised_in_the_caller():
    with pytest.raises(ZeroDivisionError):
        await database.run(divmod, 1, 0)


async def test_a_lost_connection_is_reopened(monkeypatch):
    def lose():
        connection.ensure_connection()
        connection.errors_occurred = True
        return connection.connection

    monkeypatch.setattr(type(connections[DEFAULT_DB_ALIAS]), "is_usable", lambda _: False)
    lost = await database.run(lose)

    assert await database.run(Run.objects.count) == 0
    assert await database.run(lambda: connection.connection) is not lost


async def test_a_cancelled_caller_does_not_wait():
    is_over = Event()
    asking = asyncio.create_task(database.run(is_over.wait))
    await asyncio.sleep(0)
    asking.cancel()

    with pytest.raises(asyncio.CancelledError):
        await asking
    is_over.set()


@asynccontextmanager
async def busy_thread():
    """Keep the thread busy while work is added, then let it do all of it."""
    begun, held, added = Event(), Event(), []

    def first_of_all():
        begun.set()
        held.wait(5)

    added.append(asyncio.create_task(database.run(first_of_all)))
    await asyncio.to_thread(begun.wait, 5)
    yield added
    await asyncio.sleep(0)
    held.set()
    await asyncio.gather(*added)


async def test_user_messages_run_first_and_new_pages_last():
    order = []
    async with busy_thread() as added:
        for run, name in (
            *((database.run_deferred, f"page {number}") for number in range(3)),
            (database.run, "news"),
            (database.run_urgent, "message"),
            (database.run_urgent, "stop"),
        ):
            added.append(asyncio.create_task(run(order.append, name)))
            await asyncio.sleep(0)

    assert order == ["message", "stop", "news", "page 0", "page 1", "page 2"]


async def test_low_priority_work_is_not_starved():
    order = []
    async with busy_thread() as added:
        work = [database.run_deferred(order.append, "page")]
        work += [database.run_urgent(order.append, number) for number in range(30)]
        added += map(asyncio.create_task, work)

    assert order.index("page") == database.MAX_SKIPS


async def test_cancelled_work_is_not_run():
    order = []
    async with busy_thread():
        gone = asyncio.create_task(database.run_deferred(order.append, "gone"))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
    await database.run_deferred(order.append, "here")

    assert order == ["here"]


async def test_normal_priority_work_is_not_starved():
    order = []
    async with busy_thread() as added:
        work = [database.run(order.append, "news")]
        work += [database.run_deferred(order.append, "page") for _ in range(30)]
        work += [database.run_urgent(order.append, number) for number in range(90)]
        added += map(asyncio.create_task, work)

    assert order.index("news") <= database.MAX_SKIPS + 1
    assert order.index("page") <= database.MAX_SKIPS + 1


async def test_shutting_down_a_thread_can_cancel_pending_work():
    thread, begun, held = database.PriorityExecutor(), Event(), Event()

    def first_of_all():
        begun.set()
        held.wait(5)

    busy = thread.submit(first_of_all)
    await asyncio.to_thread(begun.wait, 5)
    waiting = thread.put(database.Priority.LATER, print)
    thread.shutdown(wait=False, cancel_futures=True)
    held.set()

    assert waiting.cancelled()
    assert await asyncio.wrap_future(busy) is None
