import asyncio
import sys
import threading
from contextlib import aclosing, asynccontextmanager

import hypothesis
import pytest
from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator
from django import conf
from django.core.signals import request_finished
from django.db import connections
from django.dispatch import receiver
from django.test import AsyncClient, Client
from django.utils import translation

from tests import processes

processes.watch()

# How long an example takes depends on the machine.
hypothesis.settings.register_profile("ours", deadline=None)
# For `make test`: fewer examples, and the same ones each time.
hypothesis.settings.register_profile("brief", deadline=None, max_examples=10, derandomize=True)
hypothesis.settings.load_profile("ours")


@receiver(request_finished)
def _close_connections(**about):
    """Close connections like the server does: a page's request has its own thread."""
    from agents.db import database

    is_main = threading.current_thread() is threading.main_thread()
    if not is_main and not database.EXECUTOR.is_current():
        connections.close_all()


# Longer than any machine takes to deliver an event.
TIMEOUT_SECONDS = 30
ORIGIN = (b"origin", b"http://testserver")


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown():
    """Forget what the test leaves in memory: the next one has another database.

    A hook, because a fixture for each of ten thousand tests takes much longer.
    """
    if conf.settings.configured:  # `make test-quick` does without
        translation.deactivate()
    if search_tools := sys.modules.get("agents.catalog.agent_factory.search_tools"):
        search_tools.ANNOUNCED.clear()
    if queries := sys.modules.get("agents.knowledge.embeddings.queries"):
        queries.QUERIES.forget()
    if local_model := sys.modules.get("agents.knowledge.embeddings.local_model"):
        local_model.ENCODER.stop()
    if request_rate := sys.modules.get("agents.web.request_rate"):
        request_rate.bucket_of.cache_clear()
    if caches := sys.modules.get("agents.db.row_cache"):
        for cache in caches.RowCache.all:
            cache.reset()
    if left := processes.left_behind():
        pytest.fail(f"The test left behind: {', '.join(left)}", pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef):
    if fixturedef.scope == "function":
        return (yield)
    with processes.SharedFixture():
        return (yield)


@pytest.fixture
def configure(db):
    """Change settings of the installation, as an administrator does."""
    from agents.db.installation import configured, setting

    def save(**values):
        for key, value in values.items():
            setting.save(configured.SETTINGS[key], value)

    return save


@pytest.fixture(scope="session")
def django_db_setup(
    django_test_environment, django_db_blocker, tmp_path_factory, testrun_uid, worker_id
):
    """Use a copy of the migrated database, and shortcuts for what all tests share."""
    from tests import shared_setup, tables

    own = tmp_path_factory.getbasetemp()
    run = own if worker_id == "master" else own.parent
    place = run / f"tables-{testrun_uid}"
    made = tables.connect_to_copy(place, f"test_{worker_id}")
    with shared_setup.apply(), django_db_blocker.unblock(), made, django_db_blocker.block():
        yield


@pytest.fixture
def add_user(django_user_model):
    """Add users without an entry in the audit log, which takes longer than the rest."""
    from agents.access.audit.request_context import as_system

    def add(name, **rights):
        with as_system():
            return django_user_model.objects.create_user(name, **rights)

    return add


@pytest.fixture
def person(add_user):
    return add_user("ada")


@pytest.fixture
def stranger(add_user):
    return add_user("eve")


@pytest.fixture
def administrator(add_user):
    return add_user("root", is_staff=True, is_superuser=True)


@pytest.fixture
def person_client(person):
    return as_user(person)


@pytest.fixture
async def person_async_client(person):
    return await as_async_user(person)


@pytest.fixture
def admin_client(administrator):
    return as_user(administrator)


@pytest.fixture
async def admin_async_client(administrator):
    return await as_async_user(administrator)


@pytest.fixture
def agent(db):
    """The seeded default agent with its guardrails, and with the tools that tests call."""
    from tests import seeded_agent

    return seeded_agent.create()


