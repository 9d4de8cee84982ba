"""The short way to the thread of the database leads where the long one does."""

import asyncio
from contextvars import ContextVar
from threading import Event, get_ident

import pytest
from asgiref.sync import ThreadSensitiveContext, async_to_sync, sync_to_async
from django.db import DEFAULT_DB_ALIAS, connection, connections

from agents import database
from agents.models import Run

pytestmark = pytest.mark.django_db(transaction=True)

noted = ContextVar("noted")


async def test_it_is_the_thread_in_which_all_others_ask():
    assert await database.ask(get_ident) == await sync_to_async(get_ident)() != get_ident()


async def test_a_request_keeps_to_its_own_thread():
    everybodys = await database.ask(get_ident)
    async with ThreadSensitiveContext():
        own = await database.ask(get_ident)

        assert own == await sync_to_async(get_ident)() != everybodys


def test_a_command_keeps_to_its_own_thread():
    assert async_to_sync(database.ask)(get_ident) == get_ident()


async def test_what_belongs_to_the_task_is_known_there():
    noted.set("here")

    assert await database.ask(noted.get) == "here"


async def test_what_goes_wrong_there_is_told():
    with pytest.raises(ZeroDivisionError):
        await database.ask(divmod, 1, 0)


async def test_a_connection_that_was_lost_is_made_again(monkeypatch):
    def lose():
        connection.ensure_connection()
        connection.errors_occurred = True
        return connection.connection

    monkeypatch.setattr(type(connections[DEFAULT_DB_ALIAS]), "is_usable", lambda _: False)
    lost = await database.ask(lose)

    assert await database.ask(Run.objects.count) == 0
    assert await database.ask(lambda: connection.connection) is not lost


async def test_whoever_is_stopped_does_not_wait_for_it():
    is_over = Event()
    asking = asyncio.create_task(database.ask(is_over.wait))
    await asyncio.sleep(0)
    asking.cancel()

    with pytest.raises(asyncio.CancelledError):
        await asking
    is_over.set()
