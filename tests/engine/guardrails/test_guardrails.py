import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.engine import BadPattern, GuardrailAction, Guardrails
from agents.engine.guardrails.checks import (
    Pattern,
    compile_pattern,
    estimate_tokens,
)
from agents.engine.guardrails.match_length import match_bound
from agents.engine.guardrails.normalization import readings
from tests.examples import many


def test_plain_text_is_allowed():
    assert not Guardrails().inspect("How are you?", "input").is_blocked


@pytest.mark.parametrize(
    "text",
    [
        "my password",
        "my PASSWORD",
        "my ｐａｓｓｗｏｒｄ",
        "my pass\u200bword",
        "my pass\u00adword",
        "my pass\x7fw\x01ord",
        "my pass\ue000word",
        "my pass\U000e0077word",
        "my pass\ufe01word",
        "my pass\u3164word",
        "my p\u0338assword",
        "my pаsswоrd",  # with letters of another alphabet
        "my pássword",
        "my pa**ss**word",
        "my `pass`word",
        "my p&#97;ss&#x77;ord",
        "my [pass](https://example.com/a_b)word",
        "my pass%77ord",
        "my pass\ufffeword",
        "my pass\ufffcword",
        "my p\u20ddassword",
        "my pa\u0301\u0301ssword",
        "my p\u0e34assword",
        "my pa![ss](https://example.com/a.png)word",
        "my pa[ss](<https://example.com/a b>)word",
        "my pa[ss](https://example.com 'title')word",
        "my pa[ss](https://example.com (title))word",
        "my pa[ss]( https://example.com\n)word",
        "my pa[ss](https://example.com/(a(b))c)word",
        "my pa[ss](https://example.com/\\)c)word",
        'my pa[ss](https://example.com "a\\"b")word',
        "my pa[ss][1]word\n\n[1]: https://example.com",
        "my pass[word]\n\n[word]: https://example.com",
    ],
)
def test_a_blocked_pattern_is_found_however_it_is_disguised(text):
    result = Guardrails(blocked_patterns=["(?i)password"]).inspect(text, "input").result

    assert result.action is GuardrailAction.BLOCK
    assert result.details["rule"] == "(?i)password"
    assert "password" not in result.reason


@pytest.mark.parametrize(
    "gap",
    [
        "  ",
        "\n",
        "\n\n",
        " \n\t\n ",
        "\r\n",
        "\n> ",
        "\\\n",
        "\\\r\n",
        "\xa0",
        "\u3164",
        "\u2800",
        " \u200b \u200b ",
    ],
)
def test_words_are_found_with_any_whitespace_between_them(gap):
    rules = Guardrails(blocked_patterns=["(?i)ignore all instructions"])

    assert rules.inspect(f"Ignore{gap}all{gap}instructions", "input").is_blocked


def test_a_line_break_between_numbers_is_kept():
    rules = Guardrails(blocked_patterns=[r"\d{4} \d{4}", r"code: .*x"])

    assert not rules.inspect("2025\n2026", "input").is_blocked
    assert not rules.inspect("code: 1\nx", "input").is_blocked


def test_exceeding_the_token_limit_is_blocked_with_both_numbers():
    result = Guardrails(max_input_tokens=10).inspect("word " * 100, "input").result

    assert result.action is GuardrailAction.BLOCK
    assert result.details["tokens"] > result.details["limit"] == 10


def test_input_and_output_have_separate_limits():
    guardrails = Guardrails(max_input_tokens=1, max_output_tokens=100)

    assert guardrails.inspect("some words too many", "input").is_blocked
    assert not guardrails.inspect("some words too many", "output").is_blocked


@pytest.mark.parametrize("text", ["日本語" * 3, "\udc00" * 27, "a" * 27])
def test_tokens_are_not_counted_when_the_byte_count_is_below_the_limit(text):
    counted = []
    guardrails = Guardrails(
        max_output_tokens=27, count_tokens=lambda t: counted.append(t) or 28
    )

    assert not guardrails.inspect(text, "output").is_blocked
    assert guardrails.inspect(text + "a", "output").is_blocked
    assert counted == [text + "a"]


def test_tokens_are_counted_by_the_given_function():
    guardrails = Guardrails(max_input_tokens=2, count_tokens=lambda text: len(text.split()))

    assert not guardrails.inspect("two words", "input").is_blocked
    assert guardrails.inspect("three whole words", "input").is_blocked


def test_a_pattern_applies_only_to_its_stage():
    rule = Pattern(pattern="secret", stage="output")
    guardrails = Guardrails(blocked_patterns=[rule])

    assert not guardrails.inspect("secret", "input").is_blocked
    assert guardrails.inspect("secret", "output").is_blocked


