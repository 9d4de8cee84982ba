"""Recall and precision of masking on a corpus."""

import json
import re
import time
from collections import Counter
from pathlib import Path

import pytest

from agents.engine.privacy.masking import PiiKind, find, mask
from tests.sampling import one_in

CORPUS = Path(__file__).parents[1] / "corpus"
PERSONAL = [line.split("\t") for line in (CORPUS / "personal.txt").read_text().splitlines()]
NEAR_MISSES = (CORPUS / "near_misses.txt").read_text().splitlines()


def lines(name):
    return [json.loads(line) for line in (CORPUS / name).read_text().splitlines()]


# STRUCTURED is data with a label or a distinct format; ORDINARY is text of shops, code and
# papers, written without knowledge of the patterns.
STRUCTURED = [*PERSONAL, *lines("structured.jsonl")]
ORDINARY = [*NEAR_MISSES, *lines("ordinary.jsonl")]
LEAST_FOUND, MOST_FALSE = 0.98, 0.02


def test_all_personal_data_is_masked_with_its_kind():
    missed = [text for kind, text in PERSONAL if not _is_hidden(kind, text)]

    assert len(PERSONAL) >= 150
    assert missed == []


def test_orders_dates_and_versions_are_not_masked():
    masked = {text: mask(text).text for text in NEAR_MISSES if find(text)}

    assert len(NEAR_MISSES) >= 150
    assert masked == {}


def test_recall_and_precision_are_high(capsys):
    missed = [(kind, text) for kind, text in STRUCTURED if not _is_hidden(kind, text)]
    alarms = {text: mask(text).text for text in ORDINARY if find(text)}
    found, false = 1 - len(missed) / len(STRUCTURED), len(alarms) / len(ORDINARY)

    with capsys.disabled():
        print(  # noqa: T201
            f"\nfound {found:.1%} of {len(STRUCTURED)} personal values, "
            f"{false:.1%} false alarms in {len(ORDINARY)} other texts"
        )
    assert min(len(STRUCTURED), len(ORDINARY)) >= 500
    assert found >= LEAST_FOUND, missed
    assert false <= MOST_FALSE, alarms


@pytest.mark.parametrize("kind", PiiKind)
def test_recall_is_high_for_every_kind(kind):
    cases = [text for name, text in STRUCTURED if name == kind]
    hidden = Counter(_is_hidden(kind, text) for text in cases)

    assert len(cases) >= 10
    assert hidden[True] >= 0.9 * len(cases)


@pytest.mark.parametrize(
    ("row", "shown"),
    [
        ("Taro,090-1234-5678,4242424242424242", "Taro,‹phone›,‹card›"),
        ("12,090-1234-5678,3", "12,‹phone›,3"),
        ("4111111111111111,4242424242424242", "‹card›,‹card›"),
        ("123456789018,078-05-1120,ada@example.com", "‹My Number›,‹SSN›,‹email›"),
        ("03-1234-5678/03-1234-5679", "‹phone›/‹phone›"),
        ("203.0.113.7,203.0.113.8", "‹IP address›,‹IP address›"),
        ("2026,1,234,567", "2026,1,234,567"),
    ],
)
def test_fields_of_a_row_are_masked_independently(row, shown):
    assert mask(row).text == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("pay 4111 **1111** 1111 1111.", "pay ‹card›."),
        ("pay 4111&#45;1111&#45;1111&#45;1111.", "pay ‹card›."),
        (r"to a\@example.com, please", "to ‹email›, please"),
        ("?to=ada%40example.com&x=1", "?to=‹email›&x=1"),
        ("call 090\u30001234\u30005678", "call ‹phone›"),
        ("**call** 090-1234-5678 _now_", "**call** ‹phone› _now_"),
        ("[090](https://example.com)-1234-5678", "[‹phone›"),
    ],
)
def test_data_split_by_markup_or_escapes_is_masked(text, shown):
    assert mask(text).text == shown


@pytest.mark.slow
def test_masking_takes_linear_time():
    text = "\n".join([re.sub("[⟦⟧]", "", text) for _, text in STRUCTURED] + ORDINARY)
    mask(text)  # one-time setup isn't counted

    once, eightfold = _seconds(text), _seconds(text * 8)

    assert eightfold < once * 8 * 4


@pytest.mark.parametrize(
    "unit", one_in(4, ["**1**", "a&#64;", "1 ", "%40", "[1](", "@a.", "0\u200b"])
)
def test_every_text_is_masked_quickly(unit):
    assert _seconds(unit * 20_000) < 10


def _is_hidden(kind: str, marked: str) -> bool:
    start, end = marked.index("⟦"), marked.index("⟧") - 1
    spans = find(re.sub("[⟦⟧]", "", marked))
    return any(s.start <= start and s.end >= end and s.kind == kind for s in spans)


def _seconds(text: str) -> float:
    began = time.thread_time()
    mask(text)
    return time.thread_time() - began
