"""Saved results of tools: what is a hit, what is never saved, and what goes when."""

from dataclasses import replace
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.db import DatabaseError
from django.utils import timezone

from agents.engine.tool import Attachment, ToolResult
from agents.metering.caches import clear, groups, hits, pruning
from agents.metering.caches.results import is_cacheable
from agents.models import (
    CacheEntry,
    CacheUsage,
    McpServer,
    McpSignIn,
    Run,
    ToolRegistration,
)

from .conftest import store_for, use

pytestmark = pytest.mark.django_db(transaction=True)


async def test_the_same_arguments_in_another_order_are_a_hit(http_tool, person):
    store = store_for(person.pk, http_tool)
    await use(store, "rain", city="Oslo", days=2)

    again = await use(store, "sun", days=2, city="Oslo")
    other = await use(store, "sun", city="Oslo", days=3)

    assert (again.output, other.output) == ("rain", "sun")
    assert again.cached.expires > again.cached.at
    await sync_to_async(hits.flush)()
    usage = await CacheUsage.objects.aget()
    assert (usage.hits, usage.misses) == (1, 2)


async def test_another_person_is_a_miss_unless_the_tool_is_declared_public(
    http_tool, person, stranger
):
    await use(store_for(person.pk, http_tool), "mine", city="Oslo")
    private = await use(store_for(stranger.pk, http_tool), "theirs", city="Oslo")
    http_tool.result_cache = "public"
    await use(store_for(person.pk, http_tool), "for all", city="Oslo")
    public = await use(store_for(stranger.pk, http_tool), "theirs", city="Oslo")

    assert (private.output, public.output) == ("theirs", "for all")
    assert await CacheEntry.objects.filter(user=None).acount() == 1


@pytest.mark.parametrize(
    "change",
    [
        {"endpoint": "https://example.org/weather/{city}"},
        {"headers": {"Authorization": "Bearer other"}},
        {"definition": {"parameters": {"type": "object", "properties": {}}}},
    ],
    ids=["URL", "headers", "definition"],
)
async def test_another_configuration_is_a_miss(http_tool, person, change):
    await use(store_for(person.pk, http_tool), "old", city="Oslo")
    for name, value in change.items():
        setattr(http_tool, name, value)

    assert (await use(store_for(person.pk, http_tool), "new", city="Oslo")).output == "new"


async def test_instances_of_an_mcp_server_are_kept_apart_even_if_the_tool_is_public(person):
    server = await McpServer.objects.acreate(name="notes", url="https://x", isolation="chat")
    row = ToolRegistration(
        pk=1, name="notes_list", source="mcp", server=server, result_cache="public"
    )
    await use(store_for(person.pk, row), "first chat", chat="chat.1")

    assert (await use(store_for(person.pk, row), "new", chat="chat.2")).output == "new"
    assert (await use(store_for(person.pk, row), "new", chat="chat.1")).output == "first chat"


@pytest.mark.parametrize("kind", ["user", "shared"])
async def test_what_another_account_returned_is_not_served(person, kind):
    server = await McpServer.objects.acreate(name="notes", url="https://x", sign_in=kind)
    row = ToolRegistration(
        pk=1, name="notes_list", source="mcp", server=server, result_cache="person"
    )
    outputs = [(await use(store_for(person.pk, row), "signed out")).output]
    for account in ("first", "second"):
        await McpSignIn.objects.all().adelete()
        await McpSignIn.objects.acreate(
            server=server,
            user=person if kind == "user" else None,
            url=server.url,
            signed_in_at=timezone.now(),
        )
        outputs += [(await use(store_for(person.pk, row), account)).output]
        outputs += [(await use(store_for(person.pk, row), "new")).output]

    assert outputs == ["signed out", "first", "first", "second", "second"]


