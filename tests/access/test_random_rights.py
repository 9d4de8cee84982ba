"""Property: whatever the rights are, every way to a document, file or memory agrees on them."""

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.core.files.base import ContentFile
from django.core.files.storage import storages
from django.test import Client
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from agents.catalog.tools.search_library import ScopedLibrary
from agents.engine.material import Passage
from agents.knowledge import ParsedPart, find, index_document, scope
from agents.knowledge.files import save, store
from agents.memory import memories
from agents.models import Collection, Document, Memory
from agents.tools.read_document import ReadRequest
from agents.web.library import deletion
from chat.models import Attachment, ChatSession, Message
from chat.projects import membership
from chat.sharing import members
from tests.pictures import png

pytestmark = pytest.mark.both_databases

LIBRARY = st.fixed_dictionaries(
    {
        "kind": st.just("library"),
        "owner": st.sampled_from(["ada", "eve", None]),
        "is_open": st.booleans(),
        "group": st.booleans(),
        "share": st.booleans(),
        "accepted": st.booleans(),
        "deleted": st.booleans(),
    }
)
SHARED = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(["chat", "project", "unsent"]),
        "owner": st.sampled_from(["ada", "eve"]),
        "right": st.sampled_from(["none", "read", "write", "removed"]),
    }
)


def may_read(place, is_in_group):
    if place["kind"] == "library":
        is_reader = place["is_open"] or place["share"] or (place["group"] and is_in_group)
        return not place["deleted"] and (place["owner"] == "ada" or is_reader)
    if place["owner"] == "ada":
        return True
    return place["kind"] != "unsent" and place["right"] in {"read", "write"}


def may_find(place, is_in_group):
    if place["kind"] == "library" and place["owner"] == "eve" and not place["is_open"]:
        return place["accepted"] and may_read(place, is_in_group)
    return may_read(place, is_in_group)


class Rights(TestCase):
    # Without shrinking, which would take minutes: the places of a failure are few.
    @settings(max_examples=8, deadline=None, phases=[Phase.reuse, Phase.generate])
    @given(st.lists(LIBRARY | SHARED, min_size=2, max_size=5), st.booleans())
    def test_every_way_to_a_document_file_or_memory_agrees(self, places, is_in_group):
        world = World(is_in_group)
        made = [world.make(at, place) for at, place in enumerate(places)]
        allowed = {at for at, place in enumerate(places) if may_read(place, is_in_group)}

        searched = {at for at, place in enumerate(places) if may_find(place, is_in_group)}

        assert world.found(made) == searched
        assert world.read(made) == searched
        for path in ("/library/documents/{document}/", "/library/documents/{document}/file/"):
            assert world.opened(made, path, "document") == allowed
        files = {at for at, one in enumerate(made) if "attachment" in one}
        for path in ("/chat/files/{attachment}/", "/chat/files/{attachment}/?size=thumbnail"):
            assert world.opened(made, path, "attachment") == allowed & files
        projects = {at for at, one in enumerate(made) if "project" in one}
        assert world.opened(made, "/projects/{project}/", "project") == allowed & projects
        written = {at for at in projects & allowed if may_write(places[at])}
        assert world.opened(made, "/account/memory/{memory}/", "memory") == written
        assert world.remembered(made) == allowed & projects


def may_write(place):
    return place["owner"] == "ada" or place["right"] == "write"


