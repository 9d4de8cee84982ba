"""What the page of a new key gives to copy: base URLs, and code that works as it is."""

import json
import shlex
from dataclasses import dataclass

from django.http import HttpRequest
from django.utils.translation import gettext as _

from agents.catalog import agent_factory
from agents.catalog.agent_factory import NoAgentAvailable
from agents.models import ApiKey
from agents.web.origin import origin_of

READ_CURL = """\
curl {origin}/api/v1/runs \\
  -H "Authorization: Bearer {token}"
"""
ASK_CURL = """\
curl {origin}/v1/chat/completions \\
  -H "Authorization: Bearer {token}" \\
  -H "Content-Type: application/json" \\
  -d {body}
"""
PYTHON = """\
# pip install openai
from openai import OpenAI

client = OpenAI(base_url="{origin}/v1", api_key="{token}")
completion = client.chat.completions.create(
    model={model},
    messages=[{{"role": "user", "content": {question}}}],
)
print(completion.choices[0].message.content)
"""
NODE = """\
// npm install openai
import OpenAI from "openai";

const client = new OpenAI({{ baseURL: "{origin}/v1", apiKey: "{token}" }});
const completion = await client.chat.completions.create({{
  model: {model},
  messages: [{{ role: "user", content: {question} }}],
}});
console.log(completion.choices[0].message.content);
"""


@dataclass(frozen=True, slots=True)
class Example:
    """Code to copy."""

    key: str
    name: str
    code: str


@dataclass(frozen=True, slots=True)
class Address:
    """A base URL, and which programs take it."""

    url: str
    programs: str


def addresses(request: HttpRequest) -> list[Address]:
    """Return the base URLs of this installation."""
    origin = origin_of(request)
    return [
        Address(f"{origin}/v1", _("OpenAI SDK and clients")),
        Address(f"{origin}/api/v1", _("REST API")),
        Address(f"{origin}/mcp", _("MCP clients")),
    ]


def examples(request: HttpRequest, key: ApiKey, token: str) -> list[Example]:
    """Return working code with this key and an agent that its user can ask."""
    values = {"origin": origin_of(request), "token": token}
    if ApiKey.Scope.ASK not in key.scopes:
        return [Example("curl", "curl", READ_CURL.format(**values))]
    model = _agent_name(key)
    question = _("What can you do?")
    message = {"role": "user", "content": question}
    body = json.dumps({"model": model, "messages": [message]}, ensure_ascii=False)
    quoted = {
        name: json.dumps(text, ensure_ascii=False)
        for name, text in (
            ("model", model),
            ("question", question),
        )
    }
    return [
        Example("curl", "curl", ASK_CURL.format(**values, body=shlex.quote(body))),
        Example("python", "Python", PYTHON.format(**values, **quoted)),
        Example("node", "Node.js", NODE.format(**values, **quoted)),
    ]


def _agent_name(key: ApiKey) -> str:
    try:
        return agent_factory.default_agent(key.user_id).name
    except NoAgentAvailable:
        return "helper"