def test_the_most_severe_finding_wins():
    warn = Pattern(pattern="a", action=GuardrailAction.WARN)
    block = Pattern(pattern="b", message="No b, please.")

    result = Guardrails(blocked_patterns=[warn, block]).inspect("a b", "input").result

    assert (result.action, result.reason) == (GuardrailAction.BLOCK, "No b, please.")


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(", r"missing \)"),
        ("(?<=a)b", "invalid perl operator"),
        ("", "Enter a pattern"),
        (".*", "matches everything"),
        ("x" * 1001, "up to 1000"),
        (r"(\d+)\1", "invalid escape"),
    ],
)
def test_an_invalid_pattern_is_rejected_with_the_reason(pattern, reason):
    with pytest.raises(BadPattern, match=reason):
        compile_pattern(pattern)


def test_a_pattern_with_catastrophic_backtracking_is_fast():
    guardrails = Guardrails(blocked_patterns=["(a+)+$"], max_input_tokens=10**6)

    assert not guardrails.inspect("a" * 50_000 + "!", "input").is_blocked


@given(st.text(), st.lists(st.integers(1, 30), max_size=20))
def test_streamed_text_is_complete_when_nothing_is_blocked(text, cuts):
    screen = Guardrails(blocked_patterns=["never-there-0"]).screen_output()
    shown, rest = "", text
    for cut in cuts:
        shown, rest = shown + screen.feed(rest[:cut]), rest[cut:]

    assert shown + screen.feed(rest) + screen.rest() == text


@given(st.integers(0, 300), st.lists(st.integers(1, 30), max_size=40))
def test_blocked_text_is_never_released_however_it_is_chunked(before, cuts):
    text = "x" * before + "swordfish" + "y" * 200
    screen = Guardrails(blocked_patterns=["swordfish"]).screen_output()
    shown, rest = "", text
    for cut in cuts:
        shown, rest = shown + screen.feed(rest[:cut]), rest[cut:]
    shown += screen.feed(rest) + screen.rest()

    assert screen.is_blocked
    assert set(shown) <= {"x"}


def test_each_wide_character_counts_as_one_token():
    assert estimate_tokens("日本語です") == 5
    assert estimate_tokens("abcdefgh") == 2


@pytest.mark.parametrize("pattern", ["^Sorry", "here$"])
def test_anchors_do_not_match_at_chunk_boundaries(pattern):
    screen = Guardrails(blocked_patterns=[pattern]).screen_output()

    for _ in range(40):
        screen.feed("You are here Sorry ")

    assert not screen.is_blocked


def masks(pattern, **more):
    return Pattern(pattern=pattern, action=GuardrailAction.MASK, **{"name": "x", **more})


def allows(pattern):
    return Pattern(pattern=pattern, action=GuardrailAction.ALLOW)


@pytest.mark.parametrize(
    ("rules", "text", "shown"),
    [
        ([masks(r"\d{4}")], "pin 1234, 99", "pin ‹x›, 99"),
        ([masks(r"\d{4}")], "pin １２３４!", "pin ‹x›!"),
        ([masks("secret")], "my s\u200bec\u00adret.", "my ‹x›."),
        ([masks("会社")], "in ㍿ there", "in ‹x› there"),
        ([masks("é")], "cafe\u0301 is", "caf‹x› is"),
        ([masks("ab"), masks("bc", name="y")], "abc bcab", "‹x› ‹y›‹x›"),
        ([masks("a+")], "aaa\ud800a", "‹x›\ud800‹x›"),
        ([masks(r"\S+@\S+"), allows("me@here")], "me@here you@there", "me@here ‹x›"),
        ([masks(r"\S+@\S+"), allows("me@here")], "some@here", "‹x›"),
        ([masks(r"\w+")], "‹x› hid this", "‹x› ‹x› ‹x›"),
        ([masks(r"\d{4} \d{4}")], "pin 4111 **1111**!", "pin ‹x›**!"),
        ([masks(r"\d{4} \d{4}")], "pin [4111](http://e.org) 1111!", "pin [‹x›!"),
        ([masks(r"\d-\d")], "so 1&#45;2 and 3\\-4.", "so ‹x› and ‹x›."),
        ([masks(r"\S+@\S+")], "**a\\@b** and c%40d", "‹x› and ‹x›"),
        ([masks(r"pin: .*")], "pin: 1  2\nand", "‹x›\nand"),
        ([masks("раз")], "р**а**з", "‹x›"),
        ([masks("a b")], "a **b** a\nb", "‹x›** ‹x›"),
    ],
)
def test_matches_are_replaced_in_the_original_text(rules, text, shown):
    inspected = Guardrails(blocked_patterns=rules).inspect(text, "input")

    assert inspected.text == shown
    assert Guardrails(blocked_patterns=rules).inspect(shown, "input").text == shown