class World:
    """Two users, and places with a document each."""

    def __init__(self, is_in_group):
        create = get_user_model().objects.create_user
        self.people = {name: create(name) for name in ("ada", "eve")}
        self.ada = self.people["ada"]
        self.group = Group.objects.create(name="tea drinkers")
        if is_in_group:
            self.ada.groups.add(self.group)
        self.client = Client()
        self.client.force_login(self.ada)
        self.file = save(png(), name="tea.png", owner=None)
        thumbnail = store.thumbnail_path(self.file)
        if not storages["files"].exists(thumbnail):
            storages["files"].save(thumbnail, ContentFile(b"small"))

    def make(self, at, place):
        owner = self.people.get(place["owner"])
        made = getattr(self, place["kind"])(at, place, owner)
        collection = made.pop("collection")
        document = Document(
            collection=collection, title=f"Tea {at}", source=f"{at}.md", file=self.file
        )
        index_document(document, [ParsedPart(text=f"Green tea number {at}.")])
        if place.get("deleted"):
            deletion.delete_collection(collection, None)
        return made | {"document": document.pk}

    def library(self, at, place, owner):
        row = Collection.objects.create(name=f"C{at}", owner=owner, is_open=place["is_open"])
        if place["group"]:
            row.groups.add(self.group)
        if place["share"] and owner != self.ada:
            row.shares.create(user=self.ada)
        if place["accepted"]:
            row.acceptances.create(user=self.ada)
        return {"collection": row}

    def chat(self, at, place, owner):
        chat = ChatSession.objects.create(user=owner, title="Tea")
        if owner != self.ada and place["right"] != "none":
            members.add_member(chat, "ada", place["right"].replace("removed", "read"))
            if place["right"] == "removed":
                members.remove_member(chat, self.ada.pk)
        message = Message.objects.create(
            session=chat, author=owner, text="", client_id=f"a{at}"
        )
        collection = Collection.objects.create(name="Tea", owner=owner, topic=chat.topic)
        return {"collection": collection, "topic": chat.topic} | self.attach(owner, message)

    def unsent(self, at, place, owner):
        about = {"topic": f"drafts.{owner.pk}", "owner": owner}
        collection, _ = Collection.objects.get_or_create({"name": "Unsent"}, **about)
        return {"collection": collection} | self.attach(owner, None)

    def attach(self, owner, message):
        about = {"name": "tea.png", "mime_type": "image/png", "kind": "image"}
        row = Attachment.objects.create(user=owner, file=self.file, message=message, **about)
        return {"attachment": row.pk}

    def project(self, at, place, owner):
        project = membership.create(owner, f"P{at}")
        if owner != self.ada and place["right"] != "none":
            right = place["right"].replace("removed", "write")
            membership.add(project, "ada", right, owner)
            if place["right"] == "removed":
                membership.remove(project, self.ada.pk, owner)
        memory = memories.save(Memory(user=owner, project=project, text=f"Tea {at} is green"))
        about = {"collection": membership.collection_of(project), "topic": project.topic}
        return about | {"project": project.pk, "memory": memory.pk}

    def scopes(self, made):
        """Return what a search and the runs in all these chats and projects can read."""
        topics = [one["topic"] for one in made if "topic" in one]
        return (
            scope.for_user(self.ada),
            scope.for_run(self.ada.pk, f"drafts.{self.ada.pk}", None, topics=topics),
        )

    def found(self, made):
        numbers = {one["document"]: at for at, one in enumerate(made)}
        sets = [
            {
                numbers[passage.document]
                for passage in find("green tea", 50, scope=each, minimum=-9.0).passages
            }
            for each in self.scopes(made)
        ]
        assert sets[0] == sets[1]
        return sets[0]

    def read(self, made):
        library = ScopedLibrary(lambda: self.scopes(made)[1])
        found = set()
        for at, one in enumerate(made):
            source = Passage(id=f"{one['document']}:1:x", title="x", document=one["document"])
            by_number = library._read(ReadRequest(source=source))
            by_title = library._read(ReadRequest(title=f"Tea {at}"))
            assert bool(by_number.problem) == bool(by_title.problem)
            if not by_number.problem:
                found.add(at)
        return found

    def opened(self, made, path, what):
        statuses = {
            at: self.client.get(path.format(**one)).status_code
            for at, one in enumerate(made)
            if what in one
        }
        assert set(statuses.values()) <= {200, 404}
        return {at for at, status in statuses.items() if status == 200}

    def remembered(self, made):
        visible = set(Memory.objects.for_user(self.ada).values_list("pk", flat=True))
        return {at for at, one in enumerate(made) if one.get("memory") in visible}
