"""The health page: all processes and what they depend on."""

from datetime import timedelta

import pytest
from channels.layers import get_channel_layer
from django.contrib.auth.models import Permission
from django.core import checks
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from agents.catalog.agent_factory import CIRCUITS
from agents.console import deployment_checks, health_checks, sandbox_status
from agents.models import Approval, McpServer, Run, ServerProcess
from agents.web import health

pytestmark = pytest.mark.django_db(transaction=True)


FOUND = deployment_checks._run_checks


@pytest.fixture(autouse=True)
def _well_set_up(monkeypatch):
    """Hide the checks' warnings about the tests' own settings."""
    monkeypatch.setattr(deployment_checks, "_run_checks", list)


@pytest.fixture
def root(administrator):
    client = Client()
    client.force_login(administrator)
    return client


def process(name="1.a@here/1", ago=0, **facts):
    seen = timezone.now() - timedelta(seconds=ago)
    facts = {"kind": "web", "version": "1", "started_at": seen, "seen_at": seen} | facts
    return ServerProcess.objects.create(name=name, **facts)


def run(topic, **facts):
    return Run.objects.create(topic=topic, query="6 * 7", agent_name="helper", **facts)


def found(what):
    """Return the check of this name, as displayed now."""
    lines = health_checks.all_checks(list(ServerProcess.objects.with_silence()))
    return next((line for line in lines if line.what == what), None)


def test_the_page_says_so_when_everything_is_in_order(root):
    process()

    page = root.get(reverse("admin:agents_health"))

    assert page.status_code == 200
    assert "All checks passed." in page.content.decode()
    assert "needs attention" not in page.content.decode()


def test_what_needs_a_look_comes_first_and_is_counted(root):
    process(ago=60)
    McpServer.objects.create(name="files", state="failed")

    page = root.get(reverse("admin:agents_health")).content.decode()

    assert "2 items need attention." in page
    assert page.index("MCP servers") < page.index("Channel layer")
    assert page.count("needs attention") == 2


def test_where_no_process_was_heard_of_the_page_is_still_there(root):
    page = root.get(reverse("admin:agents_health")).content.decode()

    assert "No process has sent a heartbeat in the last few minutes." in page
    assert found("Processes").advice


def test_only_staff_with_the_permission_see_it(person):
    client = Client()
    client.force_login(person)
    address = reverse("admin:agents_health")
    as_anybody = client.get(address).status_code
    person.is_staff = True
    person.save()
    as_staff = client.get(address).status_code
    person.user_permissions.add(Permission.objects.get(codename="view_serverprocess"))

    assert (as_anybody, as_staff, client.get(address).status_code) == (302, 403, 200)


def test_a_process_that_fell_silent_is_named():
    process("1.a@here/1")
    process("2.b@there/2", ago=30, kind="worker")

    line = found("Processes")

    assert line.now == "1 web, 1 worker"
    assert "2@there." in line.advice
    assert "1@here" not in line.advice


def test_processes_of_two_versions_are_noticed():
    process("a", version="1")
    process("b", version="2")

    assert "different versions" in found("Processes").advice


def test_stalls_of_the_last_hour_need_a_look_and_older_ones_do_not():
    before = timezone.now() - timedelta(hours=2)
    row = process(stalls=3, longest_stall=1.5, stalled_in="a.py:f ← b.py:g", stalled_at=before)

    assert found("Event loops").now == "Event loop blocked 3 times (longest: 1.5 s)."
    assert found("Event loops").is_good

    ServerProcess.objects.filter(pk=row.pk).update(stalled_at=timezone.now())
    assert "a.py:f." in found("Event loops").advice


def test_a_short_stall_while_it_started_is_no_trouble():
    process(stalls=1, longest_stall=0.3, stalled_at=timezone.now())

    assert found("Event loops").is_good


def test_a_loop_that_hangs_now_is_named():
    process("1.a@here/1", stalls=1, lateness=3.0)

    assert found("Event loops").advice == "Blocked right now: 1@here."


def test_a_event_writer_that_lags_needs_a_look():
    process(journal_lag=0.2)
    assert found("Event storage").is_good

    process("b", journal_lag=5.0)
    assert "5.0 s" in found("Event storage").now
    assert not found("Event storage").is_good


def test_one_failure_in_many_is_no_trouble_but_many_are():
    for number in range(11):
        run(str(number), status="completed", ended_at=timezone.now())
    run("a", status="failed", ended_at=timezone.now())
    run("b", status="failed", ended_at=timezone.now() - timedelta(hours=2))

    assert found("Failed runs").now == "1 of 12 in the last hour."
    assert found("Failed runs").is_good

    run("c", status="failed", ended_at=timezone.now())
    assert not found("Failed runs").is_good


def test_a_run_that_was_taken_over_lately_needs_a_look():
    run("a", takeovers=1, status="completed", ended_at=timezone.now() - timedelta(hours=2))
    assert found("Recovered runs").is_good

    run("b", takeovers=1)
    assert found("Recovered runs").now == "1 in the last hour."
    assert not found("Recovered runs").is_good


def test_people_may_take_their_time_over_a_decision():
    asked = timezone.now() - timedelta(hours=3)
    waiting = run("a", status="waiting")
    Approval.objects.create(run=waiting, step=1, tool="x", arguments="{}", asked_at=asked)

    line = found("Pending approvals")

    assert line.now == "1 approval pending for 3 hours."
    assert line.is_good


