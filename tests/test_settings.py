"""An invalid setting stops the start with a message."""

import os
import subprocess
import sys
from ipaddress import ip_address, ip_network

import pytest
import yaml
from django.conf import settings

from project import environment
from project.environment import Environment


def start_manage(*arguments, **environment):
    keep = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run(
        [sys.executable, *(arguments or ["manage.py", "check"])],
        cwd=settings.BASE_DIR,
        env=keep | environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.fixture
def refused(monkeypatch, tmp_path):
    """Return the message of an invalid environment, in this process."""

    def read(**values):
        for name in [name for name in os.environ if name.startswith("ASHIATO_")]:
            monkeypatch.delenv(name)
        for name, value in {"ASHIATO_DATA": str(tmp_path), **values}.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(SystemExit) as ended:
            environment.load()
        return str(ended.value)

    return read


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ASHIATO_DEBUG", "maybe"),
        ("PORT", "http"),
        ("PORT", "70000"),
        ("ASHIATO_PORT", "0"),
        ("ASHIATO_ORIGINS", "*"),
        ("ASHIATO_ORIGINS", "chat.example.org"),
        ("ASHIATO_ORIGINS", "https://chat.example.org/path"),
        ("ASHIATO_ORIGINS", "https://a.example, http://["),
        ("ASHIATO_LANGUAGE", "tlh"),
        ("ASHIATO_LOG_LEVEL", "LOUD"),
        ("ASHIATO_DEMO_DELAY", "-1"),
        ("ASHIATO_USER_RUNS", "0"),
        ("ASHIATO_CONTACT", "http://help.example.org"),
        ("ASHIATO_TIME_ZONE", "Mars/Olympus"),
        ("ASHIATO_OIDC_SCOPES", "profile email"),
        ("ASHIATO_OIDC_SCOPES", 'openid "groups"'),
        ("ASHIATO_OTLP_ENDPOINT", "collector:4318"),
        ("ASHIATO_METRICS", "perhaps"),
        ("ASHIATO_METRICS_PORT", "70000"),
        ("ASHIATO_TRACE_CONSOLE", "loud"),
        ("ASHIATO_TRACE_FILE", "/proc/nowhere/trace.jsonl"),
        ("ASHIATO_TRACE_FILE", "/"),
    ],
)
def test_an_invalid_value_is_rejected_with_one_message(name, value, refused):
    [sentence] = refused(**{name: value}).splitlines()

    assert name.removeprefix("ASHIATO_") in sentence
    assert value in sentence


def test_an_invalid_value_stops_the_start_with_one_message(tmp_path):
    code = "import project.settings"
    start = start_manage("-c", code, ASHIATO_DATA=str(tmp_path), ASHIATO_ORIGINS="*")

    assert start.returncode == 1
    assert "Traceback" not in start.stderr
    [sentence] = start.stderr.strip().splitlines()
    assert "ORIGINS" in sentence


def test_the_secret_key_is_created_once_and_private(tmp_path):
    data = tmp_path / "new" / "folder"
    first = Environment(data=data, secret_key=None).load_secret_key()
    again = Environment(data=data, secret_key=None).load_secret_key()

    assert first == again
    assert len(first) >= 50
    assert (data / "secret_key").stat().st_mode & 0o777 == 0o600


def test_the_data_folder_is_made_private(tmp_path):
    data, elsewhere = tmp_path / "data", tmp_path / "elsewhere"
    (data / "static").mkdir(parents=True)
    (data / "mcp" / "1").mkdir(parents=True)
    files = [data / name for name in ("ashiato.sqlite3", "secret_key", "static/x.css")]
    servers_own = data / "mcp" / "1" / "own"
    for file in (*files, servers_own, elsewhere):
        file.write_text("x" * 60)
        file.chmod(0o644)
    for folder in (data, data / "static", data / "mcp"):
        folder.chmod(0o755)
    (data / "link").symlink_to(elsewhere)
    program = data / "program"
    program.write_text("#!/bin/sh")
    program.chmod(0o755)

    new = "import project.settings, pathlib; pathlib.Path('$/new').touch()"
    start_manage("-c", new.replace("$", str(data)), ASHIATO_DATA=str(data)).check_returncode()

    modes = {path: path.stat().st_mode & 0o777 for path in (data, *data.rglob("*"))}
    assert {modes[path] for path in (data, data / "static", data / "mcp")} == {0o700}
    assert {modes[path] for path in (*files, data / "new")} == {0o600}
    assert modes[program] == 0o700
    assert modes[data / "link"] == modes[servers_own] == 0o644