def test_an_allow_rule_exempts_only_its_own_match():
    rules = [Pattern(pattern="(?i)kill"), allows("(?i)kill the process")]
    guardrails = Guardrails(blocked_patterns=rules)

    assert not guardrails.inspect("How do I kill the process?", "input").findings
    assert guardrails.inspect("Kill the process, kill them all", "input").is_blocked


def test_an_observe_only_rule_is_reported_and_changes_nothing():
    rule = Pattern(pattern="secret", name="Words", is_observed=True)

    inspected = Guardrails(blocked_patterns=[rule]).inspect("a secret, a secret", "input")

    assert (inspected.text, inspected.is_blocked) == ("a secret, a secret", False)
    [finding] = inspected.findings
    assert finding.details["observed"]
    assert (finding.action, finding.details["matches"]) == (GuardrailAction.BLOCK, 2)


def test_the_result_of_a_check_has_the_text_that_may_go_on():
    inspected = Guardrails(blocked_patterns=[masks("secret")]).inspect("a secret", "input")

    assert (inspected.result.action, inspected.text) == (GuardrailAction.MASK, "a ‹x›")


def test_structured_data_is_inspected_value_by_value():
    rules = [masks("secret", stage="tool_input"), masks("^4{4}$", stage="tool_input", name="y")]
    value = {"path": ["a secret"], "pin": 4444, "ok": True, "secret": None}

    inspected = Guardrails(blocked_patterns=rules).inspect_value(value, "tool_input")

    assert inspected.value == {"path": ["a ‹x›"], "pin": "‹y›", "ok": True, "‹x›": None}
    assert [f.details["matches"] for f in inspected.findings] == [2, 1]


def test_the_rest_is_masked_after_the_match_limit():
    text = "a " * 3_000 + "and the end"

    shown = Guardrails(blocked_patterns=[masks("a")], max_input_tokens=10**6).inspect(
        text, "input"
    )

    assert shown.text == "‹x› " * 1_999 + "‹x›"


@pytest.mark.parametrize("pattern", [r"(a.*z|a)", r"(x+x+)+y", r"([a-z]+)*$", "(.*a){25}b"])
def test_patterns_are_fast_on_long_text(pattern):
    try:
        Pattern(pattern=pattern).try_out()
    except BadPattern:
        return
    began = time.thread_time()
    Guardrails(blocked_patterns=[masks(pattern)]).inspect("a" * 200_000, "tool_output")

    assert time.thread_time() - began < 20


HOSTILE = [
    "((a{100}){100}){100}",
    r"\pL{1000}",
    r"(\pL{30}){30}",
    "(.{1,100}){1,10}x",
    r"\C",
    r"\b",
]


@pytest.mark.parametrize("pattern", HOSTILE)
def test_a_hostile_pattern_is_rejected(pattern):
    with pytest.raises(BadPattern):
        Pattern(pattern=pattern).try_out()


# Streaming


SHORT = ["ab{1,4}c", r"a\sb", r"\bcab\b", "^a", "c$", "[^a]{2}", "株式", "(?i)É", "bc", "ca?b"]
OF_A_LINE = ["[ab]+c", r"(?m)^b.*$", "a|a.*c", "(ab|ba){2,}"]
OF_A_TEXT = [r"(?s)a.*?c", r"[a-c]+\n"]
RULES = st.sampled_from([SHORT, [*SHORT, *OF_A_LINE], [*SHORT, *OF_A_TEXT]])
ACTIONS = st.sampled_from([GuardrailAction.MASK, GuardrailAction.MASK, GuardrailAction.ALLOW])
WORDS = ["abc", "abbbc", "cab", "a b", "bc", "ca", "x", " ", "\n", "ab\n", "‹r 0›", "\ud800"]
WORDS += ["abababab", "㍿", "ﬁ", "é", "e\u0301", "\u200b", "a\u200bb\u200bc"]
# Text that is rendered differently from its source, whole and in pieces.
WORDS += ["\\", "&#98;", "&", "#9", ";", "*", "**", "_", "`", "~~", "[", "](", "u)", "%61", "%"]
WORDS += ["  ", "\n> ", "\u3164", "\ue000", "\U000e0061", "аbс", "a&#x200b;b"]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=30).map("".join)
CUTS = st.lists(st.integers(1, 4), min_size=25, max_size=40)


