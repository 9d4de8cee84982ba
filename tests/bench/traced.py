"""Opens every kind of page that reviewers use, and measures each."""

import json
import os
import time
from statistics import median
from urllib.parse import urlencode

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
django.setup()

from django.contrib.auth import get_user_model  # noqa: E402
from django.db import connection  # noqa: E402
from django.test import Client  # noqa: E402
from django.test.utils import CaptureQueriesContext  # noqa: E402
from django.utils import timezone  # noqa: E402

from agents.engine.loop.termination import StopReason  # noqa: E402
from agents.metering.figures import catch_up, rollups  # noqa: E402
from agents.models import Run  # noqa: E402
from agents.review.samples import sample_runs  # noqa: E402
from agents.review.samples.sample_stories import Story, StoryCall  # noqa: E402
from tests.bench.rounds import percentile  # noqa: E402

TIMES = 20
STEPS, EVENTS, OUTPUT = 200, 5_000, 20_000_000
# One filter of each kind: some match much at once, some nothing after a full scan.
FILTERS = [
    *("", "status:failed", "status:completed", "agent:helper", "model:claude"),
    *("tool:database", "tool:nothing", "kind:guardrail", "guardrail:block"),
    *("steps:>50", "tools:>50", "duration:>10m", "tokens:>900000", "cost:>100"),
    *("user:seeded-ada-0", "before:-170d", "after:-7d", "rating:down", "label:refund"),
    *("flag:open", "verdict:wrong", "version:zz", "error:connections", "route:litellm"),
    *("has:correction", "order", "注文", '"no such words"', "-status:completed order 12"),
]


# Each grain of the roll-ups, and what only summaries have.
DASHBOARD = {
    "today": "period=1d",
    "7 days": "",
    "90 days": "period=90d",
    "90 days, by version": "period=90d&by=version",
    "90 days, by tool": "period=90d&by=tool",
    "90 days, by person": "period=90d&by=person",
    "90 days, an agent by person": "period=90d&agent=helper&by=person",
    "90 days, a tool": "period=90d&tool=database",
}


def measure_rollups() -> list[dict]:
    """Summarize all runs and add up their days; return the cost of 1,000 runs, and of a day."""
    found = []
    steps = {
        "summaries, 1,000 runs": catch_up.catch_up,
        "roll-ups, 1 day": rollups.roll_up_days,
    }
    for name, work in steps.items():
        busy, began = time.process_time(), time.perf_counter()
        unit = max(1, work()) / (1_000 if "runs" in name else 1)
        worked = (time.process_time() - busy) * 1000 / unit
        took = (time.perf_counter() - began) * 1000 / unit
        found.append({"page": name, "CPU ms": worked, "median ms": took, "p95 ms": took})
    return [{"queries": 0, "kB": 0} | row for row in found]


def measure_pages() -> list[dict]:
    client = Client(headers={"host": "127.0.0.1"})
    client.force_login(get_user_model().objects.create_superuser("bench"))
    lists = {q or "(all)": f"/traces/?{urlencode({'q': q})}" for q in FILTERS}
    middle = Run.objects.order_by("-pk").values_list("pk", flat=True).first() // 2
    more = {"older page": f"/traces/?older={middle}", "completions": "/traces/completions/"}
    more |= {
        f"dashboard, {name}": f"/admin/dashboard/?{asked}" for name, asked in DASHBOARD.items()
    }
    more |= {f"console home, {days}": f"/admin/?period={days}" for days in ("7d", "30d")}
    pages = lists | more | {"run of 200 steps": f"/traces/{_long_run()}/"}
    made = measure_rollups()
    return [*made, *({"page": name} | _figures(client, url) for name, url in pages.items())]


def _figures(client: Client, url: str) -> dict:
    with CaptureQueriesContext(connection) as asked:
        size = len(client.get(url).content)
    queries = len(asked)  # cleared by the next request
    busy, times = zip(*(_took(client, url) for _ in range(TIMES)), strict=True)
    figures = {"CPU ms": median(busy), "median ms": median(times)}
    figures |= {"p95 ms": percentile(times, 0.95)}
    return {"queries": queries, "kB": size / 1000} | figures


def _took(client: Client, url: str) -> tuple[float, float]:
    """Return the milliseconds of CPU and of wall time."""
    worked, began = time.process_time(), time.perf_counter()
    assert client.get(url).status_code == 200, url
    return (time.process_time() - worked) * 1000, (time.perf_counter() - began) * 1000


def _long_run() -> int:
    call = StoryCall(
        tool="database", arguments="{}", result="x" * (OUTPUT // STEPS), seconds=0.1
    )
    story = Story(
        query="Everything?",
        answer="All of it. " * EVENTS,
        agent="helper",
        model="demo",
        calls=[call] * (STEPS - 1),
        ending=StopReason.COMPLETED,
        chunk_count=EVENTS - 5 * STEPS,
    )
    run = Run(topic="bench", agent_name="helper", model="demo", query=story.query)
    sample_runs.save_story(run, story, timezone.now())
    return run.pk


if __name__ == "__main__":
    print(json.dumps(measure_pages()))
