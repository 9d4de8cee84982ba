"""Each way in which a run can end without a normal answer says what to do next."""

import pytest

from agents.engine import errors
from agents.engine.loop import StopReason
from agents.llm.wire import error_causes, provider_errors
from agents.models import Run
from agents.web.presentation import RunView

pytestmark = pytest.mark.django_db

ADVICE = {
    "": ["try_again", "other_model"],
    errors.AgentError.advice: ["try_again", "ask_administrator"],
    errors.AgentConnectionError.advice: ["try_again", "ask_administrator"],
    errors.EmptyReply.advice: ["try_again", "other_model"],
    errors.QuotaExhausted.advice: ["other_model", "ask_administrator"],
    errors.TruncatedReply.advice: ["edit_question", "ask_administrator"],
    provider_errors.CHECK_KEY_ADVICE: ["ask_administrator", "try_again"],
    provider_errors.RETRY_LATER_ADVICE: ["try_again", "other_model"],
    error_causes.NEW_CHAT: ["new_chat", "other_model"],
    error_causes.REPHRASE: ["edit_question", "other_model"],
}


@pytest.fixture(autouse=True)
def contact(configure):
    configure(contact="help@example.org")


def steps(reason: StopReason, advice: str = "", **fields) -> list[str]:
    status = {
        StopReason.ERROR: "failed",
        StopReason.BLOCKED: "blocked",
        StopReason.INTERRUPTED: "interrupted",
        StopReason.DEGRADED: "completed",
        StopReason.COMPLETED: "completed",
    }.get(reason, "stopped")
    run = Run(pk=1, status=status, stopped_reason=reason, advice=advice, **fields)
    return [str(step) for step in RunView(run).next_steps]


@pytest.mark.parametrize("advice", ADVICE)
def test_a_failed_run_offers_what_its_advice_names(advice):
    assert steps(StopReason.ERROR, advice) == ADVICE[advice]


@pytest.mark.parametrize("reason", sorted(set(StopReason) - {StopReason.COMPLETED}))
def test_no_ending_is_a_dead_end(reason):
    assert 1 <= len(steps(reason)) <= 2


def test_a_run_that_was_cut_off_can_be_continued():
    assert steps(StopReason.MAX_STEPS)[0] == "continue"
    assert steps(StopReason.COMPLETED, detail="The answer was cut off.") == ["continue"]
    assert steps(StopReason.CANCELLED, answer="Half an") == ["continue", "try_again"]


def test_a_normal_answer_needs_no_next_step():
    assert steps(StopReason.COMPLETED, answer="42") == []


def test_who_can_only_read_is_offered_nothing():
    run = Run(pk=1, status="failed", stopped_reason=StopReason.ERROR)

    assert RunView(run, may_decide=False).next_steps == []
    assert RunView(run, place="trace").next_steps == []


def test_the_contact_gets_what_happened():
    run = Run(pk=7, status="blocked", stopped_reason=StopReason.BLOCKED, agent_name="helper")

    url = RunView(run).contact.url

    assert url.startswith("mailto:help@example.org?subject=Run%207&body=")
    assert "/traces/7/" in url


def test_without_a_contact_a_sentence_takes_the_place_of_the_button(configure):
    configure(contact="")
    blocked = RunView(Run(pk=1, status="blocked", stopped_reason=StopReason.BLOCKED))
    refused = Run(pk=2, status="failed", stopped_reason=StopReason.ERROR)
    refused.advice = "Try again, or contact your administrator."

    assert blocked.next_steps == ["edit_question"]
    assert blocked.administrator_advice == "Ask an administrator for help."
    assert RunView(refused).next_steps == ["try_again"]
    assert RunView(refused).administrator_advice == ""  # the advice says it


def test_administrators_need_no_contact(configure, administrator):
    configure(contact="")
    run = Run(status="blocked", stopped_reason=StopReason.BLOCKED, user=administrator)

    assert "ask_administrator" in RunView(run).next_steps
