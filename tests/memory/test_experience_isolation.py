"""Property: a run never gets an experience that its user has no right to."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents.memory.candidates import Reach, find_experiences
from agents.models import (
    Agent,
    Experience,
    HiddenTopic,
    Membership,
    Personalization,
    Project,
    ProjectMember,
    Run,
)

PEOPLE = ("ada", "ben", "cho")
TOOLS = ("calculator", "warehouse")
COLLECTIONS = (1, 2)
numbers = st.integers(0, 2)


@pytest.mark.django_db
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_a_run_never_gets_an_experience_without_a_right(
    data, django_user_model, transactional_rollback
):
    with transactional_rollback():
        people = [
            django_user_model.objects.create_user(f"{n}-{at}") for at, n in enumerate(PEOPLE)
        ]
        agents = [Agent.objects.create(name=f"agent-{at}", learns=True) for at in range(2)]
        members = [data.draw(st.sets(numbers), label="members") | {at} for at in range(2)]
        projects = [make_project(people, at, members[at]) for at in range(2)]
        for at in range(12):
            make_experience(data, at, people, agents, projects)
        asker, place = data.draw(numbers), data.draw(st.sampled_from([None, 0, 1]))
        is_shared, is_temporary, is_off, is_test = (data.draw(st.booleans()) for _ in range(4))
        topic = "trial.7" if is_test else "chat.7"
        if is_shared:
            Membership.objects.create(topic=topic, user=people[asker])
        if is_temporary:
            HiddenTopic.objects.create(topic=topic, user=people[asker])
        Personalization.objects.create(user=people[asker], learns=not is_off)
        project = None if place is None else projects[place]
        run = Run(user=people[asker], topic=topic, project=project, agent=agents[0])
        tools = frozenset(data.draw(st.sets(st.sampled_from(TOOLS))))
        open_to = frozenset(data.draw(st.sets(st.sampled_from(COLLECTIONS))))

        found = find_experiences(
            run, agents[0], Reach(tools=tools, collections=lambda: open_to)
        )

        for row in Experience.objects.filter(pk__in=[one.pk for one in found]):
            assert row.agent_id == agents[0].pk
            assert row.status == "active"
            assert tools.issuperset(row.tools)
            assert open_to.issuperset(row.collections)
            assert row.run is None or row.run.topic != "chat.deleted"
            if row.scope == "person":
                assert row.user_id == people[asker].pk
                assert not any([is_shared, is_temporary, is_off, is_test])
                assert row.project_id in {None, project and project.pk}
                assert place is None or members[place] == {asker}
            if row.scope == "project":
                assert project is not None
                assert row.project_id == project.pk
                assert asker in members[place]
                assert not is_test


def make_experience(data, at, people, agents, projects):
    scope = data.draw(st.sampled_from(["person", "project", "agent"]))
    owner = people[data.draw(numbers)]
    topic = data.draw(st.sampled_from(["chat.1", "chat.deleted"]))
    if topic == "chat.deleted":
        HiddenTopic.objects.get_or_create(topic=topic)
    project = data.draw(st.sampled_from(projects)) if scope == "project" else None
    if scope == "person":
        project = data.draw(st.sampled_from([None, *projects]))
    Experience.objects.create(
        agent=data.draw(st.sampled_from(agents)),
        user=owner,
        project=project,
        scope=scope,
        kind="correction",
        status=data.draw(st.sampled_from(["active", "active", "review", "off"])),
        question=f"Question {at}",
        text=f"Lesson {at}",
        digest=str(at),
        tools=sorted(data.draw(st.sets(st.sampled_from(TOOLS)))),
        collections=sorted(data.draw(st.sets(st.sampled_from(COLLECTIONS)))),
        run=Run.objects.create(user=owner, topic=topic, status="completed"),
    )


def make_project(people, at, members):
    project = Project.objects.create(name=f"P{at}", owner=people[at])
    for number in members:
        ProjectMember.objects.create(project=project, topic=project.topic, user=people[number])
    return project
