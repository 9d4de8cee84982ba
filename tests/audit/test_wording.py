from agents.audit import wording


def test_particulars_are_told_in_words():
    detail = {"is_right": True, "rule": "Mail", "changes": {"message": [None, "No."]}}

    assert wording.shortly(detail, {}) == "rightly: yes, pattern: Mail, message: — → No."
