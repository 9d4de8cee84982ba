"""The health page: all processes and what they depend on."""

from datetime import timedelta

import pytest
from channels.layers import get_channel_layer
from django.contrib.auth.models import Permission
from django.core import checks
from django.urls import reverse
from django.utils import timezone

from agents.catalog.agent_factory import CIRCUITS
from agents.console.system import deployment_checks, health_checks, sandbox_status
from agents.models import Approval, McpServer, Run, ServerProcess
from agents.web.asgi import health
from tests.conftest import as_user

pytestmark = pytest.mark.django_db(transaction=True)


FOUND = deployment_checks._run_checks


@pytest.fixture(autouse=True)
def _well_set_up(monkeypatch):
    """Hide the checks' warnings about the tests' own settings."""
    monkeypatch.setattr(deployment_checks, "_run_checks", list)


def process(name="1.a@here/1", ago=0, **facts):
    seen = timezone.now() - timedelta(seconds=ago)
    facts = {"kind": "web", "version": "1", "started_at": seen, "seen_at": seen} | facts
    return ServerProcess.objects.create(name=name, **facts)


def run(topic, **facts):
    return Run.objects.create(topic=topic, query="6 * 7", agent_name="helper", **facts)


def found(what):
    """Return the check of this name, as displayed now."""
    lines = health_checks.all_checks(list(ServerProcess.objects.with_silence()))
    return next((line for line in lines if line.name == what), None)


def test_the_page_says_that_everything_is_fine(admin_client):
    process()

    page = admin_client.get(reverse("admin:agents_health"))

    assert page.status_code == 200
    assert "All checks passed." in page.text
    assert "Needs attention" not in page.text


def test_warnings_come_first_and_are_counted(admin_client):
    process(ago=60)
    McpServer.objects.create(name="files", state="failed")

    page = admin_client.get(reverse("admin:agents_health")).text

    assert "2 items need attention." in page
    assert page.index("MCP servers") < page.index("Channel layer")
    assert page.count("Needs attention") == 2


def test_the_page_works_without_any_process_status(admin_client):
    page = admin_client.get(reverse("admin:agents_health")).text

    assert "No process has sent a heartbeat in the last few minutes." in page
    assert found("Processes").advice


def test_only_staff_with_the_permission_see_it(person):
    client = as_user(person)
    address = reverse("admin:agents_health")
    as_anybody = client.get(address).status_code
    person.is_staff = True
    person.save()
    as_staff = client.get(address).status_code
    person.user_permissions.add(Permission.objects.get(codename="view_serverprocess"))

    assert (as_anybody, as_staff, client.get(address).status_code) == (302, 403, 200)


def test_a_process_without_heartbeat_is_named():
    process("1.a@here/1")
    process("2.b@there/2", ago=30, kind="worker")

    line = found("Processes")

    assert line.status == "1 web, 1 worker"
    assert "2@there." in line.advice
    assert "1@here" not in line.advice


def test_processes_of_different_versions_are_a_warning():
    process("a", version="1")
    process("b", version="2")

    assert "different versions" in found("Processes").advice


def test_stalls_of_the_last_hour_are_a_warning():
    before = timezone.now() - timedelta(hours=2)
    row = process(stalls=3, longest_stall=1.5, stalled_in="a.py:f ← b.py:g", stalled_at=before)

    assert found("Event loops").status == "Event loop blocked 3 times (longest: 1.5 s)."
    assert found("Event loops").is_good

    ServerProcess.objects.filter(pk=row.pk).update(stalled_at=timezone.now())
    assert "a.py:f." in found("Event loops").advice


def test_a_short_stall_during_startup_is_no_warning():
    process(stalls=1, longest_stall=0.3, stalled_at=timezone.now())

    assert found("Event loops").is_good


def test_a_blocked_event_loop_is_named():
    process("1.a@here/1", stalls=1, lateness=3.0)

    assert found("Event loops").advice == "Blocked right now: 1@here."


def test_a_lagging_event_writer_is_a_warning():
    process(journal_lag=0.2)
    assert found("Event storage").is_good

    process("b", journal_lag=5.0)
    assert "5.0 s" in found("Event storage").status
    assert not found("Event storage").is_good


def test_a_high_failure_rate_is_a_warning():
    for number in range(11):
        run(str(number), status="completed", ended_at=timezone.now())
    run("a", status="failed", ended_at=timezone.now())
    run("b", status="failed", ended_at=timezone.now() - timedelta(hours=2))

    assert found("Failed runs").status == "1 of 12 in the last hour."
    assert found("Failed runs").is_good

    run("c", status="failed", ended_at=timezone.now())
    assert not found("Failed runs").is_good


def test_a_recently_recovered_run_is_a_warning():
    run("a", takeovers=1, status="completed", ended_at=timezone.now() - timedelta(hours=2))
    assert found("Recovered runs").is_good

    run("b", takeovers=1)
    assert found("Recovered runs").status == "1 in the last hour."
    assert not found("Recovered runs").is_good


def test_a_long_pending_approval_is_no_warning():
    asked = timezone.now() - timedelta(hours=3)
    waiting = run("a", status="waiting")
    Approval.objects.create(run=waiting, step=1, tool="x", arguments="{}", asked_at=asked)

    line = found("Pending approvals")

    assert line.status == "1 approval pending for 3 hours."
    assert line.is_good


