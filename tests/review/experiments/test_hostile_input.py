"""Hostile input of example sets and judges: files, nested tags, and requests of strangers."""

import json

import pytest
from django.test import AsyncClient

from agents.review.experiments import service
from agents.review.experiments.scoring import judge
from agents.review.experiments.sources import set_files
from agents.review.models import Example

DEEP = "[" * 100_000


def test_a_tag_made_of_two_halves_doesnt_end_the_judged_answer():
    for tag in ("<</answer>/answer>", "</ANSWER >", "< / answer>", "</answer\n>"):
        assert "<" not in judge._fenced(tag).replace("<‹", "")


@pytest.mark.django_db
@pytest.mark.parametrize(
    "line", [DEEP, json.dumps({"question": "a", "checks": DEEP}), '{"name": "\\ud800"}']
)
def test_a_line_that_cant_be_read_is_a_problem_of_its_row(example_set, person, line):
    result = set_files.import_file(example_set, "a.jsonl", line.encode(), person)

    assert [row.name.encode() for row in result.problems]


@pytest.mark.django_db
def test_a_cell_that_is_too_long_is_a_problem_of_the_file(example_set, person):
    text = f"question\n{'a' * 200_000}\n"

    with pytest.raises(set_files.InvalidFile):
        set_files.import_file(example_set, "a.csv", text.encode(), person)


@pytest.mark.django_db
def test_a_free_name_takes_one_query(example_set, django_assert_num_queries):
    names = ["a", *(f"a ({number})" for number in range(2, 50))]
    Example.objects.bulk_create(Example(name=name, question=name) for name in names)

    with django_assert_num_queries(1):
        assert set_files.free_name("a") == "a (50)"


@pytest.mark.django_db(transaction=True)
async def test_a_stranger_doesnt_advance_experiments(monkeypatch):
    advanced = []
    monkeypatch.setattr(service, "advance", advanced.append)

    answer = await AsyncClient().post("/admin/experiments/experiment/1/cancel/")

    assert answer.headers["Location"].startswith("/")
    assert not advanced
