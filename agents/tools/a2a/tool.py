"""Hands a task to an agent elsewhere, over A2A 1.x with JSON-RPC."""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

import httpx2

from agents.engine import call_context
from agents.engine.call_context import Question, QuestionUnavailable
from agents.engine.privacy import MASK
from agents.engine.sentences import Sentence as _
from agents.engine.text import cut_text
from agents.engine.tool import Effect, ToolInput, ToolResult, uncertain_message

from ..egress import Egress, EgressFailed, EgressRefused, create_client, validate_url
from ..http.definition import parse_function, validate_headers
from ..http.response_text import MAX_OUTPUT_CHARS

PROTOCOL = "A2A"
VERSION_HEADER = {"A2A-Version": "1.0"}
MAX_MESSAGE_CHARS = 100_000
MAX_QUESTIONS = 10
MAX_QUESTION_CHARS = 4_000
MAX_STATUS_CHARS = 200
CANCEL_SECONDS = 3.0
PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "message": {
            "type": "string",
            "description": "The task, with everything needed: the agent hasn't seen this chat.",
        }
    },
    "required": ["message"],
    "additionalProperties": False,
}
COMPLETED = "TASK_STATE_COMPLETED"
INPUT_REQUIRED = "TASK_STATE_INPUT_REQUIRED"
ENDED_STATES = {
    COMPLETED,
    "TASK_STATE_FAILED",
    "TASK_STATE_CANCELED",
    "TASK_STATE_REJECTED",
}


class RemoteAgentFailed(Exception):
    """Raised when the other agent's server returns an error."""


