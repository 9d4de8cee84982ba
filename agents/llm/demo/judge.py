"""The demo model as the judge of a model check: it looks for words quoted in the rule."""

import json
import re
from typing import Any

from agents.engine.guardrails import JUDGE_PROMPT

QUOTED = re.compile(r"[“\"「]([^”\"」\n]{2,60})[”\"」]")
RULE = re.compile(r"The rule:\n(?P<rule>.*?)\n\nReply with one JSON object", re.DOTALL)


def judge(messages: list[Any]) -> str | None:
    """Return a verdict if one is asked for."""
    first = str(messages[0].get("content", "")) if messages else ""
    if JUDGE_PROMPT not in first or (match := RULE.search(first)) is None:
        return None
    text = str(messages[-1].get("content", "")).casefold()
    verdict = {
        "verdict": "ok",
        "confidence": 95,
        "reason": "None of the quoted words occur.",
    }
    for term in QUOTED.findall(match["rule"]):
        if term.casefold() in text:
            reason = f"The text contains “{term}”."
            verdict |= {"verdict": "violation", "reason": reason}
            break
    return json.dumps(verdict, ensure_ascii=False)
