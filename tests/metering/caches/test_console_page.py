"""The console's page of caches: what it counts, and how it is cleared."""

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from agents.models import AgentStep, CacheEntry, CacheGroup, CacheUsage, Run
from tests.conftest import as_staff

pytestmark = pytest.mark.django_db

PAGE = "admin:agents_caches"


@pytest.fixture
def saved(http_tool):
    now = timezone.now()
    group = CacheGroup.objects.get()
    CacheEntry.objects.create(
        key="k", kind="tool", source=f"tool:{http_tool.pk}", group=group, value={"output": "x"},
        size=2_000, saved_at=now, used_at=now, expires_at=now + timedelta(hours=1),
    )  # fmt: skip
    CacheUsage.objects.create(
        day=timezone.localdate(), source=f"tool:{http_tool.pk}", kind="tool", hits=3, misses=1,
        seconds=4.5, cost_micros=2_000,
    )  # fmt: skip
    return http_tool


def test_without_a_cache_the_page_says_how_to_turn_one_on(admin_client):
    assert "No caches turned on" in admin_client.get(reverse(PAGE)).text


def test_the_page_counts_size_hits_and_savings(admin_client, saved):
    shown = admin_client.get(reverse(PAGE))

    [row] = shown.context["rows"]
    assert (row.name, row.entries, row.hits, row.hit_rate) == ("weather", 1, 3, "75.0%")
    assert "$0.002" in shown.text


def test_clearing_a_tool_deletes_its_results_and_those_being_read(admin_client, saved):
    generation = CacheGroup.objects.get().generation
    admin_client.post(reverse(f"{PAGE}_clear"), {"source": f"tool:{saved.pk}"})

    assert not CacheEntry.objects.exists()
    assert CacheGroup.objects.get().generation == generation + 1


def test_clearing_an_unknown_cache_deletes_nothing(admin_client, saved):
    answer = admin_client.post(reverse(f"{PAGE}_clear"), {"source": "tool:999"}, follow=True)

    assert "This cache no longer exists." in answer.text
    assert CacheEntry.objects.exists()


def test_only_those_who_configure_agents_can_clear(person, saved):
    client = as_staff(person)

    assert client.post(reverse(f"{PAGE}_clear")).status_code == 403
    assert client.get(reverse(PAGE)).status_code == 403


def test_what_providers_cached_is_shown_by_model_and_on_the_step(admin_client):
    now = timezone.now()
    run = Run.objects.create(
        query="?", topic="chat.1", agent_name="a", model="claude", status="completed",
        ended_at=now, seconds=1,
    )  # fmt: skip
    AgentStep.objects.create(
        run=run, number=1, kind="answer", status="done", started_at=now, ended_at=now,
        prompt_tokens=4_000, cache_read_tokens=3_000, cache_savings=0.0081, cost=0.01,
    )  # fmt: skip

    page = admin_client.get(reverse(PAGE))
    step = admin_client.get(reverse("trace:step", args=[run.pk, 1]), {"tab": "cost"}).text
    trace = admin_client.get(reverse("trace:run", args=[run.pk])).text

    assert page.context["models"][0]["share"] == "75.0%"
    assert "Saved by prompt caching" in step
    assert "$0.0081" in step
    assert 'data-figure="cached"' in trace
