"""Fills a database as users would, and prints it as SQL.

`baseline.sql` was created with it when the migrations were `BASELINE`. It is never created
again, because later versions must be able to upgrade it. Another one can be added:

    .venv/bin/python -m tests.upgrades.fill > tests/upgrades/NAME.sql
"""

import asyncio
import os
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing

from tests import environment  # noqa: F401  (sets the data folder and the keys of the tests)

import django  # isort: skip

TRIES, PAUSE = 600, 0.05
QUESTIONS = ("What is 12.5% of 3480?", "Which customers are from Japan?")
SEARCH_INDEX = "agents_chunk_index"
# Sessions and machines don't matter for an upgrade.
LEFT_EMPTY = ("django_session", "people_visit", "agents_serverprocess")


async def fill() -> None:
    from django.test import AsyncClient, Client

    from agents import runs

    asker, reviewer = AsyncClient(), Client()
    await asyncio.to_thread(_make_rows)
    await asyncio.to_thread(lambda: asker.force_login(_user("ada")))
    await asyncio.to_thread(lambda: reviewer.force_login(_user("demo")))
    try:
        for question in QUESTIONS:
            await _post(asker, "/chat/", text=question)
        await _post(asker, "/chat/", text=QUESTIONS[0], agent="careful")
        await _decide(asker)
        first = (await _ended_runs(3))[0]
    finally:
        await runs.shut_down()
    await asyncio.to_thread(_review, reviewer, first)
    await _post(asker, f"/traces/{first}/rating/", rating="good")
    # The name of the machine they ran on.
    await _model("Run").objects.aupdate(owner="")


def _make_rows() -> None:
    """Create what users configure on pages that an upgrade test doesn't open."""
    from django.contrib.auth import get_user_model

    get_user_model().objects.create_user("ada", "ada@example.com")
    # One handbook page is enough.
    documents = _model("Document").objects.order_by("pk")
    for document in documents[1:]:
        document.delete()
    model = {"label": "own-model", "provider": "openai", "model": "gpt-5"}
    _model("LanguageModel").objects.create(**model, api_key="a secret of this installation")
    flow = _model("Workflow").objects.create(name="report")
    text = "name: report\nsteps:\n  - id: sum\n    tool: calculator\n"
    _model("WorkflowVersion").objects.create(workflow=flow, number=1, text=text)
    about = {"workflow": flow, "user": _user("ada"), "enabled": False}
    _model("Schedule").objects.create(cron="0 9 * * 1-5", **about)


async def _decide(asker) -> None:
    """Approve the one pending call."""
    call = await _until(_model("Approval").objects.filter(verdict="waiting").afirst)
    fields = {"verdict": "approve", f"digest-{call.pk}": call.digest}
    await _post(asker, f"/approvals/{call.pk}/", **fields)


async def _ended_runs(count: int) -> list[int]:
    ended = _model("Run").objects.filter(status="completed").order_by("pk")

    async def are_ended() -> bool:
        return await ended.acount() == count

    await _until(are_ended)
    return [pk async for pk in ended.values_list("pk", flat=True)]


async def _until(ask):
    """Return the first true result."""
    for _ in range(TRIES):
        if answer := await ask():
            return answer
        await asyncio.sleep(PAUSE)
    raise TimeoutError(f"Nothing came within {TRIES * PAUSE:.0f} s.")


def _review(reviewer, run: int) -> None:
    """Add a reviewer's feedback; each part is also audited."""
    for path, fields in {
        f"/traces/{run}/notes/": {"text": "Rounded correctly."},
        f"/traces/{run}/labels/": {"label": "arithmetic"},
        f"/traces/{run}/share/": {"level": "person", "hours": "24"},
    }.items():
        answer = reviewer.post(path, fields)
        assert answer.status_code < 400, (path, answer.status_code)


async def _post(client, path: str, **fields: str) -> None:
    answer = await client.post(path, fields)
    assert answer.status_code < 400, (path, answer.status_code)


def _user(name: str):
    from django.contrib.auth import get_user_model

    return get_user_model().objects.get(username=name)


def _model(name: str):
    from django.apps import apps

    return apps.get_model("agents", name)


def dump(database: sqlite3.Connection) -> Iterator[str]:
    """Yield the statements that recreate this database, indexes and triggers last."""
    objects = database.execute(
        "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL"
        " AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY type != 'table', type, name"
    ).fetchall()
    yield "BEGIN"
    for kind, name, sql in objects:
        if name.startswith(f"{SEARCH_INDEX}_"):
            continue  # created by SQLite along with the index
        yield sql.strip()
        if kind == "table" and name not in LEFT_EMPTY:
            yield from _rows(database, name)
    yield "COMMIT"


def _rows(database: sqlite3.Connection, table: str) -> Iterator[str]:
    names = [row[1] for row in database.execute(f'PRAGMA table_info("{table}")')]
    names += ["rowid"] if table == SEARCH_INDEX else []
    values = ", ".join(f'quote("{name}")' for name in names)
    for row in database.execute(f'SELECT {values} FROM "{table}" ORDER BY rowid'):
        yield f'INSERT INTO "{table}" ({", ".join(names)}) VALUES ({", ".join(row)})'


def main() -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "project.settings"
    django.setup()
    from django.core.management import call_command
    from django.db import connection

    call_command("setup", stdout=sys.stderr)
    asyncio.run(fill())
    name = connection.settings_dict["NAME"]
    connection.close()
    with closing(sqlite3.connect(name)) as database:
        for statement in dump(database):
            sys.stdout.write(f"{statement};\n")


if __name__ == "__main__":
    main()
