"""Guardrail patterns in the console: sample test, backtest, presets and verdicts."""

import re
import time
from typing import get_args

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import Permission
from django.urls import reverse

from agents.console.guardrail_admin.guardrail_testing import rule_order, rule_tester, tester
from agents.engine.guardrails import STAGES, Pattern, Stage
from agents.models import (
    Agent,
    AgentStep,
    AuditEntry,
    GuardrailHit,
    GuardrailPattern,
    Run,
)
from agents.review.experiments.sources import run_texts
from agents.review.replays.replay import ReplayProjection
from agents.runs import event_store
from tests.conftest import as_staff, run_question
from tests.sampling import one_in

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]
DRAFT = {"name": "Word", "pattern": "(?i)swordfish", "stage": "both", "action": "mask"}
CHANGE = "change_guardrailpattern"
LIST = "/admin/agents/guardrailpattern/"


def url(name, *args):
    return reverse(f"admin:agents_guardrail_{name}", args=args)


@pytest.fixture
def staff(person):
    """A user who can change patterns, but not review."""
    return as_staff(person, CHANGE)


def text(answer):
    assert answer.status_code == 200
    return answer.text


async def rule(**fields):
    return await GuardrailPattern.objects.acreate(**{**DRAFT, **fields})


def create_run(user, **fields):
    return Run.objects.create(user=user, agent_name="helper", status="completed", **fields)


# In runs


async def test_a_masked_question_stays_masked_for_the_next_question(person):
    await rule(stage="input")
    run = await run_question("What is a SwordFish?", user=person)

    told = await sync_to_async(event_store.transcript)(run)

    assert run.query == "What is a SwordFish?"
    assert told[0]["content"] == "What is a ‹Word›?"


async def test_a_pattern_applies_to_its_chosen_agents(agent):
    row = await rule(action="block", stage="input")
    other = await Agent.objects.acreate(name="other")
    await row.agents.aset([other])
    assert (await run_question("swordfish")).status == "completed"

    await row.agents.aset([other, agent])

    assert (await run_question("swordfish")).status == "blocked"


def test_an_allow_pattern_of_a_deleted_agent_applies_to_no_other(agent):
    other, third = (Agent.objects.create(name=name) for name in ("other", "third"))
    alone, shared, general = (
        GuardrailPattern.objects.create(name=name, pattern="x", action="allow")
        for name in ("alone", "shared", "general")
    )
    alone.agents.set([other, third])
    shared.agents.set([other, agent])

    Agent.objects.filter(name__in=["other", "third"]).delete()

    held = GuardrailPattern.objects.for_agent(agent.pk).filter(action="allow")
    assert set(held) == {shared, general}


async def test_an_observe_only_pattern_is_counted_and_the_run_continues(person):
    row = await rule(action="block", stage="input", is_observed=True)

    run = await run_question("6 * 7 swordfish", user=person)

    assert run.status == "completed"
    step = await run.steps.aget(kind="guardrail")
    assert (step.action, step.status) == ("observe", "done")
    hit = await GuardrailHit.objects.aget(run=run)
    assert (hit.pattern_id, hit.is_observed, hit.step) == (row.pk, True, step.number)


async def test_a_replayed_finding_is_shown_but_not_counted(person):
    await rule(stage="input", action="warn")
    run = await run_question("swordfish", user=person)

    moment = await sync_to_async(ReplayProjection.after)(run, 99)

    assert [s.action for s in moment.run.steps.all() if s.kind == "guardrail"] == ["warn"]
    assert await GuardrailHit.objects.acount() == 1


async def test_a_blocked_call_is_a_step_with_the_reason(person):
    await rule(pattern=r"6 \* 7", stage="tool_input", action="block", message="No sums.")

    run = await run_question("What is 6 * 7?", user=person)

    call = await run.steps.filter(kind="tool").afirst()
    assert call.status == AgentStep.Status.BLOCKED
    assert "No sums." in call.observation
    assert run.status == "completed"


# Stages


def test_every_stage_has_a_label_and_says_what_a_block_does():
    assert {*GuardrailPattern.Stage.values} == {*get_args(Stage)}
    assert {*tester.BLOCKED_MESSAGES} == {*STAGES}


@pytest.mark.parametrize("stage", STAGES)
async def test_every_stage_is_read_in_tests_on_past_runs(stage, person):
    run = await run_question("6 * 7", user=person)
    rule = Pattern(pattern="x", stage=stage)

    texts = await sync_to_async(lambda: [*run_texts.load([run.pk], rule)])()

    assert {text.stage for text in texts} == {stage}


