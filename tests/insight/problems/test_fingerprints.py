"""Which messages are the same problem, and what never becomes part of its title."""

import time

import pytest

from agents.insight.problems.fingerprints import Cause, normalize
from agents.insight.problems.models import MAX_TITLE_CHARS


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Order 4711 not found", "Order ‹number› not found"),
        ("Got HTTP 503 from https://api.acme.com/v1?id=3", "Got HTTP 503 from ‹url›"),
        ("No row 123e4567-e89b-12d3-a456-426614174000", "No row ‹uuid›"),
        ("No answer within 30.5 s", "No answer within ‹duration›"),
        ("Can't connect to 10.0.0.7:5432", "Can't connect to ‹IP address›"),
        ("Object at 0x7f3a failed", "Object at ‹hex› failed"),
        ("Due on 2026-11-17T10:00:00Z", "Due on ‹date›"),
        ("KeyError: 'amount'", "KeyError: 'amount'"),
        ("no such column: 'amount_9'", "no such column: 'amount_‹number›'"),
        ("gpt-4.1 was busy -5 times", "gpt-4.1 was busy ‹number› times"),
        ("No customer “Hanako Tanaka”", "No customer ‹text›"),
        ("limit=true and name='Bo'", "limit=‹value› and name=‹value›"),
        ("It isn't there, and it can't be", "It isn't there, and it can't be"),
        ("Traceback (most recent call last):\n  File x\nValueError: bad", "ValueError: bad"),
        ("open /srv/data/a.txt failed", "open ‹path› failed"),
    ],
)
def test_what_differs_between_occurrences_is_replaced(text, expected):
    assert normalize(text) == expected


def test_a_status_code_tells_two_problems_apart():
    assert normalize("It returned HTTP 404.") != normalize("It returned HTTP 500.")


def test_secrets_and_personal_data_are_not_in_the_message():
    text = "Login ada@example.com with api_key=sk-abcdef1234567890abcdef failed, 090-1234-5678"
    title = normalize(text)

    assert not any(part in title for part in ("ada", "sk-abc", "5678"))


def test_what_was_put_into_a_tool_is_not_in_the_message():
    arguments = {"city": "Tanaka Hanako", "filters": ["Marunouchi"], "note": "東京"}
    title = normalize("No result for Tanaka Hanako in Marunouchi, 東京.", [arguments])

    assert title == "No result for ‹input› in ‹input›, ‹input›."


def test_the_name_of_the_model_is_a_tag():
    one = normalize("gpt-4.1 didn't respond in time.", names=["gpt-4.1"])

    assert one == "‹model› didn't respond in time."


def test_the_title_names_the_model_and_another_model_is_the_same_problem():
    causes = [
        Cause(
            stage="model",
            kind="model",
            message=normalize(f"The provider of '{name}' rejected the API key.", names=[name]),
            model=name,
        )
        for name in ("openai/gpt-4.1", "openai/gpt-5")
    ]

    assert causes[0].title == "The provider of openai/gpt-4.1 rejected the API key."
    assert causes[0].fingerprint("1") == causes[1].fingerprint("1")


def test_a_message_is_short():
    assert len(normalize("word " * 1_000)) <= MAX_TITLE_CHARS


def test_agents_and_tools_have_problems_of_their_own():
    cause = Cause(stage="tool", kind="tool_error", subject="weather", message="Failed")
    other = Cause(stage="tool", kind="tool_error", subject="clock", message="Failed")

    prints = {cause.fingerprint("1"), cause.fingerprint("2"), other.fingerprint("1")}
    assert len(prints) == 3


@pytest.mark.parametrize("text", ["a." * 1_000, "a@" * 1_000, "1," * 1_000 + "a", "0-" * 1_000])
def test_no_message_takes_long_to_read(text):
    began = time.process_time()
    normalize(text)
    assert time.process_time() - began < 0.5


def test_deeply_nested_arguments_are_read():
    arguments = "Marunouchi"
    for _level in range(3_000):
        arguments = [arguments]

    assert normalize("Nothing in Marunouchi.", [arguments]) == "Nothing in ‹input›."
