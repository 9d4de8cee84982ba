"""Whether a model works: by its settings, its circuit breaker, its last test and its runs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil
from typing import Any, Literal

from django.core import signing
from django.utils import timezone
from django.utils.crypto import salted_hmac
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _

from agents.catalog.agent_factory import CIRCUITS
from agents.catalog.language_models import model_setups
from agents.db.sentences import translate
from agents.llm.discovery.model_probe import ProbeResult
from agents.models import Agent, LanguageModel
from agents.models.secret import UnreadableSecret

from .model_usage import ModelTotals

SALT = "agents.console.model_test"
MAX_TOKEN_SECONDS = 24 * 3600
StateName = Literal["working", "failing", "untested", "disabled"]
TONES: dict[str, str] = {"working": "green", "failing": "red", "untested": "amber"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelState:
    name: StateName
    reason: str = ""
    at: datetime | None = None

    @property
    def tone(self) -> str:
        return TONES.get(self.name, "")

    @property
    def label(self) -> str:
        return {
            "working": _("Working"),
            "failing": _("Failing"),
            "untested": _("Never tested"),
            "disabled": _("Disabled"),
        }[self.name]


def state_of(
    row: LanguageModel,
    totals: ModelTotals | None = None,
    among: Sequence[LanguageModel] | None = None,
) -> ModelState:
    """Return the model's state, and why it is failing; `among` are all models, if known."""
    if not row.enabled:
        return ModelState(name="disabled")
    if error := model_setups.configuration_error(row.label, among):
        return ModelState(name="failing", reason=translate(str(error)))
    if paused := circuit_of(row):
        return ModelState(name="failing", reason=paused)
    test = row.last_test
    usage = totals or ModelTotals()
    tested_at = parse_datetime(test.get("at", "")) if test else None
    has_worked = usage.runs > usage.failed
    is_outdated = bool(tested_at and usage.last and usage.last > tested_at and has_worked)
    if test and not is_outdated:
        if test.get("works"):
            return ModelState(name="working", at=tested_at)
        return ModelState(name="failing", reason=translate(test.get("error", "")), at=tested_at)
    if has_worked:
        return ModelState(name="working", at=usage.last)
    if usage.failed:
        return ModelState(name="failing", reason=_("All recent runs failed."), at=usage.last)
    return ModelState(name="untested")


def circuit_of(row: LanguageModel) -> str:
    """Return why calls are paused, or an empty string."""
    for state in CIRCUITS.state():
        if state.key == f"model:{row.label}" and state.state != "closed":
            again = _("Paused, retries in %(seconds)d s.") % {"seconds": ceil(state.retry_in)}
            return f"{translate(state.error)} {again}".strip()
    return ""


# Tests


def test_record(error: Any, results: list[ProbeResult]) -> dict[str, Any]:
    """Return a test's result as it is saved with the model."""
    reply = next((result for result in results if result.part == "reply"), None)
    error = error or (reply.error if reply else None)
    works = error is None and reply is not None and reply.works
    sentence = f"{error} {error.advice}" if error else ""
    if not works and not sentence:
        sentence = "The model returned an empty response."
    return {
        "at": timezone.now().isoformat(),
        "works": works,
        "error": sentence,
        "parts": {result.part: result.works for result in results if result.part != "reply"},
        "seconds": round(reply.seconds, 2) if reply else None,
    }


def sign(row: LanguageModel, record: dict[str, Any]) -> str:
    """Return a test's result for the form, bound to the tested connection."""
    return signing.dumps([fingerprint(row), record], salt=SALT)


def read_signed(row: LanguageModel, token: str) -> dict[str, Any] | None:
    """Return the result if it is about this very connection."""
    try:
        tested, record = signing.loads(token, salt=SALT, max_age=MAX_TOKEN_SECONDS)
    except signing.BadSignature:
        return None
    return record if tested == fingerprint(row) else None


def save_record(row: LanguageModel, record: dict[str, Any]) -> None:
    """Save a test's result, if the saved model is the one that was tested."""
    rows = LanguageModel.objects.select_related("connection")
    saved = rows.filter(pk=row.pk).first() if row.pk else None
    if saved is not None and fingerprint(saved) == fingerprint(row):
        LanguageModel.objects.filter(pk=row.pk).update(last_test=record)


def fingerprint(row: LanguageModel) -> str:
    """Return a digest of everything that decides whether a model works."""
    connection = row.connection
    try:
        secrets = [connection.api_key.reveal(), connection.secrets.reveal()]
    except UnreadableSecret:
        secrets = [connection.pk]
    place = [connection.base_url, connection.api_version, connection.region]
    settings = [row.model, *place, connection.options, row.options, secrets]
    return salted_hmac(SALT, repr(settings), algorithm="sha256").hexdigest()[:32]


# Agents


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentUse:
    """How an agent uses a model."""

    agent: Agent
    role: Literal["model", "fallback", "default"]

    @property
    def label(self) -> str:
        return {
            "model": _("model"),
            "fallback": _("fallback"),
            "default": _("default model"),
        }[self.role]


def uses_of(row: LanguageModel, agents: list[Agent]) -> Iterator[AgentUse]:
    """Yield the agents that use it, also as a fallback or because it is the default."""
    names = {row.label, row.model}
    for agent in agents:
        if agent.model in names:
            yield AgentUse(agent=agent, role="model")
        elif not agent.model and row.is_default and row.enabled:
            yield AgentUse(agent=agent, role="default")
        elif names & {*agent.fallback_models.split()}:
            yield AgentUse(agent=agent, role="fallback")