@pytest.mark.parametrize(
    "result",
    [
        ToolResult(error="no"),
        ToolResult("text\n[… 1,200 more characters cut]"),
        ToolResult("chart", attachments=(Attachment(data=b"x", mime_type="image/png"),)),
        ToolResult("found", sources=()),
        ToolResult("stale", max_age=0),
    ],
    ids=["error", "truncated", "attachment", "passages", "no-store"],
)
def test_what_is_never_saved(result):
    assert not is_cacheable(result)


async def test_a_result_that_its_origin_calls_private_is_not_shared(http_tool, person):
    http_tool.result_cache = "public"
    await use(store_for(person.pk, http_tool), ToolResult("mine", is_private=True), city="x")

    assert not await CacheEntry.objects.aexists()


async def test_the_origin_can_shorten_the_lifetime(http_tool, person):
    await use(store_for(person.pk, http_tool), ToolResult("brief", max_age=5), city="x")

    entry = await CacheEntry.objects.aget()
    assert entry.expires_at - entry.saved_at == timedelta(seconds=5)


async def test_an_expired_entry_is_a_miss_and_is_pruned(http_tool, person):
    store = store_for(person.pk, http_tool)
    await use(store, "old", city="x")
    await CacheEntry.objects.aupdate(expires_at=timezone.now())

    assert await sync_to_async(pruning.prune)() == 1
    assert (await use(store, "new", city="x")).output == "new"


async def test_a_change_at_the_same_host_evicts_and_late_results_are_not_found(
    http_tool, person
):
    store = store_for(person.pk, http_tool)
    writer = replace(store, is_read=False)
    await use(store, "before", city="x")

    await use(writer, "written")
    outcome = await use(store, lambda: "after", city="x")
    assert outcome.output == "after"

    await sync_to_async(clear)()
    await use(store, "stale", city="y")
    await sync_to_async(groups.evict)(store.group)
    assert (await use(store, "fresh", city="y")).output == "fresh"


async def test_a_result_read_before_a_change_is_not_saved_after_it(http_tool, person):
    store = store_for(person.pk, http_tool)
    key = await store.key({"city": "x"})
    await sync_to_async(groups.evict)(store.group)

    await store.save(key, {"city": "x"}, ToolResult("stale"), 0.1)

    assert not await CacheEntry.objects.aexists()


async def test_the_least_recently_used_go_first(http_tool, person, configure):
    await sync_to_async(configure)(cache_entries=100)
    now = timezone.now()
    rows = [
        CacheEntry(
            key=str(at), kind="tool", source="tool:1", value="x", size=1, saved_at=now,
            used_at=now - timedelta(seconds=at), expires_at=now + timedelta(hours=1),
        )
        for at in range(130)
    ]  # fmt: skip
    await CacheEntry.objects.abulk_create(rows)

    assert await sync_to_async(pruning.prune)() == 30
    assert await CacheEntry.objects.filter(key="0").aexists()
    assert not await CacheEntry.objects.filter(key="129").aexists()


async def test_entries_go_with_their_person_and_with_their_run(http_tool, person, stranger):
    run = await Run.objects.acreate(query="?", topic="chat.1", agent_name="a", model="demo")
    await use(replace(store_for(person.pk, http_tool), run_id=run.pk), "a", city="x")
    await use(store_for(stranger.pk, http_tool), "b", city="x")
    await run.adelete()
    assert await CacheEntry.objects.acount() == 1

    await stranger.adelete()
    assert not await CacheEntry.objects.aexists()


async def test_a_new_cache_waits_until_every_process_knows_that_writes_evict(
    http_tool, person, monkeypatch
):
    monkeypatch.setattr(groups, "KNOWN_AFTER", timedelta(seconds=10))
    store = store_for(person.pk, http_tool)

    await use(store, "early", city="x")

    assert not await CacheEntry.objects.aexists()


async def test_a_result_that_cannot_be_saved_is_still_returned(http_tool, person, monkeypatch):
    def fail(**_):
        raise DatabaseError("a zero byte")

    monkeypatch.setattr(CacheEntry.objects, "update_or_create", fail)

    assert (await use(store_for(person.pk, http_tool), "rain", city="x")).output == "rain"
