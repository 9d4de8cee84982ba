"""Which programs may be started: those whose argv says what runs."""

import os

import pytest

from agents.tools.mcp.configuration import variables
from agents.tools.mcp.configuration.config import Sandbox, ServerConfig
from agents.tools.mcp.process import sandbox
from agents.tools.mcp.process.launch import (
    LaunchRefused,
    build_environment,
    check_launch,
    launch_warnings,
    refusals,
    resolve_argv,
)

NAMES = (
    *(
        "npx",
        "npm",
        "pnpm",
        "yarn",
        "bunx",
        "uvx",
        "uv",
        "node",
        "deno",
        "bun",
        "docker",
        "perl",
        "ruby",
        "bash",
        "sh",
    ),
    *("env", "sudo", "xargs", "python3", "python3.12", "cmd", "pwsh", "busybox", "my-server"),
    *("ld-linux-x86-64.so.2", "tsx", "pipx", "time", "java", "php", "nohup", "git"),
)


# Options that read files, reach other hosts or open a container.
OPENING = """
docker run --env-file /etc/x i
docker run --env-file=/etc/x i
docker ps
docker --host tcp://far:2375 run i
docker -H tcp://far run i
docker -Hfar run i
docker --context far run i
docker --config /x run i
docker -c far run i
docker run --volumes-from other i
docker run --pid=host i
docker run --pid host i
docker run --network=host i
docker run --net host i
docker run --ipc=host i
docker run --network container:x i
docker run --userns=host i
docker run --cap-add SYS_ADMIN i
docker run --device /dev/sda i
docker run -i
docker run --security-opt seccomp=unconfined i
docker run --privileged=true i
docker run --label-file /x i
docker run --cidfile /x i
docker exec x sh
docker run -v /etc:/etc i
docker run -v ./x:/x i
docker run -v /var/run:/r i
docker run -v /run/docker.sock:/s i
docker run -v /srv/a.sock:/s i
docker run --mount type=bind,src=/etc,dst=/e i
docker compose run x
docker run --mount type=image,source=x,target=/x i
docker run -p 80:80 i
npx --registry=https://far x
npx --registry https://far x
npx --userconfig /x y
npx --prefix /x y
npx --node-options=-r/x y
npx --globalconfig=/x y
npm --registry=https://far exec x
npm exec x --registry=https://far
npm run x
npm exec --prefix /x y
pnpm --dir /x dlx y
pnpm exec x
yarn run x
npx
pnpm dlx --registry=https://far x
bunx --registry x y
bunx --config=/x y
uvx --index-url https://far x
uvx -i https://far x
uvx --index=https://far x
uvx --extra-index-url x y
uvx --default-index x y
uvx --find-links /x y
uvx --env-file /x y
uvx --with-requirements /x y
uvx --config-file /x y
uvx --constraints /x y
uvx -c /x y
uvx --python /tmp/python x
uvx -f /x y
uv run --env-file /x y
uv --config-file /x run y
uv pip install x
uv run
uv run --directory x y
uv run bash
uv run git x
uv run python3 -X presite=x y
pipx run --pip-args=-ix y
pipx run --index-url x y
pipx install x
node --env-file=/x y.js
node --env-file-if-exists=/x y.js
node --require /x y.js
node --import /x y.js
node --loader /x y.js
bun --preload /x y.ts
bun --env-file=/x y.ts
deno run --env-file=/x y.ts
deno run --config /x y.ts
python3 -X presite=x y.py
python3 -W error::x.Y y.py
java -javaagent:x -jar y
"""


@pytest.fixture(autouse=True)
def programs(tmp_path, monkeypatch):
    """A PATH with every program, independent of this machine."""
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
        "docker run -it --rm --init --read-only -e KEY --env=A=b --network none mcp/x:1",
        "docker container run -i --cap-drop ALL --security-opt no-new-privileges mcp/x",
        "docker run -i --mount type=bind,src=/srv/data,dst=/data,readonly mcp/x --host h",
        "docker run -i -v cache:/cache mcp/x --privileged",
        "npx -y x --registry https://its.own -r y --userconfig z",
        "npm exec --yes x -- --registry y",
        "pnpm dlx x --registry y",
        "uvx x --index-url y",
        "uv --directory /srv/x run server.py --env-file y",
        "uv run --with httpx==0.28.1 -m server",
        "uv tool run x",
        "pipx run --spec x==1.0 x --pip-args y",
        "node server.js --env-file y --require z",
        "my-server --flag $(id) ; rm",
        # Paths and packages that are named like a program.
        "npx -y mcp-files /srv/data/env",
        "npx -y mcp-files --root /opt/python --shell /srv/bash",
        "npx -y @scope/env /srv/data/python",
        "npx -y @scope/node@1.2 -e prod",
        "npx -y @scope/python -c x",
        "uvx --from git+https://h/env mcp-x /srv/env",
        "uvx git+https://h/python --directory /opt/python",
        "uv --directory /opt/python run server.py",
        "uv run --directory /srv/data/env server.py /srv/data/env",
        "python3 /srv/data/env",
        "python3 -m server --directory /opt/python",
        "node /srv/data/env /opt/bash",
        "my-server --directory /opt/python /srv/data/env -c x",
        "docker run -i -v /srv/data/env:/env mcp/python env",
        "bun x my-mcp-command /srv/data/env",
        "bunx -y my-mcp-command",
    ],
)
def test_a_program_with_a_clear_argv_is_allowed(argv):
    assert [*refusals(config(argv))] == []


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
        *("npx -p @scope/x env", "npx -y /opt/env id", "npx -y ./env id", "uvx /opt/env id"),
        *("bun x bash -c id", "bun run env id", "bun x node -e x"),
        *("./server", "bin/server", "../x"),
        *OPENING.strip().splitlines(),
    ],
)
def test_a_launch_that_hides_what_runs_is_rejected(argv):
    with pytest.raises(LaunchRefused, match="^'x' can't start: .+[.]$"):
        check_launch(config(argv))


