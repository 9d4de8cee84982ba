"""What an MCP server can do during a call: report progress, ask the user, use the model."""

import asyncio
import json
import re
import sys

import pytest
from django.utils import translation

from agents.engine import call_timeout
from agents.engine.call_context import QuestionAnswer, SamplingReply, use_context
from agents.engine.events import StatusKind
from agents.tools.addresses import AllowList
from agents.tools.egress import Egress
from agents.tools.mcp.configuration.config import ServerConfig
from agents.tools.mcp.connection import calls, connection
from agents.tools.mcp.tool import McpTool
from agents.web.presentation.steps.progress import ProgressView
from tests.sampling import one_in
from tests.tools.conftest import SERVERS, Call, connect, read_notes, until

FORM = {"type": "object", "properties": {"name": {"type": "string"}}}
ASK = {"method": "elicitation/create", "params": {"message": "Who?", "requestedSchema": FORM}}
TEXT = {"type": "text", "text": "Write a haiku."}
SAMPLE = {
    "method": "sampling/createMessage",
    "params": {
        "messages": [{"role": "user", "content": TEXT}],
        "systemPrompt": "Be brief.",
        "maxTokens": 50,
        "stopSequences": ["END"],
    },
}


async def accept(question):
    return QuestionAnswer(action="accept", content={"name": "Ada"})


async def request(server, context, asked):
    """Have the server send this request during a call, and return the reply it got."""
    with use_context(context):
        result = await server.call("request", asked, 5)
    return json.loads(result.output)


# Start and progress


async def test_starting_a_server_is_reported_and_does_not_use_the_calls_timeout(
    plain, monkeypatch
):
    monkeypatch.setattr(connection, "START_REPORT_SECONDS", 0.4)
    call = Call()
    async with connect(plain("late")) as server:
        with use_context(call):
            result = await server.call("add", {"a": 1, "b": 2}, 0.5)

    assert result.output == "3"
    assert call.progress[0] == (0, None, "plain is starting.")
    assert re.fullmatch(r"plain started in \d+\.\d s\.", call.progress[-1][2])
    assert call.extended == 1


async def test_a_server_that_runs_is_not_reported_as_starting(plain):
    call = Call()
    async with connect(plain()) as server:
        await server.ready()
        with use_context(call):
            await server.call("add", {"a": 1, "b": 2})

    assert call.progress == []


async def test_progress_is_reported_and_restarts_the_timeout(plain, monkeypatch):
    monkeypatch.setattr(calls, "PROGRESS_PER_SECOND", 1_000_000)
    call = Call()
    async with connect(plain()) as server:
        await server.ready()
        with use_context(call):
            result = await server.call("work", {"steps": 5, "pause": 0.2}, 0.6)

    assert result.output == "worked"
    assert call.progress[0] == (1, 5, "Part 1")
    assert call.progress[-1] == (5, 5, "Part 5")


async def test_a_servers_own_words_are_never_translated(plain):
    call = Call()
    arguments = {"steps": 1, "pause": 0, "message": "Row 5 doesn't match row 6"}
    async with connect(plain()) as server:
        with use_context(call):
            await server.call("work", arguments, 5)
    done, total, message = call.progress[-1]
    note = {"kind": StatusKind.TOOL_PROGRESS, "progress": done, "total": total}

    with translation.override("ja"):
        progress = ProgressView.of([{**note, "message": message}])

    assert progress.label == "Row 5 doesn't match row 6"


async def test_progress_extends_a_call_up_to_a_maximum_only(plain, monkeypatch):
    monkeypatch.setattr(call_timeout, "MAX_CALL_SECONDS", 0.6)
    async with connect(plain()) as server:
        await server.ready()
        result = await server.call("work", {"steps": 50, "pause": 0.1}, 0.5)

    assert "didn't respond within 0.5 s" in result.error


async def test_progress_reports_are_throttled(plain):
    call = Call()
    async with connect(plain()) as server:
        await server.ready()
        with use_context(call):
            await server.call("work", {"steps": 200, "pause": 0.0005})

    assert len(call.progress) < 20
    assert call.progress[-1] == (200, 200, "Part 200")


# Questions


async def test_a_question_of_the_server_goes_to_the_user_of_the_call(plain):
    call = Call(answer=accept)
    async with connect(plain()) as server:
        reply = await request(server, call, ASK)

    (question,) = call.questions
    assert (question.source, question.message, question.schema) == ("plain", "Who?", FORM)
    assert reply == {"action": "accept", "content": {"name": "Ada"}}


async def test_the_timeout_is_paused_while_a_user_answers(plain):
    async def think(question):
        await asyncio.sleep(0.8)
        return QuestionAnswer(action="decline")

    call = Call(answer=think)
    async with connect(plain()) as server:
        await server.ready()
        with use_context(call):
            result = await server.call("request", ASK, 0.4)

    assert json.loads(result.output) == {"action": "decline"}
    assert call.extended == 2


async def test_without_a_user_the_question_is_declined(plain):
    async with connect(plain()) as server:
        assert await request(server, Call(), ASK) == {"action": "decline"}


async def test_a_url_to_open_is_passed_on_if_valid(plain):
    page = {"mode": "url", "message": "Sign in.", "elicitationId": "7"}
    call = Call(answer=accept)
    async with connect(plain()) as server:
        good, bad = [
            await request(
                server, call, {"method": ASK["method"], "params": {**page, "url": url}}
            )
            for url in ("https://example.com/in", "javascript:alert(1)")
        ]

    assert [question.url for question in call.questions] == ["https://example.com/in"]
    assert good == {"action": "accept"}
    assert bad["message"] == "The page to open must have an http or https URL."


