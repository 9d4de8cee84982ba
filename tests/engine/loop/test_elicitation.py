"""A running call asks the run's user and continues with the answer."""

import asyncio
import json

import pytest

from agents.engine.call_context import (
    Question,
    QuestionUnavailable,
    RunContext,
    SavedAnswer,
    use_run,
)
from agents.engine.events import EventType
from agents.engine.guardrails import GuardrailAction, Guardrails, Pattern
from agents.engine.loop.termination import WorkTime
from agents.engine.loop.tool_calls import live_call
from agents.engine.question_form import check_question, host, read_fields
from agents.engine.testing import ContextTool, Says

SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
QUESTION = Question(source="registry", message="Who are you?", schema=SCHEMA)
ACCEPTED = SavedAnswer(action="accept", content={"name": "Ana"}, by=7, by_name="ana")


class Desk:
    """Answers after a while, or never."""

    def __init__(self, answer=ACCEPTED, after=0.01):
        self.answer, self.after, self.asked = answer, after, []

    async def wait(self, id, seconds):
        self.asked.append(id)
        await asyncio.sleep(self.after)
        return self.answer


async def asks(context):
    answer = await context.ask(QUESTION)
    return json.dumps([answer.action, dict(answer.content)])


async def events_of(agent, work=asks, desk=None, **options):
    tool = ContextTool(work, **options)
    runtime = agent(Says.call("work"), Says(answer="Done."), tools=[tool])
    with use_run(RunContext(user_id="7", chat_id="chat.1", questions=desk or Desk())):
        return [event async for event in runtime.stream("Go")]


def of_type(events, type):
    return [event.data for event in events if event.type is type]


async def test_the_answer_reaches_the_call_during_the_run(agent):
    events = await events_of(agent)

    [asked] = of_type(events, EventType.APPROVAL_REQUESTED)
    [answered] = of_type(events, EventType.APPROVAL_RESOLVED)
    [response] = of_type(events, EventType.TOOL_RESPONSE)
    assert (asked["why"], asked["step"]) == ("elicitation", response["step"])
    assert json.loads(asked["function"]["arguments"]) == {
        "source": "registry",
        "message": "Who are you?",
        "schema": SCHEMA,
    }
    assert (answered["id"], answered["action"], answered["by_name"]) == (
        asked["id"],
        "accept",
        "ana",
    )
    assert json.loads(answered["arguments"]) == {"name": "Ana"}
    assert json.loads(response["content"]) == ["accept", {"name": "Ana"}]
    assert of_type(events, EventType.RUN_PAUSED) == []


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_declining_is_passed_to_the_call(agent, action):
    events = await events_of(agent, desk=Desk(SavedAnswer(action=action, by=7, by_name="ana")))

    [answered] = of_type(events, EventType.APPROVAL_RESOLVED)
    [response] = of_type(events, EventType.TOOL_RESPONSE)
    assert (answered["is_approved"], answered["arguments"]) == (False, None)
    assert json.loads(response["content"]) == [action, {}]


async def test_an_unanswered_question_is_closed_with_a_reason(agent):
    events = await events_of(agent, desk=Desk(None))

    [answered] = of_type(events, EventType.APPROVAL_RESOLVED)
    assert (answered["action"], answered["reason"]) == (
        "cancel",
        "Nobody answered within 10 min.",
    )


async def test_waiting_for_an_answer_does_not_use_up_any_timeout(agent):
    seconds = []

    async def work(context):
        before = context._work_time.seconds
        await context.ask(QUESTION)
        seconds.append(context._work_time.seconds - before)
        return "done"

    events = await events_of(agent, work, Desk(after=0.2), timeout=0.1)

    assert of_type(events, EventType.TOOL_RESPONSE)[0]["content"] == "done"
    assert seconds[0] < 0.1


async def test_questions_of_one_call_are_asked_one_after_the_other(agent):
    async def work(context):
        await asyncio.gather(context.ask(QUESTION), context.ask(QUESTION))
        return "done"

    events = await events_of(agent, work)

    types = [e.type for e in events if e.data.get("why") == "elicitation"]
    one = [EventType.APPROVAL_REQUESTED, EventType.APPROVAL_RESOLVED]
    assert types == one * 2
    assert len({e["id"] for e in of_type(events, EventType.APPROVAL_REQUESTED)}) == 2


