"""What a command line starts: a program, a script, a package or a container."""

import itertools
import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from agents.engine.sentences import Sentence as _

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
    "ash",
    "bash",
    "busybox",
    "cmd",
    "command",
    "csh",
    "dash",
    "fish",
    "ksh",
    "mksh",
    "nu",
    "powershell",
    "pwsh",
    "rbash",
    "sh",
    "tcsh",
    "toybox",
    "wsl",
    "xonsh",
    "zsh",
}
# Programs that start another one, or take one as text.
WRAPPERS = {
    "chroot",
    "doas",
    "env",
    "expect",
    "nohup",
    "nsenter",
    "pkexec",
    "runuser",
    "setpriv",
    "setsid",
    "socat",
    "ssh",
    "su",
    "sudo",
    "systemd-run",
    "unshare",
    "xargs",
}
COMMAND_RUNNERS = {
    "at",
    "awk",
    "bwrap",
    "chrt",
    "crontab",
    "ed",
    "eval",
    "exec",
    "find",
    "flock",
    "gawk",
    "gdb",
    "git",
    "ionice",
    "ltrace",
    "make",
    "mawk",
    "nc",
    "ncat",
    "nice",
    "osascript",
    "parallel",
    "rsync",
    "screen",
    "script",
    "sed",
    "start-stop-daemon",
    "stdbuf",
    "strace",
    "tar",
    "taskset",
    "tclsh",
    "time",
    "timeout",
    "tmux",
    "vi",
    "vim",
    "watch",
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
    "--allow-all",
    "--allow-env",
    "--allow-net",
    "--allow-read",
    "--enable-source-maps",
    "--experimental-strip-types",
    "--experimental-transform-types",
    "--no-deprecation",
    "--no-prompt",
    "--no-warnings",
    "--preserve-symlinks",
    "--trace-warnings",
    "-A",
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
    launchers = {*DIRECT_RUNNERS, *RUNNERS, *CONTAINER_ENGINES, *NODE_PROGRAMS}
    return name in launchers or bool(PYTHON_NAME.fullmatch(name))


def launch_target(command: str, args: Sequence[str]) -> str:
    """Return what an argv runs: its image, package, file or module, or else its program."""
    try:
        launch = parse_launch(program_name(command), args)
    except UnsafeCommand:
        return command
    modules = [value for arg, value in itertools.pairwise(args) if arg == "-m"]
    targets = (launch.image, *launch.packages, *modules, *launch.files, command)
    return next(filter(None, targets))


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
            _(
                "the command %(command)s must be a program name or an absolute path",
                command=repr(command),
            )
        )
    program = shutil.which(command, path=os.environ.get("PATH", os.defpath))
    if not program:
        missing = _(
            "the program %(program)s wasn't found on this server", program=repr(command)
        )
        hint = _("%(sentence)s; put its arguments in args", sentence=missing)
        raise UnsafeCommand(hint if " " in command.strip() else missing)
    return program


def program_name(path: str) -> str:
    return PurePath(path).name.lower().removesuffix(".exe").removesuffix(".cmd")


def check_allowed(name: str, names: set[str]) -> None:
    if name in names or LOADER_NAME.fullmatch(name):
        raise UnsafeCommand(
            _(
                "%(name)s can run any program, so its arguments don't say what runs",
                name=repr(name),
            )
        )


def parse_launch(name: str, args: Sequence[str]) -> Launch:
    """Return what these arguments run; raise UnsafeCommand if they don't say."""
    if PYTHON_NAME.fullmatch(name):
        return _parse_python(name, args)
    if name in NODE_PROGRAMS:
        return _parse_node(name, args)
    if name in SCRIPT_INTERPRETERS:
        files = args[1:] if args and (name, args[0]) == ("java", "-jar") else args
        if not files or files[0].startswith("-"):
            raise UnsafeCommand(_("%(name)s needs a file as its first argument", name=name))
        return Launch(files=(files[0],))
    if name in DIRECT_RUNNERS:
        return _parse_package(name, args, DIRECT_RUNNERS[name])
    if name in RUNNERS:
        return _parse_runner(name, args)
    if name in CONTAINER_ENGINES:
        return _parse_container(name, args)
    return Launch()


def _parse_python(name: str, args: Sequence[str]) -> Launch:
    remaining = iter(args)
    for arg in remaining:
        if arg == "-" or arg.startswith("--"):
            raise UnsafeCommand(
                _("%(name)s can't be used with %(option)s", name=name, option=repr(arg))
            )
        if not arg.startswith("-"):
            return Launch(files=(arg,))
        letter = next((char for char in arg[1:] if char not in PYTHON_FLAGS), "")
        value = arg[arg.index(letter) + 1 :] if letter else ""
        if letter == "m":
            _check_module(name, value or next(remaining, ""))
            return Launch()
        if letter in PYTHON_VALUE_FLAGS:
            value = value or next(remaining, "")
            if not PYTHON_VALUE_FLAGS[letter].fullmatch(value):
                raise UnsafeCommand(
                    _(
                        "%(name)s can't be used with -%(option)s %(value)s",
                        name=name,
                        option=letter,
                        value=repr(value[:40]),
                    )
                )
        elif letter:
            raise UnsafeCommand(
                _(
                    "%(name)s needs a file, or -m and a module, not -%(option)s",
                    name=name,
                    option=letter,
                )
            )
    raise UnsafeCommand(_("%(name)s needs a file, or -m and a module", name=name))


