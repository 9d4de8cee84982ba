"""Which programs may be started as MCP servers, and what they find around them.

Whoever may set up such a server may run programs on this machine. What they, and those who
look after them, see is the argv; so it has to say what runs. A shell, or an interpreter that
is handed its program as an argument, says nothing.
"""

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath

from agents.engine.errors import ToolError

from .mcp_config import ServerConfig

SHELLS = {
    *("sh", "ash", "bash", "csh", "dash", "fish", "ksh", "mksh", "rbash", "tcsh", "zsh"),
    *("busybox", "toybox", "cmd", "command", "powershell", "pwsh", "wsl", "nu", "xonsh"),
}
# Programs that start another one, or take a program as text.
OTHERS = {
    *("env", "sudo", "su", "doas", "runuser", "setpriv", "pkexec", "chroot", "unshare"),
    *("nsenter", "systemd-run", "xargs", "nohup", "setsid", "ssh", "expect", "socat"),
}
MORE_OTHERS = {
    *("time", "timeout", "nice", "ionice", "stdbuf", "script", "watch", "strace", "ltrace"),
    *("gdb", "find", "parallel", "flock", "taskset", "chrt", "screen", "tmux", "make", "at"),
    *("awk", "gawk", "mawk", "sed", "ed", "vi", "vim", "tclsh", "osascript", "nc", "ncat"),
    *("crontab", "start-stop-daemon", "tar", "rsync", "git", "bwrap", "eval", "exec"),
}
REFUSED = SHELLS | OTHERS | MORE_OTHERS

PYTHON = re.compile(r"(?:python|pypy)[\d.]*w?")
LOADER = re.compile(r"ld(?:-linux.*|-musl.*|\.so.*)")
NODES = {"node", "nodejs", "bun", "deno", "tsx", "ts-node"}
FILE_FIRST = {"perl", "ruby", "php", "lua", "luajit", "rscript", "julia", "java", "groovy"}
RUNNERS = {"npx", "npm", "pnpm", "pnpx", "yarn", "bunx", "uvx", "uv", "pipx"}
CONTAINERS = {"docker", "podman", "nerdctl"}

PYTHON_FLAGS = set("bBdEIOPqRsSuvx")
PYTHON_TAKES_ONE = set("WX")
RUN_TEXT = {"timeit", "pdb", "code", "asyncio", "idlelib", "doctest"}
NODE_FLAGS = {
    *("--no-warnings", "--no-deprecation", "--trace-warnings", "--enable-source-maps"),
    *("--experimental-strip-types", "--experimental-transform-types", "--preserve-symlinks"),
    *("-A", "--allow-all", "--allow-net", "--allow-read", "--allow-env", "--no-prompt"),
}
NODE_VALUES = re.compile(
    r"--(?:max-old-space-size|env-file|conditions|stack-size|tsconfig|dns-result-order"
    r"|allow-(?:net|read|write|env|sys))=.*"
)
NODE_VERBS = {"run", "x", "serve"}
CALLS = {"-c", "--call", "--shell-mode", "--script-shell", "--node-options", "-"}

HOOKS = re.compile(
    r"(?:LD_|DYLD_|GIT_SSH|GIT_EXEC_PATH|BASH_ENV$|ENV$|SHELLOPTS$|BASHOPTS$|PS4$|NODE_OPTIONS$"
    r"|NODE_REPL_|PYTHONSTARTUP$|PYTHONHOME$|PYTHONINSPECT$|PYTHONBREAKPOINT$|PERL5OPT$|PERL5DB$"
    r"|RUBYOPT$|_?JAVA_.*OPTIONS$|JDK_JAVA_OPTIONS$|IFS$"
    r"|NPM_CONFIG_(?:SCRIPT_SHELL|SHELL|NODE_OPTIONS|CALL)$)",
    re.IGNORECASE,
)


class LaunchRefused(ToolError):
    """This program cannot be started as an MCP server."""


def check_launch(config: ServerConfig) -> None:
    """Nothing where it may be started; else raises LaunchRefused with the reason."""
    _program(config)
    for reason in _reasons(config):
        raise LaunchRefused(f"{config.name!r} cannot be started: {reason}.")


def resolved(config: ServerConfig) -> tuple[str, ...]:
    """The argv exactly as it will be run, its program found."""
    return (_program(config), *config.args)


