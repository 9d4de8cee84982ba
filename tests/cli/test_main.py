"""What `ashiato` understands, and who does it."""

import subprocess
import sys

import pytest

from project import folders
from project.cli import main, profiles
from project.cli.errors import CommandFailed
from project.cli.profiles import SignIn


@pytest.fixture
def django_arguments(monkeypatch, config_folder):
    """Return what Django's commands are called with."""
    monkeypatch.delenv("ASHIATO_SERVER", raising=False)
    calls = []
    monkeypatch.setattr("project.commands.execute", calls.append)

    def run(*arguments):
        calls.clear()
        main._run(arguments)
        [call] = calls
        return call[1:]

    return run


@pytest.fixture
def only_engine(monkeypatch):
    """As if the extra `web` weren't installed."""
    monkeypatch.setattr(main, "find_spec", lambda name: None)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["serve", "--port", "9000"], ["serve", "--port", "9000"]),
        (["help"], ["help"]),
        (["ask", "-q", "2+2"], ["ask", "--agent=", "--quiet", "--", "2+2"]),
        (["ask", "--resume", "3"], ["ask", "--agent=", "--resume=3"]),
        (["ask", "--local", "--json", "--", "-3?"], ["ask", "--agent=", "--json", "--", "-3?"]),
        (["ingest", "a.md", "--collection", "HR"], ["ingest", "--collection=HR", "--", "a.md"]),
        (
            ["examples", "run", "Regression", "--agent", "helper", "--min", "0.9"],
            ["run_examples", "--agent=helper", "--min-score=0.9", "--", "Regression"],
        ),
    ],
)
def test_the_local_database_has_djangos_commands(django_arguments, arguments, expected):
    assert django_arguments(*arguments) == expected


@pytest.mark.parametrize(
    "arguments", [["ask"], ["ask", " "], ["ask", "6 * 7", "--resume", "1"]]
)
def test_a_question_or_a_run_to_resume_is_required(config_folder, arguments):
    with pytest.raises(CommandFailed, match="Enter either a question or --resume RUN"):
        main._run(arguments)


@pytest.mark.parametrize("command", [["serve"], ["setup"], ["no_such_command"]])
def test_the_engine_alone_says_how_to_install_the_rest(only_engine, command):
    with pytest.raises(CommandFailed, match=r"pip install 'ashiato\[web\]'") as error:
        main._run(command)
    assert error.value.code == 2


@pytest.mark.parametrize("command", [["ask", "2+2"], ["runs"], ["acp"]])
def test_the_engine_alone_asks_servers_only(only_engine, config_folder, monkeypatch, command):
    monkeypatch.delenv("ASHIATO_SERVER", raising=False)

    with pytest.raises(CommandFailed, match="ashiato login URL"):
        main._run(command)


def test_a_server_without_a_sign_in_is_not_asked(config_folder, monkeypatch):
    monkeypatch.delenv("ASHIATO_API_KEY", raising=False)

    with pytest.raises(CommandFailed, match="ashiato login https://chat.example.org"):
        main._run(["runs", "--server", "https://chat.example.org/chat/"])


def test_the_server_is_the_chosen_one_then_the_environments_then_the_last_one(
    config_folder, monkeypatch
):
    def chosen(*arguments):
        return main._chosen_url(main.build_parser().parse_args(["runs", *arguments]))

    profiles.remember("https://saved.example.org", SignIn(token="a"))
    monkeypatch.setenv("ASHIATO_SERVER", "https://environment.example.org")

    assert chosen("--server", "chosen.example.org") == "https://chosen.example.org"
    assert chosen("--local") == ""
    assert chosen() == "https://environment.example.org"
    monkeypatch.delenv("ASHIATO_SERVER")
    assert chosen() == "https://saved.example.org"


def test_a_server_that_cannot_be_reached_is_named_without_a_traceback(tmp_path):
    ended = run_process("runs", "--server", "http://127.0.0.1:9", home=tmp_path)

    assert ended.returncode == 1
    assert ended.stderr.startswith("Can't reach http://127.0.0.1:9: ")
    assert "Traceback" not in ended.stderr


def test_help_and_version_need_nothing_but_the_standard_library(tmp_path):
    blocked = (
        "import sys\nfor name in ('django', 'pydantic', 'httpx2'): sys.modules[name] = None\n"
    )
    program = blocked + "from project.cli.main import main\nmain()"

    for argument, expected in (("--help", "exit codes:"), ("--version", "ashiato 0.")):
        ended = run_process(argument, home=tmp_path, program=program)
        assert expected in ended.stdout, ended.stderr


def run_process(*arguments, home, program="from project.cli.main import main; main()"):
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=folders.BASE_DIR,
        env={"HOME": str(home), "ASHIATO_API_KEY": "ash_x"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
