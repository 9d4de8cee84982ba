"""Comparison of two runs: every step once, where they diverge, and what differs."""

import time

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import Permission
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from agents.engine.testing import Says
from agents.models import Agent, AuditEntry, Run, ToolRegistration
from agents.review.replays.alignment import align
from agents.review.replays.comparison import Comparison
from agents.web.presentation import RunView
from agents.web.presentation.formats.text_diff import TextDiffer, split_words
from tests.conftest import run_question
from tests.sampling import one_in

ADD = Says.call("calculator", "I add.", expression="1 + 1")
STEPS = st.lists(st.sampled_from("abc"), max_size=30)


def equal(left, right):
    return float(left == right)


def mark_changes(text):
    """Return a text with its differences in brackets."""
    return lambda difference: "".join(
        f"[{piece.text}]" if piece.is_changed else piece.text
        for piece in getattr(difference, text)
    )


left, right = mark_changes("left"), mark_changes("right")


def compare_texts(one, other):
    return TextDiffer().compare(one, other)


@given(STEPS, STEPS)
def test_every_step_is_in_exactly_one_row_in_order(ours, theirs):
    pairs = align(ours, theirs, equal)

    assert [a for a, _ in pairs if a is not None] == ours
    assert [b for _, b in pairs if b is not None] == theirs
    assert all(a == b for a, b in pairs if a is not None and b is not None)


@given(STEPS)
def test_a_run_compared_with_itself_has_no_gap(steps):
    assert align(steps, steps, equal) == list(zip(steps, steps, strict=True))


def test_an_extra_step_does_not_shift_other_rows():
    pairs = align("abxcd", "abcd", equal)

    assert pairs == [("a", "a"), ("b", "b"), ("x", None), ("c", "c"), ("d", "d")]


def test_two_hundred_steps_are_aligned_quickly():
    ours, theirs = list(range(200)), list(range(100, 300))
    began = time.process_time()

    pairs = align(ours, theirs, equal)

    assert sum(a is not None and b is not None for a, b in pairs) == 100
    assert time.process_time() - began < 1


@given(st.text(), st.text())
def test_a_diff_loses_no_text(one, other):
    difference = compare_texts(one, other)

    assert "".join(piece.text for piece in difference.left) == one
    assert "".join(piece.text for piece in difference.right) == other
    assert difference.is_equal == (one == other)


def test_english_is_compared_by_words():
    difference = compare_texts(
        "The total is 1,234.50 dollars.", "The total is 1,240.00 dollars."
    )

    assert left(difference) == "The total is [1,234.50] dollars."
    assert right(difference) == "The total is [1,240.00] dollars."


def test_japanese_is_compared_by_script_runs():
    difference = compare_texts("東京の売上は増えました。", "大阪の売上は減りました。")

    assert left(difference) == "[東京]の売上は[増え]ました。"
    assert right(difference) == "[大阪]の売上は[減り]ました。"


def test_only_the_changed_ending_of_a_japanese_word_is_marked():
    difference = compare_texts("在庫を確認しました", "在庫を確認しません")

    assert right(difference) == "在庫を確認しま[せん]"


def test_short_common_parts_are_not_aligned():
    difference = compare_texts("The result is forty-two.", "The first account is made at once.")

    assert left(difference) == "The [result is forty-two]."
    assert right(difference) == "The [first account is made at once]."


def test_removed_lines_are_marked_as_whole_lines():
    difference = compare_texts("5 rows\n| a | 1 |\n| b | 2 |\nEnd", "3 rows\n| a | 1 |\nEnd")

    assert left(difference) == "[5] rows\n| a | 1 |[\n| b | 2 |]\nEnd"


@pytest.mark.parametrize("text", ["don't stop", "売上高2026年", "a\n\n  b", "😀 ok", "x_1=2;"])
def test_the_tokens_add_up_to_the_text(text):
    assert "".join(split_words(text)) == text


def test_long_texts_are_compared_by_lines_first_and_then_within_them():
    one = "".join(f"{n} is a number\n" for n in range(2_500))
    difference = compare_texts(
        one, one.replace("\n2400 is", "\n2400 was").replace("\n77 is", "\n77 was")
    )

    assert not difference.is_coarse
    assert right(difference).count("[") == 2
    assert "\n77 [was] a number\n" in right(difference)


