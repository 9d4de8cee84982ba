from agents.access.audit import messages


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