async def test_a_call_that_ends_closes_its_question(agent):
    async def work(context):
        task = asyncio.create_task(context.ask(QUESTION))
        await asyncio.sleep(0.01)
        task.cancel()
        return "done"

    events = await events_of(agent, work, Desk(after=60))

    [answered] = of_type(events, EventType.APPROVAL_RESOLVED)
    assert answered["reason"] == "The call ended before the question was answered."


async def test_a_call_can_ask_a_limited_number_of_questions(agent, monkeypatch):
    monkeypatch.setattr(live_call, "MAX_QUESTIONS", 1)

    async def work(context):
        await context.ask(QUESTION)
        with pytest.raises(QuestionUnavailable, match="up to 1 questions"):
            await context.ask(QUESTION)
        return "done"

    assert len(of_type(await events_of(agent, work), EventType.APPROVAL_REQUESTED)) == 1


async def test_a_run_without_a_user_declines_questions(agent):
    async def work(context):
        with pytest.raises(QuestionUnavailable, match="no user"):
            await context.ask(QUESTION)
        return "done"

    runtime = agent(Says.call("work"), Says(answer="Done."), tools=[ContextTool(work)])
    events = [event async for event in runtime.stream("Go")]

    assert of_type(events, EventType.APPROVAL_REQUESTED) == []


async def test_guardrails_see_the_question_and_the_answer(agent):
    rules = [
        Pattern(pattern="Who", name="q", stage="tool_output", action=GuardrailAction.MASK),
        Pattern(pattern="Ana", name="a", stage="tool_input", action=GuardrailAction.BLOCK),
    ]
    tool = ContextTool(asks)
    runtime = agent(
        Says.call("work"),
        Says(answer="Done."),
        tools=[tool],
        guardrails=Guardrails(blocked_patterns=rules),
    )
    with use_run(RunContext(user_id="7", questions=Desk())):
        events = [event async for event in runtime.stream("Go")]

    [asked] = of_type(events, EventType.APPROVAL_REQUESTED)
    [answered] = of_type(events, EventType.APPROVAL_RESOLVED)
    assert "Who" not in asked["function"]["arguments"]
    assert (answered["action"], answered["arguments"]) == ("cancel", None)
    assert answered["reason"].startswith("The answer was blocked: ")


async def test_after_an_interruption_the_question_is_closed_and_the_call_repeated(agent):
    events = await events_of(agent)
    at = next(i for i, e in enumerate(events) if e.type is EventType.APPROVAL_REQUESTED)
    runtime = agent(Says(answer="Done."), tools=[ContextTool(asks)])

    with use_run(RunContext(user_id="7", questions=Desk())):
        resumed = [event async for event in runtime.resume(events[: at + 1])]

    closed, answered = of_type(resumed, EventType.APPROVAL_RESOLVED)
    assert closed["id"] == events[at].data["id"]
    assert closed["reason"] == "The server restarted, so the question was closed."
    assert (answered["action"], resumed[-1].data["answer"]) == ("accept", "Done.")
    assert of_type(resumed, EventType.TOOL_CALL) == []  # the same call continues


async def test_after_an_interruption_a_call_that_may_have_happened_waits(agent):
    events = await events_of(agent, effect="at_most_once")
    at = next(i for i, e in enumerate(events) if e.type is EventType.APPROVAL_REQUESTED)
    runtime = agent(tools=[ContextTool(asks, effect="at_most_once")])

    resumed = [event async for event in runtime.resume(events[: at + 1])]

    whys = [e["why"] for e in of_type(resumed, EventType.APPROVAL_REQUESTED)]
    assert whys == ["unknown"]


def test_overlapping_waits_are_counted_once():
    time = WorkTime()
    with time.pause(), time.pause():
        before = time.seconds
        time._since -= 5  # as if five seconds had passed
        time.began -= 5
    assert time.seconds - before < 5.1


def kinds(**properties):
    return [(f.kind, f.format) for f in read_fields({"properties": properties})]


