"""Configuration files in a terminal, e.g. for git."""

import re
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from agents.console.system.config_files.exporter import ExportSelection, export
from agents.console.system.config_files.permissions import TerminalUser
from agents.models import Agent, AuditEntry

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def file(agent, tmp_path):
    path = tmp_path / "ashiato.yaml"
    call_command("export_config", output=path)
    return path


def run_command(*args, **options):
    out = StringIO()
    call_command(*args, stdout=out, **options)
    return out.getvalue()


def test_the_command_writes_the_same_bytes_as_the_console(file, agent):
    text = export(TerminalUser(), ExportSelection())

    assert file.read_text() == text == run_command("export_config")
    assert AuditEntry.objects.filter(action="configuration.exported").count() == 3


def test_only_some_kinds_are_written(agent):
    assert "patterns:" not in run_command("export_config", only="agents,models")
    with pytest.raises(CommandError, match="Unknown type: agnets"):
        run_command("export_config", only="agnets")


def test_a_file_without_changes_exits_with_zero(file):
    unchanged = re.compile(r"[1-9]\d* unchanged, 0 not in the file\.\n")  # and nothing else

    assert unchanged.fullmatch(run_command("import_config", file, dry_run=True))
    assert unchanged.fullmatch(run_command("import_config", file))


def test_a_dry_run_lists_the_changes_and_exits_with_two(file, capsys):
    file.write_text(file.read_text().replace("max_steps: 10", "max_steps: 12"))
    with pytest.raises(SystemExit) as end:
        call_command("import_config", file, dry_run=True)

    assert end.value.code == 2
    assert "changed: agents helper\n  max_steps: 10 → 12\n" in capsys.readouterr().out
    assert Agent.objects.get().max_steps == 10


def test_an_import_needs_confirmation(file):
    file.write_text(file.read_text().replace("max_steps: 10", "max_steps: 12"))
    with pytest.raises(CommandError, match="add --yes"):
        run_command("import_config", file)

    assert "Imported." in run_command("import_config", file, yes=True)
    assert Agent.objects.get().max_steps == 12


def test_errors_have_their_line_and_exit_with_one(file, capsys):
    file.write_text("ashiato: 1\nagents:\n  helper:\n    max_steps: 0\n")
    with pytest.raises(CommandError) as end:
        call_command("import_config", file, yes=True)

    assert end.value.returncode == 1
    assert "line 4: Ensure this value is greater" in capsys.readouterr().out


@pytest.mark.parametrize("data", [b"\xff\xfe", None])
def test_an_unreadable_file_is_an_error(tmp_path, data):
    path = tmp_path / "file"
    if data:
        path.write_bytes(data)

    with pytest.raises(CommandError, match="isn't UTF-8|Can't read"):
        call_command("import_config", str(path))
