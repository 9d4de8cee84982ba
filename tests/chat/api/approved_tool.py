"""A tool that needs approval, for tests of how programs decide."""

from agents.engine.testing import Says
from agents.engine.tool import ToolResult

WRITE = Says.call("calculator", "I have to write.", to="a@example.org")
THANKS = Says(answer="It is written.")
ASK = Says.call("ask_person", "I have to ask.", question="Which city?")


class Letter:
    """A tool with an effect, which records its calls."""

    name, description, needs_approval, effect = "calculator", "Writes.", True, "at_most_once"
    parameters = {
        "type": "object",
        "properties": {"to": {"type": "string"}},
        "required": ["to"],
        "additionalProperties": False,
    }

    def __init__(self):
        self.sent = []

    async def execute(self, input):
        self.sent.append(dict(input))
        return ToolResult("Sent.")