def test_a_shared_folder_is_unchanged(tmp_path):
    tmp_path.chmod(0o1777)
    start_manage("-c", "import project.settings", ASHIATO_DATA=str(tmp_path)).check_returncode()

    assert tmp_path.stat().st_mode & 0o7777 == 0o1777


@pytest.mark.thorough
def test_the_database_and_its_log_are_private(tmp_path):
    code = (
        "import django; django.setup()\nfrom django.db import connection as c, transaction\n"
        "import os\nc.ensure_connection(); c.cursor().execute('CREATE TABLE x (y)')\n"
        f"print({{oct(e.stat().st_mode & 0o777) for e in os.scandir({str(tmp_path)!r})}}, "
        f"sorted(os.listdir({str(tmp_path)!r})))"
    )
    env = {"DJANGO_SETTINGS_MODULE": "project.settings", "ASHIATO_DATA": str(tmp_path)}
    found = start_manage("-c", code, **env)

    assert found.stdout.startswith("{'0o600'} ")
    assert "ashiato.sqlite3-wal" in found.stdout


def test_an_incomplete_secret_key_is_created_again(tmp_path):
    (tmp_path / "secret_key").touch()

    assert len(Environment(data=tmp_path, secret_key=None).load_secret_key()) >= 50


def test_the_secret_key_is_not_shown_by_accident():
    environment = Environment(secret_key="swordfish", admin_password="swordfish")

    assert "swordfish" not in repr(environment)


@pytest.mark.parametrize(
    ("host", "origins"),
    [
        ("127.0.0.1", {"http://127.0.0.1:8000", "http://localhost:8000", "http://[::1]:8000"}),
        ("0.0.0.0", {"http://127.0.0.1:8000", "http://localhost:8000", "http://[::1]:8000"}),
    ],
)
def test_without_configuration_only_localhost_is_allowed(host, origins):
    assert set(Environment(HOST=host, origins="").all_origins()) == origins


def test_only_configured_origins_are_allowed():
    environment = Environment(origins="https://a.example, https://b.example:8443")

    assert environment.all_origins() == ["https://a.example", "https://b.example:8443"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ASHIATO_DATABASE_URL", "mysql://me:hidden@db/x"),
        ("ASHIATO_REDIS_URL", "http://:hidden@redis"),
        ("ASHIATO_OTLP_HEADERS", "hidden, without a name"),
        ("ASHIATO_METRICS_TOKEN", "hidden"),
    ],
)
def test_an_invalid_url_is_rejected_without_quoting_its_password(name, value, refused):
    [sentence] = refused(**{name: value}).splitlines()

    assert name in sentence
    assert "hidden" not in sentence


def test_workers_need_a_shared_database_and_channel_layer(refused):
    sentence = refused(ASHIATO_WORKERS="true")

    for name in ("ASHIATO_SECRET_KEY", "ASHIATO_DATABASE_URL", "ASHIATO_REDIS_URL"):
        assert name in sentence


def test_an_empty_value_counts_as_unset(tmp_path):
    code = "from project.settings import ENVIRONMENT as e; print(e.redis_url, e.language)"
    empty = {"ASHIATO_REDIS_URL": "", "ASHIATO_LANGUAGE": "", "ASHIATO_SECRET_KEY": ""}
    start = start_manage("-c", code, ASHIATO_DATA=str(tmp_path), **empty)

    assert start.stdout.split() == ["None", "en"]


def test_behind_the_compose_load_balancer_client_addresses_are_known():
    deploy = settings.BASE_DIR / "deploy"
    compose = yaml.safe_load((deploy / "compose.yaml").read_text())
    passed = "proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;"

    balancer = compose["services"]["balancer"]["networks"]["default"]["ipv4_address"]
    network = compose["networks"]["default"]["ipam"]["config"][0]
    believed = compose["services"]["web"]["environment"]["ASHIATO_PROXIES"].split(",")[0]
    assert believed == balancer
    assert ip_address(balancer) in ip_network(network["subnet"])
    assert ip_address(balancer) not in ip_network(network["ip_range"])
    assert passed in (deploy / "nginx.conf").read_text()
