"""A step's output has a type, and conditions compare it as such."""

import pytest
from asgiref.sync import sync_to_async

from agents import runs
from agents.engine.expressions.functions import FUNCTIONS
from agents.engine.loop.tool_calls.function_tool import function_tool
from agents.engine.plans.execution.outcome import result_value
from agents.engine.tool import ToolResult
from agents.web.workflows import reference, start, versions
from tests.conftest import as_user, verify_run

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]
SIX = """
name: Six
steps:
  - name: sum
    tool: calculator
    arguments: {expression: 2 * 3}
    expected_outcome: "${output == 6}"
    until: output == 6
  - name: more
    tool: calculator
    arguments: {expression: "${steps.sum.output} * 7"}
    condition: steps.sum.output == 6 and steps.sum.output + 1 > 6.5
"""


@pytest.fixture
def six(administrator):
    return versions.save(SIX, administrator)


async def test_the_calculator_returns_a_number(six, person):
    wish = await sync_to_async(start.build_request)(six, {}, person)
    run = await sync_to_async(start.prepare_run)(wish, person, "chat.1")
    runs.launch(run)
    await runs.wait(run)

    assert (await verify_run(run)).status == "completed"
    steps = {step.action: step async for step in run.steps.filter(kind="task")}
    told = [e.data async for e in run.events.filter(type="step") if "output" in e.data]
    assert {"6", "42"} <= {str(each["output"]) for each in told}
    assert [type(each["output"]) for each in told] == [int] * len(told)
    assert {step.status for step in steps.values()} == {"done"}


@pytest.mark.parametrize(
    ("result", "value"),
    [
        (ToolResult("6", is_data=True), 6),
        (ToolResult("0.5", is_data=True), 0.5),
        (ToolResult("1e-07", is_data=True), 1e-07),
        (ToolResult("true", is_data=True), True),
        (ToolResult("null", is_data=True), None),
        (ToolResult('"6"', is_data=True), "6"),
        (ToolResult("6"), "6"),
        (ToolResult("007", is_data=True), "007"),
        (ToolResult("‹number›", is_data=True), "‹number›"),
        (ToolResult("12345678901234567.891", is_data=True), "12345678901234567.891"),
        (ToolResult("1.50", is_data=True), 1.5),
        (ToolResult("123456789012345678901", is_data=True), 123456789012345678901),
        (ToolResult('{"a": 6}'), {"a": 6}),
    ],
)
def test_json_results_are_parsed_and_text_stays_text(result, value):
    assert result_value(result) == value
    assert type(result_value(result)) is type(value)


@pytest.mark.parametrize("value", [6, 0.5, True, None, [1], {"a": 1}, "6"])
async def test_a_function_tool_returns_its_value(value):
    @function_tool
    def given() -> object:
        """Gives it."""
        return value

    assert result_value(await given.execute({})) == value


def test_the_editor_explains_every_function(administrator, six):
    client = as_user(administrator)

    for page in ("/workflows/new/", f"/workflows/{six.pk}/edit/"):
        shown = client.get(page).text.replace("&#x27;", "'")
        for function in FUNCTIONS.values():
            assert f"<code>{function.example}</code>" in shown
    assert reference.FUNCTION_HELP.keys() == FUNCTIONS.keys()