def test_a_link_to_a_shell_is_rejected_as_a_shell(programs):
    (programs / "honest-server").symlink_to(programs / "bash")

    with pytest.raises(LaunchRefused, match="'bash' can run any program"):
        check_launch(config("honest-server"))
    with pytest.raises(LaunchRefused, match="'bash' can run any program"):
        check_launch(config([str(programs / "honest-server")]))


def test_a_symlinked_program_is_judged_by_the_name_it_is_called_by(programs):
    (programs / "bunx").unlink()
    (programs / "bunx").symlink_to(programs / "bun")
    (programs / "uvx").unlink()
    (programs / "uvx").symlink_to(programs / "uv")

    assert [*refusals(config("bunx -y my-server"))] == []
    assert [*refusals(config("uvx mcp-server-time"))] == []
    with pytest.raises(LaunchRefused, match="'env' can run any program"):
        check_launch(config("uvx --from x env"))


@pytest.mark.parametrize(
    "name",
    [
        *("LD_PRELOAD", "ld_preload", "LD_AUDIT", "DYLD_INSERT_LIBRARIES", "NODE_OPTIONS"),
        *("PYTHONSTARTUP", "BASH_ENV", "PERL5OPT", "RUBYOPT", "npm_config_script_shell"),
        *("JAVA_TOOL_OPTIONS", "GIT_SSH_COMMAND", "GIT_EXTERNAL_DIFF", "GIT_CONFIG_COUNT"),
        *("PYTHONPATH", "PYTHONHOME", "NODE_PATH", "ENV", "IFS", "DYLD_LIBRARY_PATH"),
        *("npm_config_registry", "NPM_CONFIG_USERCONFIG", "UV_INDEX_URL", "UV_DEFAULT_INDEX"),
        *("PIP_INDEX_URL", "DOCKER_HOST", "CONTAINER_HOST", "PERL5LIB", "RUBYLIB", "CLASSPATH"),
        *("YARN_RC_FILENAME", "GCONV_PATH", "OPENSSL_CONF", "SHELL", "XDG_CONFIG_HOME"),
    ],
)
def test_variables_that_load_programs_are_rejected(name):
    with pytest.raises(
        LaunchRefused, match=f"the environment variable '{name}' could make it run other"
    ):
        check_launch(config("npx x", env={name: "/tmp/x"}))


@pytest.mark.parametrize("name", ["PATH", "path", "HOME", "TMPDIR"])
def test_reserved_variables_are_rejected(name):
    with pytest.raises(
        LaunchRefused, match=f"the environment variable '{name}' is set automatically"
    ) as refusal:
        check_launch(config("npx x", env={name: "/tmp/x"}))
    assert refusal.value.field == "env"


@pytest.mark.parametrize(
    "name",
    [
        *("GITHUB_TOKEN", "API_KEY", "DB_PATH", "MEMORY_FILE_PATH", "PYTHONUNBUFFERED", "TZ"),
        *("NODE_ENV", "NODE_EXTRA_CA_CERTS", "HTTPS_PROXY", "GIT_AUTHOR_NAME", "LOG_LEVEL"),
        *("npm_config_loglevel", "ENVIRONMENT", "PATHS", "LDAP_URL", "UVICORN_PORT"),
    ],
)
def test_ordinary_variables_are_accepted(name):
    assert [*refusals(config("npx x", env={name: "x"}))] == []


@pytest.mark.parametrize("argv", ["my-server {}", "npx x --root={}", "docker run -v {}:/d x"])
def test_the_data_folder_is_rejected_as_an_argument(argv, tmp_path):
    ours = tmp_path / "data"
    hidden = Sandbox(hidden=(str(ours),))
    wanted = config(argv.format(ours / "mcp" / ".." / "x"), sandbox=hidden)

    with pytest.raises(LaunchRefused, match="is inside this server's data folder"):
        check_launch(wanted)