def test_without_workers_there_is_no_queue(settings):
    settings.WORKERS = False

    assert health_checks.queue_depth() is None
    assert found("Queue") is None


def test_a_queue_without_a_worker_is_a_warning(settings):
    settings.WORKERS = True
    run("a", owner="")
    process()

    assert health_checks.queue_depth() == 1
    assert "1 run waiting" in found("Queue").status
    assert "No worker" in found("Queue").advice

    process("b", kind="worker")
    assert found("Queue").is_good


def test_overloaded_workers_are_a_warning(settings):
    settings.WORKERS = True
    process(kind="worker")
    old = run("a", owner="")
    Run.objects.filter(pk=old.pk).update(started_at=timezone.now() - timedelta(minutes=5))

    assert "keep up" in found("Queue").advice


def test_an_unreachable_channel_layer_is_a_warning(monkeypatch):
    async def send(channel, message):
        raise ConnectionError

    assert found("Channel layer").is_good
    monkeypatch.setattr(get_channel_layer(), "send", send)

    line = found("Channel layer")

    assert line.status.endswith("ChannelLayer isn't responding.")
    assert not line.is_good


def test_a_nearly_full_disk_is_a_warning(monkeypatch):
    assert found("Disk").is_good
    monkeypatch.setattr(health, "MIN_FREE_BYTES", 10**18)

    assert not found("Disk").is_good


def test_the_database_is_shown_with_its_version_and_size():
    assert found("Database").status.startswith(("SQLite 3.", "PostgreSQL 1"))


def test_an_open_circuit_is_named():
    with CIRCUITS.of("tool:broken").attempt() as attempt:
        for _ in range(5):
            attempt.record_failure("It is not there.")
    try:
        assert found("Circuit breakers").status == "Failing: broken."
    finally:
        CIRCUITS.close("tool:broken")


def test_the_page_shows_the_versions(admin_client):
    page = admin_client.get(reverse("admin:agents_health")).text

    for name in ("Ashiato", "Python", "Django", "LiteLLM", "FastMCP"):
        assert f"<dt>{name}</dt>" in page


def test_models_of_agents_are_listed_and_failing_ones_are_a_warning(agent):
    good = found("Models")
    with CIRCUITS.of("model:demo").attempt() as attempt:
        attempt.record_failure("down", retry_after=600)
    for _ in range(9):
        if not CIRCUITS.of("model:demo").is_refusing:
            with CIRCUITS.of("model:demo").attempt() as attempt:
                attempt.record_failure("down")
    bad = found("Models")
    CIRCUITS.close("model:demo")

    assert (good.status, good.advice) == ("demo", "")
    assert bad.status == "Failing: demo."


def simulate_warnings(monkeypatch, *names):
    """Simulate warnings of only these checks."""
    messages = [checks.Warning("In Django's words.", id=name) for name in names]
    monkeypatch.setattr(deployment_checks, "_run_checks", lambda: messages)
    return {remark.name: remark for remark in deployment_checks.deploy_warnings()}


def test_plain_http_is_a_warning_on_public_installations(monkeypatch, settings):
    settings.ORIGINS = ["http://127.0.0.1:8000", "http://[::1]:8000"]
    here = simulate_warnings(monkeypatch, "security.W012")
    settings.ORIGINS = ["http://127.0.0.1:8000", "http://chat.example.org"]
    there = simulate_warnings(monkeypatch, "security.W012")

    assert not here["security.W012"].advice
    assert "ASHIATO_ORIGINS" in there["security.W012"].advice
    assert found("Settings").advice


def test_known_deploy_checks_are_explained_and_new_ones_quoted(monkeypatch, admin_client):
    remarks = simulate_warnings(monkeypatch, "security.W008", "security.W018", "other.W001")
    page = admin_client.get(reverse("admin:agents_health")).text

    assert not remarks["security.W008"].advice
    assert remarks["security.W018"].advice == "Set ASHIATO_DEBUG to false."
    assert remarks["other.W001"].words == "In Django's words."
    assert "Not applicable" in page


def test_the_page_includes_djangos_deploy_checks():
    names = {message.id for message in FOUND()}

    assert "security.W008" in names


def test_unsandboxed_mcp_programs_are_a_warning(monkeypatch, settings):
    finding = found("MCP sandbox")
    assert finding.is_good
    level = sandbox_status.describe_level(sandbox_status.general_level())
    assert finding.status.startswith(level)

    monkeypatch.setattr(settings.ENVIRONMENT, "mcp_sandbox", "off")
    assert found("MCP sandbox").is_good  # there is no such server
    McpServer.objects.create(name="x", transport="stdio", command="x")
    assert "can read its secret key and database" in found("MCP sandbox").status
    assert found("MCP sandbox").advice == "Set ASHIATO_MCP_SANDBOX to auto."


def test_a_data_folder_readable_by_others_is_a_warning(settings, tmp_path):
    settings.DATA_DIR = tmp_path
    tmp_path.chmod(0o700)
    assert found("Data folder").is_good
    tmp_path.chmod(0o755)
    assert f"chmod 700 {tmp_path}" in found("Data folder").advice
