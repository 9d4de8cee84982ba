import ast
from pathlib import Path

from django.utils.translation import override

from agents.access.audit import messages

UNLABELLED = {"name", "changes"}  # part of the sentence, and the fields' own labels


def test_particulars_are_told_in_words():
    detail = {"is_right": True, "rule": "Mail", "changes": {"message": [None, "No."]}}

    assert (
        messages.summarize_detail(detail, {}) == "correct: yes, pattern: Mail, message: — → No."
    )


def test_ways_to_sign_in_are_told_in_words():
    assert messages.detail_lines({"way": "totp"}, {}) == ["via: authenticator app"]
    assert messages.detail_lines({"what": "all"}, {}) == ["type: all except the password"]
    assert messages.detail_lines({"reason": "totp", "what": 7}, {}) == [
        "reason: totp",
        "type: 7",
    ]


def test_a_change_is_named_as_on_its_form():
    detail = {"changes": {"is_staff": [False, True], "max_steps": [10, 5]}}

    with override("ja"):
        assert messages.detail_lines({"is_superuser": True}, {}, "person:1") == [
            "スーパーユーザー権限：はい"
        ]
        assert "最大ステップ数：10 → 5" in messages.detail_lines(detail, {}, "agent:1")
        assert messages.detail_lines({"changes": ["max_steps"]}, {}, "agent:1") == [
            "最大ステップ数"
        ]


def test_every_detail_that_is_recorded_has_a_label():
    recorded = {
        (path.name, keyword.arg)
        for top in ("agents", "chat")
        for path in Path(top).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "audit.record"
        for keyword in node.keywords
        if keyword.arg
    }

    assert len(recorded) > 20
    assert {
        (where, name)
        for where, name in recorded
        if name not in UNLABELLED and name not in messages.DETAIL_LABELS
    } == set()
