"""Suggestions in a browser: read with their evidence, applied as a version, taken back."""

from playwright.sync_api import expect

from tests.browser.conversation import ask_and_wait
from tests.browser.test_accessibility import faults

FITS = "document.documentElement.scrollWidth <= innerWidth"
# The hourly look needs more runs than a test can make.
SUGGESTED = """
from django.utils import timezone
from agents.models import Agent, Run
from agents.insight.suggestions.models import Suggestion
now, agent = timezone.now(), Agent.objects.get(name="helper")
for subject, kind, text in (
    ("eur", "instruction", "Give amounts in EUR."),
    ("short", "instruction", "Answer in one sentence."),
):
    row = Suggestion.objects.create(
        agent=agent, kind=kind, subject=subject, text=text, first_seen=now, last_seen=now,
        figures={"comments": 9, "wrong": 9},
    )
    row.runs.set(Run.objects.order_by("-pk")[:1])
"""
LIST = "/admin/suggestions/suggestion/"


def test_a_suggestion_is_applied_and_taken_back_and_another_is_dismissed(server, page):
    ask_and_wait(page, "What is 2 + 2?")
    server.manage("shell", "-v0", "-c", SUGGESTED)
    page.goto(LIST)
    assert faults(page) == []
    page.get_by_role("link", name="Give amounts in EUR.").click()
    expect(page.locator(".suggestion-runs")).to_contain_text("What is 2 + 2?")
    assert faults(page) == []
    page.locator("#suggestion-text").fill("Give amounts in EUR, not in USD.")
    page.get_by_role("button", name="Apply as version").click()
    expect(page.locator(".suggestion-note")).to_contain_text("Applied in version")
    page.get_by_role("button", name="Go back to version").click()
    expect(page.locator(".page-head .badge")).to_have_text("Open")

    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(LIST)
    assert page.evaluate(FITS)
    page.get_by_role("link", name="Answer in one sentence.").click()
    assert page.evaluate(FITS)
    assert faults(page) == []
    page.get_by_role("button", name="Dismiss").click()
    page.goto(f"{LIST}?view=dismissed")
    expect(page.locator("#result_list")).to_contain_text("Answer in one sentence.")
