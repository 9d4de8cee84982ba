"""A client for MCP's conformance suite: our connection to servers, signed in by a program.

The suite starts it with the address of its server: `python -m tests.compat.conformance_client`.
"""

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2

from agents.engine.call_context import CallContext, Question, QuestionAnswer, use_context
from agents.engine.question_form import read_fields
from agents.tools.addresses import AllowList
from agents.tools.egress import Egress
from agents.tools.mcp.configuration.config import ServerConfig
from agents.tools.mcp.connection.connection import Connection
from agents.tools.mcp.sign_in import AuthorizationResponse, Credentials, SignInFailed

SECONDS = 20.0
REDIRECT_URI = "http://localhost:3000/callback"
METADATA_URL = "https://conformance-test.local/client-metadata.json"
MAX_SIGN_INS = 3


class SignIn:
    """A user who signs in at once, wherever they are sent."""

    redirect_uri = REDIRECT_URI
    metadata_url = METADATA_URL

    def __init__(self, client: Mapping[str, Any]) -> None:
        self.credentials = Credentials(client=client)
        self.answer = ""
        self.count = 0

    async def load(self) -> Credentials:
        return self.credentials

    async def save_client(self, client: Mapping[str, Any]) -> None:
        pass

    async def save_tokens(self, credentials: Credentials) -> None:
        self.credentials = credentials

    async def authorize(self, url: str, rejected: Mapping[str, Any]) -> None:
        self.count += 1
        if self.count > MAX_SIGN_INS:
            raise SignInFailed
        async with httpx2.AsyncClient() as browser:
            response = await browser.get(url)
        self.answer = response.headers["Location"]

    async def response(self) -> AuthorizationResponse:
        answer = parse_qs(urlsplit(self.answer).query)
        return AuthorizationResponse(
            code=answer["code"][0],
            state=answer.get("state", [""])[0],
            issuer=answer.get("iss", [None])[0],
        )


class Call(CallContext):
    """A call whose user sends each form as it is."""

    async def ask(self, question: Question) -> QuestionAnswer:
        fields = read_fields(question.schema)
        content = {field.name: field.default for field in fields if field.default is not None}
        return QuestionAnswer(action="accept", content=content)


def given_client() -> dict[str, Any]:
    """Return the client that the suite says is registered already, if it does."""
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    if "client_secret" not in context:
        return {}
    known = {name: context[name] for name in ("client_id", "client_secret")}
    return {**known, "redirect_uris": [REDIRECT_URI]}


def arguments_for(parameters: Mapping[str, Any]) -> dict[str, Any]:
    samples = {"string": "text", "number": 5, "integer": 5, "boolean": True}
    properties = parameters.get("properties", {})
    required = parameters.get("required", [])
    return {name: samples.get(properties[name].get("type"), "text") for name in required}


async def main(url: str) -> int:
    config = ServerConfig(
        name="suite",
        transport="http",
        url=url,
        connect_timeout=SECONDS,
        call_timeout=SECONDS,
        sign_in=SignIn(given_client()),
    )
    egress = Egress(allow=AllowList.read(["127.0.0.1", "localhost", "::1"]))
    connection = Connection(config, egress=egress)
    errors = []
    try:
        with use_context(Call()):
            for tool in await connection.ready(again=False):
                result = await connection.call(tool.name, arguments_for(tool.parameters))
                errors += [result.error] if result.error else []
    except Exception as error:
        errors.append(str(error))
    finally:
        await connection.close()
    sys.stderr.write("\n".join(map(str, errors)))
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1])))
