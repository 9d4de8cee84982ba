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


async def test_a_text_alone_is_the_first_argument():
    assert (await weather.execute("Kyoto")).output == '{"city": "Kyoto", "days": 1}'


async def test_a_function_that_blocks_runs_beside_the_event_loop():
    @function_tool
    def where() -> str:
        return threading.current_thread().name

    assert (await where.execute({})).output != threading.current_thread().name


async def test_a_function_that_waits_is_awaited():
    @function_tool(name="later", effect="at_most_once", timeout=3)
    async def soon(when: Literal["now", "then"]) -> str:
        return when

    assert (await soon.execute({"when": "now"})).output == "now"
    assert (soon.name, soon.effect, soon.timeout) == ("later", "at_most_once", 3)


async def test_values_come_back_as_json_and_models_as_their_own():
    class Point(BaseModel):
        x: int

    result = await FunctionTool(lambda: Point(x=1), name="point").execute({})

    assert result.output == '{"x":1}'


def test_arguments_without_names_are_refused():
    with pytest.raises(TypeError, match="has \\*numbers"):

        @function_tool
        def total(*numbers: int) -> int:
            return sum(numbers)


async def test_functions_that_hang_take_nothing_from_others():
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


def test_a_function_is_called_once_only_where_it_does_not_say_otherwise():
    assert weather.effect == "at_most_once"
