import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.utils import timezone

from agents.models import Agent, AgentStep, Approval, Run, RunEvent

MAIL, PHONE = "ada@example.com", "090-1234-5678"
PERSONAL = (MAIL, PHONE)


def may(user, *codenames):
    user.user_permissions.add(*Permission.objects.filter(codename__in=codenames))
    return type(user).objects.get(pk=user.pk)


@pytest.fixture
def reviewer(django_user_model):
    return may(django_user_model.objects.create_user("rei", password="x"), "review_runs")


@pytest.fixture
def auditor(django_user_model):
    auditor = django_user_model.objects.create_user("aud")
    return may(auditor, "review_runs", "see_personal_data")


@pytest.fixture
def personal_run(person, db):
    """A finished run with personal data in every text."""
    run = Run.objects.create(
        user=person,
        agent=Agent.objects.create(name="clerk"),
        agent_name="clerk",
        topic="chat.1",
        query=f"Who is {MAIL}?",
        history=[{"role": "user", "content": f"I am {MAIL}"}],
        answer=f"It is **Ada**, {PHONE}.",
        status="completed",
        stopped_reason="completed",
        detail=f"Told {MAIL}.",
        overrides={"prompt": MAIL},
        parameters={"to": MAIL},
        ended_at=timezone.now(),
    )
    when = run.started_at
    AgentStep.objects.create(
        run=run,
        number=1,
        kind="tool",
        status="done",
        agent_name="clerk",
        action="database",
        action_input={"mail": MAIL, "rows": [1, 2]},
        observation=f'{{"phone": "{PHONE}"}}',
        thought=f"I look for {MAIL}.",
        request={"messages": [{"role": "user", "content": MAIL}], MAIL: 1},
        notes=[{"kind": "retry", "message": MAIL, "seconds": 1, "attempt": 2}],
        started_at=when,
        ended_at=when,
    )
    Approval.objects.create(
        run=run,
        step=1,
        call_id="c1",
        agent_name="clerk",
        tool="database",
        arguments=f'{{"mail": "{MAIL}"}}',
        digest="0" * 64,
        verdict="approved",
        reason=f"Ask {PHONE}",
        asked_at=when,
    )
    words = [("delta", {"content": f"It is {MAIL[:5]}", "step": 2})]
    words += [("delta", {"content": f"{MAIL[5:]}, fine.", "step": 2})]
    ended = {"step": 2, "turn": 1, "kind": "answer", "status": "done", "thought": MAIL}
    finished = {"answer": run.answer, "stopped_reason": "completed", "detail": run.detail}
    done = [("step", ended), ("run_finished", {**finished, "advice": "", "turns": 1})]
    RunEvent.objects.bulk_create(
        RunEvent(run=run, seq=seq, type=type, agent="clerk", time=when, data=data)
        for seq, (type, data) in enumerate([*words, *done], start=1)
    )
    return run


@pytest.fixture
def unwritable():
    """Make the database read-only, in this thread."""
    if connection.vendor != "sqlite":
        pytest.skip("only SQLite is closed to writing this way")
    with connection.cursor() as cursor:
        yield lambda: cursor.execute("PRAGMA query_only = ON")
        cursor.execute("PRAGMA query_only = OFF")