def test_the_fields_of_an_mcp_form_are_read():
    assert kinds(
        a={"type": "string", "format": "email"},
        b={"type": "string", "format": "color"},
        c={"type": "integer", "minimum": 1},
        d={"type": "number"},
        e={"type": "boolean"},
        f={"type": "string", "enum": ["x", "y"]},
        g={"type": "array", "items": {"enum": ["x"]}},
    ) == [
        ("text", "email"),
        ("text", ""),
        ("integer", ""),
        ("number", ""),
        ("boolean", ""),
        ("choice", ""),
        ("choices", ""),
    ]


@pytest.mark.parametrize(
    "about",
    [
        {"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"]},
        {
            "type": "string",
            "oneOf": [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}],
        },
    ],
)
def test_choices_have_titles_in_either_notation(about):
    [field] = read_fields({"properties": {"color": about}})

    assert field.options == (("r", "Red"), ("g", "Green"))


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array"},
        {"properties": {"a": {"type": "object", "properties": {}}}},
        {"properties": {"a": {"type": "array", "items": {"type": "string"}}}},
        {"properties": {"a": "text"}},
        {"properties": {str(n): {"type": "string"} for n in range(51)}},
        {"properties": {"a": {"type": "string", "enum": []}}},
    ],
)
def test_a_schema_that_is_not_a_form_is_rejected(schema):
    with pytest.raises(QuestionUnavailable):
        read_fields(schema)


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://example.com/sign?x=1", "example.com"),
        ("https://exämple.com:8443/", "xn--exmple-cua.com:8443"),
        ("https://аpple.com/", "xn--pple-43d.com"),  # a Cyrillic letter
    ],
)
def test_the_host_of_a_url_is_spelled_out(url, name):
    assert host(url) == name


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com",
        "javascript:alert(1)",
        "https://",
        "https://bank.com@evil.com/",
        "https://exa mple.com",
        "https://[::1",
        "https:\\\\evil.com",
        "https://x.com/" + "a" * 2000,
    ],
)
def test_a_url_that_is_not_plain_https_is_rejected(url):
    with pytest.raises(QuestionUnavailable):
        host(url)


@pytest.mark.parametrize(
    "url",
    [
        "https://wordpre\u00df.com/",
        "https://\uff47ithub.com/",
        "https://github.com%2eevil.com/",
    ],
)
def test_a_host_that_browsers_read_differently_is_rejected(url):
    with pytest.raises(QuestionUnavailable):
        host(url)


@pytest.mark.parametrize("about", [{"minLength": 10**400}, {"format": []}, {"maxLength": {}}])
def test_invalid_limits_are_ignored(about):
    [field] = read_fields({"properties": {"name": {"type": "string", **about}}})

    assert (field.least, field.most, field.format) == (None, None, "")


async def test_guardrails_see_the_form_of_a_question(agent):
    titled = {"type": "string", "title": "Your password", "description": "ana@example.com"}
    question = Question(source="x", message="Hi", schema={"properties": {"name": titled}})

    async def ask(context):
        try:
            return (await context.ask(question)).action
        except QuestionUnavailable as error:
            return str(error)

    async def ask_with(action, regex):
        runtime = agent(
            Says.call("work"),
            Says(answer="Done."),
            tools=[ContextTool(ask)],
            guardrails=Guardrails(
                blocked_patterns=[
                    Pattern(pattern=regex, name="rule", stage="tool_output", action=action)
                ]
            ),
        )
        with use_run(RunContext(user_id="7", chat_id="chat.1", questions=Desk())):
            return [event async for event in runtime.stream("Go")]

    masked = await ask_with(GuardrailAction.MASK, r"\S+@example\.com")
    blocked = await ask_with(GuardrailAction.BLOCK, "password")

    [asked] = of_type(masked, EventType.APPROVAL_REQUESTED)
    assert "ana@example.com" not in asked["function"]["arguments"]
    assert not of_type(blocked, EventType.APPROVAL_REQUESTED)


@pytest.mark.parametrize(
    "url", ["//evil.example/", "/\\evil.example/", "/mcp/3/sign-in", "/?a/"]
)
def test_a_page_of_the_product_needs_no_host_and_nothing_else_does_without(url):
    check_question(Question(source="club", message="Sign in.", url="/mcp/3/sign-in/"))
    with pytest.raises(QuestionUnavailable):
        check_question(Question(source="club", message="Sign in.", url=url))