def surroundings(config: ServerConfig, folder: Path) -> dict[str, str]:
    """The whole environment of a server: its own variables, and no other of ours."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": "C.UTF-8",
        "HOME": str(folder / "home"),
        "TMPDIR": str(folder / "tmp"),
        **config.env,
    }


def _program(config: ServerConfig) -> str:
    command = config.command
    if "/" in command and not command.startswith("/"):
        raise LaunchRefused(
            f"{config.name!r} cannot be started: write {command!r} as a name, or as a path "
            "from the root."
        )
    found = shutil.which(command, path=os.environ.get("PATH", os.defpath))
    if not found:
        hint = "; its arguments belong into args" if " " in command.strip() else ""
        raise LaunchRefused(
            f"{config.name!r} cannot be started: there is no program {command!r} here{hint}."
        )
    return found


def _reasons(config: ServerConfig) -> Iterator[str]:
    yield from _hooks(config.env)
    if config.cwd and not (config.cwd.startswith("/") and Path(config.cwd).is_dir()):
        yield f"there is no folder {config.cwd!r}"
    program = _program(config)
    # A link may bear any name: what it leads to counts as well.
    for name in dict.fromkeys([_name(program), _name(os.path.realpath(program))]):
        yield from _refused(name, REFUSED)
        yield from _untold(name, config.args)


def _hooks(env: Mapping[str, str]) -> Iterator[str]:
    for name in env:
        if HOOKS.match(name):
            yield f"the variable {name!r} would make it run more than its argv says"


def _name(path: str) -> str:
    return PurePath(path).name.lower().removesuffix(".exe").removesuffix(".cmd")


def _refused(name: str, names: set[str]) -> Iterator[str]:
    if name in names or LOADER.fullmatch(name):
        yield f"{name!r} runs whatever it is told, so its argv does not say what runs"


def _untold(name: str, args: Sequence[str]) -> Iterator[str]:
    """Where the arguments are a program, or name none."""
    if PYTHON.fullmatch(name):
        yield from _python(name, args)
    elif name in NODES:
        yield from _node(name, args)
    elif name in FILE_FIRST:
        if not args or (args[0].startswith("-") and args[0] != "-jar"):
            yield f"{name} must be given a file first"
    elif name in RUNNERS:
        yield from _runner(name, args)
    elif name in CONTAINERS:
        yield from _container(name, args)


def _python(name: str, args: Sequence[str]) -> Iterator[str]:
    rest = iter(args)
    for arg in rest:
        if arg == "-" or arg.startswith("--"):
            yield f"{name} cannot be given {arg!r} here"
            return
        if not arg.startswith("-"):
            return
        letter = next((sign for sign in arg[1:] if sign not in PYTHON_FLAGS), "")
        after = arg[arg.index(letter) + 1 :] if letter else ""
        if letter == "m":
            yield from _module(name, after or next(rest, ""))
            return
        if letter in PYTHON_TAKES_ONE:
            after or next(rest, "")
        elif letter:
            yield f"{name} may be given a file or -m and a module, not -{letter}"
            return
    yield f"{name} must be given a file, or -m and a module"


def _module(name: str, module: str) -> Iterator[str]:
    if not module:
        yield f"{name} -m must be given a module"
    elif module.partition(".")[0] in RUN_TEXT:
        yield f"{name} -m {module} takes its program as text"


def _node(name: str, args: Sequence[str]) -> Iterator[str]:
    for arg in args:
        if arg in NODE_FLAGS or NODE_VALUES.fullmatch(arg) or arg in NODE_VERBS:
            continue
        if arg.startswith(("-", "data:", "blob:")) or arg == "eval":
            yield f"{name} may be given a file to run, not {arg.partition('=')[0][:40]!r}"
        return
    yield f"{name} must be given a file to run"


def _runner(name: str, args: Sequence[str]) -> Iterator[str]:
    """Package runners: the package is named, and starts neither shell nor loose program."""
    for at, arg in enumerate(args):
        option = arg.partition("=")[0]
        if option in CALLS or (arg.startswith("-c") and not arg.startswith("--")):
            yield f"{name} {option} takes its program as text"
        inner = _name(arg).partition("@")[0]
        yield from _refused(inner, SHELLS | OTHERS)
        is_version = at > 0 and args[at - 1] in {"-p", "--python"}
        if inner not in RUNNERS and not is_version:
            yield from _untold(inner, args[at + 1 :])


def _container(name: str, args: Sequence[str]) -> Iterator[str]:
    for arg in args:
        mounts_all = re.match(r"(?:--volume=|-v=?)?/+:|.*(?:source|src)=/+(?:,|$)", arg)
        if arg.startswith(("--privileged", "--pid=host")) or "docker.sock" in arg or mounts_all:
            yield f"{name} {arg} gives the container this whole machine"
