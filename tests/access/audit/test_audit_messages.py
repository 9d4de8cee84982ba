import ast
import re
from pathlib import Path

from django.utils.translation import override

from agents.access import audit
from agents.access.audit import messages
from agents.models import AuditEntry

# Part of the sentence, the fields' own labels, and what is displayed as it is stored.
UNLABELLED = {"name", "changes"}


def test_details_have_readable_labels():
    detail = {"is_right": True, "rule": "Mail", "changes": {"message": [None, "No."]}}

    assert (
        messages.summarize_detail(detail, {}) == "correct: yes, pattern: Mail, message: — → No."
    )


def test_sign_in_methods_have_readable_labels():
    assert messages.detail_lines({"way": "totp"}, {}) == ["via: authenticator app"]
    assert messages.detail_lines({"what": "all"}, {}) == ["type: all except the password"]
    assert messages.detail_lines({"reason": "totp", "what": 7}, {}) == [
        "reason: totp",
        "type: 7",
    ]


def test_a_changed_field_has_the_label_of_its_form():
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
        if "audit.record" in (source := path.read_text())
        for node in ast.walk(ast.parse(source))
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


def test_screens_and_rows_are_named_in_the_readers_language():
    entry = AuditEntry(action=audit.VIEWED, subject="run:12", detail={})

    assert messages.detail_lines({"door": "page"}, {}) == ["screen: run page"]
    assert messages.subject_label(entry, {}) == "run 12"
    with override("ja"):
        assert messages.detail_lines({"door": "compare"}, {}) == ["画面：比較"]
        assert messages.subject_label(entry, {}) == "実行12"
        entry.detail = {"name": "helper"}
        entry.subject = "agent:1"
        assert messages.subject_label(entry, {}) == "エージェント「helper」"


def test_every_screen_that_is_recorded_has_a_label():
    paths = [path for top in ("agents", "chat") for path in Path(top).rglob("*.py")]
    text = "\n".join(path.read_text() for path in paths)
    calls = re.compile(r'(?:open_run|record_view|record_search)\([^)]*?"([a-z]+)"\)?$', re.M)
    named = re.compile(r'^AUDIT_SOURCE = "([a-z]+)"', re.M)
    # The door of open_run is "page" by default.
    recorded = {*calls.findall(text), *named.findall(text), "page"}

    assert len(recorded) > 7
    assert recorded <= {*messages.SCREEN_LABELS}