def _check_module(name: str, module: str) -> None:
    if not module:
        raise UnsafeCommand(_("%(name)s -m needs a module", name=name))
    if module.partition(".")[0] in CODE_MODULES:
        raise UnsafeCommand(
            _("%(name)s -m %(module)s runs code from its arguments", name=name, module=module)
        )


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
            raise UnsafeCommand(
                _(
                    "%(name)s needs a file to run, not %(option)s",
                    name=name,
                    option=repr(option),
                )
            )
        if name == "bun" and verb:  # which also looks for programs and packages
            check_allowed(program_name(arg), FORBIDDEN_PROGRAMS)
            parse_launch(program_name(arg), args[number + 1 :])
        is_package = verb == "x" or arg.startswith(("npm:", "jsr:", "https:", "http:"))
        return Launch(packages=(arg,)) if is_package else Launch(files=(arg,))
    raise UnsafeCommand(_("%(name)s needs a file to run", name=name))


def _parse_runner(name: str, args: Sequence[str]) -> Launch:
    """Parse package runners with subcommands, such as `uv run`."""
    arguments = tuple(args)
    folders: tuple[str, ...] = ()
    if name == "uv":
        parsed = parse_options(name, args, UV)
        arguments = parsed.arguments
        folders = parsed.of(*FOLDER_OPTIONS)
    for verb, options in RUNNERS[name].items():
        if arguments[: len(verb)] == verb:
            command = f"{name} {' '.join(verb)}"
            launch = _parse_package(command, arguments[len(verb) :], options)
            return Launch(files=(*folders, *launch.files), packages=launch.packages)
    verbs = " or ".join(f"{name} {' '.join(verb)}" for verb in RUNNERS[name])
    raise UnsafeCommand(
        _("%(name)s can only be used as %(commands)s", name=name, commands=verbs)
    )


def _parse_package(name: str, args: Sequence[str], options: Options) -> Launch:
    """Parse a package runner; the package must be named and not be a shell or code."""
    parsed = parse_options(name, args, options)
    packages = parsed.of(*options.packages)
    files = parsed.of(*FOLDER_OPTIONS)
    module = parsed.of("-m", "--module")
    if module:
        _check_module(name, module[0])
        return Launch(files=files, packages=packages)
    if not parsed.arguments:
        raise UnsafeCommand(_("%(name)s needs a package", name=name))
    package, *package_args = parsed.arguments
    if name.startswith("npm "):  # which also takes options after the package
        has_separator = "--" in package_args
        npm_args = package_args[: package_args.index("--")] if has_separator else package_args
        if any(arg.startswith("-") for arg in npm_args):
            raise UnsafeCommand(
                _("put -- before the arguments of %(name)s", name=repr(package))
            )
    is_any_program = name == "uv run"
    if not is_any_program and not packages and PACKAGE_ADDRESS.match(package):
        # A package by its scope or URL has its own program, also if it is named like another.
        return Launch(files=files, packages=(package,))
    program = re.split(r"[@=<>~! ]", program_name(package))[0]
    check_allowed(program, FORBIDDEN_PROGRAMS if is_any_program else SHELLS | WRAPPERS)
    inner = parse_launch(program, package_args)
    files = (*files, *inner.files, *([package] if is_any_program else []))
    if not is_any_program and not packages:
        packages = (package,)
    return Launch(files=files, packages=(*packages, *inner.packages))


def _parse_container(name: str, args: Sequence[str]) -> Launch:
    arguments = list(args)
    if arguments[:1] == ["container"]:
        arguments = arguments[1:]
    if not arguments or arguments[0] != "run":
        raise UnsafeCommand(
            _(
                "%(name)s can only be used as %(command)s run, not with %(option)s",
                name=name,
                command=name,
                option=repr(arguments[0][:40]) if arguments else "nothing",
            )
        )
    parsed = parse_options(f"{name} run", arguments[1:], CONTAINER)
    if not parsed.arguments:
        raise UnsafeCommand(_("%(name)s run needs an image", name=name))
    sources = list(parsed.of("-v", "--volume"))
    for mount in parsed.of("--mount"):
        # What it takes from this machine, as `--volume` says it.
        settings = {}
        for setting in mount.split(","):
            key, _equals, value = setting.partition("=")
            settings[key.strip().lower()] = value
        if settings.get("type", "volume") not in {"bind", "volume", "tmpfs"}:
            raise UnsafeCommand(
                _("--mount %(mount)s has an unsupported type", mount=repr(mount[:60]))
            )
        sources.append(settings.get("source", settings.get("src", "")))
    return Launch(image=parsed.arguments[0], mounts=tuple(sources))
