"""What axe-core says of the pages: nothing that is serious."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.browser.conversation import CALCULATION, SEVERAL, answered, last_run

GRAVE = {"serious", "critical"}


def faults(page: Page) -> list[str]:
    found = Axe().run(page).response["violations"]
    return [
        f"{fault['id']}: {node['html'][:160]}"
        for fault in found
        if fault["impact"] in GRAVE
        for node in fault["nodes"]
    ]


@pytest.fixture(params=["light", "dark"])
def reader(request, visit, server) -> Page:
    return visit(server, color_scheme=request.param, reduced_motion="reduce")


def test_the_chat_and_the_page_of_a_run_have_no_serious_fault(reader: Page):
    answered(reader, SEVERAL)
    assert faults(reader) == []

    last_run(reader).get_by_role("link", name="Trace").click()
    reader.locator("#step-1 summary").click()
    expect(reader.locator("#panel .payload").first).to_be_visible()
    assert faults(reader) == []
    reader.get_by_role("link", name="Request", exact=True).click()
    expect(reader.locator("#panel .sent").first).to_be_visible()
    assert faults(reader) == []


def test_the_list_and_the_queue_have_no_serious_fault(reader: Page):
    answered(reader, CALCULATION)
    for address in ("/traces/", "/traces/?q=staus:failed", "/review/", "/approvals/"):
        reader.goto(address)
        assert faults(reader) == [], address


def test_a_replay_and_a_comparison_have_no_serious_fault(reader: Page):
    answered(reader, CALCULATION)
    last_run(reader).get_by_role("link", name="Trace").click()
    run = reader.url.rstrip("/").rsplit("/", 1)[1]
    for address in ("replay/", "compare/", f"compare/{run}/", "again/2/", "share/"):
        answer = reader.goto(f"/traces/{run}/{address}")
        assert answer.ok, address
        assert faults(reader) == [], address