@pytest.fixture
def samples(db):
    """The data of the search and database tools."""
    from django.utils import timezone

    from agents.catalog.samples import sample_data as samples

    samples.load(timezone.localdate())


@pytest.fixture
def scripted(monkeypatch):
    """Let the test's runs use a script instead of the demo model."""
    from agents.catalog.language_models import model_clients
    from agents.engine.testing import ScriptedModel

    def use(*script, model=None):
        model = model or ScriptedModel(*script)
        monkeypatch.setattr(model_clients, "llm_by_name", lambda name: model)
        return model

    return use


@pytest.fixture
async def run_executor():
    """Stop all runs after the test, and their writer."""
    from agents import runs

    yield
    await runs.shut_down()


def as_user(user, **options):
    """Return a browser that this user is signed in with."""
    client = Client(**options)
    client.force_login(user)
    return client


def as_staff(user, *codenames):
    """Return a browser of this user, as staff with these permissions alone."""
    from django.contrib.auth.models import Permission

    user.is_staff = True
    user.save()
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    return as_user(user)


def select(response, css):
    """Return the elements of a page that match, however its text is laid out."""
    from selectolax.lexbor import LexborHTMLParser

    return LexborHTMLParser(response.text).css(css)


async def as_async_user(user, **options):
    client = AsyncClient(**options)
    await sync_to_async(client.force_login)(user)
    return client


@asynccontextmanager
async def tab(user, path, *, headers=(ORIGIN,), query=b""):
    """Open a signed-in browser tab's socket."""
    from project.asgi import application

    client = await as_async_user(user)
    cookie = f"sessionid={client.cookies['sessionid'].value}".encode()
    socket = WebsocketCommunicator(application, path, [*headers, (b"cookie", cookie)])
    socket.scope["query_string"] = query or socket.scope["query_string"]
    connected, code = await socket.connect()
    assert connected, code
    try:
        yield socket
    finally:
        await socket.disconnect()


async def run_question(query, *, topic="chat.1", user=None, agent=None, history=()):
    """Run a question to its end."""
    from agents import runs

    run = await sync_to_async(runs.prepare)(
        query=query, topic=topic, user=user, agent=agent, history=list(history)
    )
    runs.launch(run)
    await runs.wait(run)
    await run.arefresh_from_db()
    return run


async def prepare_run(run):
    """Return a run before its first event, with its tools, instructions and notes."""
    from agents.catalog import agent_factory
    from agents.engine.loop.run_state import RunState

    runtime = await agent_factory.build(run)
    run_loop = runtime.run_loop(RunState.start(runtime.name, run.query))
    await run_loop.prepare()
    return run_loop


async def instructions_of(run):
    return (await prepare_run(run)).planners[0].instructions


async def until(run, type):
    """Wait until an event of this type is saved."""
    from agents.runs import pubsub

    async with asyncio.timeout(TIMEOUT_SECONDS), aclosing(pubsub.events(run)) as events:
        async for event in events:
            if event is not None and event.type == type:
                return


async def verify_run(run):
    """Return the saved run, after checking that its record is complete."""
    from agents.engine.state import repair_history
    from agents.runs import event_store

    await run.arefresh_from_db()
    events = [event async for event in run.events.order_by("seq")]
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert [e.type for e in events].count("run_finished") == 1
    assert events[-1].type == "run_finished"
    assert not await run.steps.filter(ended_at=None).aexists()
    history = await sync_to_async(event_store.transcript)(run)
    assert repair_history(history) == history
    return run


async def frames_until(socket, words, seconds=TIMEOUT_SECONDS):
    """Return all frames up to one that contains this text."""
    frames = []
    async with asyncio.timeout(seconds):
        while not frames or words not in frames[-1]:
            frames.append(await socket.receive_from(seconds))
    return frames


@pytest.fixture
def litellm_loop():
    """Give LiteLLM an event loop: it would make one for this thread and leave it open."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    asyncio.set_event_loop(None)
    loop.close()
