"""People see what is left of their limits: at the composer and in their account."""

import pytest

from agents.metering.budgets.windows import window_start
from agents.models import BudgetCounter, Quota, Run
from tests.run_usage import record_usage

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("agent")]


@pytest.fixture
def spent(person):
    """Let the user have spent so much of 5 dollars a day."""

    def spend(dollars, **owner):
        owner = owner or {"user": person}
        Quota.objects.create(measure="cost", window="day", limit=5_000_000, **owner)
        scope = "all" if owner.get("is_shared") else f"user:{person.pk}"
        BudgetCounter.objects.create(
            scope=scope,
            window="day",
            start=window_start("day"),
            cost=round(dollars * 1_000_000),
        )

    return spend


def note(client):
    return client.get("/chat/limits/?agent=helper").text


def test_without_limits_there_is_no_line_and_no_query_for_it(
    person_client, django_assert_max_num_queries
):
    assert 'id="limit-note"' not in person_client.get("/").text
    with django_assert_max_num_queries(4):  # the session and its user
        assert note(person_client).strip() == ""


def test_the_line_is_quiet_below_80_percent(person_client, spent):
    spent(3)

    assert "hidden" in note(person_client)


def test_from_80_percent_the_composer_says_what_is_used_and_when_it_resets(
    person_client, spent
):
    spent(4.1)

    page = person_client.get("/").text

    assert "82% of today&#x27;s $5.00 used · resets at" in page
    assert " 80" in page.split('data-notice="')[1].split('"')[0]


def test_a_used_up_limit_is_named(person_client, spent):
    spent(5)

    assert "Today&#x27;s $5.00 is used up" in note(person_client)


def test_a_shared_limit_names_whose_it_is(person_client, spent):
    spent(4.5, is_shared=True)

    assert "90% of $5.00 per day for all users together used" in note(person_client)


def test_the_account_lists_all_limits_that_apply(person_client, spent):
    spent(1)
    Quota.objects.create(is_shared=True, measure="tokens", window="month", limit=1_000)

    shown = person_client.get("/account/usage/").text

    assert "$4.00" in shown
    assert "Own limit" in shown
    assert "All users together" in shown


@pytest.mark.django_db(transaction=True)
def test_a_refused_message_stays_in_the_composer(person_client, spent):
    spent(5)

    response = person_client.post("/chat/", {"text": "Keep these words", "client_id": "a" * 32})

    shown = response.text
    assert "Keep these words</textarea>" in shown
    assert "resets" in shown


@pytest.mark.parametrize(("model", "is_unknown"), [("demo", False), ("openai/secret", True)])
def test_only_runs_of_models_that_cost_something_have_an_unknown_price(
    person_client, person, model, is_unknown
):
    run = Run.objects.create(user=person, model=model, prompt_tokens=5, status="completed")
    record_usage(run)

    shown = person_client.get("/account/usage/").text

    assert ("Price unknown for 1 run" in shown) == is_unknown