@dataclass(slots=True)
class RemoteTask:
    """What is known of a task elsewhere, put together from its updates."""

    id: str = ""
    context: str = ""
    state: str = ""
    status: str = ""  # the last message of the agent
    artifacts: dict[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return "\n\n".join(filter(None, self.artifacts.values())) or self.status

    def take(self, payload: Mapping[str, Any]) -> None:
        """Apply a task, a message or an update."""
        if isinstance(message := payload.get("message"), dict):
            self.state = COMPLETED
            self.status = _read_parts(message)
        elif isinstance(task := payload.get("task"), dict):
            self.id = _string(task.get("id"))
            self.context = _string(task.get("contextId"))
            self._take_status(task.get("status"))
            artifacts = task.get("artifacts")
            for artifact in artifacts if isinstance(artifacts, list) else ():
                self._take_artifact(artifact, is_added=False)
        elif isinstance(update := payload.get("statusUpdate"), dict):
            self._take_status(update.get("status"))
        elif isinstance(update := payload.get("artifactUpdate"), dict):
            self._take_artifact(update.get("artifact"), is_added=update.get("append") is True)

    def _take_status(self, status: Any) -> None:
        if isinstance(status, dict):
            self.state = _string(status.get("state"))
            self.status = _read_parts(status.get("message"))

    def _take_artifact(self, artifact: Any, *, is_added: bool) -> None:
        if isinstance(artifact, dict):
            id = _string(artifact.get("artifactId"))
            before = self.artifacts.get(id, "") if is_added else ""
            self.artifacts[id] = before + _read_parts(artifact)


class RemoteAgentTool:
    """Sends a message to an agent elsewhere and returns its answer.

    Its statuses are the call's progress, its questions go to the run's user, and a stopped call
    cancels the task.
    """

    is_untrusted = True
    parameters = PARAMETERS

    def __init__(
        self,
        definition: Mapping[str, Any],
        endpoint: str,
        *,
        headers: Mapping[str, str] | None = None,
        egress: Egress | None = None,
        effect: Effect | None = None,
        timeout: float = 60.0,
    ) -> None:
        function = parse_function(definition)
        self.name: str = function["name"]
        self.description: str = function.get("description") or ""
        remote = function["a2a"]
        if not isinstance(remote, Mapping):
            raise ValueError(_("The part “a2a” of the definition must be an object."))
        self.effect: Effect = effect or "at_most_once"
        self.needs_approval = self.effect != "read"
        self.timeout = timeout + 2  # after our own limit, which has a clearer message
        self.reaches = f"{PROTOCOL} {endpoint}"
        self._method = "SendStreamingMessage" if remote.get("streams") else "SendMessage"
        self._tenant = _string(remote.get("tenant"))
        try:
            self._host = validate_url(endpoint).host
        except EgressRefused as refusal:
            message = _("The endpoint URL can't be used: %(why)s", why=refusal)
            raise ValueError(message) from refusal
        self._endpoint = endpoint
        self._headers = validate_headers(headers or {})
        self._policy = replace(egress or Egress(), timeout=timeout)

    async def execute(self, input: ToolInput, /) -> ToolResult:
        message = input if isinstance(input, str) else input.get("message")
        if not isinstance(message, str) or not message.strip():
            return ToolResult(error=_("Send the task as “message”."), mendable=True)
        task = RemoteTask()
        async with create_client(
            self._policy, headers=self._headers | VERSION_HEADER
        ) as client:
            try:
                await self._converse(client, task, message[:MAX_MESSAGE_CHARS])
            except (EgressRefused, EgressFailed, httpx2.HTTPError) as error:
                return self._failed(error)
            except RemoteAgentFailed as error:
                return ToolResult(error=self._mask(str(error)))
            except asyncio.CancelledError:
                await self._cancel(client, task)
                raise
            except QuestionUnavailable as error:
                await self._cancel(client, task)
                return ToolResult(error=str(error))
        text = self._mask(cut_text(task.text, MAX_OUTPUT_CHARS))
        if task.state == COMPLETED:
            return ToolResult(text or str(_("Done. The agent returned no text.")))
        state = task.state.removeprefix("TASK_STATE_").replace("_", " ").lower() or "unknown"
        ending = _("%(name)s ended with the state “%(state)s”.", name=self.name, state=state)
        return ToolResult(error=f"{ending} {text}".strip())

    async def _converse(self, client: httpx2.AsyncClient, task: RemoteTask, text: str) -> None:
        """Send the message, and the user's answers to what the agent asks."""
        for _count in range(MAX_QUESTIONS):
            await self._send(client, task, text)
            if task.state != INPUT_REQUIRED:
                return
            question = Question(
                source=self.name,
                message=task.status[:MAX_QUESTION_CHARS] or str(_("The agent needs input.")),
                schema={
                    "type": "object",
                    "properties": {"answer": {"type": "string", "title": str(_("Answer"))}},
                    "required": ["answer"],
                },
            )
            answer = await call_context.current().ask(question)
            if answer.action != "accept":
                await self._cancel(client, task)
                raise RemoteAgentFailed(_("The user didn't answer what the agent asked."))
            text = str(answer.content.get("answer", ""))
        await self._cancel(client, task)
        raise RemoteAgentFailed(_("The agent asked too many questions."))

    async def _send(self, client: httpx2.AsyncClient, task: RemoteTask, text: str) -> None:
        context = call_context.current()
        sent: dict[str, Any] = {
            "messageId": uuid4().hex,
            "role": "ROLE_USER",
            "parts": [{"text": text}],
        }
        if task.id:
            sent |= {"taskId": task.id, "contextId": task.context}
        request = self._request(self._method, message=sent)
        count = 0
        async with (
            client.stream("POST", self._endpoint, json=request) as response,
            aclosing(_results(response)) as results,
        ):
            async for payload in results:
                task.take(payload)
                count += 1
                context.report_progress(count, None, task.status[:MAX_STATUS_CHARS])

    async def _cancel(self, client: httpx2.AsyncClient, task: RemoteTask) -> None:
        """Ask the other side to stop, without waiting long for it."""
        if not task.id or task.state in ENDED_STATES:
            return
        with suppress(httpx2.HTTPError, EgressRefused, EgressFailed, TimeoutError):
            async with asyncio.timeout(CANCEL_SECONDS):
                await client.post(self._endpoint, json=self._request("CancelTask", id=task.id))

    def _request(self, method: str, **params: Any) -> dict[str, Any]:
        if self._tenant:
            params["tenant"] = self._tenant
        return {"jsonrpc": "2.0", "id": uuid4().hex, "method": method, "params": params}

    def _failed(self, error: Exception) -> ToolResult:
        if isinstance(error, EgressRefused | EgressFailed):
            sentence = str(error)
        else:  # the library's text may quote a header
            sentence = _("Couldn't reach %(host)s.", host=self._host)
        was_sent = not isinstance(error, EgressRefused) and getattr(error, "was_sent", True)
        if was_sent and self.effect == "at_most_once":
            sentence = uncertain_message(sentence)
        return ToolResult(error=self._mask(sentence))

    def _mask(self, text: str) -> str:
        for secret in self._headers.values():
            bare = secret.rpartition(" ")[2]
            text = text.replace(secret, MASK).replace(bare, MASK) if bare else text
        return text


async def _results(response: httpx2.Response) -> AsyncGenerator[Mapping[str, Any], None]:
    """Yield the results of a response, which is one object or a stream of them."""
    if response.status_code != 200:
        await response.aread()
        message = _("The agent's server returned HTTP %(status)s.", status=response.status_code)
        raise RemoteAgentFailed(message)
    if "text/event-stream" not in response.headers.get("content-type", ""):
        yield _result(await response.aread())
        return
    data: list[str] = []
    async for line in response.aiter_lines():
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif not line and data:
            yield _result("\n".join(data))
            data.clear()


def _result(content: str | bytes) -> Mapping[str, Any]:
    """Return the result of a JSON-RPC response; raise RemoteAgentFailed if it is an error."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise RemoteAgentFailed(_("The agent's server returned no JSON.")) from error
    value = value if isinstance(value, dict) else {}
    if isinstance(refusal := value.get("error"), dict):
        why = _string(refusal.get("message"))[:MAX_QUESTION_CHARS]
        raise RemoteAgentFailed(_("The agent's server refused: %(why)s", why=why))
    result = value.get("result")
    return result if isinstance(result, dict) else {}


def _read_parts(message: Any) -> str:
    """Return the text of a message or an artifact; data as JSON if there is no text."""
    parts = message.get("parts") if isinstance(message, dict) else None
    known = (
        [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    )
    texts = [part["text"] for part in known if isinstance(part.get("text"), str)]
    if not texts:
        texts = [
            json.dumps(part["data"], ensure_ascii=False) for part in known if "data" in part
        ]
    texts += [
        f"[{_string(part['filename'])[:MAX_STATUS_CHARS]}]"
        for part in known
        if "filename" in part
    ]
    return "".join(texts)


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""
