"""Who can find what: a search reads only the collections that the server computed."""

import pytest
from django.contrib.auth.models import Group, Permission, User
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents import knowledge
from agents.catalog.agent_factory import search_tools
from agents.catalog.tools import tool_factory
from agents.knowledge import scope
from agents.models import (
    Agent,
    Collection,
    CollectionShare,
    Membership,
    Run,
    ToolRegistration,
)
from agents.models.sharing.collections import MANAGE_PERMISSION

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db]

PEOPLE = 3


def add_collection(name, text="The heron nests.", **fields):
    collection = Collection.objects.create(name=name, **fields)
    knowledge.ingest_text(text, source=f"{name}.md", title=name, collection=collection)
    return collection


def found_by(user, agent=None, topic="", **more):
    where = scope.for_run(user and user.pk, topic, agent, **more)
    return {passage.name for passage in knowledge.search("heron", 50, scope=where)}


rights = st.fixed_dictionaries(
    {
        "owner": st.none() | st.integers(0, PEOPLE - 1),
        "is_open": st.booleans(),
        "groups": st.sets(st.integers(0, 1)),
        "shares": st.sets(st.integers(0, PEOPLE - 1)),
        "accepted": st.sets(st.integers(0, PEOPLE - 1)),
        "accepted_groups": st.sets(st.integers(0, 1)),
    }
)


def may_find(right, person, memberships):
    groups = memberships[person]
    is_shared = person in right["shares"] or bool(right["groups"] & groups)
    is_accepted = person in right["accepted"] or bool(right["accepted_groups"] & groups)
    is_consented = is_shared and (right["owner"] is None or is_accepted)
    return right["owner"] == person or right["is_open"] or is_consented


@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    given_rights=st.lists(rights, min_size=1, max_size=4),
    memberships=st.lists(st.sets(st.integers(0, 1)), min_size=PEOPLE, max_size=PEOPLE),
)
def test_nobody_finds_what_they_cannot_open_or_have_not_accepted(db, given_rights, memberships):
    Collection.objects.all().delete()
    User.objects.all().delete()
    Group.objects.all().delete()
    groups = [Group.objects.create(name=f"group {n}") for n in range(2)]
    people = [User.objects.create(username=f"person {n}") for n in range(PEOPLE)]
    for person, chosen in zip(people, memberships, strict=True):
        person.groups.set([groups[n] for n in chosen])
    for n, right in enumerate(given_rights):
        owner = None if right["owner"] is None else people[right["owner"]]
        one = add_collection(f"c{n}", owner=owner, is_open=right["is_open"])
        one.groups.set([groups[n] for n in right["groups"]])
        for share in right["shares"]:
            CollectionShare.objects.create(collection=one, user=people[share])
        for person in right["accepted"]:
            one.acceptances.create(user=people[person])
        for group in right["accepted_groups"]:
            one.acceptances.create(group=groups[group])

    for at, person in enumerate(people):
        allowed = {
            f"c{n}.md"
            for n, right in enumerate(given_rights)
            if may_find(right, at, memberships)
        }
        assert found_by(person) == allowed
    assert found_by(None) == {f"c{n}.md" for n, r in enumerate(given_rights) if r["is_open"]}


def test_a_run_searches_the_documents_of_its_own_chat_only(django_user_model):
    user = django_user_model.objects.create(username="ann")
    for topic in ("chat.1", "chat.2", "project.1"):
        add_collection(topic, topic=topic)
        Membership.objects.create(topic=topic, user=user)

    assert found_by(user, topic="chat.1") == {"chat.1.md"}
    assert found_by(user, topic="chat.1", topics=["project.1"]) == {"chat.1.md", "project.1.md"}
    assert found_by(user) == set()


def test_an_agent_searches_its_own_collections_and_no_more_than_the_user_can_open(
    django_user_model,
):
    user = django_user_model.objects.create(username="ann")
    hidden = add_collection("hidden")
    handbook = add_collection("handbook", is_open=True)
    add_collection("prices", is_open=True)
    agent = Agent.objects.create(name="helper")

    assert found_by(user, agent) == {"handbook.md", "prices.md"}
    agent.collections.set([hidden, handbook])
    assert found_by(user, agent) == {"handbook.md"}
    assert found_by(user, agent, chosen={hidden.pk}) == set()


def test_a_deactivated_user_finds_nothing(django_user_model):
    user = django_user_model.objects.create(username="gone", is_active=False)
    add_collection("handbook", is_open=True)
    add_collection("chat.1", topic="chat.1", owner=user)

    assert found_by(user, topic="chat.1") == set()


def test_a_former_member_finds_nothing_of_the_chat_and_project(django_user_model):
    user = django_user_model.objects.create(username="ann")
    for topic in ("chat.1", "project.1"):
        add_collection(topic, topic=topic)
        Membership.objects.create(topic=topic, user=user)
    run = Run(user=user, topic="chat.1", project_id=1)
    assert len(search_tools._own_files(run).collections) == 2

    Membership.objects.filter(user=user).delete()

    assert found_by(user, topic="chat.1", topics=["project.1"]) == set()
    assert not search_tools._own_files(run)


def test_named_collections_are_only_ever_intersected_with_the_scope():
    mine = scope.Scope(frozenset({1, 2}))

    assert mine.limited_to([2, 3]) == scope.Scope(frozenset({2}))
    assert not mine.limited_to([3])


def test_a_search_without_a_scope_reads_open_collections():
    add_collection("closed")
    add_collection("open", is_open=True)

    assert {passage.name for passage in knowledge.search("heron")} == {"open.md"}


@pytest.mark.parametrize("given_to", ["nobody", "user", "group", "superuser", "inactive"])
def test_a_run_searches_the_whole_library_only_for_its_managers(django_user_model, given_to):
    user = django_user_model.objects.create(username="ann", is_active=given_to != "inactive")
    app, code = MANAGE_PERMISSION.split(".")
    permission = Permission.objects.get(content_type__app_label=app, codename=code)
    if given_to in {"user", "inactive"}:
        user.user_permissions.add(permission)
    elif given_to == "group":
        group = Group.objects.create(name="librarians")
        group.permissions.add(permission)
        user.groups.add(group)
    user.is_superuser = given_to == "superuser"
    user.save()
    closed = add_collection("closed", is_open=False)

    found = scope.for_run(user.pk, "", None).collections

    assert (closed.pk in found) is user.has_perm(MANAGE_PERMISSION)


def test_a_search_tool_is_limited_to_its_collections_and_the_files_of_the_chat(person):
    tea, _coffee = (add_collection(name, is_open=True) for name in ("tea", "coffee"))
    row = ToolRegistration.objects.create(name="search")
    row.collections.add(tea)
    run = Run(user=person, topic="")
    agent = Agent.objects.create(name="reader")

    tools, announced = search_tools.bind(run, agent, "demo", tool_factory.build_tools([row]))

    assert tools[0].search.scope().collections == {tea.pk}
    assert "coffee" not in announced
