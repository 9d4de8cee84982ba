"""Every screen as different readers see it: accessible, still while it loads, never too wide.

`ASHIATO_PICTURES=folder` keeps a picture of each.
"""

import os
import re
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conversation import FIGURES, LOOKUP, ask, ask_and_wait, number_in, open_trace
from tests.browser.test_accessibility import faults
from tests.browser.test_problems_admin import QUESTION, expect_soon

DESK = {"viewport": {"width": 1280, "height": 860}}
READERS = {
    "light": DESK,
    "dark": DESK | {"color_scheme": "dark"},
    "1024": {"viewport": {"width": 1024, "height": 768}},
    "390": {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True},
    "ja": DESK | {"locale": "ja-JP"},
}
# What counts as good in Core Web Vitals is 0.1.
MAX_SHIFT = 0.05
WATCH_SHIFTS = """
self.shifted = 0;
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) self.shifted += entry.value;
}).observe({ type: "layout-shift", buffered: true });
"""
TOO_WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
PICTURES = os.environ.get("ASHIATO_PICTURES", "")


class Screen(NamedTuple):
    name: str
    url: str  # {chat}, {waiting}, {run} and {document} are what was made before


SCREENS = [
    Screen("new-chat", "/"),
    Screen("chat", "/chat/{chat}/"),
    Screen("approval", "/chat/{waiting}/"),
    Screen("traces", "/traces/"),
    Screen("traces-by-problem", "/traces/?group=problem"),
    Screen("run", "/traces/{run}/"),
    Screen("step", "/traces/{run}/steps/2/"),
    Screen("replay", "/traces/{run}/replay/"),
    Screen("compare", "/traces/{earlier}/compare/{run}/"),
    Screen("review", "/review/"),
    Screen("approvals", "/approvals/"),
    Screen("library", "/library/"),
    Screen("document", "{document}"),
    Screen("projects", "/projects/"),
    Screen("prompts", "/prompts/"),
    Screen("workflows", "/workflows/"),
    Screen("profile", "/account/profile/"),
    Screen("personalization", "/account/personalization/"),
    Screen("usage", "/account/usage/"),
    Screen("console", "/admin/"),
    Screen("dashboard", "/admin/dashboard/"),
    Screen("agents", "/admin/agents/agent/"),
    Screen("agent", "{agent}"),
    Screen("models", "/admin/agents/languagemodel/"),
    Screen("connections", "/admin/agents/modelconnection/"),
    Screen("new-connection", "/admin/agents/modelconnection/add/"),
    Screen("defaults", "/admin/agents/languagemodel/defaults/"),
    Screen("tools", "/admin/agents/toolregistration/"),
    Screen("mcp-servers", "/admin/agents/mcpserver/"),
    Screen("new-mcp-server", "/admin/agents/mcpserver/add/"),
    Screen("documents", "/admin/agents/document/"),
    Screen("guardrails", "/admin/agents/guardrailpattern/"),
    Screen("new-guardrail", "/admin/agents/guardrailpattern/add/"),
    Screen("users", "/admin/auth/user/"),
    Screen("new-group", "/admin/auth/group/add/"),
    Screen("limits", "/admin/agents/quota/"),
    Screen("problems", "/admin/problems/problem/"),
    Screen("problem", "{problem}"),
    Screen("evaluation", "/admin/review/exampleset/"),
    Screen("alerts", "/admin/alerts/alertrule/"),
    Screen("audit-log", "/admin/agents/auditentry/"),
    Screen("health", "/admin/health/"),
    Screen("settings", "/admin/settings/"),
    Screen("branding", "/admin/settings/branding/"),
]


@pytest.fixture(scope="module")
def full_server(start_server):
    """A server that has been used for a while."""
    for server in start_server("full", 0.003):
        server.manage("seed_runs", "--runs=300", "--events=4000", "--into-this-database")
        yield server


@pytest.fixture(scope="module")
def places(browser, full_server, signed_in) -> dict[str, object]:
    """Make what the pages show; return where it is."""
    options = {"storage_state": signed_in(full_server), "reduced_motion": "reduce"}
    page = browser.new_context(base_url=full_server.url, **options).new_page()
    found: dict[str, object] = {}
    ask_and_wait(page, LOOKUP)
    ask_and_wait(page, QUESTION)  # a tool fails, which becomes a problem
    run = ask_and_wait(page, FIGURES)
    found["chat"] = number_in(page)
    run.locator(".thumb[value=bad]").click()
    run.locator("button[value=flag]").click()
    expect(run.locator(".flagged")).to_be_visible()
    open_trace(run)
    found["run"] = number_in(page)
    found["earlier"] = int(found["run"]) - 1
    page.goto("/")
    page.locator("select[name=agent]").select_option("careful")
    ask(page, "How many customers are there in Kyoto?")
    expect(page.locator(".approval[data-verdict=waiting]")).to_be_visible()
    found["waiting"] = number_in(page)
    found["document"] = _first_link(page, "/library/", r"/library/(documents/)?\d+/$")
    found["agent"] = _first_link(page, "/admin/agents/agent/", r"/agent/\d+/")
    expect_soon(page, "/admin/problems/problem/", "Tool error · helper · calculator")
    found["problem"] = _first_link(page, "/admin/problems/problem/", r"/problem/\d+/")
    page.context.close()
    return found


def _first_link(page: Page, url: str, pattern: str) -> str:
    page.goto(url)
    links = page.locator("main a[href]").evaluate_all("all => all.map(a => a.pathname)")
    return next(link for link in links if re.search(pattern, link))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("screen", SCREENS, ids=[screen.name for screen in SCREENS])
def test_a_screen_is_accessible_still_and_fits(visit, full_server, places, screen, reader):
    page = visit(full_server, folds_steps=True, **READERS[reader])
    page.add_init_script(WATCH_SHIFTS)
    page.goto(screen.url.format(**places))
    page.wait_for_load_state("networkidle")
    shifted, too_wide = page.evaluate(f"[self.shifted, {TOO_WIDE}]")
    if PICTURES:
        page.screenshot(path=Path(PICTURES) / f"{screen.name}-{reader}.png")

    assert shifted <= MAX_SHIFT
    assert too_wide <= 0
    assert faults(page) == []