# Tried


def test_the_tester_highlights_matches(admin_client):
    answer = text(admin_client.post(url("try"), {**DRAFT, "sample": "<b> Ｓｗｏｒｄfish!"}))

    assert "&lt;b&gt; <mark>Ｓｗｏｒｄfish</mark>!" in answer
    assert answer.count("The text becomes:") == 2
    assert "&lt;b&gt; ‹Word›!" in answer


@pytest.mark.parametrize(
    ("fields", "words"),
    one_in(
        4,
        [
            ({"action": "block", "stage": "input"}, "The run stops."),
            ({"action": "block", "stage": "tool_input", "message": "Oh"}, "The model sees: Oh"),
            ({"action": "warn", "stage": "output"}, "a warning is recorded"),
            ({"action": "allow"}, "Other rules skip the highlighted text."),
            (
                {"action": "block", "is_observed": "on"},
                "would have blocked this. Nothing changes.",
            ),
            ({"pattern": "(", "action": "block"}, "missing )"),
            (
                {"pattern": "(?s)a.+", "action": "mask"},
                "stream because a match has no maximum length",
            ),
            ({"sample": "trout"}, "No match"),
            ({"sample": "nul \0"}, "Null characters are not allowed."),
        ],
    ),
)
def test_the_tester_explains_the_result(admin_client, fields, words):
    assert words in text(
        admin_client.post(url("try"), {**DRAFT, "sample": "swordfish", **fields})
    )


# Tested on the past


def test_a_backtest_lists_where_a_pattern_would_have_matched(admin_client, person):
    create_run(person, query="My swordfish, ada@example.com", answer="A trout.")
    create_run(person, query="Hello", answer="SWORDFISH")
    create_run(person, query="Nothing")

    answer = text(admin_client.post(url("backtest"), {**DRAFT, "runs": "100"}))

    assert "The pattern would have matched in 2 runs." in answer
    assert "3 runs checked." in answer
    assert "ada@example.com" not in answer
    assert AuditEntry.objects.filter(action="run.viewed", detail__door="backtest").count() == 2


def test_a_backtest_covers_tools_and_only_the_chosen_agents(admin_client, agent, person):
    run = create_run(person, query="?", agent=agent)
    AgentStep.objects.create(
        run=run,
        number=1,
        kind="tool",
        started_at=run.started_at,
        action_input={"q": "swordfish"},
        observation="a swordfish",
    )
    fields = {**DRAFT, "stage": "tool_output", "runs": "100"}

    assert "in 1 run." in text(
        admin_client.post(url("backtest"), {**fields, "agents": [agent.pk]})
    )
    assert "in 0 runs." in text(
        admin_client.post(url("backtest"), {**fields, "agents": [agent.pk + 9]})
    )


def test_allowed_text_does_not_count_in_a_backtest(admin_client, person):
    GuardrailPattern.objects.create(name="ok", pattern="swordfish steak", action="allow")
    create_run(person, query="A swordfish steak, please.")

    assert "in 0 runs." in text(admin_client.post(url("backtest"), {**DRAFT, "runs": "100"}))


@pytest.mark.parametrize(
    "pattern", one_in(4, ["ada@", "(?i)ADA@example", "ada@|‹", "mail|zzz", r"\d{4}"])
)
def test_a_backtest_ignores_masked_text(staff, person, stranger, pattern):
    """Otherwise a masked address could be guessed letter by letter."""
    person.user_permissions.add(Permission.objects.get(codename="review_runs"))
    run = create_run(stranger, query="Write to ada@example.com", answer="Call 090-1234-5678.")
    AgentStep.objects.create(
        run=run,
        number=1,
        kind="tool",
        started_at=run.started_at,
        action_input={"email": "ada@example.com"},
        observation="4242 4242 4242 4242",
    )

    for stage in ("both", "tool_input", "tool_output"):
        draft = {**DRAFT, "pattern": pattern, "stage": stage, "runs": "100"}
        answer = text(staff.post(url("backtest"), draft))
        is_seen = pattern == "mail|zzz" and stage == "tool_input"  # the name of a field
        assert f"in {1 if is_seen else 0} run" in answer, stage
        assert "masked personal data aren" in answer


def test_a_backtest_finds_personal_data_only_in_the_users_own_runs(staff, person, stranger):
    person.user_permissions.add(Permission.objects.get(codename="review_runs"))
    create_run(stranger, query="Write to ada@example.com about a swordfish")
    create_run(person, query="Write to ada@example.com")

    for pattern in ("swordfish", "ada@"):
        draft = {**DRAFT, "pattern": pattern, "runs": "100"}
        assert "in 1 run." in text(staff.post(url("backtest"), draft)), pattern


