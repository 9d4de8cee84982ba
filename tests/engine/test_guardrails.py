import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.engine import BadPattern, GuardrailAction, Guardrails
from agents.engine.guardrails import Pattern, compile_pattern, estimate_tokens


def test_plain_text_is_allowed():
    assert Guardrails().check_input("How are you?").action is GuardrailAction.ALLOW


@pytest.mark.parametrize(
    "text",
    [
        "my password",
        "my PASSWORD",
        "my ｐａｓｓｗｏｒｄ",
        "my pass\u200bword",
        "my pass\u00adword",
    ],
)
def test_a_blocked_pattern_is_found_however_it_is_disguised(text):
    result = Guardrails(blocked_patterns=["(?i)password"]).check_input(text)

    assert result.action is GuardrailAction.BLOCK
    assert "password" in result.reason


def test_more_tokens_than_allowed_are_blocked_with_the_figures():
    result = Guardrails(max_input_tokens=10).check_input("word " * 100)

    assert result.action is GuardrailAction.BLOCK
    assert result.details["tokens"] > result.details["limit"] == 10


def test_input_and_output_have_limits_of_their_own():
    guardrails = Guardrails(max_input_tokens=1, max_output_tokens=100)

    assert guardrails.check_input("some words too many").action is GuardrailAction.BLOCK
    assert guardrails.check_output("some words too many").action is GuardrailAction.ALLOW


@pytest.mark.parametrize("text", ["日本語" * 3, "\udc00" * 27, "a" * 27])
def test_what_has_fewer_bytes_than_it_may_have_tokens_is_not_counted(text):
    counted = []
    guardrails = Guardrails(
        max_output_tokens=27, count_tokens=lambda t: counted.append(t) or 28
    )

    assert guardrails.check_output(text).action is GuardrailAction.ALLOW
    assert guardrails.check_output(text + "a").action is GuardrailAction.BLOCK
    assert counted == [text + "a"]


def test_tokens_are_counted_by_what_is_handed_in():
    guardrails = Guardrails(max_input_tokens=2, count_tokens=lambda text: len(text.split()))

    assert guardrails.check_input("two words").action is GuardrailAction.ALLOW
    assert guardrails.check_input("three whole words").action is GuardrailAction.BLOCK


def test_a_pattern_looks_only_where_it_is_meant_to():
    rule = Pattern(pattern="secret", stage="output")
    guardrails = Guardrails(blocked_patterns=[rule])

    assert guardrails.check_input("secret").action is GuardrailAction.ALLOW
    assert guardrails.check_output("secret").action is GuardrailAction.BLOCK


def test_the_worst_finding_wins():
    warn = Pattern(pattern="a", action=GuardrailAction.WARN)
    block = Pattern(pattern="b", message="No b, please.")

    result = Guardrails(blocked_patterns=[warn, block]).check_input("a b")

    assert (result.action, result.reason) == (GuardrailAction.BLOCK, "No b, please.")


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(", r"missing \)"),
        ("(?<=a)b", "invalid perl operator"),
        ("", "empty"),
        (".*", "matches everything"),
        ("x" * 1001, "at most 1000"),
        (r"(\d+)\1", "invalid escape"),
    ],
)
def test_a_bad_pattern_is_refused_with_the_reason(pattern, reason):
    with pytest.raises(BadPattern, match=reason):
        compile_pattern(pattern)


def test_a_pattern_that_explodes_elsewhere_is_harmless_here():
    result = Guardrails(blocked_patterns=["(a+)+$"], max_input_tokens=10**6).check_input(
        "a" * 50_000 + "!"
    )

    assert result.action is GuardrailAction.ALLOW


@given(st.text(), st.lists(st.integers(1, 30), max_size=20))
def test_streamed_text_comes_through_whole_where_nothing_is_blocked(text, cuts):
    screen = Guardrails(blocked_patterns=["never-there-0"]).screen_output()
    shown, rest = "", text
    for cut in cuts:
        shown, rest = shown + screen.feed(rest[:cut]), rest[cut:]

    assert shown + screen.feed(rest) + screen.rest() == text


@given(st.integers(0, 300), st.lists(st.integers(1, 30), max_size=40))
def test_nothing_of_what_is_blocked_is_shown_however_it_is_cut(before, cuts):
    text = "x" * before + "swordfish" + "y" * 200
    screen = Guardrails(blocked_patterns=["swordfish"]).screen_output()
    shown, rest = "", text
    for cut in cuts:
        shown, rest = shown + screen.feed(rest[:cut]), rest[cut:]
    shown += screen.feed(rest) + screen.rest()

    assert screen.blocked
    assert set(shown) <= {"x"}


def test_wide_characters_count_whole():
    assert estimate_tokens("日本語です") == 5
    assert estimate_tokens("abcdefgh") == 2


@pytest.mark.parametrize("pattern", ["^Sorry", "here$"])
def test_the_ends_of_a_piece_are_not_taken_for_the_ends_of_the_text(pattern):
    screen = Guardrails(blocked_patterns=[pattern]).screen_output()

    for _ in range(40):
        screen.feed("You are here Sorry ")

    assert not screen.blocked
