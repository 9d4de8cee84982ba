"""An open page of a collection displays how its documents are read."""

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import Group

from agents.models import Collection, Document
from agents.runs import pubsub
from agents.web.library import events, sharing
from tests.conftest import frames_until, tab

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]


async def create_document(collection, **about):
    about = {"title": "Tea", "source": "tea.md", "status": "reading"} | about
    return await Document.objects.acreate(collection=collection, **about)


async def changed(collection, **columns):
    await Document.objects.filter(collection=collection).aupdate(**columns)
    await pubsub.publish(events.topic(collection.pk), events.CHANGED)


async def test_progress_and_the_end_are_displayed(person):
    collection = await Collection.objects.acreate(name="Tea", owner=person)
    document = await create_document(collection)
    async with tab(person, f"/ws/library/{collection.pk}/") as page:
        await frames_until(page, f'id="document-{document.pk}"')
        await changed(collection, done=3, total=12)
        [*_, frame] = await frames_until(page, "3 / 12")
        assert 'value="25"' in frame
        assert "1 in progress" in frame
        await changed(collection, status="failed", problem="It is encrypted.")
        [*_, frame] = await frames_until(page, "It is encrypted.")

    assert "Try again" in frame
    assert "1 failed" in frame


async def test_a_document_added_elsewhere_reloads_the_list(person):
    collection = await Collection.objects.acreate(name="Tea", owner=person)
    async with tab(person, f"/ws/library/{collection.pk}/") as page:
        await frames_until(page, "collection-summary")
        await create_document(collection)
        await changed(collection)
        await frames_until(page, "documents-reload")


async def test_a_reader_whose_access_ends_is_disconnected(person, stranger):
    collection = await Collection.objects.acreate(name="Tea", owner=person)
    await collection.shares.acreate(user=stranger)
    async with tab(stranger, f"/ws/library/{collection.pk}/") as page:
        [first] = await frames_until(page, "collection-summary")
        assert "Cancel" not in first  # they can only read
        await sync_to_async(sharing.remove_person)(collection, person, stranger.pk)
        assert (await page.receive_output(10))["code"] == 4404


async def test_a_former_member_of_a_group_sees_no_further_change(person, stranger):
    group = await Group.objects.acreate(name="tea drinkers")
    await stranger.groups.aadd(group)
    collection = await Collection.objects.acreate(name="Tea", owner=person)
    await collection.groups.aadd(group)
    document = await create_document(collection)
    async with tab(stranger, f"/ws/library/{collection.pk}/") as page:
        await frames_until(page, f'id="document-{document.pk}"')
        await stranger.groups.aclear()
        await changed(collection, title="Secret tea")
        assert (await page.receive_output(10))["code"] == 4404
