"""The commands of `ashiato` on a server, over its REST API."""

import asyncio
import json
import os
import pty
import signal
import sys
from argparse import Namespace

import pytest
from django.utils import timezone

from agents.db import database
from agents.engine.testing import Call, Says
from agents.knowledge import ingestion
from agents.models import Agent, Collection, Document, Run, ToolRegistration
from agents.review.models import Example, ExampleSet
from project.cli import remote, traces
from project.cli.errors import CommandFailed, ServerError
from project.cli.examples import run_set
from project.cli.ingest import ingest
from tests.cli.conftest import Terminal

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
async def careful(server):
    def create():
        careful = Agent.objects.create(name="careful", auto_execute_tools=False)
        careful.tools.set(ToolRegistration.objects.all())

    await database.run(create)


@pytest.fixture
def terminal(monkeypatch):
    """A real terminal into which a test types lines."""
    ours, theirs = pty.openpty()
    with open(theirs) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        yield lambda text: os.write(ours, text.encode())
    os.close(ours)


async def ask(server, capsys, question="", **options):
    values = {"agent": "", "chat": None, "resume": None, "json": False, "quiet": False}
    named = Namespace(command="ask", question=question, **(values | options))
    await remote.run(server, named, "0")
    return capsys.readouterr()


async def test_a_question_is_answered(server, capsys):
    out, err = await ask(server, capsys, "What is 12.5% of 3480?")

    run = await Run.objects.aget()
    assert "435" in out
    assert err.startswith("Chat ")
    assert "[calculator " in err
    assert run.status == "completed"
    assert run.topic.startswith("chat.")


async def test_a_chat_is_continued(server, capsys):
    await ask(server, capsys, "6 * 7")
    chat = int((await Run.objects.aget()).topic.removeprefix("chat."))

    await ask(server, capsys, "7 * 8", chat=chat)

    assert [run.topic async for run in Run.objects.all()] == [f"chat.{chat}"] * 2


async def test_events_can_be_printed_as_json(server, capsys):
    out, err = await ask(server, capsys, "6 * 7", json=True)

    events = [json.loads(line) for line in out.splitlines()]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert events[-1]["type"] == "run_finished"
    assert err == ""


async def test_quiet_prints_the_answer_alone(server, capsys):
    out, err = await ask(server, capsys, "6 * 7", quiet=True)

    assert "42" in out
    assert err == ""


async def test_the_servers_refusal_is_an_error_with_its_sentence(server, capsys):
    with pytest.raises(ServerError, match="agent is no longer available"):
        await ask(server, capsys, "6 * 7", agent="nobody")


async def test_a_blocked_question_fails(server, capsys):
    with pytest.raises(CommandFailed, match="looks like a private key") as error:
        await ask(server, capsys, "-----BEGIN PRIVATE KEY----- abc")
    assert error.value.code == 1


@pytest.mark.parametrize(("typed", "verdict"), [("y\n", "approved"), ("n\n", "rejected")])
async def test_the_terminal_decides_about_a_call(
    careful, server, capsys, terminal, typed, verdict
):
    terminal(typed)

    _, err = await ask(server, capsys, "6 * 7", agent="careful")

    assert 'careful wants to call calculator {"expression": "6 * 7"}\n' in err
    run = await Run.objects.aget()
    assert (await run.approvals.aget()).verdict == verdict


async def test_without_a_terminal_the_run_waits_and_can_be_resumed(
    careful, server, capsys, terminal, monkeypatch
):
    at_terminal = sys.stdin
    monkeypatch.setattr(sys, "stdin", Terminal(is_terminal=False))
    with pytest.raises(
        CommandFailed, match=r"Run (\d+) is waiting .*\n.* --resume \1"
    ) as error:
        await ask(server, capsys, "6 * 7", agent="careful")
    run = await Run.objects.aget()
    monkeypatch.setattr(sys, "stdin", at_terminal)
    terminal("y\n")

    out, _ = await ask(server, capsys, resume=run.pk)

    assert error.value.code == 3
    assert "42" in out


async def test_ctrl_c_stops_the_run(server, capsys, scripted):
    class SlowModel:
        async def stream(self, **_request):
            asyncio.get_running_loop().call_later(0.2, os.kill, os.getpid(), signal.SIGINT)
            await asyncio.sleep(30)
            yield {}

    scripted(model=SlowModel())

    with pytest.raises(CommandFailed) as error:
        await ask(server, capsys, "Tell a long story.")

    assert error.value.code == 130
    assert (await Run.objects.aget()).stopped_reason == "cancelled"


