"""Which programs may be started: those whose argv says what runs."""

import os

import pytest

from agents.tools.mcp_config import ServerConfig
from agents.tools.mcp_launch import LaunchRefused, check_launch, resolved, surroundings

NAMES = (
    *("npx", "npm", "uvx", "uv", "node", "deno", "bun", "docker", "perl", "ruby", "bash", "sh"),
    *("env", "sudo", "xargs", "python3", "python3.12", "cmd", "pwsh", "busybox", "my-server"),
    *("ld-linux-x86-64.so.2", "tsx", "pipx", "time", "java", "php", "nohup", "git"),
)


@pytest.fixture(autouse=True)
def programs(tmp_path, monkeypatch):
    """A PATH where every program is there, whatever this machine has."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in NAMES:
        (folder / name).touch(mode=0o755)
    monkeypatch.setenv("PATH", str(folder))
    return folder


def config(argv, **more):
    command, *args = argv if isinstance(argv, list) else argv.split()
    return ServerConfig(name="x", command=command, args=tuple(args), **more)


@pytest.mark.parametrize(
    "argv",
    [
        "npx -y @modelcontextprotocol/server-everything",
        "npx --yes @scope/server@1.2.3 --port 8080 -e prod",
        "npx -y tsx server.ts",
        "uvx mcp-server-time --local-timezone UTC",
        "uvx --python python3.12 --from git+https://example.com/x mcp-x",
        "uvx --python 3.12 mcp-x -v",
        "uv run --directory /srv/x server.py",
        "uv run python3 -m server",
        "pipx run mcp-server-git",
        "python3 -m mcp_server_time",
        "python3 -I -W ignore -m server -c config.toml",
        "python3.12 /srv/server.py -c config.toml",
        "python3 -Im server",
        "node /srv/server.js -e prod",
        "node --no-warnings --max-old-space-size=512 server.js",
        "deno run --allow-net server.ts",
        "bun run server.ts",
        "perl /srv/server.pl -e x",
        "java -jar server.jar",
        "docker run -i --rm -v /srv/data:/data mcp/fetch",
        "docker run -i --rm mcp/x sh -c x",
        "my-server --flag $(id) ; rm",
    ],
)
def test_a_program_that_says_what_it_runs_is_started(argv):
    check_launch(config(argv))


@pytest.mark.parametrize(
    "argv",
    [
        *("sh -c id", "bash server.sh", "busybox sh", "cmd /c dir", "pwsh -c dir"),
        *("env python3 -m x", "sudo npx x", "xargs -I{} sh", "nohup npx x", "time npx x"),
        *("ld-linux-x86-64.so.2 /bin/sh", "git -c alias.x=!id x"),
        *("python3 -c x", "python3 -Ic x", "python3 -cimport", "python3 -W ignore -c x"),
        *("python3", "python3 -", "python3 -i", "python3 -m", "python3 -m timeit x"),
        *("python3 -X dev -mpdb x", "python3 --help"),
        *("node -e x", "node --eval x", "node --eval=x", "node -p x", "node -pe x", "node"),
        *(
            "node --title x -e y",
            "node --inspect=0.0.0.0 x.js",
            "node --import data:text/x, x.js",
        ),
        *("node -r /x.js y.js", "node data:text/javascript,x", "node - x", "tsx -e x"),
        *("deno eval x", "deno run data:x", "bun -e x", "perl -e x", "ruby -e x", "php -r x"),
        *("npx -c id", "npx --call=id", "npx -y bash", "npx node -e x", "npx node@18 -e x"),
        *("npx -p x -c id", "npm exec -c id", "npm exec -- sh -c id", "uvx python -c x"),
        *("uv run python3 -c x", "uv run -", "uvx --from x env", "npx --script-shell=/x y"),
        *("docker run --privileged x", "docker run -v /:/host x", "docker run -v=/:/h x"),
        "docker run -v /var/run/docker.sock:/s x",
        "docker run --mount type=bind,source=/,target=/h x",
        *("./server", "bin/server", "../x"),
    ],
)
def test_a_launch_that_says_nothing_is_refused(argv):
    with pytest.raises(LaunchRefused, match="^'x' cannot be started: .+[.]$"):
        check_launch(config(argv))


def test_a_link_to_a_shell_is_a_shell(programs):
    (programs / "honest-server").symlink_to(programs / "bash")

    with pytest.raises(LaunchRefused, match="'bash' runs whatever it is told"):
        check_launch(config("honest-server"))
    with pytest.raises(LaunchRefused, match="'bash' runs whatever it is told"):
        check_launch(config([str(programs / "honest-server")]))


@pytest.mark.parametrize(
    "name",
    [
        *("LD_PRELOAD", "ld_preload", "LD_AUDIT", "DYLD_INSERT_LIBRARIES", "NODE_OPTIONS"),
        *("PYTHONSTARTUP", "BASH_ENV", "PERL5OPT", "RUBYOPT", "npm_config_script_shell"),
        *("JAVA_TOOL_OPTIONS", "GIT_SSH_COMMAND"),
    ],
)
def test_variables_that_load_programs_are_refused(name):
    with pytest.raises(LaunchRefused, match=f"the variable '{name}' would make it run more"):
        check_launch(config("npx x", env={name: "/tmp/x"}))


def test_a_program_that_is_not_there_is_said_to_be_missing():
    with pytest.raises(LaunchRefused, match="there is no program 'cheese' here[.]"):
        check_launch(config("cheese"))
    with pytest.raises(LaunchRefused, match="its arguments belong into args"):
        check_launch(config(["npx -y x"]))
    with pytest.raises(LaunchRefused, match="there is no folder '/cheese'"):
        check_launch(config("npx x", cwd="/cheese"))


def test_the_argv_is_shown_as_it_will_be_run(programs):
    assert resolved(config("npx -y x")) == (str(programs / "npx"), "-y", "x")


def test_nothing_of_our_environment_is_passed_on(tmp_path, monkeypatch):
    monkeypatch.setenv("ASHIATO_SECRET_KEY", "sentinel")
    around = surroundings(config("npx x", env={"TZ": "UTC"}), tmp_path)

    assert around == {
        "PATH": os.environ["PATH"],
        "LANG": "C.UTF-8",
        "HOME": str(tmp_path / "home"),
        "TMPDIR": str(tmp_path / "tmp"),
        "TZ": "UTC",
    }
