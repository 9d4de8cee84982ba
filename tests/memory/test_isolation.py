"""Property: whatever the rights are, a run's memories belong to its user or its project."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents.memory.candidates import find_memories
from agents.models import Agent, Membership, Memory, Project, ProjectMember, Run

PEOPLE = ("ada", "ben", "cho")


@pytest.mark.django_db
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_a_run_never_gets_others_memories(data, django_user_model, transactional_rollback):
    with transactional_rollback():
        people = [
            django_user_model.objects.create_user(f"{name}-{n}")
            for n, name in enumerate(PEOPLE)
        ]
        members = {
            at: data.draw(st.sets(st.integers(0, 2)), label=f"members {at}") for at in range(2)
        }
        projects = [make_project(people, at, members[at]) for at in range(2)]
        for person in people:
            for project in (None, *projects):
                Memory.objects.create(
                    user=person,
                    project=project,
                    text=f"{person.pk} {project and project.pk}",
                    digest=f"{person.pk} {project and project.pk}",
                )
        asker, place = data.draw(st.integers(0, 2)), data.draw(st.sampled_from([None, 0, 1]))
        is_shared = data.draw(st.booleans())
        if is_shared:
            Membership.objects.create(topic="chat.7", user=people[asker])
        project = None if place is None else projects[place]
        run = Run(user=people[asker], topic="chat.7", project=project)

        found = find_memories(run, Agent())

        for memory in Memory.objects.filter(pk__in=[m.pk for m in found]):
            if memory.project_id is None:
                assert memory.user_id == people[asker].pk
                assert not is_shared
                assert project is None or (members[place] | {place}) <= {asker}
            else:
                assert memory.project_id == project.pk
                assert asker in members[place] | {place}


def make_project(people, at, members):
    project = Project.objects.create(name=f"P{at}", owner=people[at])
    for number in members | {at}:
        ProjectMember.objects.create(project=project, topic=project.topic, user=people[number])
    return project
