"""Runs of programs in the trace list and on their page."""

import re

import pytest

from agents.access import api_keys
from agents.models import Run
from agents.review.filters.filter_language import parse
from agents.review.run_list.filter_completion import known_values

pytestmark = pytest.mark.django_db


@pytest.fixture
def runs(person, agent):
    """A run of a user, and one of their program."""
    key = api_keys.create(person, "Nightly report", ["ask"])[0]
    columns = {"user": person, "agent": agent, "agent_name": agent.name, "query": "6 * 7"}
    own = Run.objects.create(topic="t.1", status="completed", **columns)
    of_key = Run.objects.create(topic="t.2", status="completed", api_key=key, **columns)
    return own, of_key


def test_runs_are_filtered_by_the_key_that_started_them(runs, person):
    own, of_key = runs

    def found(text):
        return set(parse(text, is_reviewer=False).apply(Run.objects.all()))

    assert found('key:"nightly report"') == found("key:night*") == {of_key}
    assert found("-key:night*") == {own}
    assert known_values(person)["key"] == ["Nightly report"]


def test_the_trace_says_which_key_started_it(runs, person_client):
    own, of_key = runs

    assert "Nightly report" in person_client.get(f"/traces/{of_key.pk}/").text
    assert "Nightly report" not in person_client.get(f"/traces/{own.pk}/").text
    page = person_client.get("/traces/?columns=key,status")
    cells = re.findall(r'<td data-column="key"[^>]*>(.*?)</td>', page.text)
    assert cells == ["Nightly report", ""]
