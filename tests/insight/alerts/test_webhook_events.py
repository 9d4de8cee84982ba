"""Events of runs, problems and limits: to whom, once, and what is in them."""

from datetime import timedelta

import pytest
from django.utils import timezone

from agents.insight.alerts import answers, delivery, rules, webhook_events
from agents.insight.alerts.models import AlertChannel, Delivery
from agents.models import (
    Agent,
    Approval,
    GuardrailHit,
    GuardrailPattern,
    HiddenTopic,
    PeriodicJob,
    Quota,
    Run,
)
from tests.conftest import run_question
from tests.insight.alerts.conftest import SECRET

pytestmark = pytest.mark.django_db(transaction=True)
ALL = ["run.finished", "approval.waiting", "guardrail.hit", "budget.warning", "problem.opened"]


@pytest.fixture
def add_webhook(db):
    def add(name="A", owner=None, events=ALL, **values):
        about = {"url": "https://hooks.example.com/a", "base_url": "https://a.example.com/"}
        return AlertChannel.objects.create(
            name=None if owner else name,
            kind="webhook",
            owner=owner,
            events=events,
            secret=SECRET,
            **about | values,
        )

    return add


@pytest.fixture
def make_ended_run(agent, person):
    def make(user=person, topic="chat.1", **values):
        about = {"status": "completed", "ended_at": timezone.now(), "answer": "It is 42."}
        about |= {"query": "?", "agent_name": agent.name}
        return Run.objects.create(user=user, agent=agent, topic=topic, **about | values)

    return make


def publish():
    webhook_events.publish(Run.objects.all())


def sent():
    return sorted((row.channel.name or "own", row.event) for row in Delivery.objects.all())


def test_a_finished_run_is_sent_once_to_everybody_who_chose_it(
    add_webhook, make_ended_run, person, stranger, agent
):
    other = Agent.objects.create(name="other", model=agent.model)
    add_webhook("All")
    add_webhook("This agent", agent=agent)
    add_webhook("Another agent", agent=other)
    add_webhook("Other events", events=["problem.opened"])
    add_webhook("Disabled", enabled=False)
    add_webhook(owner=person)
    add_webhook(owner=stranger)
    make_ended_run()
    publish()
    publish()

    finished = "run.finished"
    assert sent() == [("All", finished), ("This agent", finished), ("own", finished)]


def test_a_payload_has_ids_and_names_but_no_text(add_webhook, make_ended_run):
    add_webhook()
    run = make_ended_run(query="a secret question")
    publish()
    payload = Delivery.objects.get().payload

    assert {*payload} == {"type", "timestamp", "text", "data"}
    assert payload["type"] == "run.finished"
    assert payload["data"]["run"]["id"] == run.pk
    assert payload["data"]["run"]["url"] == f"https://a.example.com/traces/{run.pk}/"
    assert "It is" not in str(payload)
    assert "secret" not in str(payload)


@pytest.mark.parametrize(
    ("policy", "is_own", "expected"),
    [
        ("shown", True, "Ask bob@example.com"),
        ("hidden", True, "Ask ‹email›"),
        ("shown", False, "Ask ‹email›"),
    ],
)
def test_answers_are_added_when_sent_as_the_agent_allows(
    add_webhook, make_ended_run, person, agent, policy, is_own, expected
):
    Agent.objects.update(personal_data=policy)
    channel = add_webhook(owner=person if is_own else None, with_answer=True)
    make_ended_run(answer="Ask bob@example.com")
    publish()
    row = Delivery.objects.select_related("channel").get()

    assert "bob" not in str(row.payload)
    assert delivery.build_request(row).payload["data"]["answer"].startswith(expected[:5])
    assert ("bob" in answers.of(row)) == ("bob" in expected)
    AlertChannel.objects.filter(pk=channel.pk).update(with_answer=False)
    assert answers.of(Delivery.objects.select_related("channel").get()) == ""


def test_temporary_and_test_runs_are_not_sent(add_webhook, make_ended_run):
    add_webhook()
    make_ended_run(topic="trial.1")
    hidden = make_ended_run(topic="chat.2")
    HiddenTopic.objects.create(topic=hidden.topic)
    publish()

    assert not Delivery.objects.exists()


def test_approvals_and_hits_are_sent_each_once(add_webhook, make_ended_run, person):
    add_webhook("All")
    add_webhook(owner=person)
    run = make_ended_run(status="waiting", ended_at=None)
    now = timezone.now()
    about = {"run": run, "agent_name": "helper", "asked_at": now, "arguments": "{}"}
    Approval.objects.create(step=1, call_id="a", tool="mail", **about)
    Approval.objects.create(step=2, call_id="b", tool="f", why="client", **about)
    pattern = GuardrailPattern.objects.create(name="Project names", pattern="x")
    GuardrailHit.objects.create(
        run=run,
        pattern=pattern,
        step=1,
        agent_name="helper",
        stage="input",
        action="warn",
        at=now,
    )
    publish()
    publish()

    kinds = ["approval.waiting", "guardrail.hit"]
    assert sent() == [*(("All", kind) for kind in kinds), *(("own", kind) for kind in kinds)]
    payloads = {(row.channel.name, row.event): row.payload for row in Delivery.objects.all()}
    assert payloads["All", "guardrail.hit"]["data"]["guardrail"]["rule"] == "Project names"
    assert "rule" not in payloads[None, "guardrail.hit"]["data"]["guardrail"]
    assert payloads["All", "approval.waiting"]["data"]["approval"]["tool"] == "mail"


