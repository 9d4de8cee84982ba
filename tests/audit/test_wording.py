from agents.audit import wording


def test_particulars_are_told_in_words():
    detail = {"is_right": True, "rule": "Mail", "changes": {"message": [None, "No."]}}

    assert wording.shortly(detail, {}) == "rightly: yes, pattern: Mail, message: — → No."


def test_ways_to_sign_in_are_told_in_words():
    assert wording.facts({"way": "totp"}, {}) == ["by way of: authenticator app"]
    assert wording.facts({"what": "all"}, {}) == ["kind: everything but the password"]
    assert wording.facts({"reason": "totp", "what": 7}, {}) == ["reason: totp", "kind: 7"]
