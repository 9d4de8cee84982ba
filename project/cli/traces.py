"""Lists runs, draws one, and exports it."""

import shutil
import sys
import webbrowser
from datetime import datetime
from pathlib import Path

from agents.management.escapes import escape_controls, escape_line, json_line
from agents.management.run_printer import uses_color

from . import waterfall
from .errors import CommandFailed
from .server import Server
from .waterfall import fit, format_cost, format_seconds

MIN_QUESTION_CELLS = 20


async def list_runs(server: Server, query: str, *, limit: int, as_json: bool) -> None:
    width = shutil.get_terminal_size().columns
    for run in await server.runs(query, limit):
        if as_json:
            sys.stdout.write(json_line(run) + "\n")
            continue
        started_at = datetime.fromisoformat(run["started_at"]).astimezone()
        seconds = run.get("seconds")
        facts = (
            f"{run['id']:>6}  {started_at:%Y-%m-%d %H:%M}  {run['status']:<9}  "
            f"{fit(escape_line(run['agent']), 14)}  "
            f"{format_seconds(seconds) if seconds is not None else '…':>8}  "
            f"{format_cost(run['usage'].get('cost_usd')):>8}  "
        )
        question = escape_line(run["question"])
        if sys.stdout.isatty():
            question = fit(question, max(MIN_QUESTION_CELLS, width - len(facts))).rstrip()
        sys.stdout.write(f"{facts}{question}\n")


async def show(server: Server, run_id: int, *, in_browser: bool, as_json: bool) -> None:
    run = await server.run(run_id)
    if in_browser:
        sys.stdout.write(f"{escape_line(run['url'])}\n")
        webbrowser.open(run["url"])
        return
    steps = await server.steps(run_id)
    if as_json:
        sys.stdout.write(json_line({"run": run, "steps": steps}) + "\n")
        return
    width = shutil.get_terminal_size().columns
    for line in waterfall.draw(run, steps, width, has_color=uses_color(sys.stdout)):
        sys.stdout.write(f"{line}\n")


async def export(server: Server, run_id: int, ending: str, target: Path | None) -> None:
    text = await server.trace(run_id, ending)
    if target is not None:
        _write(target, text)
    else:
        # Elsewhere than in a terminal, the document as it is.
        sys.stdout.write(escape_controls(text) if sys.stdout.isatty() else text)


def _write(target: Path, text: str) -> None:
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CommandFailed(f"Can't write {target}: {error.strerror}.") from error
