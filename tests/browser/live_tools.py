"""A tool for browser tests that reports progress and asks the user while it runs."""

import asyncio

from agents.engine import call_context, function_tool
from agents.engine.call_context import Question

FORM = {
    "type": "object",
    "properties": {
        "email": {"type": "string", "format": "email", "title": "Email"},
        "seats": {
            "type": "integer",
            "title": "Seats",
            "minimum": 1,
            "maximum": 9,
            "default": 2,
        },
        "plan": {
            "type": "string",
            "title": "Plan",
            "oneOf": [{"const": "free", "title": "Free"}, {"const": "team", "title": "Team"}],
        },
        "extras": {
            "type": "array",
            "title": "Extras",
            "description": "Can be changed later.",
            "items": {"enum": ["backup", "support"], "enumNames": ["Backups", "Support"]},
        },
        "start": {"type": "string", "format": "date", "title": "First day"},
    },
    "required": ["email", "plan"],
}
QUESTION = Question(source="registry", message="Who should the account belong to?", schema=FORM)
PAGE = Question(
    source="registry", message="Confirm in your account.", url="https://example.org/ok"
)


@function_tool(effect="read")
async def live_calculator(expression: str) -> str:
    """Calculates slowly: 1 + 1 with progress, 2 + 2 after a form, 3 + 3 after a page."""
    context = call_context.current()
    match expression.replace(" ", ""):
        case "1+1":
            for percent in (10, 40, 80):
                context.report_progress(percent, 100, f"Adding, {percent} of 100")
                await asyncio.sleep(1.5)
            context.report_progress(100, 100, "Added")
        case "2+2":
            answer = await context.ask(QUESTION)
            return f"4, {answer.action}, {dict(answer.content)}"
        case "3+3":
            answer = await context.ask(PAGE)
            return f"6, {answer.action}"
    return "2"
