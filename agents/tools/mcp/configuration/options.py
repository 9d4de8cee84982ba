"""The allowed options of MCP launchers."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from agents.engine.errors import ToolError
from agents.engine.sentences import Sentence as _

ANYTHING = re.compile(r"(?s).*")
WORD = re.compile(r"[\w.+-]+")
VERSION = re.compile(r"(?:python|pypy|cpython)?[@-]?\d[\w.+-]*")
FOLDER_OPTIONS = ("--directory", "--project")
FOLDER = re.compile(r"/.*")


class UnsafeCommand(ToolError):
    """Raised with a reason; `field` is where an administrator can change it."""

    message = _("This program can't be started as an MCP server.")

    def __init__(self, reason: str, field_name: str = "command") -> None:
        super().__init__(reason)
        self.field = field_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """`flags` take no value, `values` one of this form, `packages` name what is run."""

    flags: frozenset[str] = frozenset()
    values: Mapping[str, re.Pattern[str]] = field(default_factory=dict)
    packages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ParsedOptions:
    """The options before the first argument, and the arguments."""

    values: tuple[tuple[str, str], ...]
    arguments: tuple[str, ...]

    def of(self, *names: str) -> tuple[str, ...]:
        return tuple(value for name, value in self.values if name in names)


def parse_options(name: str, args: Sequence[str], options: Options) -> ParsedOptions:
    """Parse the launcher's options; raise UnsafeCommand at the first unlisted one."""
    values: list[tuple[str, str]] = []
    remaining = list(args)
    while remaining and remaining[0].startswith("-"):
        arg = remaining.pop(0)
        if arg == "--":
            break
        is_long = arg.startswith("--")
        # Short flags can be combined, such as -it.
        is_bundle = not is_long and all(f"-{letter}" in options.flags for letter in arg[1:])
        if arg in options.flags or is_bundle:
            continue
        option, equals, value = arg.partition("=")
        if option in options.values and not equals:
            if not remaining:
                raise UnsafeCommand(
                    _("%(name)s %(option)s needs a value", name=name, option=option), "args"
                )
            value = remaining.pop(0)
        elif option not in options.values and not is_long and arg[:2] in options.values:
            option = arg[:2]
            value = arg[2:].removeprefix("=")
        elif option not in options.values:
            raise UnsafeCommand(
                _(
                    "%(option)s isn't an allowed option. Options that read files, "
                    "connect to other hosts or weaken the sandbox are blocked",
                    option=repr((option if is_long else arg)[:40]),
                ),
                "args",
            )
        if not options.values[option].fullmatch(value):
            raise UnsafeCommand(
                _(
                    "%(name)s %(option)s can't have the value %(value)s",
                    name=name,
                    option=option,
                    value=repr(value[:60]),
                ),
                "args",
            )
        values.append((option, value))
    return ParsedOptions(tuple(values), tuple(remaining))


def _flags(text: str) -> frozenset[str]:
    return frozenset(text.split())


NPX = Options(
    flags=_flags(
        "-y --yes --no --no-install -q --quiet -s --silent --offline --prefer-offline "
        "--prefer-online --ignore-scripts --no-fund --no-audit --no-update-notifier"
    ),
    values={"-p": ANYTHING, "--package": ANYTHING, "--loglevel": WORD},
    packages=("-p", "--package"),
)
BUNX = Options(
    flags=_flags("--bun --verbose --silent -y"),
    values={"-p": ANYTHING, "--package": ANYTHING},
    packages=("-p", "--package"),
)
DLX = Options(
    flags=_flags("-y -s --silent -q --quiet --offline --prefer-offline"),
    values={"-p": ANYTHING, "--package": ANYTHING},
    packages=("-p", "--package"),
)
_UV_FLAGS = _flags(
    "-q --quiet -v --verbose -n --no-cache --offline --no-config --no-progress --native-tls "
    "--isolated --refresh --managed-python --no-managed-python --no-python-downloads --no-build"
)
UV = Options(flags=_UV_FLAGS, values=dict.fromkeys(FOLDER_OPTIONS, FOLDER))
_UV_VALUES = {
    "--python": VERSION,
    "-p": VERSION,
    "--with": ANYTHING,
    "-w": ANYTHING,
    "--prerelease": WORD,
    "--resolution": WORD,
    "--exclude-newer": re.compile(r"[\w:.+-]+"),
}
UVX = Options(
    flags=_UV_FLAGS,
    values={**_UV_VALUES, "--from": ANYTHING},
    packages=("--from", "--with", "-w"),
)
UV_RUN = Options(
    flags=_UV_FLAGS
    | _flags(
        "--frozen --locked --no-sync --active --no-project --no-dev --all-extras -s --script "
        "--no-default-groups --no-editable --exact"
    ),
    values={
        **_UV_VALUES,
        **dict.fromkeys(FOLDER_OPTIONS, FOLDER),
        **dict.fromkeys(("--extra", "--group", "--package", "-m", "--module"), WORD),
    },
    packages=("--with", "-w"),
)
PIPX = Options(
    flags=_flags("--no-cache -q --quiet --verbose"),
    values={"--spec": ANYTHING, "--python": VERSION},
    packages=("--spec",),
)
# Only options that restrict a container further, or stay inside it.
CONTAINER = Options(
    flags=_flags(
        "-i --interactive -t --tty --rm --init --read-only -q --quiet --no-healthcheck"
    ),
    values={
        **dict.fromkeys(("-e", "--env", "-v", "--volume", "--mount", "--tmpfs"), ANYTHING),
        **dict.fromkeys(("-l", "--label", "--entrypoint", "-w", "--workdir"), ANYTHING),
        **dict.fromkeys(("--name", "-h", "--hostname", "--pull", "--platform"), ANYTHING),
        **dict.fromkeys(("-m", "--memory", "--memory-swap", "--shm-size"), WORD),
        **dict.fromkeys(("--cpus", "--cpu-shares", "--pids-limit", "--stop-timeout"), WORD),
        **dict.fromkeys(("-u", "--user"), re.compile(r"[\w.:-]+")),
        **dict.fromkeys(("--network", "--net"), re.compile(r"(?!host$|container:|ns:)[\w.-]+")),
        "--cap-drop": WORD,
        "--security-opt": re.compile(r"no-new-privileges(?:[:=]true)?"),
        "--ulimit": re.compile(r"[\w=:]+"),
    },
)

EXACT_VERSION = re.compile(r"v?\d+\.\d+(?:\.\d+)?[\w.+-]*")
COMMIT_HASH = re.compile(r"[0-9a-f]{40}")


def is_pinned_package(spec: str) -> bool:
    """Whether the same program runs next time: an exact version or commit."""
    if "://" in spec or spec.startswith(("git+", "github:", "gitlab:", "bitbucket:")):
        revision = re.split(r"[@#]", spec.rpartition("/")[2])[-1]
        return bool(COMMIT_HASH.fullmatch(revision.partition("&")[0]))
    if spec.startswith(("/", "./", "../", "file:")):
        return True  # a local file
    if "==" in spec:
        return bool(EXACT_VERSION.fullmatch(spec.partition("==")[2].split(";")[0].strip()))
    version = spec.removeprefix("npm:").removeprefix("jsr:")[1:].partition("@")[2]
    return bool(EXACT_VERSION.fullmatch(version.partition("/")[0]))


def is_pinned_image(image: str) -> bool:
    """Whether an image has a digest, or at least a specific tag."""
    if "@sha256:" in image:
        return True
    tag = image.rpartition("/")[2].partition(":")[2]
    return tag not in {"", "latest"}
