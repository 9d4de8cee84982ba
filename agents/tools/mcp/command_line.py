"""What a command line starts: a program, a script, a package or a container."""

import itertools
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from .config import ServerConfig
from .options import (
    BUNX,
    CONTAINER,
    DLX,
    FOLDER_OPTIONS,
    NPX,
    PIPX,
    UV,
    UV_RUN,
    UVX,
    Options,
    UnsafeCommand,
    parse_options,
)

SHELLS = {
    *("sh", "ash", "bash", "csh", "dash", "fish", "ksh", "mksh", "rbash", "tcsh", "zsh"),
    *("busybox", "toybox", "cmd", "command", "powershell", "pwsh", "wsl", "nu", "xonsh"),
}
# Programs that start another one, or take one as text.
WRAPPERS = {
    *("env", "sudo", "su", "doas", "runuser", "setpriv", "pkexec", "chroot", "unshare"),
    *("nsenter", "systemd-run", "xargs", "nohup", "setsid", "ssh", "expect", "socat"),
}
COMMAND_RUNNERS = {
    *("time", "timeout", "nice", "ionice", "stdbuf", "script", "watch", "strace", "ltrace"),
    *("gdb", "find", "parallel", "flock", "taskset", "chrt", "screen", "tmux", "make", "at"),
    *("awk", "gawk", "mawk", "sed", "ed", "vi", "vim", "tclsh", "osascript", "nc", "ncat"),
    *("crontab", "start-stop-daemon", "tar", "rsync", "git", "bwrap", "eval", "exec"),
}
FORBIDDEN_PROGRAMS = SHELLS | WRAPPERS | COMMAND_RUNNERS
PYTHON_NAME = re.compile(r"(?:python|pypy)[\d.]*w?")
LOADER_NAME = re.compile(r"ld(?:-linux.*|-musl.*|\.so.*)")
NODE_PROGRAMS = {"node", "nodejs", "bun", "deno", "tsx", "ts-node"}
SCRIPT_INTERPRETERS = {
    "perl",
    "ruby",
    "php",
    "lua",
    "luajit",
    "rscript",
    "julia",
    "java",
    "groovy",
}
DIRECT_RUNNERS: dict[str, Options] = {"npx": NPX, "bunx": BUNX, "pnpx": DLX, "uvx": UVX}
# Their subcommands that run a package.
RUNNERS: dict[str, dict[tuple[str, ...], Options]] = {
    "npm": {("exec",): NPX, ("x",): NPX},
    "pnpm": {("dlx",): DLX},
    "yarn": {("dlx",): DLX},
    "uv": {("run",): UV_RUN, ("tool", "run"): UVX},
    "pipx": {("run",): PIPX},
}
CONTAINER_ENGINES = {"docker", "podman", "nerdctl"}
PYTHON_FLAGS = set("bBdEIOPqRsSuvx")
# Options that import nothing and read no file.
PYTHON_WARNING = re.compile(r"(?:ignore|default|error|always|module|once)(?:::[A-Z]\w*)?")
PYTHON_X_OPTION = re.compile(r"dev|utf8(?:=[01])?|faulthandler|importtime|tracemalloc(?:=\d+)?")
PYTHON_VALUE_FLAGS = {"W": PYTHON_WARNING, "X": PYTHON_X_OPTION}
CODE_MODULES = {"timeit", "pdb", "code", "asyncio", "idlelib", "doctest", "runpy", "cProfile"}
NODE_FLAGS = {
    *("--no-warnings", "--no-deprecation", "--trace-warnings", "--enable-source-maps"),
    *("--experimental-strip-types", "--experimental-transform-types", "--preserve-symlinks"),
    *("-A", "--allow-all", "--allow-net", "--allow-read", "--allow-env", "--no-prompt"),
}
NODE_VALUES = re.compile(
    r"--(?:max-old-space-size|conditions|stack-size|dns-result-order"
    r"|allow-(?:net|read|write|env|sys))=.*"
)
NODE_VERBS = {"run", "x", "serve"}
PACKAGE_ADDRESS = re.compile(
    r"@[\w.-]+/[\w.-]+(?:@|$)|(?:git\+)?https?://|git\+ssh://|git(?:hub|lab):"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What an argv runs: files, packages or an image."""

    files: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    image: str = ""
    mounts: tuple[str, ...] = field(default=())


def is_container(config: ServerConfig) -> bool:
    """Whether a container engine runs it, which isolates it already."""
    return program_name(config.command) in CONTAINER_ENGINES


def is_launcher(name: str) -> bool:
    """Whether this is a known interpreter, package runner or container engine."""
    known = {*DIRECT_RUNNERS, *RUNNERS, *CONTAINER_ENGINES, *NODE_PROGRAMS}
    return name in known or bool(PYTHON_NAME.fullmatch(name))


def launch_target(command: str, args: Sequence[str]) -> str:
    """Return what an argv runs: its image, package, file or module, or else its program."""
    try:
        launch = parse_launch(program_name(command), args)
    except UnsafeCommand:
        return command
    module = [after for arg, after in itertools.pairwise(args) if arg == "-m"]
    found = (launch.image, *launch.packages, *module, *launch.files, command)
    return next(filter(None, found))


def downloads_packages(config: ServerConfig) -> bool:
    """Whether the first start may take long, because it downloads what it runs."""
    name = program_name(config.command)
    return name in DIRECT_RUNNERS or name in RUNNERS or name in CONTAINER_ENGINES


def script_paths(config: ServerConfig) -> list[str]:
    """Return the script and project folders named in its argv, which it must read."""
    launch = parse_launch(program_name(config.command), config.args)
    return [path for path in launch.files if path.startswith("/") and Path(path).exists()]


def find_program(config: ServerConfig) -> str:
    command = config.command
    if "/" in command and not command.startswith("/"):
        raise UnsafeCommand(
            f"the command {command!r} must be a program name or an absolute path"
        )
    found = shutil.which(command, path=os.environ.get("PATH", os.defpath))
    if not found:
        missing = f"the program {command!r} wasn't found on this server"
        hint = f"{missing}; put its arguments in args"
        raise UnsafeCommand(hint if " " in command.strip() else missing)
    return found


def program_name(path: str) -> str:
    return PurePath(path).name.lower().removesuffix(".exe").removesuffix(".cmd")


def check_allowed(name: str, names: set[str]) -> None:
    if name in names or LOADER_NAME.fullmatch(name):
        raise UnsafeCommand(
            f"{name!r} can run any program, so its arguments don't say what runs"
        )


def parse_launch(name: str, args: Sequence[str]) -> Launch:
    """Return what these arguments run; raise UnsafeCommand if they don't say."""
    if PYTHON_NAME.fullmatch(name):
        return _parse_python(name, args)
    if name in NODE_PROGRAMS:
        return _parse_node(name, args)
    if name in SCRIPT_INTERPRETERS:
        return _parse_script(name, args)
    if name in DIRECT_RUNNERS:
        return _parse_package(name, args, DIRECT_RUNNERS[name])
    if name in RUNNERS:
        return _parse_runner(name, args)
    if name in CONTAINER_ENGINES:
        return _parse_container(name, args)
    return Launch()


def _parse_script(name: str, args: Sequence[str]) -> Launch:
    rest = args[1:] if args and (name, args[0]) == ("java", "-jar") else args
    if not rest or rest[0].startswith("-"):
        raise UnsafeCommand(f"{name} needs a file as its first argument")
    return Launch(files=(rest[0],))


def _parse_python(name: str, args: Sequence[str]) -> Launch:
    rest = iter(args)
    for arg in rest:
        if arg == "-" or arg.startswith("--"):
            raise UnsafeCommand(f"{name} can't be used with {arg!r}")
        if not arg.startswith("-"):
            return Launch(files=(arg,))
        letter = next((sign for sign in arg[1:] if sign not in PYTHON_FLAGS), "")
        after = arg[arg.index(letter) + 1 :] if letter else ""
        if letter == "m":
            _check_module(name, after or next(rest, ""))
            return Launch()
        if letter in PYTHON_VALUE_FLAGS:
            value = after or next(rest, "")
            if not PYTHON_VALUE_FLAGS[letter].fullmatch(value):
                raise UnsafeCommand(f"{name} can't be used with -{letter} {value[:40]!r}")
        elif letter:
            raise UnsafeCommand(f"{name} needs a file, or -m and a module, not -{letter}")
    raise UnsafeCommand(f"{name} needs a file, or -m and a module")


def _check_module(name: str, module: str) -> None:
    if not module:
        raise UnsafeCommand(f"{name} -m needs a module")
    if module.partition(".")[0] in CODE_MODULES:
        raise UnsafeCommand(f"{name} -m {module} runs code from its arguments")


def _parse_node(name: str, args: Sequence[str]) -> Launch:
    verb = ""
    for number, arg in enumerate(args):
        if arg in NODE_FLAGS or NODE_VALUES.fullmatch(arg):
            continue
        if arg in NODE_VERBS and not verb:
            verb = arg
            continue
        if arg.startswith(("-", "data:", "blob:")) or arg == "eval":
            option = arg.partition("=")[0][:40]
            raise UnsafeCommand(f"{name} needs a file to run, not {option!r}")
        if name == "bun" and verb:  # which also looks for programs and packages
            check_allowed(program_name(arg), FORBIDDEN_PROGRAMS)
            parse_launch(program_name(arg), args[number + 1 :])
        is_package = verb == "x" or arg.startswith(("npm:", "jsr:", "https:", "http:"))
        return Launch(packages=(arg,)) if is_package else Launch(files=(arg,))
    raise UnsafeCommand(f"{name} needs a file to run")


def _parse_runner(name: str, args: Sequence[str]) -> Launch:
    """Parse package runners with subcommands, such as `uv run`."""
    rest = list(args)
    found: tuple[str, ...] = ()
    if name == "uv":
        parsed = parse_options(name, args, UV)
        rest, found = list(parsed.rest), parsed.of(*FOLDER_OPTIONS)
    for verb, options in RUNNERS[name].items():
        if tuple(rest[: len(verb)]) == verb:
            launch = _parse_package(f"{name} {' '.join(verb)}", rest[len(verb) :], options)
            return Launch(files=(*found, *launch.files), packages=launch.packages)
    verbs = " or ".join(f"{name} {' '.join(verb)}" for verb in RUNNERS[name])
    raise UnsafeCommand(f"{name} can only be used as {verbs}")


def _parse_package(name: str, args: Sequence[str], options: Options) -> Launch:
    """Parse a package runner; the package must be named and not be a shell or code."""
    parsed = parse_options(name, args, options)
    packages, files = parsed.of(*options.packages), parsed.of(*FOLDER_OPTIONS)
    module = parsed.of("-m", "--module")
    if module:
        _check_module(name, module[0])
        return Launch(files=files, packages=packages)
    if not parsed.rest:
        raise UnsafeCommand(f"{name} needs a package")
    what, *rest = parsed.rest
    if name.startswith("npm "):  # which also takes options after the package
        own = rest[: rest.index("--")] if "--" in rest else rest
        if any(arg.startswith("-") for arg in own):
            raise UnsafeCommand(f"put -- before the arguments of {what!r}")
    is_any_program = name == "uv run"
    if not is_any_program and not packages and PACKAGE_ADDRESS.match(what):
        # A package by its scope or URL has its own program, also if it is named like another.
        return Launch(files=files, packages=(what,))
    inner = re.split(r"[@=<>~! ]", program_name(what))[0]
    check_allowed(inner, FORBIDDEN_PROGRAMS if is_any_program else SHELLS | WRAPPERS)
    inside = parse_launch(inner, rest)
    files = (*files, *inside.files, *([what] if is_any_program else []))
    named = () if is_any_program or packages else (what,)
    return Launch(files=files, packages=(*packages, *named, *inside.packages))


def _parse_container(name: str, args: Sequence[str]) -> Launch:
    rest = list(args)
    if rest[:1] == ["container"]:
        rest = rest[1:]
    if not rest or rest[0] != "run":
        what = repr(rest[0][:40]) if rest else "nothing"
        raise UnsafeCommand(f"{name} can only be used as {name} run, not with {what}")
    parsed = parse_options(f"{name} run", rest[1:], CONTAINER)
    if not parsed.rest:
        raise UnsafeCommand(f"{name} run needs an image")
    mounts = (*parsed.of("-v", "--volume"), *map(_mount_source, parsed.of("--mount")))
    return Launch(image=parsed.rest[0], mounts=mounts)


def _mount_source(mount: str) -> str:
    """Return what `--mount` takes from this machine, in `--volume` syntax."""
    parts: Mapping[str, str] = {
        key.strip().lower(): value
        for key, _, value in (part.partition("=") for part in mount.split(","))
    }
    if parts.get("type", "volume") not in {"bind", "volume", "tmpfs"}:
        raise UnsafeCommand(f"--mount {mount[:60]!r} has an unsupported type")
    return parts.get("source", parts.get("src", ""))


def all_options() -> Iterator[tuple[str, Options]]:
    """Yield each launcher with its allowed options, for docs and tests."""
    yield from DIRECT_RUNNERS.items()
    for name, verbs in RUNNERS.items():
        for verb, options in verbs.items():
            yield f"{name} {' '.join(verb)}", options
    yield "docker run", CONTAINER
