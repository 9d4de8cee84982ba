"""How commands start, and that one without a database ends with a message."""

import gc

import pytest
from django.core.checks import Tags
from django.core.management import ManagementUtility
from django.core.management.base import SystemCheckError
from django.db import OperationalError

from project.commands import Commands, execute
from tests import tables
from tests.test_settings import start_manage

AWAY = "postgresql://ashiato:not-for-the-log@127.0.0.1:9/ashiato"


@pytest.fixture
def file(tmp_path, django_db_blocker):
    """Return the path of this process's database, a file that does not exist yet."""
    file = tmp_path / "ashiato.sqlite3"
    with django_db_blocker.unblock(), tables.connected_to(file):
        yield file


def failure_message(*command):
    """Return a failed command's message."""
    with pytest.raises(SystemExit) as end:
        execute(["manage.py", *command])
    return str(end.value)


@pytest.mark.usefixtures("file")
@pytest.mark.parametrize(
    "command", [["verify_audit"], ["ask", "hello"], ["erase_person", "ada", "--yes"]]
)
def test_a_database_without_tables_has_advice(command):
    told = failure_message(*command)

    assert told.startswith("The database isn't set up for this version (no such table: ")
    assert told.endswith("Run “python manage.py setup” first.")


def test_a_file_that_is_not_a_database_is_named(file):
    file.write_text("no database " * 100)

    told = failure_message("prune")

    assert f"{file}: file is not a database." in told
    assert "ASHIATO_DATA" in told


@pytest.mark.usefixtures("file")
def test_the_full_traceback_is_available():
    with pytest.raises(OperationalError, match="no such table"):
        execute(["manage.py", "prune", "--traceback"])


@pytest.mark.thorough
@pytest.mark.parametrize(
    "command",
    [
        ["prune"],
        pytest.param(["setup"], marks=pytest.mark.thorough),
        pytest.param(["serve", "--port", "8939"], marks=pytest.mark.thorough),
    ],
)
def test_an_unreachable_server_is_named_without_its_password(tmp_path, command):
    pytest.importorskip("psycopg")
    data = {"ASHIATO_DATA": str(tmp_path), "ASHIATO_DATABASE_URL": AWAY}

    done = start_manage("manage.py", *command, **data)

    assert done.returncode == 1, done
    assert "Traceback" not in done.stderr
    told = done.stderr.strip()
    assert told.startswith("Can't use the database at 127.0.0.1/ashiato: ")
    assert "Connection refused" in told
    assert "not-for-the-log" not in told


def test_no_garbage_is_collected_while_a_command_is_loaded(monkeypatch):
    states = []

    class Command:
        def run_from_argv(self, _arguments):
            states.append(gc.isenabled())

    def fetch_command(_self, _name):
        states.append(gc.isenabled())
        return Command()

    monkeypatch.setattr(ManagementUtility, "fetch_command", fetch_command)
    try:
        execute(["manage.py", "anything"])
    finally:
        gc.unfreeze()

    assert states == [False, True]


def test_a_command_checks_what_an_operator_configures(settings, tmp_path):
    try:
        command = Commands(["manage.py", "serve"]).fetch_command("serve")
        django_command = Commands(["manage.py", "makemigrations"]).fetch_command(
            "makemigrations"
        )
    finally:
        gc.unfreeze()

    settings.FILE_UPLOAD_TEMP_DIR = tmp_path / "missing"
    with pytest.raises(SystemCheckError, match="FILE_UPLOAD_TEMP_DIR"):
        command.check(tags=command.requires_system_checks)
    assert Tags.urls not in command.requires_system_checks  # would load every page
    assert django_command.requires_system_checks == "__all__"