def test_what_a_dead_process_did_not_announce_is_found_later(add_webhook, make_ended_run):
    add_webhook()
    AlertChannel.objects.update(changed_at=timezone.now() - timedelta(days=2))
    webhook_events.ROWS.invalidate()
    now = timezone.now()
    make_ended_run(topic="chat.1", ended_at=now - timedelta(hours=1))
    PeriodicJob.objects.create(
        name=webhook_events.JOB,
        result={"until": (now - timedelta(hours=2)).isoformat()},
    )
    webhook_events.catch_up(now)
    webhook_events.catch_up(now)

    assert Delivery.objects.count() == 1


def test_a_new_webhook_gets_nothing_from_before(add_webhook, make_ended_run):
    make_ended_run(ended_at=timezone.now() - timedelta(seconds=30))
    add_webhook()
    webhook_events.catch_up()

    assert not Delivery.objects.exists()


@pytest.mark.usefixtures("run_executor")
async def test_a_run_is_announced_when_it_ends(add_webhook, person, agent):
    from agents.db import database

    await database.run(add_webhook, owner=person)
    await database.run(webhook_events.ROWS.refresh)
    run = await run_question("What is 6 * 7?", user=person, agent=agent)
    await webhook_events.announce(run)

    row = await Delivery.objects.aget()
    assert row.payload["data"]["run"]["id"] == run.pk


async def test_without_webhooks_a_run_asks_no_database(django_assert_num_queries, agent):
    from agents.db import database

    await database.run(webhook_events.ROWS.refresh)
    run = Run(agent=agent, topic="chat.1", user_id=1)
    await webhook_events.announce(run)  # would fail on a query: this is the event loop


def test_a_new_problem_is_opened_for_the_installation_only(
    add_webhook, happen, problem, person, agent
):
    add_webhook("All")
    add_webhook(owner=person)
    happen()
    happen("spiked")
    rules.announce()

    [row] = Delivery.objects.all()
    assert (row.channel.name, row.event) == ("All", "problem.opened")
    assert row.payload["data"]["problem"]["id"] == problem.pk


def test_a_limit_of_which_little_is_left_is_announced_once_per_window(
    add_webhook, person, stranger
):
    from agents.metering import budgets

    add_webhook("All")
    add_webhook(owner=person)
    add_webhook(owner=stranger)
    Quota.objects.create(user=person, measure="runs", window="day", limit=5)
    Quota.objects.create(is_shared=True, measure="runs", window="day", limit=100)
    for _ in range(4):
        budgets.start_run(person)
    webhook_events.warn_of_limits()
    webhook_events.warn_of_limits()

    [row] = Delivery.objects.all()
    assert row.channel.owner == person
    limit = row.payload["data"]["limit"]
    assert (limit["measure"], limit["used"], limit["limit"]) == ("runs", "4", "5")


# Results of schedules and triggers


@pytest.fixture
def schedule(agent, person):
    from agents.models import Schedule

    return Schedule.objects.create(agent=agent, question="?", user=person, cron="0 9 * * *")


def test_a_result_goes_with_its_answer_to_the_owners_webhook(
    add_webhook, make_ended_run, schedule, person
):
    channel = add_webhook(owner=person)
    type(schedule).objects.update(result_channel=channel)
    make_ended_run(topic=f"schedule.{schedule.pk}")
    publish()
    publish()

    row = Delivery.objects.select_related("channel").get()
    assert delivery.build_request(row).payload["data"]["answer"] == "It is 42."


def test_a_result_does_not_go_to_a_channel_that_the_owner_cant_use(
    add_webhook, make_ended_run, schedule, stranger
):
    type(schedule).objects.update(result_channel=add_webhook(owner=stranger, events=[]))
    make_ended_run(topic=f"schedule.{schedule.pk}")
    publish()

    assert not Delivery.objects.exists()


def test_a_result_is_mailed(make_ended_run, schedule, person, settings):
    from django.contrib.auth.models import Permission
    from django.core import mail

    settings.SENDS_EMAIL = True
    person.user_permissions.add(Permission.objects.get(codename="change_alertchannel"))
    channel = AlertChannel.objects.create(name="M", kind="email", addresses="a@example.com")
    type(schedule).objects.update(result_channel=channel)
    make_ended_run(topic=f"schedule.{schedule.pk}", answer="Ask bob@example.com")
    publish()
    assert "bob" not in Delivery.objects.get().text
    delivery.deliver_due()

    [message] = mail.outbox
    assert "Ask" in message.body
    assert "bob" not in message.body
