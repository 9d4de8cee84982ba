"""The entry point of the command `ashiato`: what it understands, and who does it.

A command asks the server that was chosen or signed in to, otherwise the local database. All
other commands are those of Django, such as `serve`. Nothing heavy is imported at the start.
"""

import asyncio
import os
import sys
from argparse import SUPPRESS, ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from agents.management.escapes import escape_controls
from project import folders

from .errors import STOPPED, UNUSABLE, CommandFailed

OWN_COMMANDS = {
    *("acp", "ask", "examples", "export", "ingest", "login", "logout", "runs", "trace")
}
# What Django's commands do as well, on the local database.
LOCAL_COMMANDS = {"ask", "examples", "ingest"}
BROKEN_PIPE = 141  # as shells report it
NEEDS_WEB = (
    "This needs the whole product, and only the engine is installed. "
    "Install it with: pip install 'ashiato[web]'"
)
NOT_SIGNED_IN = (
    "You aren't signed in to {url}. Run “ashiato login {url}”, or set ASHIATO_API_KEY."
)
EPILOG = """\
These commands ask the server you signed in to last, the one of --server or ASHIATO_SERVER, or
with --local the database of this machine. Without a server it is always that database.

commands for a server of your own (they need the extra “web”):
  serve               start the whole product, and set it up first
  setup               create or upgrade the database
  worker              drive runs in a process of its own
  backup, restore     save the installation as one file
  help                list all others

exit codes: 0 success, 1 failure, 2 wrong use, 3 a run waits for approval
"""


def main() -> None:
    arguments = sys.argv[1:]
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except CommandFailed as error:
        sys.stderr.write(escape_controls(f"{error}\n"))
        code = error.code
    except KeyboardInterrupt:
        code = STOPPED
    except BrokenPipeError:
        # Python would report it once more when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = BROKEN_PIPE
    sys.exit(code)


def _run(arguments: Sequence[str]) -> int:
    parser = build_parser()
    if not arguments:
        parser.print_help()
        return UNUSABLE
    if arguments[0] == "--version":
        sys.stdout.write(f"ashiato {version()}\n")
        return 0
    if arguments[0] not in OWN_COMMANDS and not arguments[0].startswith("-"):
        return _run_django(arguments)
    options = parser.parse_args(arguments)
    match options.command:
        case "login":
            from . import sign_in

            url = sign_in.clean_url(options.url)
            asyncio.run(sign_in.log_in(url, options.key))
        case "logout":
            from . import sign_in

            asyncio.run(sign_in.log_out(_signed_in_url(options.url)))
        case _:
            return _ask_someone(options)
    return 0


def build_parser() -> ArgumentParser:
    connection = ArgumentParser(add_help=False)
    where = connection.add_mutually_exclusive_group()
    where.add_argument("--server", metavar="URL", default=SUPPRESS, help="server to ask")
    where.add_argument(
        "--local", action="store_true", default=SUPPRESS, help="use the local database"
    )
    connection.add_argument(
        "--user", default=SUPPRESS, help="user of the local database (default: the first admin)"
    )
    parser = ArgumentParser(
        prog="ashiato",
        description="Asks agents, and shows what they did.",
        epilog=EPILOG,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="print the version")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def add(name: str, help: str, *, connects: bool = True) -> ArgumentParser:
        parents = [connection] if connects else []
        text = f"{help[0].upper()}{help[1:]}."
        return commands.add_parser(name, help=help, description=text, parents=parents)

    login = add("login", "sign in to a server", connects=False)
    login.add_argument("url", metavar="URL", help="address, e.g. https://chat.example.org")
    login.add_argument("--key", default="", help="API key, instead of a code in the browser")
    logout = add("logout", "sign out from a server", connects=False)
    logout.add_argument(
        "url", metavar="URL", nargs="?", default="", help="default: the last one"
    )

    ask = add("ask", "ask an agent, and print its answer")
    ask.add_argument(
        "question", nargs="?", default="", help="the question; - reads it from standard input"
    )
    ask.add_argument("--agent", default="", help="agent name (default: the default agent)")
    ask.add_argument("--chat", type=int, metavar="ID", help="continue this chat")
    ask.add_argument("--resume", type=int, metavar="RUN", help="resume a run that waits")
    ask.add_argument("--json", action="store_true", help="print one JSON event per line")
    ask.add_argument(
        "-q", "--quiet", action="store_true", help="print the answer without the steps"
    )

    runs = add("runs", "list runs, the newest first")
    runs.add_argument(
        "filter", nargs="*", help="as on the page of traces, e.g. status:failed 'cost:>0.01'"
    )
    runs.add_argument("-n", "--limit", type=int, default=20, help="default: %(default)s")
    runs.add_argument("--json", action="store_true", help="print one JSON run per line")

    trace = add("trace", "draw what a run did, and when")
    trace.add_argument("run", type=int, metavar="ID")
    trace.add_argument("--web", action="store_true", help="open its page in the browser")
    trace.add_argument(
        "--json", action="store_true", help="print the run and its steps as JSON"
    )

    export = add("export", "export a run as a document")
    export.add_argument("run", type=int, metavar="ID")
    export.add_argument("--format", choices=["json", "md"], default="json")
    export.add_argument("-o", "--output", type=Path, metavar="FILE")

    ingest = add("ingest", "add files to the documents that agents search")
    ingest.add_argument("paths", nargs="+", type=Path, metavar="FILE")
    ingest.add_argument("--collection", default="", metavar="NAME")

    examples = add("examples", "run an example set, for CI")
    examples.add_argument("action", choices=["run"])
    examples.add_argument("set", metavar="SET", help="name of the example set")
    examples.add_argument("--agent", default="", help="agent to run (default: the set's)")
    examples.add_argument(
        "--min", type=float, metavar="SCORE", help="lowest mean score, e.g. 0.9"
    )
    examples.add_argument("--json", action="store_true", help="print the result as JSON")

    acp = add("acp", "answer an editor by the Agent Client Protocol")
    acp.add_argument("--agent", default="", help="agent name (default: the default agent)")
    return parser


