"""Builds planners: a model with its instructions, parameters, limits and timeouts."""

import os
from typing import Any, cast

from agents.db.installation import configured
from agents.engine.planner import Deadlines, Dialect, ReActPlanner, Sense
from agents.engine.privacy import Pseudonymizer
from agents.engine.resilience import Limits, RateLimiter
from agents.llm import model_info, routing, tokens, tuning
from agents.metering.budgets import Payer, payer_of
from agents.metering.model_limits import SharedRateLimiter
from agents.models import Agent, LanguageModel, Run

from . import model_clients, model_setups
from .model_setups import DEMO, ModelSetup

SELF_HOSTED_FIRST_SECONDS = 300.0
DEFAULT_INSTRUCTIONS = """\
You are {agent}, an assistant that thinks, uses tools and answers. Use a tool whenever it can
find or calculate what you need; never guess a number that a tool can provide. When you answer
from documents, cite passages by their numbers in brackets. Answer briefly, in Markdown, and in
the language of the question."""


def agent_instructions(agent: Agent) -> str:
    return agent.instructions or DEFAULT_INSTRUCTIONS.format(agent=agent.name)


def build_planners(
    agent: Agent, model: str, run: Run | None = None, pseudonymizer: Pseudonymizer | None = None
) -> list[ReActPlanner]:
    """Build a planner for this model, and one for each fallback; the run's user pays."""
    asker = (lambda: run.user) if run else (lambda: None)
    payer = payer_of(run, agent)
    planners: list[ReActPlanner] = []
    for setup in model_setups.model_chain(agent, model, asker):
        llm = model_clients.build_llm(setup, payer)
        is_batched = bool(getattr(llm, "batch_seconds", 0))
        planner = ReActPlanner(
            llm,
            setup.name,
            dialect=cast(Dialect, agent.dialect),
            instructions=agent_instructions(agent),
            parameters=_model_parameters(agent, setup),
            batch_seconds=0 if is_batched else model_clients.STREAM_BATCH_SECONDS,
            deadlines=_deadlines(setup),
            window=_window(setup),
            count_tokens=tokens.count,
            rate_limiter=_rate_limiter(setup.row) if setup.row else None,
            pseudonymizer=pseudonymizer,
            senses=_senses(setup),
            enforces_schemas=_enforces_schemas(setup),
        )
        planners.append(planner)
    return planners


def build_judge(
    name: str,
    max_tokens: int,
    pseudonymizer: Pseudonymizer | None = None,
    *,
    payer: Payer,
) -> ReActPlanner:
    """Build a planner that asks a model once, outside of any agent."""
    setup = model_setups.find_setup(name)
    row = setup.row
    parameters: dict[str, Any] = {}
    if name != DEMO and not setup.why:
        row_parameters = row.parameters if row else {}
        parameters = {**row_parameters, "max_tokens": max_tokens}
        parameters = tuning.tune(row.model if row else name, parameters, "", 0.0)
    return ReActPlanner(
        model_clients.build_llm(setup, payer),
        name,
        parameters=parameters,
        deadlines=_deadlines(setup),
        count_tokens=tokens.count,
        rate_limiter=_rate_limiter(row) if row else None,
        pseudonymizer=pseudonymizer,
    )


def context_window(agent: Agent, model: str = "") -> int:
    """Return the context window of the agent's model, or of another one, in tokens."""
    return model_window(model or model_setups.model_name(agent))


def model_window(name: str) -> int:
    """Return the context window of a model, in tokens."""
    return _window(ModelSetup(name=name, row=model_setups.model_row(name), why=None))


def max_question_tokens(agent: Agent, model: str = "") -> int | None:
    """Return how long a question can be: by the agent's limit and the model's window, if known.

    A quarter of the window is left for instructions, tools and the answer.
    """
    name = model or model_setups.model_name(agent)
    row = model_setups.model_row(name)
    window = (row and row.context_window) or model_info.known_window(row.model if row else name)
    limits = (agent.max_input_tokens, window and window * 3 // 4)
    return min((limit for limit in limits if limit), default=None)


def _window(setup: ModelSetup) -> int:
    row = setup.row
    return (row and row.context_window) or model_info.context_window(
        row.model if row else setup.name
    )


def sees_images(agent: Agent, model: str = "") -> bool:
    """Whether the agent's model, or another one, can be sent images."""
    name = model or model_setups.model_name(agent)
    return "image" in _senses(ModelSetup(name=name, row=model_setups.model_row(name), why=None))


def _senses(setup: ModelSetup) -> set[Sense]:
    """Return what the model can be sent besides text: by its row, or by LiteLLM's table."""
    row = setup.row
    name = row.model if row else setup.name
    sees = model_info.sees_images(name)
    if row and row.image_input != LanguageModel.ImageInput.AUTO:
        sees = row.image_input == LanguageModel.ImageInput.YES
    hears = (row.abilities if row else {}).get("audio", model_info.hears_audio(name))
    senses: set[Sense] = set()
    if sees:
        senses.add("image")
    if hears:
        senses.add("audio")
    return senses


def _enforces_schemas(setup: ModelSetup) -> bool:
    """Whether the model's server enforces schemas: as configured, as tested, or by its kind."""
    row = setup.row
    if row is None:
        return routing.is_self_hosted(setup.name, os.environ)
    is_self_hosted = routing.is_self_hosted(row.model, os.environ, row.connection.base_url)
    tested = row.last_test.get("parts", {}).get("schema", is_self_hosted)
    return bool(row.abilities.get("schema", tested))


def _model_parameters(agent: Agent, setup: ModelSetup) -> dict[str, Any]:
    if setup.name == DEMO or setup.why:
        return {}
    row = setup.row
    name = row.model if row else setup.name
    can_reason = row.abilities.get("reasoning") if row else None
    parameters: dict[str, Any] = dict(row.parameters) if row else {}
    limits = (agent.max_output_tokens, parameters.get("max_tokens"))
    max_tokens = min((limit for limit in limits if limit is not None), default=None)
    if max_tokens is not None:  # otherwise the model's own limit applies
        parameters["max_tokens"] = max_tokens
    return tuning.tune(name, parameters, agent.effort, agent.temperature, can_reason)


def _rate_limiter(row: LanguageModel) -> RateLimiter | None:
    """Return the limiter shared by all runs of all processes, with the row's limits."""
    limits = Limits(
        concurrency=row.concurrency,
        requests=row.requests_per_minute,
        tokens=row.tokens_per_minute,
    )
    return SharedRateLimiter(row.label, limits) if limits else None


def _deadlines(setup: ModelSetup) -> Deadlines:
    first_timeout = configured.MODEL_FIRST
    name = setup.row.model if setup.row else setup.name
    base_url = setup.row.connection.base_url if setup.row else ""
    is_chosen = first_timeout.is_fixed or first_timeout.is_changed
    is_patient = not is_chosen and routing.is_self_hosted(name, os.environ, base_url)
    return Deadlines(
        slow=configured.MODEL_SLOW.value,
        first=SELF_HOSTED_FIRST_SECONDS if is_patient else first_timeout.value,
        between=configured.MODEL_BETWEEN.value,
        whole=configured.MODEL_WHOLE.value,
    )