async def test_a_question_ends_with_its_call(plain, notes):
    asked, ended = asyncio.Event(), asyncio.Event()

    async def wait(question):
        asked.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    async with connect(plain()) as server:
        with use_context(Call(answer=wait)):
            call = asyncio.create_task(server.call("request", ASK))
        await asked.wait()
        call.cancel()
        await asyncio.wait_for(ended.wait(), 5)

    assert call.cancelled()


async def test_an_ambiguous_question_reaches_neither_of_two_users(plain, notes):
    first, second = Call("1", answer=accept), Call("2", answer=accept)
    async with connect(plain()) as server:
        await server.ready()
        with use_context(second):
            hung = asyncio.create_task(server.call("never", {}))
        await until(lambda: "begun" in read_notes(notes))
        ambiguous = await request(server, first, ASK)
        refused = await request(server, first, SAMPLE)
        hung.cancel()

    assert ambiguous == {"action": "decline"}
    assert refused["message"].startswith("Several users are using this server at once")
    assert not first.questions
    assert not second.questions


async def test_a_question_of_a_stopped_call_reaches_no_other_user(plain, notes, monkeypatch):
    stopped, other = Call("1", answer=accept), Call("2", answer=accept)
    elsewhere = Call("1", "another", answer=accept)
    async with connect(plain()) as server:
        await server.ready()
        with use_context(stopped):
            hung = asyncio.create_task(server.call("never", {}))
        await until(lambda: "begun" in read_notes(notes))
        hung.cancel()
        await asyncio.wait([hung])
        # The server doesn't say which call it asks about: it may be the stopped one.
        early = await request(server, other, ASK)
        same = await request(server, stopped, ASK)
        same_in_another_chat = await request(server, elsewhere, ASK)
        monkeypatch.setattr(calls, "ABANDONED_SECONDS", 0)
        late = await request(server, other, ASK)

    assert early == {"action": "decline"}
    assert same["action"] == same_in_another_chat["action"] == late["action"] == "accept"
    assert len(other.questions) == 1


@pytest.mark.parametrize("url", one_in(3, ["http://[", "javascript:alert(1)", "https://"]))
async def test_an_invalid_url_to_open_is_rejected(plain, url):
    params = {"mode": "url", "message": "Open", "url": url, "elicitationId": "1"}
    call = Call(answer=accept)
    async with connect(plain()) as server:
        reply = await request(server, call, {"method": "elicitation/create", "params": params})

    assert reply["message"] == "The page to open must have an http or https URL."
    assert not call.questions


# Sampling


async def test_the_model_answers_a_server_within_the_call(plain):
    call = Call(reply=SamplingReply(text="Old pond.", model="demo"))
    async with connect(plain()) as server:
        reply = await request(server, call, SAMPLE)

    (sampled,) = call.requests
    assert sampled.messages == [{"role": "user", "content": "Write a haiku."}]
    assert (sampled.source, sampled.system) == ("plain", "Be brief.")
    assert (sampled.max_tokens, sampled.stop) == (50, ("END",))
    assert reply["content"] == {"type": "text", "text": "Old pond."}
    assert (reply["model"], reply["role"]) == ("demo", "assistant")


async def test_a_refusal_of_the_model_is_an_error_that_says_why(plain):
    async with connect(plain()) as server:
        reply = await request(server, Call(), SAMPLE)
        audio = {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}
        params = {**SAMPLE["params"], "messages": [{"role": "user", "content": audio}]}
        heard = await request(server, Call(), {**SAMPLE, "params": params})

    assert reply["message"] == "No model is available outside a run."
    assert heard["message"] == "Sampling with audio content isn't supported."


async def test_only_supported_capabilities_are_announced(plain, notes):
    async with connect(plain()) as server:
        await server.ready()

    (declared,) = [json.loads(word) for word in read_notes(notes) if word.startswith("{")]
    assert declared.keys() == {"sampling", "elicitation", "roots"}


async def test_a_server_that_asks_for_folders_gets_none(plain):
    async with connect(plain()) as server:
        assert await request(server, Call(), {"method": "roots/list", "params": {}}) == {
            "roots": []
        }


# Servers made with FastMCP


@pytest.mark.thorough
async def test_fastmcp_servers_ask_and_report_over_stdio():
    args = (str(SERVERS / "asker.py"), "stdio")
    config = ServerConfig(name="asker", command=sys.executable, args=args)

    async def name(question):
        return QuestionAnswer(action="accept", content={"value": "Ada"})

    call = Call(answer=name)
    async with connect(config) as server:
        await server.ready()
        with use_context(call):
            greeted = await McpTool(server, server.definition("greet")).execute({})
            # Longer than the timeout as a whole, but each step reports progress.
            worked = await McpTool(server, server.definition("work"), timeout=1.5).execute(
                {"steps": 12}
            )

    assert greeted.output == "Hello Ada."
    assert worked.output == "done"
    assert call.progress[-1] == (12, 12, "Part 12")


async def test_over_http_each_user_is_asked_for_their_own_call():
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "ignore", str(SERVERS / "asker.py"), "http"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    port = int(await process.stdout.readline())
    config = ServerConfig(name="asker", transport="http", url=f"http://127.0.0.1:{port}/mcp")
    here = Egress(allow=AllowList.read(["127.0.0.1"]))

    async def greeted(server, name):
        async def answer(question):
            await asyncio.sleep(0.2)
            return QuestionAnswer(action="accept", content={"value": name})

        with use_context(Call(name, answer=answer)):
            return (await server.call("greet", {})).output

    async with connect(config, egress=here) as server:
        await server.ready()
        both = await asyncio.gather(greeted(server, "Ada"), greeted(server, "Grace"))
    process.kill()
    await process.communicate()

    assert both == ["Hello Ada.", "Hello Grace."]
