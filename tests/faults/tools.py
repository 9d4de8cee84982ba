"""Tools whose effects are counted where no crash of the product can undo them."""

import asyncio
import os

from agents.engine import function_tool

EFFECTS = os.environ.get("FAULTS_EFFECTS", os.devnull)


def note(effect: str) -> None:
    """Append a line in one write, so that it is whole or absent."""
    file = os.open(EFFECTS, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(file, f"{effect}\n".encode())
    finally:
        os.close(file)


@function_tool
async def pay(order: str) -> str:
    """Pays an order. It must not be paid twice."""
    note(f"pay {order}")
    return f"Order {order} is paid."


@function_tool
async def sign(order: str) -> str:
    """Signs an order, once a person has agreed."""
    note(f"sign {order}")
    return f"Order {order} is signed."


@function_tool(effect="read")
async def look(word: str) -> str:
    """Looks a word up."""
    return f"{word} is a word."


@function_tool(effect="read")
async def wait(seconds: float) -> str:
    """Takes its time."""
    await asyncio.sleep(seconds)
    return "It took a while."
