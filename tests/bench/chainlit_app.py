"""Chainlit as in its documentation; run in its own environment."""

import os

import chainlit
from openai import AsyncOpenAI

MODEL = os.environ["RELAY_MODEL"]
client = AsyncOpenAI(base_url=os.environ["RELAY_URL"], api_key="none")


@chainlit.on_message
async def answer(message: chainlit.Message) -> None:
    said = [{"role": "user", "content": message.content}]
    stream = await client.chat.completions.create(model=MODEL, messages=said, stream=True)
    reply = chainlit.Message(content="")
    async for chunk in stream:
        if chunk.choices and (text := chunk.choices[0].delta.content):
            await reply.stream_token(text)
    await reply.send()
