"""Arguments that are edited in fields: only what the user changed is changed."""

import json

from django.http import QueryDict

from agents.models import Approval
from agents.runs.argument_edits import ArgumentForm

WRITTEN = {"to": "a@example.org", "copies": 2, "tags": ["x"], "text": "1\r2"}


def edited(**fields: str) -> dict | None:
    approval = Approval(pk=7, arguments=json.dumps(WRITTEN))
    form = QueryDict(mutable=True)
    form.update({name.replace("_", "-"): value for name, value in fields.items()})
    arguments = ArgumentForm(form, approval).arguments
    return None if arguments is None else json.loads(arguments)


def test_unchanged_fields_change_nothing():
    fields = {"argument_7_1": "2", "argument_7_2": '["x"]', "argument_7_3": "1\r\n2"}

    assert edited(**fields) is None
    assert edited(arguments_7=json.dumps(WRITTEN), **fields) == WRITTEN


def test_a_changed_text_stays_text_and_other_values_are_parsed():
    changed = edited(argument_7_0="12", argument_7_1="3")

    assert changed == WRITTEN | {"to": "12", "copies": 3}


def test_changed_json_takes_precedence():
    assert edited(arguments_7='{"to": "b"}', argument_7_0="c") == {"to": "b"}


def test_the_fields_of_another_request_are_ignored():
    assert edited(argument_8_0="c") is None