def _ask_someone(options: Namespace) -> int:
    """Do a command on the chosen server, or on the local database."""
    if options.command == "ask":
        _complete_question(options)
    url = _chosen_url(options)
    if not url and find_spec("django") is None:
        raise CommandFailed(
            "Sign in to a server first: ashiato login URL. To use a database of your own, "
            "install the whole product: pip install 'ashiato[web]'",
            UNUSABLE,
        )
    if not url and options.command in LOCAL_COMMANDS:
        return _run_django(_django_arguments(options))
    asyncio.run(_with_server(options, url))
    return 0


async def _with_server(options: Namespace, url: str) -> None:
    from . import local, profiles, remote
    from .profiles import SignIn
    from .server import Server

    if url:
        key = os.environ.get("ASHIATO_API_KEY")
        sign_in = SignIn(token=key) if key else profiles.load().servers.get(url)
        if sign_in is None:
            raise CommandFailed(NOT_SIGNED_IN.format(url=url), UNUSABLE)
        connected = Server.connect(url, sign_in)
    else:
        connected = local.connect(getattr(options, "user", ""))
    async with connected as server:
        await remote.run(server, options, version())


def _chosen_url(options: Namespace) -> str:
    """Return the server's address; empty for the local database."""
    from . import profiles, sign_in

    if getattr(options, "local", False):
        return ""
    chosen = getattr(options, "server", "") or os.environ.get("ASHIATO_SERVER", "")
    return sign_in.clean_url(chosen) if chosen else profiles.load().default


def _signed_in_url(chosen: str) -> str:
    from . import profiles, sign_in

    url = sign_in.clean_url(chosen) if chosen else profiles.load().default
    if not url:
        raise CommandFailed("You aren't signed in to a server.")
    return url


def _complete_question(options: Namespace) -> None:
    if options.question == "-":
        options.question = sys.stdin.read()
    if bool(options.question.strip()) == (options.resume is not None):
        raise CommandFailed("Enter either a question or --resume RUN.", UNUSABLE)


def _django_arguments(options: Namespace) -> list[str]:
    """Return a command as Django's command of the local database understands it."""
    match options.command:
        case "ask":
            if options.chat is not None:
                raise CommandFailed("--chat needs a server: chats belong to users.", UNUSABLE)
            values = [f"--resume={options.resume}"] if options.resume is not None else []
            flags = ["--json"] * options.json + ["--quiet"] * options.quiet
            question = ["--", options.question] if options.question else []
            return ["ask", f"--agent={options.agent}", *values, *flags, *question]
        case "ingest":
            collection = [f"--collection={options.collection}"] if options.collection else []
            return ["ingest", *collection, "--", *map(str, options.paths)]
        case _:
            score = [f"--min-score={options.min}"] if options.min is not None else []
            flags = ["--json"] * options.json
            chosen = [f"--agent={options.agent}"]
            return ["run_examples", *chosen, *score, *flags, "--", options.set]


def _run_django(arguments: Sequence[str]) -> int:
    if find_spec("daphne") is None:
        raise CommandFailed(NEEDS_WEB, UNUSABLE)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    from project.commands import execute

    execute(["ashiato", *arguments])
    return 0


def version() -> str:
    import tomllib

    text = (folders.BASE_DIR / "pyproject.toml").read_text()
    return str(tomllib.loads(text)["project"]["version"])