def test_a_container_cannot_mount_a_parent_of_the_data_folder(tmp_path):
    hidden = Sandbox(hidden=(str(tmp_path / "data"),))

    with pytest.raises(LaunchRefused, match="in a container"):
        check_launch(config(f"docker run -v {tmp_path}:/x i", sandbox=hidden))


@pytest.mark.parametrize(
    ("argv", "loose"),
    [
        ("npx -y x", ["x"]),
        ("npx -y @scope/x@latest", ["@scope/x@latest"]),
        ("npx -y @scope/x@^1.2.3", ["@scope/x@^1.2.3"]),
        ("npx -p a@1.0.0 -p b tool", ["b"]),
        ("npx -y github:a/b", ["github:a/b"]),
        ("uvx x", ["x"]),
        ("uvx --from x>=1 y", ["x>=1"]),
        ("uvx --from git+https://h/x y", ["git+https://h/x"]),
        ("pipx run x", ["x"]),
        ("docker run mcp/x", ["mcp/x"]),
        ("docker run reg:5000/x:latest", ["reg:5000/x:latest"]),
        ("npx -y @scope/x@1.2.3", []),
        ("uvx x==1.2", []),
        ("uvx x@1.2.3", []),
        (f"uvx --from git+https://h/x@{'a' * 40} y", []),
        ("docker run mcp/x:1.2", []),
        (f"docker run mcp/x@sha256:{'a' * 64}", []),
        ("python3 -m server", []),
        ("uv run server.py", []),
    ],
)
def test_a_package_without_a_version_has_a_warning(argv, loose):
    warned = launch_warnings(config(argv))

    assert [sentence.partition(" has no pinned version")[0] for sentence in warned] == loose


def test_long_arguments_have_a_warning_and_the_longest_are_rejected():
    assert "20,000 characters" in launch_warnings(config(["python3", "x.py", "x" * 19_996]))[0]
    check_launch(config(["python3", "x.py", "x" * 100_000]))
    with pytest.raises(LaunchRefused, match="item 2 is longer than 100,000 bytes") as refusal:
        check_launch(config(["python3", "x.py", "x" * 100_001]))
    assert refusal.value.field == "args"


def test_a_missing_program_is_reported():
    with pytest.raises(
        LaunchRefused, match="the program 'cheese' wasn't found on this server[.]"
    ):
        check_launch(config("cheese"))
    with pytest.raises(LaunchRefused, match="put its arguments in args"):
        check_launch(config(["npx -y x"]))
    with pytest.raises(LaunchRefused, match="the folder '/cheese' doesn't exist"):
        check_launch(config("npx x", cwd="/cheese"))


def test_the_displayed_argv_is_the_one_that_runs(programs):
    assert resolve_argv(config("npx -y x")) == (str(programs / "npx"), "-y", "x")


@pytest.fixture
def no_network_variables(monkeypatch):
    for name in variables.inherited_variables():
        monkeypatch.delenv(name)


@pytest.mark.usefixtures("no_network_variables")
def test_the_environment_is_not_passed_on(tmp_path, monkeypatch):
    monkeypatch.setenv("ASHIATO_SECRET_KEY", "sentinel")
    around = build_environment(config("npx x", env={"TZ": "UTC"}), tmp_path)

    assert around == {
        "PATH": os.environ["PATH"],
        "LANG": "C.UTF-8",
        "HOME": str(tmp_path / "home"),
        "TMPDIR": str(tmp_path / "tmp"),
        "TZ": "UTC",
    }


@pytest.mark.usefixtures("no_network_variables")
def test_a_program_inherits_how_to_reach_the_network_and_package_indexes(tmp_path, monkeypatch):
    inherited = {
        "https_proxy": "http://ann:proxy-password@proxy.example:3128",
        "NO_PROXY": "localhost,[::1]",
        "SSL_CERT_FILE": "/opt/company/ca.pem",
        "NODE_EXTRA_CA_CERTS": "/opt/company/ca.pem",
        "UV_DEFAULT_INDEX": "https://index.example/simple",
        "UV_INDEX_COMPANY_PASSWORD": "index-password",
        "npm_config_registry": "https://npm.example/",
    }
    others = {
        "ASHIATO_ENCRYPTION_KEYS": "sentinel",
        "OPENAI_API_KEY": "sentinel",
        "UV_CACHE_DIR": "/root/.cache/uv",
        "UV_PUBLISH_TOKEN": "sentinel",
        "npm_config_userconfig": "/root/.npmrc",
    }
    for name, value in {**inherited, **others}.items():
        monkeypatch.setenv(name, value)
    server = config("npx x", env={"NO_PROXY": "of-the-server"})

    environment = build_environment(server, tmp_path)

    names = set(environment) - {"PATH", "LANG", "HOME", "TMPDIR"}
    assert {name: environment[name] for name in names} == {
        **inherited,
        "NO_PROXY": "of-the-server",
    }
    assert {"proxy-password", "index-password"} <= {*server.credentials} & {*server.secrets}
    assert "/opt/company/ca.pem" in sandbox._readable_paths(server)
