"""A cache hit never crosses a right: random people, rights, changes and calls."""

import random

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import Group, User

from agents.access import permissions
from agents.metering.caches import groups, rights
from agents.models import Collection, ToolRegistration

from .conftest import store_for, use

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]


class World:
    """People with rights, two tools (private and public), and what is true right now."""

    def __init__(self, seed):
        self.random, self.writes = random.Random(seed), 0
        self.people = [User.objects.create_user(f"person{n}") for n in range(3)]
        self.groups = [Group.objects.create(name=f"group{n}") for n in range(2)]
        self.collection = Collection.objects.create(name="Files")
        about = {"source": "http", "method": "GET", "endpoint": "https://example.com/a"}
        self.tools = [
            ToolRegistration.objects.create(name=f"tool_{scope}", result_cache=scope, **about)
            for scope in ("person", "public")
        ]

    def truth(self, person, tool):
        """Return what a call returns now: a hit must be equal to it."""
        facts = [tool.pk, tool.endpoint, self.writes]
        if tool.result_cache == "person":
            person = User.objects.get(pk=person.pk)
            facts += [person.pk, rights.fingerprint(person.pk)]
            facts += sorted(person.groups.values_list("pk", flat=True))
        return repr(facts)

    def is_closed(self, person, tool):
        return tool.pk in permissions.restrictions_for(person.pk).tools

    def change(self):
        """Change one right or setting."""
        person, group = self.random.choice(self.people), self.random.choice(self.groups)
        tool = self.random.choice(self.tools)
        match self.random.randrange(7):
            case 0:
                person.groups.add(group)
            case 1:
                person.groups.remove(group)
            case 2:
                tool.groups.set([group] if self.random.random() < 0.5 else [])
            case 3:
                person.is_active = not person.is_active
                person.save()
            case 4:
                tool.endpoint = f"https://example.com/{self.random.choice('ab')}"
                tool.save()
            case 5:
                self.collection.groups.set([group] if self.random.random() < 0.5 else [])
            case 6:
                self.writes += 1
                groups.evict(groups.group_name(tool))


@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(n, marks=pytest.mark.thorough) for n in range(2, 12))]
)
async def test_a_hit_is_only_what_this_person_would_get_now(seed):
    world, hits = await sync_to_async(World)(seed), 0
    for _ in range(50):
        if world.random.random() < 0.3:
            await sync_to_async(world.change)()
        person, tool = world.random.choice(world.people), world.random.choice(world.tools)
        truth = await sync_to_async(world.truth)(person, tool)

        outcome = await use(store_for(person.pk, tool), truth, city=world.random.choice("xy"))

        assert outcome.output == truth
        hits += outcome.cached is not None
        if await sync_to_async(world.is_closed)(person, tool):
            assert outcome.cached is None
    assert hits > 3