def test_a_backtest_finds_personal_data_with_the_permission(admin_client, stranger):
    create_run(stranger, query="Write to ada@example.com")

    answer = text(
        admin_client.post(url("backtest"), {**DRAFT, "pattern": "ada@", "runs": "100"})
    )

    assert "in 1 run." in answer
    assert "aren" not in answer


def test_a_backtest_of_other_users_runs_needs_review_permission(staff):
    assert staff.post(url("try"), {**DRAFT, "sample": "x"}).status_code == 200
    assert staff.post(url("backtest"), {**DRAFT, "runs": "100"}).status_code == 403
    assert staff.get(url("hits")).status_code == 403


def test_get_requests_change_nothing(admin_client):
    for name in ("try", "backtest"):
        assert admin_client.get(url(name)).status_code == 405


# Judged


@pytest.fixture
def hit(person):
    row = GuardrailPattern.objects.create(**DRAFT)
    run = create_run(person, query="swordfish")
    return GuardrailHit.objects.create(
        run=run,
        pattern=row,
        step=1,
        agent_name="helper",
        stage="input",
        action="mask",
        at=run.started_at,
    )


def test_reviewers_rate_hits_and_the_list_counts_them(admin_client, hit):
    assert f'href="/traces/{hit.run_id}/#step-1"' in text(admin_client.get(url("hits")))
    row = text(
        admin_client.post(
            url("judge", hit.pk), {"word": "right"}, headers={"HX-Request": "true"}
        )
    )

    assert 'value="right" aria-pressed="true"' in row
    assert "0% <span" in text(admin_client.get(LIST))
    assert "1 of 1" in text(admin_client.get(url("hits") + f"?pattern={hit.pattern_id}"))
    assert AuditEntry.objects.filter(action="review.hit").exists()


def test_a_rating_of_a_hit_can_be_changed_and_removed(admin_client, hit):
    for word in ("right", "wrong"):
        admin_client.post(url("judge", hit.pk), {"word": word})
    hit.refresh_from_db()
    assert not hit.verdict.is_right

    admin_client.post(url("judge", hit.pk), {"word": "open"})

    assert not GuardrailHit.objects.filter(verdict__isnull=False).exists()
    assert admin_client.post(url("judge", hit.pk), {"word": "maybe"}).status_code == 404
    assert admin_client.post(url("judge", hit.pk + 1), {"word": "right"}).status_code == 404


def test_older_hits_are_on_the_next_page(admin_client, hit):
    same = {f.attname: getattr(hit, f.attname) for f in GuardrailHit._meta.concrete_fields}
    same.pop("id")
    GuardrailHit.objects.bulk_create(GuardrailHit(**{**same, "step": n}) for n in range(2, 60))

    first = text(admin_client.get(url("hits")))

    assert first.count("<tr id=") == 50
    older = first.split("before=")[1].split('"')[0]
    assert text(admin_client.get(url("hits") + f"?before={older}")).count("<tr id=") == 9


# Order, switches and sets


def pks(admin_client):
    page = text(admin_client.get(LIST))
    return [int(n) for n in re.findall(r'data-rule="(\d+)"', page)]


@pytest.fixture
def no_rules():
    GuardrailPattern.objects.all().delete()


@pytest.fixture
def three(no_rules):
    return [
        GuardrailPattern.objects.create(name=name, pattern=name, action="block", message=name)
        for name in ("one", "two", "three")
    ]


def test_rules_are_listed_in_their_order_and_moved_by_buttons(admin_client, three):
    one, two, last = (row.pk for row in three)
    assert pks(admin_client) == [one, two, last]

    answer = text(admin_client.post(url("order"), {"pk": last, "by": "up"}))

    assert "three is now number 2." in answer
    assert pks(admin_client) == [one, last, two]
    assert AuditEntry.objects.filter(action="console.changed").exists()


def test_dragging_saves_the_whole_order_and_ignores_unknown_numbers(admin_client, three):
    one, two, last = (row.pk for row in three)

    admin_client.post(url("order"), {"order": f"{last},99999,x,{one},{one}"})

    assert pks(admin_client) == [last, two, one]


async def test_the_first_rule_that_blocks_decides(person):
    for name in ("lower", "upper"):
        await rule(name=name, pattern="swordfish", action="block", message=f"{name} says no.")
    await sync_to_async(rule_order.move)(
        (await GuardrailPattern.objects.aget(name="upper")).pk, -1
    )

    run = await run_question("swordfish", user=person)

    assert run.detail == "upper says no."


