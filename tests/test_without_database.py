"""A command without a database ends with a message."""

import pytest

from tests.test_settings import started

AWAY = "postgresql://ashiato:not-for-the-log@127.0.0.1:9/ashiato"


def ended(*command, **environment):
    """Return a failed command's message, which isn't a traceback."""
    done = started("manage.py", *command, **environment)
    assert done.returncode == 1, done
    assert "Traceback" not in done.stderr
    return done.stderr.strip()


@pytest.mark.parametrize(
    "command", [["verify_audit"], ["ask", "hello"], ["erase_person", "ada", "--yes"]]
)
def test_a_database_without_tables_is_told_how_to_get_them(tmp_path, command):
    told = ended(*command, ASHIATO_DATA=str(tmp_path))

    assert told.startswith("The database isn't set up for this version (no such table: ")
    assert told.endswith("Run “python manage.py setup” first.")


def test_a_file_that_is_no_database_is_named(tmp_path):
    (tmp_path / "ashiato.sqlite3").write_text("no database " * 100)

    told = ended("prune", ASHIATO_DATA=str(tmp_path))

    assert f"{tmp_path}/ashiato.sqlite3: file is not a database." in told
    assert "ASHIATO_DATA" in told


@pytest.mark.parametrize("command", [["prune"], ["setup"], ["serve", "--port", "8939"]])
def test_a_server_that_is_away_is_named_without_its_password(tmp_path, command):
    pytest.importorskip("psycopg")

    told = ended(*command, ASHIATO_DATA=str(tmp_path), ASHIATO_DATABASE_URL=AWAY)

    assert told.startswith("Can't use the database at 127.0.0.1/ashiato: ")
    assert "Connection refused" in told
    assert "not-for-the-log" not in told


def test_whoever_wants_to_see_the_whole_error_does(tmp_path):
    done = started("manage.py", "prune", "--traceback", ASHIATO_DATA=str(tmp_path))

    assert "Traceback" in done.stderr
