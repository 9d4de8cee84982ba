"""A server made with FastMCP whose tools report progress, ask the user and use the model."""

import asyncio
from typing import Annotated, Literal

import mcp_types as wire
from fastmcp import Context, FastMCP
from fastmcp.server.elicitation import AcceptedElicitation
from pydantic import BaseModel, Field

registry = FastMCP("registry")
READS = {"readOnlyHint": True}


class Account(BaseModel):
    """What the form asks for."""

    email: Annotated[str, Field(title="Email", json_schema_extra={"format": "email"})]
    seats: Annotated[int, Field(title="Seats", ge=1, le=9)] = 2
    plan: Annotated[Literal["Free", "Team"], Field(title="Plan")]
    extras: Annotated[
        list[Literal["Backups", "Support"]],
        Field(title="Extras", description="Can be changed later."),
    ] = []
    start: Annotated[str, Field(title="First day", json_schema_extra={"format": "date"})] = ""


@registry.tool(annotations=READS)
async def index(ctx: Context) -> str:
    """Counts all entries, slowly."""
    for percent in (10, 40, 80):
        await ctx.report_progress(percent, 100, f"Counting, {percent} of 100")
        await asyncio.sleep(1)
    await ctx.report_progress(100, 100, "Counted")
    return "12 entries"


@registry.tool(annotations=READS)
async def register(ctx: Context) -> str:
    """Opens an account for the person that the user names."""
    answer = await ctx.elicit("Who should the account belong to?", Account)
    if not isinstance(answer, AcceptedElicitation):
        return f"Nothing was opened ({answer.action})."
    account = answer.data
    extras = " and ".join(account.extras)
    return f"{account.plan} account of {account.email}, {account.seats} seats, {extras}"


@registry.tool(annotations=READS)
async def confirm(ctx: Context) -> str:
    """Has the user confirm something on a page."""
    answer = await ctx.session.elicit_url(
        "Confirm in your account.", "https://example.org/ok", "1", ctx.request_id
    )
    return answer.action


@registry.tool(annotations=READS)
async def describe(ctx: Context) -> str:
    """Has the model describe the registry."""
    text = wire.TextContent(type="text", text="Describe the registry in one sentence.")
    reply = await ctx.session.create_message(
        [wire.SamplingMessage(role="user", content=text)],
        max_tokens=100,
        related_request_id=ctx.request_id,
    )
    return f"Described as: {reply.content.text}"


if __name__ == "__main__":
    registry.run(show_banner=False)