def test_a_rule_is_switched_on_the_page(admin_client, three):
    pk = three[0].pk
    assert 'class="off"' in text(admin_client.post(url("switch", pk), {}))
    admin_client.post(url("switch", pk), {f"enabled-{pk}": "on"})

    three[0].refresh_from_db()
    assert three[0].enabled


def test_bulk_actions_change_the_selected_rules(admin_client, three):
    chosen = {"action": "observe", "_selected_action": [three[0].pk, three[1].pk]}

    admin_client.post(LIST, chosen)

    assert GuardrailPattern.objects.filter(is_observed=True).count() == 2


def test_the_order_needs_permission_to_change_rules(person, three):
    client = as_staff(person, "view_guardrailpattern")

    assert "Move one up" not in text(client.get(LIST))
    assert client.post(url("order"), {"pk": three[1].pk, "by": "up"}).status_code == 403
    assert client.post(url("switch", three[0].pk), {}).status_code == 403
    assert client.post(url("sets"), {"set": "secrets"}).status_code == 403


def test_a_set_is_turned_on_and_off(admin_client):
    assert "Ignore all previous instructions" in text(admin_client.get(LIST))

    admin_client.post(url("sets"), {"set": "injection", "state": "on"})
    admin_client.post(url("sets"), {"set": "injection", "state": "on"})
    rules = GuardrailPattern.objects.filter(name="指示の無視")
    assert [row.enabled for row in rules] == [True]

    admin_client.post(url("sets"), {"set": "injection", "state": "off"})
    assert [row.enabled for row in rules.all()] == [False]
    assert admin_client.post(url("sets"), {"set": "nothing"}).status_code == 404
    assert admin_client.get(url("sets")).url.endswith("#sets")


def test_a_text_is_tested_with_all_rules_at_every_stage(admin_client, three):
    GuardrailPattern.objects.create(name="Mail", pattern="[a-z]+@[a-z.]+", action="mask")

    answer = text(admin_client.post(url("check"), {"text": "two ada@example.com"}))

    assert 'title="two">two</mark>' in answer
    assert "The run stops. The user sees: two" in answer
    masked = text(admin_client.post(url("check"), {"text": "ada@example.com"}))
    assert "‹Mail›" in masked
    assert masked.count("No match") == 2  # tool input and output


def test_hits_of_a_week_and_a_month_are_drawn(admin_client, hit):
    page = text(admin_client.get(LIST))

    assert "1 hit in 30 days, 1 in 7 days" in page
    assert "<b>1</b> / 1" in page


def test_hits_are_filtered(admin_client, hit):
    assert f'id="hit-{hit.pk}"' in text(
        admin_client.get(url("hits"), {"stage": "input", "days": "7"})
    )
    for wrong in ({"stage": "output"}, {"action": "block"}, {"verdict": "right"}):
        assert "No hits in the runs you can view." in text(admin_client.get(url("hits"), wrong))


# Words

WORDS = {"kind": "words", "pattern": "Swordfish\r\nred herring", "enabled": "on"}
WORDS |= {"stage": "both", "action": "block"}


def test_words_are_the_first_kind_and_are_saved_without_a_name(admin_client, no_rules):
    page = admin_client.get(f"{LIST}add/")
    assert page.context["kind"] == "words"
    assert [kind for kind, _label in page.context["kinds"]] == ["words", "pattern", "model"]

    admin_client.post(f"{LIST}add/", WORDS)
    admin_client.post(f"{LIST}add/", WORDS)

    rows = GuardrailPattern.objects.order_by("position")
    assert [(row.kind, row.name) for row in rows] == [("words", "Words"), ("words", "Words 2")]
    edited = admin_client.get(f"{LIST}{rows[0].pk}/change/")
    assert edited.context["adminform"].form["pattern"].value() == rows[0].pattern
    assert "Swordfish, red herring" in text(admin_client.get(LIST))


def test_words_are_tested_as_they_are_typed(admin_client):
    draft = {
        **WORDS,
        "action": "mask",
        "sample": "A ＳＷＯＲＤＦＩＳＨ, swordfishes, Red Herring",
    }

    trial = admin_client.post(url("try"), draft).context["trial"]

    assert [piece.text for piece in trial.pieces if piece.is_match] == [
        "ＳＷＯＲＤＦＩＳＨ",
        "Red Herring",
    ]
    problem = admin_client.post(url("try"), {**draft, "pattern": "x" * 500}).context["trial"]
    assert "too long" in problem.problem