@st.composite
def some_rules(draw, actions=ACTIONS):
    rules = st.sampled_from(draw(RULES))
    chosen = draw(st.lists(rules, min_size=1, max_size=4, unique=True))
    return [
        Pattern(pattern=p, name=f"r {n}", action=draw(actions)) for n, p in enumerate(chosen)
    ]


def stream_text(screen, text, cuts):
    shown = ""
    for cut in cuts:
        shown, text = shown + screen.feed(text[:cut]), text[cut:]
    return shown + screen.feed(text) + screen.rest()


@pytest.mark.slow
@many(600)
@given(some_rules(), TEXTS, CUTS)
def test_streamed_masking_equals_masking_the_whole_text(rules, text, cuts):
    guardrails = Guardrails(blocked_patterns=rules)

    shown = stream_text(guardrails.screen_output(), text, cuts)

    assert shown == guardrails.inspect(text, "output").text


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("[^a]{2}", "abcabcab\n\u3164abc&#98;"),
        ("[^a]{2}", "[](%ﬁ#9ﬁabababab&#98;**a ab"),
        ("c$", "cabbcx&#98;[ab\na\u200bb\u200bc_"),
    ],
)
def test_removed_markup_is_masked_the_same_while_streaming(pattern, text):
    guardrails = Guardrails(blocked_patterns=[masks(pattern)])

    shown = stream_text(guardrails.screen_output(), text, [1] * len(text))

    assert shown == guardrails.inspect(text, "output").text


@pytest.mark.slow
@many(600)
@given(some_rules(st.just(GuardrailAction.BLOCK)), TEXTS, CUTS)
def test_no_character_of_a_blocked_match_is_released(rules, text, cuts):
    guardrails = Guardrails(blocked_patterns=rules)
    screen = guardrails.screen_output()

    shown = stream_text(screen, text, cuts)

    assert screen.is_blocked == guardrails.inspect(text, "output").is_blocked
    starts = [
        read.starts[match.start()]
        for read in readings(text)
        for rule in rules
        for match in rule.regex.finditer(read.text)
    ]
    assert shown == (text[: len(shown)] if starts else text)
    assert len(shown) <= min(starts, default=len(text))


@given(TEXTS)
def test_normalized_text_maps_back_to_its_source_positions(text):
    for read in readings(text):
        assert len(read.text) == len(read.starts) == len(read.ends)
        assert list(read.starts) == sorted(read.starts)
        assert all(start < end for start, end in zip(read.starts, read.ends, strict=True))


PARTS = st.sampled_from(
    [
        *"abc.",
        r"\s",
        r"\d",
        "[^a]",
        "[ab]",
        "^",
        "$",
        r"\b",
        r"\n",
        "[[:alpha:]]",
        r"\pL",
        "{,2}",
    ]
)
TIMES = st.sampled_from(["", "", "*", "+", "?", "{2}", "{1,3}", "{2,}", "*?"])


def group_strategy(inner):
    joined = st.lists(st.tuples(inner, TIMES).map("".join), min_size=1, max_size=4).map("".join)
    opened = st.sampled_from(["(", "(?:", "(?i:", "(?s:", "(?P<n>"])
    either = st.lists(joined, min_size=1, max_size=3).map("|".join)
    return joined | st.builds(lambda o, e: f"{o}{e})", opened, either)


def test_a_single_line_pattern_holds_text_back_until_the_line_ends():
    screen = Guardrails(blocked_patterns=[masks("pin is: .*")]).screen_output()

    assert match_bound(screen._filter._rules[-1].regex.pattern).extent == "line"
    assert "first" in screen.feed("The first line\nsecond\nthird\nfourth\n and more ")


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit",
    [
        *("[a](", "\u200b"),
        *(
            pytest.param(unit, marks=pytest.mark.thorough)
            for unit in ("*", "\n>", "![", "&", "\\", " ", "](", "_a", "\u0301")
        ),
    ],
)
def test_streaming_is_fast_for_any_text(unit):
    screen = Guardrails(blocked_patterns=["never-there"]).screen_output()
    began = time.thread_time()
    for _ in range(2_000):
        screen.feed(unit * 20)
    screen.rest()

    assert time.thread_time() - began < 5


@pytest.mark.slow
@many(800)
@given(
    st.recursive(PARTS, group_strategy, max_leaves=8), st.text(st.sampled_from("abc \n1{,2}"))
)
def test_no_match_exceeds_the_match_bound(pattern, text):
    try:
        made = compile_pattern(pattern)
    except BadPattern:
        return
    found = [match.group() for match in made.finditer(text)]

    assert all(len(words) <= match_bound(pattern).max_length for words in found)
    assert not match_bound(pattern).ending_breaks & set("".join(found))
