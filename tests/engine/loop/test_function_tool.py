import asyncio
import threading
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field

from agents.engine import FunctionTool, Tool, function_tool


@function_tool
def weather(city: str, days: Annotated[int, Field(ge=1, le=7)] = 1) -> dict:
    """The weather of a city."""
    return {"city": city, "days": days}


def test_a_function_becomes_a_tool_by_its_name_and_its_docstring():
    assert isinstance(weather, Tool)
    assert (weather.name, weather.description) == ("weather", "The weather of a city.")


def test_the_schema_is_made_from_the_signature():
    assert weather.parameters == {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer", "minimum": 1, "maximum": 7, "default": 1},
        },
        "required": ["city"],
        "additionalProperties": False,
    }


async def test_valid_input_reaches_the_function_as_values():
    result = await weather.execute({"city": "Kyoto", "days": "3"})

    assert result.output == '{"city": "Kyoto", "days": 3}'


@pytest.mark.parametrize(
    ("input", "complaint"),
    [
        ({}, "city: Field required"),
        ({"city": "Kyoto", "days": 9}, "days: Input should be less than or equal to 7"),
        ({"city": ["Kyoto"]}, "city: Input should be a valid string"),
        ({"city": "Kyoto", "country": "JP"}, "country: Extra inputs are not permitted"),
    ],
)
async def test_invalid_input_never_reaches_the_function(input, complaint):
    reached = []

    @function_tool
    def weather(city: str, days: Annotated[int, Field(le=7)] = 1) -> None:
        reached.append(city)

    result = await weather.execute(input)

    assert complaint in result.error
    assert result.mendable
    assert reached == []


async def test_a_plain_string_is_the_first_argument():
    assert (await weather.execute("Kyoto")).output == '{"city": "Kyoto", "days": 1}'


async def test_a_blocking_function_runs_in_a_thread():
    @function_tool
    def where() -> str:
        return threading.current_thread().name

    assert (await where.execute({})).output != threading.current_thread().name


async def test_an_async_function_is_awaited():
    @function_tool(name="later", effect="at_most_once", timeout=3)
    async def soon(when: Literal["now", "then"]) -> str:
        return when

    assert (await soon.execute({"when": "now"})).output == "now"
    assert (soon.name, soon.effect, soon.timeout) == ("later", "at_most_once", 3)


async def test_a_pydantic_model_is_returned_as_json():
    class Point(BaseModel):
        x: int

    result = await FunctionTool(lambda: Point(x=1), name="point").execute({})

    assert result.output == '{"x":1}'


def test_variadic_arguments_are_rejected():
    with pytest.raises(TypeError, match="has \\*numbers"):

        @function_tool
        def total(*numbers: int) -> int:
            return sum(numbers)


async def test_hung_functions_do_not_block_other_functions():
    release = threading.Event()

    @function_tool
    def stuck() -> str:
        release.wait(10)
        return "late"

    calls = [asyncio.create_task(stuck.execute({})) for _ in range(40)]
    async with asyncio.timeout(5):
        free = await asyncio.to_thread(lambda: "free")
    release.set()

    assert free == "free"
    assert {result.output for result in await asyncio.gather(*calls)} == {"late"}


def test_functions_are_at_most_once_by_default():
    assert weather.effect == "at_most_once"