def test_texts_that_take_too_long_to_compare_are_shown_whole():
    began = time.process_time()

    difference = compare_texts("0 1 " * 50_000, "1 0 0 " * 50_000)

    assert difference.is_coarse
    assert time.process_time() - began < 5


def test_a_page_with_many_long_texts_is_rendered():
    reader, began = TextDiffer(), time.process_time()

    for n in range(200):
        one, other = (f"{n * k} {k} " for k in (3, 5))
        reader.compare(one * 700, other * 700)

    assert time.process_time() - began < 10


async def side_by_side(one, other):
    """Compare both saved runs in all respects."""

    def compare():
        pair = Run.objects.get(pk=one.pk), Run.objects.get(pk=other.pk)
        comparison = Comparison(*(RunView(run, place="compare") for run in pair))
        return comparison, comparison.rows, comparison.setup, comparison.answer

    return await sync_to_async(compare)()


@pytest.fixture
def runs_of(scripted):
    async def of(*scripts, question="How much?"):
        found = []
        for script in scripts:
            scripted(*script)
            found.append(await run_question(question))
        return found

    return of


real = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]


class TestRuns:
    pytestmark = real

    async def test_equal_runs_have_no_divergence(self, runs_of):
        pair = await runs_of([ADD, Says(answer="2")], [ADD, Says(answer="2")])

        comparison, rows, setup, answer = await side_by_side(*pair)

        assert [row.why for row in rows] == ["", "", ""]
        assert comparison.first is None
        assert (setup, answer.is_equal, comparison.answers_differ) == ([], True, False)

    @pytest.mark.parametrize(
        ("script", "why"),
        one_in(
            4,
            [
                ([Says.call("calculator", "I add.", expression="2 + 2")], "arguments"),
                ([Says.call("search", "I add.", expression="1 + 1")], "tool"),
                ([Says.call("calculator", "I count.", expression="1 + 1")], "words"),
                ([], "only"),
            ],
        ),
    )
    async def test_the_first_divergence_has_a_reason(self, runs_of, script, why):
        pair = await runs_of([ADD, Says(answer="2")], [*script, Says(answer="2")])

        comparison, *_ = await side_by_side(*pair)

        assert comparison.first.why == why
        assert comparison.first.at == (2 if why in {"arguments", "tool"} else 1)

    async def test_a_different_observation_is_a_divergence(self, runs_of):
        pair = await runs_of([ADD, Says(answer="2")], [ADD, Says(answer="2")])
        await pair[1].steps.filter(kind="tool").aupdate(observation="3")

        comparison, *_ = await side_by_side(*pair)

        assert (comparison.first.at, comparison.first.why) == (2, "observation")

    async def test_a_longer_run_is_reported(self, runs_of):
        more = [ADD, Says.call("search", "I look.", query="x"), Says("Done.", answer="2")]
        pair = await runs_of([ADD, Says(answer="2")], more)

        _, rows, _, _ = await side_by_side(*pair)

        assert [bool(row.left) for row in rows].count(False) == 2
        assert [row.right.number for row in rows] == [1, 2, 3, 4, 5]

    async def test_missing_steps_of_a_live_run_are_no_difference(self, runs_of):
        pair = await runs_of([ADD, Says(answer="2")], [ADD, Says(answer="2")])
        await pair[1].steps.filter(number=3).adelete()
        await pair[1].steps.filter(number=2).aupdate(status="running", observation="")
        await Run.objects.filter(pk=pair[1].pk).aupdate(status="running", answer="")

        comparison, rows, _, _ = await side_by_side(*pair)

        assert [row.why for row in rows] == ["", "yet", "yet"]
        assert [stretch.kind for stretch in comparison.row_groups] == [
            "same",
            "shown",
            "coming",
        ]
        assert not rows[1].texts
        assert (comparison.first, comparison.answers_differ) == (None, False)

    async def test_runs_of_two_agents_are_aligned_by_their_actions(self, runs_of, scripted):
        (one,) = await runs_of([ADD, Says(answer="2")])
        other = await Agent.objects.acreate(name="other")
        await other.tools.aadd(await ToolRegistration.objects.aget(name="calculator"))
        scripted(ADD, Says(answer="2"))

        _, rows, setup, _ = await side_by_side(
            one, await run_question("How much?", agent=other)
        )

        assert [row.why for row in rows] == ["", "", ""]
        assert "Agent" in [text.label for text in setup]

    async def test_setting_differences_are_listed_with_a_diff(self, runs_of, scripted):
        (one,) = await runs_of([Says(answer="2")])
        await Agent.objects.aupdate(instructions="Be brief.", max_steps=3)
        await (await Agent.objects.aget()).tools.filter(name="search").adelete()
        (other,) = await runs_of([Says(answer="2")])

        _, _, setup, _ = await side_by_side(one, other)

        changed = {
            text.label: (left(text.difference), right(text.difference)) for text in setup
        }
        assert changed["Max steps"] == ("[10]", "[3]")
        assert changed["Tool search"] == ("available", "[not ]available")
        assert "[Be" in changed["Instructions"][1]

    async def test_the_page_shows_both_runs_and_the_divergence(self, runs_of, person):
        pair = await runs_of(
            [ADD, Says(answer="It is 2.")],
            [Says.call("calculator", "I add.", expression="1 + 2"), Says(answer="It is 3.")],
        )
        await Run.objects.aupdate(user=person)
        client = Client()
        await sync_to_async(client.force_login)(person)

        page = await sync_to_async(client.get)(f"/traces/{pair[0].pk}/compare/{pair[1].pk}/")

        html = page.text
        assert "First difference at step 2: Different arguments for calculator." in html
        assert 'id="first"' in html
        assert "It is <del>2</del>." in html
        assert "It is <ins>3</ins>." in html

    @pytest.mark.parametrize("typed", one_in(4, ["", "x", "\0", "9" * 40, "²", "-1", "#99999"]))
    async def test_an_invalid_run_number_is_an_error(self, typed, runs_of, person):
        (run,) = await runs_of([Says(answer="2")])
        await Run.objects.aupdate(user=person)
        client = Client()
        await sync_to_async(client.force_login)(person)

        page = await sync_to_async(client.get)("/traces/compare/", {"a": run.pk, "b": typed})

        assert page.status_code == 422
        assert "No run has this number." in page.text

    async def test_comparable_own_runs_are_suggested(self, runs_of, person, stranger):
        one, same = await runs_of([Says(answer="2")], [Says(answer="2")])
        (foreign,) = await runs_of([Says(answer="2")])
        (other,) = await runs_of([Says(answer="2")], question="Anything else?")
        await Run.objects.aupdate(user=person)
        await Run.objects.filter(pk=foreign.pk).aupdate(user=stranger)
        client = Client()
        await sync_to_async(client.force_login)(person)

        page = await sync_to_async(client.get)(f"/traces/{one.pk}/compare/")

        groups = {
            label: [view.run.pk for view in views] for label, views in page.context["groups"]
        }
        assert groups == {"Same question": [same.pk], "Same agent": [other.pk]}
        address = f"/traces/{one.pk}/compare/{foreign.pk}/"
        assert (await sync_to_async(client.get)(address)).status_code == 404

    async def test_other_users_text_is_masked_and_the_view_audited(
        self, runs_of, person, stranger
    ):
        pair = await runs_of(
            [Says(answer="Ask ada@example.org.")],
            [Says(answer="Ask bob@example.org.")],
            question="Whom does ada@example.org ask?",
        )
        await Run.objects.aupdate(user=person)
        right = await Permission.objects.aget(codename="review_runs")
        await sync_to_async(stranger.user_permissions.add)(right)
        client = Client()
        await sync_to_async(client.force_login)(stranger)

        pages = [f"/traces/{pair[0].pk}/compare/{more}" for more in ("", f"{pair[1].pk}/")]
        shown = [(await sync_to_async(client.get)(page)).text for page in pages]

        assert not any("@example.org" in page for page in shown)
        assert "Personal data is masked" in shown[1]
        assert await AuditEntry.objects.filter(subject=f"run:{pair[1].pk}").aexists()
