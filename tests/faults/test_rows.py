"""The whole product under each fault, once: other tests check the same with less."""

import pytest

from tests.faults import (  # noqa: F401
    job_faults,
    kill_faults,
    load_faults,
    machine_faults,
    mcp_faults,
    model_faults,
    page_faults,
    service_faults,
    storage_faults,
)
from tests.faults.rows import ROWS
from tests.faults.testbed import NotAvailable
from tests.processes import SharedFixture

PROMISES = {
    # Crashes and shutdowns of the server
    "F02": "runs resume after a kill at any time",
    "F03": "runs end or are handed over at shutdown",
    "F05": "an uncertain call needs a decision and is never repeated",
    "F36": "a run with progress survives any number of restarts",
    # Dead processes and the jobs they had in hand
    "F44": "a run survives five kills before its first step",
    "F45": "a document survives five kills",
    "F46": "an import survives five kills and a deploy",
    "F47": "a document that ends its own process is given up with the reason",
    "F48": "the owner of an interrupted scheduled call is notified",
    "F49": "a small file does not wait for another user's hostile files",
    # Much content, and many pages
    "F37": "a very long answer is truncated and its page stays connected",
    "F38": "a page that missed many events catches up",
    "F39": "the sockets of one user do not block others",
    "F40": "pages that cannot be served yet try again",
    "F41": "large requests cost neither memory nor time",
    # Misbehaving models
    "F13": "a cut stream keeps its text",
    "F14": "a model that does not start is reported slow and times out",
    "F14b": "a model that reads its prompt is waited for",
    "F15": "a model that stalls times out",
    "F16": "a model that drips forever is ended",
    "F17": "garbage from a model is an error or repaired",
    "F17b": "an answer in many chunks is complete",
    "F18": "an empty answer is reported",
    "F19": "repeated rate limits are retried and then end the run",
    "F20": "an unreachable provider is named",
    "F21": "an exceeded context window is reported",
    # Pages and their users
    "F09": "lost notifications change nothing",
    "F22": "stop works wherever a run is",
    "F23": "a run is either stopped or completed",
    "F24": "a reconnected page shows everything once",
    "F25": "two tabs show the same chat",
    "F26": "a page that never reads does not affect others",
    "F27": "a message sent many times is saved once",
    "F28": "a message during a run is never a second run",
    "F34": "an approval waits a day for its approver",
    # Tools, storage, several processes, the machine
    "F04": "runs of a killed worker resume in another",
    "F06": "a database that restarts is waited for",
    "F07": "a locked database is waited for",
    "F08": "pages catch up after the channel layer lost everything",
    "F10": "a crashed MCP server is restarted",
    "F11": "a hanging MCP server times out",
    "F12": "invalid output of an MCP server is handled",
    "F29": "a clock jump changes no order",
    "F30": "a full disk is reported and work resumes afterwards",
    "F31": "too many open files end no run",
    "F32": "an older version is upgraded during its runs",
    "F33": "a backup taken under load is complete",
}
# The others are played once, at their usual size.
TIMES = {"F09": 5, "F19": 5, "F23": 10, "F24": 3, "F27": 2, "F28": 2}
SIZES = {"F02": {"people": 10}, "F07": {"seconds": 3}, "F08": {"people": 10}}

# What is reported of the product's log if a row fails.
OUTPUT_CHARS = 6_000

pytestmark = pytest.mark.thorough


async def play(testbeds, id, times=1, **size):
    row = ROWS[id]
    try:
        with SharedFixture():  # the testbed keeps its processes for the rows that follow
            async with testbeds(row.kind) as testbed:
                try:
                    result = await row.play(testbed, times, **size)
                except Exception as error:
                    error.add_note(testbed.product.output[-OUTPUT_CHARS:])
                    raise
    except NotAvailable as reason:
        pytest.skip(str(reason))
    assert result.histories
    assert result.violations == []


@pytest.mark.parametrize("id", PROMISES, ids=lambda id: f"{id} {PROMISES[id]}")
async def test_the_product_keeps_its_promise(testbeds, id):
    await play(testbeds, id, TIMES.get(id, 1), **SIZES.get(id, {}))


@pytest.mark.parametrize("point", ["before_message_save", "before_resume"])
async def test_runs_resume_after_a_kill_at_a_fault_point(testbeds, point):
    await play(testbeds, "F01", 2, points=[point])


@pytest.mark.parametrize("point", ["after_tool_call", "before_resume"])
async def test_plans_resume_after_a_kill_at_a_fault_point(testbeds, point):
    await play(testbeds, "F35", 2, points=[point])


def test_every_row_is_played():
    assert {*PROMISES, "F01", "F35"} == set(ROWS)
