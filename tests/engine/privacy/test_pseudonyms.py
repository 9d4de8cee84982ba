"""The model doesn't get personal data, and only the model notices."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agents.engine import (
    OutputSchema,
    ReActPlanner,
    ToolResult,
)
from agents.engine.errors import AgentConnectionError
from agents.engine.events import EventType
from agents.engine.loop.handoff import Handoff
from agents.engine.privacy.pseudonyms import Pseudonymizer, StreamingRestorer
from agents.engine.state import AgentState
from agents.engine.testing import Says, ScriptedModel, delta
from tests.engine.conftest import Echo, make_runtime
from tests.engine.loop.test_approval import _reload_event, collect_events
from tests.engine.loop.test_takeover import Steady, check
from tests.examples import many

MAIL, PHONE, ACCOUNT = "ann@example.com", "090-1234-5678", "7654321"
PEM = """-----BEGIN PRIVATE KEY-----
MIIEvQIBADANBgkqhkiG9w0BAQEFAASC
-----END PRIVATE KEY-----"""
KNOWN = {"‹email 1›": MAIL, "‹phone 1›": PHONE, "‹IP address 1›": "203.0.113.9"}


def runtime(llm, dialect, *tools, discretion=None, **options):
    discretion = discretion or Pseudonymizer()
    planner = ReActPlanner(llm, "steady", dialect=dialect, pseudonymizer=discretion)
    return make_runtime(planner, tools, **options)


def sent_messages(llm):
    return json.dumps([request["messages"] for request in llm.requests], ensure_ascii=False)


@pytest.fixture
def known():
    discretion = Pseudonymizer()
    discretion.remember(KNOWN)
    return discretion


def test_equal_values_have_one_alias_and_different_values_different_ones():
    hide = Pseudonymizer().hide

    assert hide(f"{MAIL} and bob@example.com") == "‹email 1› and ‹email 2›"
    assert hide(f"bob@example.com, {PHONE}, {MAIL}") == "‹email 2›, ‹phone 1›, ‹email 1›"


def test_a_known_account_number_is_replaced_without_its_label():
    hide = Pseudonymizer().hide

    assert hide(f"My account number is {ACCOUNT}.") == "My account number is ‹account 1›."
    assert hide(f"Rows: {ACCOUNT}, 87654321") == "Rows: ‹account 1›, 87654321"


@pytest.mark.parametrize(
    "written",
    [
        *("‹email 1›", "‹Email 1›", "‹ email 1 ›", "‹email1›", "‹email_1›", "‹EMAIL-1›"),
        *(
            "<email 1>",
            "«email 1»",
            "〈email 1〉",
            "＜email 1＞",
            "email 1",
            "‹email 1",
            "email 1›",
        ),
        *("‹e-mail 1›", "‹email １›", "‹email\u00a01›"),
    ],
)
def test_a_misspelt_alias_is_restored(known, written):
    assert known.restore(f"Write to {written} now.") == f"Write to {MAIL} now."
    assert known.restore(f"{written}に送る") == f"{MAIL}に送る"


@pytest.mark.parametrize(
    "text",
    [
        *("‹email 2›", "‹email›", "email 10", "email 1st", "subemail 1", "‹fax 1›", "emails 1"),
        *("phone 7", "‹email one›", "(email)", "1 email 2", "email: 1"),
    ],
)
def test_an_unknown_alias_is_unchanged(known, text):
    assert known.restore(text) == text


def test_text_that_looks_like_an_alias_is_not_restored():
    discretion = Pseudonymizer()

    hidden = discretion.hide(f"What does ‹email 1› mean? Ask {MAIL}.")

    assert hidden == "What does ‹email 1› mean? Ask ‹email 2›."
    assert discretion.restore(hidden) == f"What does ‹email 1› mean? Ask {MAIL}."


@pytest.mark.parametrize(
    ("text", "restored"),
    [
        ("[‹email 1›](mailto:‹email 1›)", f"[{MAIL}](mailto:{MAIL})"),
        ("<‹email 1›>", f"<{MAIL}>"),
        ("if email 1 > 5", f"if {MAIL} > 5"),
        ("ip-address_1", "203.0.113.9"),
    ],
)
def test_text_around_an_alias_is_unchanged(known, text, restored):
    assert known.restore(text) == restored


def test_restored_tool_arguments_are_valid_json(known):
    known.remember({"‹key 1›": 'a"b\\c\nd'})
    said = '{"to": "\\u2039email 1\\u203a", "with": ["‹key 1›", 5, true, null]}'

    arguments = known._restore_text(said)

    assert json.loads(arguments) == {"to": MAIL, "with": ['a"b\\c\nd', 5, True, None]}
    assert known._restore_text('{ "kept":  "as it came" }') == '{ "kept":  "as it came" }'


async def test_a_restored_structured_answer_still_matches_its_schema(dialect):
    """The key has several lines, and the model puts its JSON in a code fence."""
    schema = OutputSchema({"type": "object", "properties": {"key": {"type": "string"}}})
    llm = ScriptedModel(Says(answer='```json\n{"key": "‹key 1›"}\n```'), dialect=dialect)

    events = await collect_events(runtime(llm, dialect, output=schema).stream(f"Keep {PEM}"))

    assert events[-1].data["output"] == {"key": PEM}
    assert "MIIEvQ" not in sent_messages(llm)


ALIASES = st.sampled_from([*KNOWN, "‹email 2›", "Email 1", "<phone_1 >", "email", "ip address"])
MARKS = st.text("‹›<>«» _-e1５phonIPadrsml.\n", max_size=6)
TEXTS = st.lists(ALIASES | MARKS | st.text(max_size=4), max_size=12).map("".join)


@many(400)
@example("Email 1５m", [1])
@example("５email 1", [1])
@given(TEXTS, st.lists(st.integers(1, 9), min_size=1))
def test_streamed_restoring_equals_restoring_the_whole_text(text, sizes):
    known = Pseudonymizer()
    known.remember(KNOWN)
    growing, shown, at = StreamingRestorer(known), [], 0
    while at < len(text):
        size = sizes[at % len(sizes)]
        shown.append(growing.feed(text[at : at + size]))
        at += size

    assert "".join([*shown, growing.rest()]) == known.restore(text)


CARD = "4111 1111 1111 1111"
PERSONAL = st.sampled_from([MAIL, PHONE, CARD, "203.0.113.9", "bob@example.com"])
OTHERS = st.sampled_from(["Hello", "注文番号は12です", "v1.2", "、"])


@many(200)
@given(st.lists(PERSONAL | OTHERS, max_size=9))
def test_restoring_reverses_hiding(words):
    discretion, text = Pseudonymizer(), " ".join(words)

    hidden = discretion.hide(text)

    assert discretion.restore(hidden) == text
    assert not any(value in hidden for value in (MAIL, PHONE, "4111"))


def test_a_partial_alias_is_never_streamed(known):
    growing = StreamingRestorer(known)

    shown = [growing.feed(piece) for piece in ("Write to ‹em", "ail", " 1", "› or call", ".")]

    assert shown == ["Write to ", "", "", f"{MAIL} or call", "."]


def test_text_streams_at_once_when_nothing_was_hidden():
    assert StreamingRestorer(Pseudonymizer()).feed("Write an e") == "Write an e"


def test_text_that_cannot_be_an_alias_streams_at_once(known):
    assert StreamingRestorer(known).feed("The order is on its way") == "The order is on its way"


class Customer(Echo):
    """A tool that returns a phone number for an address."""

    effect = "read"

    async def execute(self, input):
        self.inputs.append(input)
        return ToolResult(f"{input['text']} has {PHONE}")


LOOKUP_CALL = Says.call("read", "I look up ‹email 1›.", text="‹email 1›")
CALLS = Says("Now I know ‹phone 1›.", answer="Call ‹phone 1›, or write to Email 1.")


async def test_the_model_gets_aliases_while_tools_and_users_get_values(dialect):
    llm, tool = Steady(dialect, LOOKUP_CALL, CALLS), Customer("read")

    events = await collect_events(runtime(llm, dialect, tool).stream(f"Who is {MAIL}?"))

    assert MAIL not in sent_messages(llm)
    assert PHONE not in sent_messages(llm)
    assert tool.inputs == [{"text": MAIL}]
    assert events[-1].data["answer"] == f"Call {PHONE}, or write to {MAIL}."
    said = "".join(e.data["content"] for e in events if e.type is EventType.DELTA)
    assert said == events[-1].data["answer"]
    thoughts = [e.data["thought"] for e in events if e.type is EventType.STEP]
    assert thoughts[0] == f"I look up {MAIL}."


async def test_the_trace_has_the_sent_text_and_the_values_of_aliases(dialect):
    llm = Steady(dialect, LOOKUP_CALL, CALLS)

    events = await collect_events(
        runtime(llm, dialect, Customer("read")).stream(f"Who is {MAIL}?")
    )

    first, second = [e.data["request"] for e in events if e.type is EventType.STEP_STARTED]
    assert first["messages"] == llm.requests[0]["messages"]
    assert first["replaced"] == {"‹email 1›": MAIL}
    assert second["replaced"]["‹phone 1›"] == PHONE


async def test_a_run_interrupted_after_any_event_keeps_its_aliases(dialect):
    def whole():
        return runtime(Steady(dialect, LOOKUP_CALL, CALLS), dialect, Customer("read"))

    told = await collect_events(whole().stream(f"Who is {MAIL}?"))

    for cut in range(1, len(told)):
        past, later = [_reload_event(event) for event in told[:cut]], whole()
        events = [*past, *await collect_events(later.resume(past))]

        check(events)
        assert events[-1].data["answer"] == f"Call {PHONE}, or write to {MAIL}.", cut
        assert MAIL not in sent_messages(later.planner.llm)


async def test_a_rerun_from_a_step_keeps_its_aliases(dialect):
    llm = Steady(dialect, LOOKUP_CALL, CALLS)
    told = await collect_events(
        runtime(llm, dialect, Customer("read")).stream(f"Who is {MAIL}?")
    )
    at = [n for n, e in enumerate(told) if e.type is EventType.STEP_STARTED][1]

    again = runtime(Steady(dialect, LOOKUP_CALL, CALLS), dialect, Customer("read"))
    events = await collect_events(again.rerun([_reload_event(event) for event in told[:at]]))

    assert events[-1].data["answer"] == f"Call {PHONE}, or write to {MAIL}."
    assert "Who is ‹email 1›?" in sent_messages(again.planner.llm)


async def test_aliases_stay_the_same_after_old_messages_are_trimmed(dialect):
    """The oldest messages, with alias number 1, are no longer sent."""
    state = AgentState(max_history=2)
    state.add_message("user", "I am bob@example.com.")
    llm = Steady(dialect, LOOKUP_CALL, CALLS)
    told = await collect_events(
        runtime(llm, dialect, Customer("read")).stream(f"And {MAIL}?", state)
    )
    at = next(n for n, e in enumerate(told) if e.type is EventType.TOOL_RESPONSE)

    later = Steady(dialect, LOOKUP_CALL, CALLS)
    await collect_events(runtime(later, dialect, Customer("read")).resume(told[: at + 1]))

    assert later.requests[0]["messages"][1]["content"] == "And ‹email 2›?"


async def test_a_sub_agent_gets_aliases(dialect):
    discretion = Pseudonymizer()
    helper_llm = ScriptedModel(Says(answer="It is ‹phone 1›."), dialect=dialect)
    helper = runtime(helper_llm, dialect, discretion=discretion, name="helper")
    script = Says.call("ask_helper", task="Whose is ‹email 1› and ‹phone 1›?"), CALLS
    llm, asks = Steady(dialect, *script), Handoff("helper", lambda: helper)
    lead = runtime(llm, dialect, asks, discretion=discretion, name="lead")

    events = await collect_events(lead.stream(f"{MAIL}, {PHONE}"))

    assert MAIL not in sent_messages(helper_llm) + sent_messages(llm)
    task = next(e for e in events if e.type is EventType.HANDOFF)
    assert task.data["query"] == f"Whose is {MAIL} and {PHONE}?"
    assert events[-1].data["answer"] == f"Call {PHONE}, or write to {MAIL}."


async def test_a_structured_answer_has_the_values(dialect):
    schema = OutputSchema(
        {"type": "object", "properties": {"to": {"type": "string", "minLength": 12}}}
    )
    script = Says(answer='{"to": "x"}'), Says(answer='{"to": "‹email 1›"}')
    llm = ScriptedModel(*script, dialect=dialect)

    events = await collect_events(runtime(llm, dialect, output=schema).stream(f"Mail {MAIL}"))

    assert events[-1].data["output"] == {"to": MAIL}
    assert MAIL not in sent_messages(llm)


async def test_an_invalid_answer_is_sent_back_with_aliases(dialect):
    schema = OutputSchema({"type": "object", "required": ["n"]})
    script = Says(answer='{"to": "‹email 1›"}'), Says(answer='{"n": 1}')
    llm = ScriptedModel(*script, dialect=dialect)

    await collect_events(runtime(llm, dialect, output=schema).stream(f"Mail {MAIL}"))

    assert '{\\"to\\": \\"‹email 1›\\"}' in sent_messages(llm)
    assert MAIL not in sent_messages(llm)


class Breaks:
    async def stream(self, **request):
        yield delta(content="Write to ‹ema")
        raise AgentConnectionError("The connection was lost.")


async def test_held_back_text_is_released_when_the_stream_breaks():
    events = await collect_events(runtime(Breaks(), "native").stream(f"Who is {MAIL}?"))

    assert events[-1].data["answer"] == "Write to ‹ema"


async def test_without_a_pseudonymizer_nothing_is_replaced(agent):
    runtime = agent(Says(answer="Yes."))

    events = await collect_events(runtime.stream(f"Who is {MAIL}?"))

    request = next(e.data["request"] for e in events if e.type is EventType.STEP_STARTED)
    assert MAIL in sent_messages(runtime.planner.llm)
    assert "replaced" not in request