async def test_an_interrupted_stream_goes_on_where_it_was(server, capsys, monkeypatch):
    import httpx2

    follow = server._stream
    seen = []

    async def cut(path, after):
        seen.append(after)
        async for event in follow(path, after):
            yield event
            if len(seen) == 1:
                raise httpx2.ReadError("reset")

    monkeypatch.setattr(server, "_stream", cut)

    out, _ = await ask(server, capsys, "6 * 7", json=True)

    numbers = [json.loads(line)["seq"] for line in out.splitlines()]
    assert numbers == list(range(1, len(numbers) + 1))
    assert seen == [0, 1]


async def test_runs_are_listed_by_the_filter_language(server, capsys):
    await ask(server, capsys, "6 * 7")
    await ask(server, capsys, "7 * 8")

    await traces.list_runs(server, '"7 * 8"', limit=20, as_json=False)
    lines = capsys.readouterr().out.splitlines()

    assert len(lines) == 1
    assert "completed" in lines[0]
    assert lines[0].endswith("7 * 8")
    await traces.list_runs(server, "", limit=1, as_json=True)
    assert json.loads(capsys.readouterr().out)["question"] == "7 * 8"
    with pytest.raises(ServerError):
        await traces.list_runs(server, "cost:many", limit=1, as_json=False)


async def test_a_run_is_drawn_and_exported(server, capsys, tmp_path):
    await ask(server, capsys, "6 * 7")
    run = await Run.objects.aget()

    await traces.show(server, run.pk, in_browser=False, as_json=False)
    drawn = capsys.readouterr().out
    await traces.export(server, run.pk, "md", tmp_path / "run.md")
    await traces.export(server, run.pk, "json", None)

    assert drawn.startswith(f"Run {run.pk} · helper · completed")
    assert "tool calculator" in drawn
    assert "6 * 7" in (tmp_path / "run.md").read_text()
    assert json.loads(capsys.readouterr().out)["schema"] == "ashiato.trace/1"


async def test_anothers_run_is_not_found(server):
    with pytest.raises(ServerError) as error:
        await server.run(999)
    assert error.value.status == 404


async def test_files_are_added_to_a_collection(
    server, capsys, tmp_path, administrator, monkeypatch
):
    upload = server.upload

    async def upload_and_read(*values):
        document = await upload(*values)
        await asyncio.to_thread(ingestion.process_waiting)
        return document

    monkeypatch.setattr(server, "upload", upload_and_read)
    monkeypatch.setattr("project.cli.ingest.POLL_SECONDS", 0.01)
    await Collection.objects.acreate(name="HR", owner=administrator)
    (tmp_path / "leave.md").write_text("# Leave\n\nTwenty days.")
    (tmp_path / ".hidden.md").write_text("no")

    with pytest.raises(CommandFailed, match="Choose one with --collection: .*HR"):
        await ingest(server, [tmp_path], "Finance")
    await ingest(server, [tmp_path], "HR")

    assert capsys.readouterr().out.startswith("ready ")
    assert (await Document.objects.aget(collection__name="HR")).name == "leave.md"


async def test_an_example_set_below_the_bar_fails(server, capsys, agent):
    def create():
        example_set = ExampleSet.objects.create(name="Regression", agent=agent)
        Example.objects.create(
            name="Six times seven",
            question="6 * 7",
            expected="43",
            agent=agent,
            agent_name=agent.name,
            example_set=example_set,
            checks=[{"kind": "contains", "value": "43"}],
            saved_at=timezone.now(),
        )

    await database.run(create)

    with pytest.raises(CommandFailed, match=r"mean score 0\.\d\d is below 0\.9") as error:
        await run_set(server, "Regression", agent="", min_score=0.9, as_json=False)
    assert error.value.code == 1
    printed = capsys.readouterr().out
    assert "0 of 1 passed" in printed
    assert "calculator" in printed  # the call that wasn't recorded
    with pytest.raises(CommandFailed, match="Available: Regression") as error:
        await run_set(server, "Nothing", agent="", min_score=0.9, as_json=False)
    assert error.value.code == 2


async def test_terminal_escapes_in_answers_are_written_out(server, capsys, scripted):
    scripted(
        Says(calls=(Call("calculator", '{"expression": "1\x1b[2K"}'),)),
        Says(answer="\x1b]0;x\x07"),
    )

    out, err = await ask(server, capsys, "6 * 7")

    assert not {"\x1b", "\x07"} & set(out + err)


async def test_the_command_uses_the_user_that_was_chosen(agent, person, run_executor, capsys):
    from project.cli import local

    async with local.connect(person.username) as server:
        me = await server.me()

    assert me["user"]["username"] == person.username
    with pytest.raises(CommandFailed, match="no user named 'nobody'"):
        async with local.connect("nobody"):
            pass