def test_unusable_words_are_not_saved(admin_client, no_rules):
    answer = admin_client.post(f"{LIST}add/", {**WORDS, "pattern": " \n "})

    assert "pattern" in answer.context["adminform"].form.errors
    assert not GuardrailPattern.objects.exists()


async def test_words_apply_in_runs_and_have_hits(person, no_rules):
    row = await rule(name="Fish", kind="words", pattern="swordfish\n太刀魚", action="mask")

    run = await run_question("A Swordfish, 太刀魚と. swordfishes", user=person)

    assert await GuardrailHit.objects.filter(pattern=row, run=run).aexists()
    told = await sync_to_async(event_store.transcript)(run)
    assert told[0]["content"] == "A ‹Fish›, ‹Fish›と. swordfishes"


def test_all_rules_include_words(no_rules):
    GuardrailPattern.objects.create(name="Fish", kind="words", pattern="cod", action="block")

    results = rule_tester.check_text("A cod, not a code")

    assert [match.count for match in results[0].matches] == [1]
    assert results[0].blocked


# Model checks

JUDGE = {
    "kind": "model",
    "name": "Fish",
    "model": "demo",
    "rubric": 'No "swordfish".',
    "stage": "input",
    "action": "block",
}
LIMITS = {
    "threshold": "50",
    "on_failure": "allow",
    "max_calls": "5",
    "max_daily_cost": "",
    "max_call_tokens": "8000",
    "timeout": "20",
    "enabled": "on",
}


def test_a_model_check_is_added_in_the_console(admin_client):
    assert "Rule for the model" in text(admin_client.get(f"{LIST}add/?kind=model"))

    admin_client.post(f"{LIST}add/?kind=model", {**JUDGE, **LIMITS})

    row = GuardrailPattern.objects.get(name="Fish")
    assert (row.kind, row.max_calls, row.max_daily_cost) == ("model", 5, None)
    assert "Model check" in text(admin_client.get(LIST))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"model": ""}, "Choose a model."),
        ({"rubric": " "}, "Describe what counts as a violation."),
        ({"action": "mask"}, "Select a valid choice"),
        ({"stage": "tool_input"}, "Select a valid choice"),
    ],
)
def test_an_incomplete_model_check_is_not_saved(admin_client, no_rules, fields, words):
    answer = text(admin_client.post(f"{LIST}add/?kind=model", {**JUDGE, **LIMITS, **fields}))

    assert words in answer
    assert not GuardrailPattern.objects.exists()


def test_a_test_of_a_model_check_says_what_it_costs_before_it_asks(admin_client):
    draft = {**JUDGE, "sample": "A swordfish"}

    asked = text(admin_client.post(url("ask"), draft))
    assert "This makes 1 call with about" in asked
    assert "contains" not in asked

    judged = text(admin_client.post(url("ask"), {**draft, "confirmed": "on"}))
    assert "Violation" in judged
    assert "contains “swordfish”" in judged


def test_a_model_check_is_backtested_on_recent_texts_after_a_confirmation(admin_client, person):
    create_run(person, query="My swordfish, ada@example.com", answer="?")
    create_run(person, query="Hello")
    draft = {**JUDGE, "runs": "10"}

    assert "This makes 2 calls" in text(admin_client.post(url("backtest"), draft))
    answer = text(admin_client.post(url("backtest"), {**draft, "confirmed": "on"}))

    assert "1 violation" in answer
    assert "in 2 texts." in answer
    assert "ada@example.com" not in answer


def test_a_tester_needs_a_model_and_a_rule(admin_client):
    assert "Choose a model first." in text(
        admin_client.post(url("ask"), {**JUDGE, "model": ""})
    )
    assert "Enter a sample text first." in text(admin_client.post(url("ask"), JUDGE))


def test_those_who_cannot_change_rules_cannot_spend(person):
    client = as_staff(person, "view_guardrailpattern", "review_runs")

    assert client.post(url("ask"), {**JUDGE, "sample": "x"}).status_code == 403
    assert client.post(url("backtest"), {**JUDGE, "runs": "10"}).status_code == 403


def test_a_rule_that_matches_every_character_is_marked_in_time():
    text = "ab" * 10_000
    began = time.process_time()

    pieces = rule_tester._test_stage(
        text, "input", [Pattern(pattern="a", name="A", id=1)]
    ).pieces

    assert [piece.names for piece in pieces[:2]] == ["A", ""]
    assert time.process_time() - began < 10