def test_without_workers_there_is_no_line(settings):
    settings.WORKERS = False

    assert health_checks.queue_depth() is None
    assert found("Queue") is None


def test_a_line_without_a_worker_needs_a_look(settings):
    settings.WORKERS = True
    run("a", owner="")
    process()

    assert health_checks.queue_depth() == 1
    assert "1 run waiting" in found("Queue").now
    assert "No worker" in found("Queue").advice

    process("b", kind="worker")
    assert found("Queue").is_good


def test_workers_that_cannot_keep_up_are_told(settings):
    settings.WORKERS = True
    process(kind="worker")
    old = run("a", owner="")
    Run.objects.filter(pk=old.pk).update(started_at=timezone.now() - timedelta(minutes=5))

    assert "keep up" in found("Queue").advice


def test_a_layer_that_does_not_answer_needs_a_look(monkeypatch):
    async def send(channel, message):
        raise ConnectionError

    assert found("Channel layer").is_good
    monkeypatch.setattr(get_channel_layer(), "send", send)

    line = found("Channel layer")

    assert line.now.endswith("ChannelLayer isn't responding.")
    assert not line.is_good


def test_a_disk_that_is_nearly_full_needs_a_look(monkeypatch):
    assert found("Disk").is_good
    monkeypatch.setattr(health, "MIN_FREE_BYTES", 10**18)

    assert not found("Disk").is_good


def test_the_database_says_what_it_is_and_how_large():
    assert found("Database").now.startswith(("SQLite 3.", "PostgreSQL 1"))


def test_an_open_circuit_is_named():
    with CIRCUITS.of("tool:broken").attempt() as attempt:
        for _ in range(5):
            attempt.record_failure("It is not there.")
    try:
        assert "tool:broken" in found("Circuit breakers").now
    finally:
        CIRCUITS.close("tool:broken")


def test_the_page_says_which_versions_there_are(root):
    page = root.get(reverse("admin:agents_health")).content.decode()

    for name in ("Ashiato", "Python", "Django", "LiteLLM", "FastMCP"):
        assert f"<dt>{name}</dt>" in page


def test_what_an_agent_thinks_with_is_named_and_told_when_it_is_out_of_order(agent):
    good = found("Models")
    with CIRCUITS.of("model:demo").attempt() as attempt:
        attempt.record_failure("down", retry_after=600)
    for _ in range(9):
        if not CIRCUITS.of("model:demo").is_refusing:
            with CIRCUITS.of("model:demo").attempt() as attempt:
                attempt.record_failure("down")
    bad = found("Models")
    CIRCUITS.close("model:demo")

    assert (good.now, good.advice) == ("demo", "")
    assert bad.advice.startswith("Failing: demo.")


def simulate_warnings(monkeypatch, *names):
    """Simulate warnings of only these checks."""
    messages = [checks.Warning("In Django's words.", id=name) for name in names]
    monkeypatch.setattr(deployment_checks, "_run_checks", lambda: messages)
    return {remark.name: remark for remark in deployment_checks.deploy_warnings()}


def test_plain_http_matters_where_others_come_in(monkeypatch, settings):
    settings.ORIGINS = ["http://127.0.0.1:8000", "http://[::1]:8000"]
    here = simulate_warnings(monkeypatch, "security.W012")
    settings.ORIGINS = ["http://127.0.0.1:8000", "http://chat.example.org"]
    there = simulate_warnings(monkeypatch, "security.W012")

    assert not here["security.W012"].advice
    assert "ASHIATO_ORIGINS" in there["security.W012"].advice
    assert found("Settings").advice


def test_what_is_the_balancers_is_explained_and_what_is_new_is_told_as_it_is(monkeypatch, root):
    remarks = simulate_warnings(monkeypatch, "security.W008", "security.W018", "other.W001")
    page = root.get(reverse("admin:agents_health")).content.decode()

    assert not remarks["security.W008"].advice
    assert remarks["security.W018"].advice == "Set ASHIATO_DEBUG to false."
    assert remarks["other.W001"].words == "In Django's words."
    assert "not applicable" in page


def test_the_checks_are_djangos_own():
    names = {message.id for message in FOUND()}

    assert "security.W008" in names


def test_programs_that_nothing_keeps_apart_are_a_finding(monkeypatch, settings):
    finding = found("MCP sandbox")
    assert finding.is_good
    assert finding.now == sandbox_status.describe_level(sandbox_status.general_level())

    monkeypatch.setattr(settings.ENVIRONMENT, "mcp_sandbox", "off")
    assert found("MCP sandbox").is_good  # there is no such server
    McpServer.objects.create(name="x", transport="stdio", command="x")
    assert "can read its secret key and database" in found("MCP sandbox").now
    assert found("MCP sandbox").advice == "Set ASHIATO_MCP_SANDBOX to auto."


def test_a_data_folder_that_others_can_read_is_a_finding(settings, tmp_path):
    settings.DATA_DIR = tmp_path
    tmp_path.chmod(0o700)
    assert found("Data folder").is_good
    tmp_path.chmod(0o755)
    assert f"chmod 700 {tmp_path}" in found("Data folder").advice
