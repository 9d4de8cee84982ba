"""Builds planners: a model with its instructions, parameters, limits and timeouts."""

import os
from typing import Any, cast

from agents.budgets import Payer, payer_of
from agents.engine.planner import Deadlines, Dialect, ReActPlanner, Sense
from agents.engine.privacy import Pseudonymizer
from agents.engine.resilience import Limits, RateLimiter
from agents.installation import configured
from agents.llm import model_info, routing, tokens, tuning
from agents.model_limits import SharedRateLimiter
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
    return [
        _build_planner(agent, setup, pseudonymizer, payer)
        for setup in model_setups.model_chain(agent, model, asker)
    ]


def _build_planner(
    agent: Agent, setup: ModelSetup, pseudonymizer: Pseudonymizer | None, payer: Payer
) -> ReActPlanner:
    llm, row = model_clients.build_llm(setup, payer), setup.row
    is_batched = bool(getattr(llm, "batch_seconds", 0))
    return ReActPlanner(
        llm,
        setup.name,
        dialect=cast(Dialect, agent.dialect),
        instructions=agent_instructions(agent),
        parameters=_model_parameters(agent, setup),
        batch_seconds=0 if is_batched else model_clients.STREAM_BATCH_SECONDS,
        deadlines=_deadlines(setup),
        window=_window(setup),
        count_tokens=tokens.count,
        rate_limiter=_rate_limiter(row) if row else None,
        pseudonymizer=pseudonymizer,
        senses=_senses(setup),
    )


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
    row_parameters = setup.row.parameters if setup.row else {}
    parameters = (
        {} if name == DEMO or setup.why else {**row_parameters, "max_tokens": max_tokens}
    )
    return ReActPlanner(
        model_clients.build_llm(setup, payer),
        name,
        parameters=tuning.tune(row.model if row else name, parameters, "", 0.0)
        if parameters
        else {},
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
    row, name = setup.row, setup.row.model if setup.row else setup.name
    sees = model_info.sees_images(name)
    if row and row.image_input != LanguageModel.ImageInput.AUTO:
        sees = row.image_input == LanguageModel.ImageInput.YES
    hears = (row.abilities if row else {}).get("audio", model_info.hears_audio(name))
    senses: dict[Sense, bool] = {"image": sees, "audio": hears}
    return {sense for sense, has_it in senses.items() if has_it}


def _model_parameters(agent: Agent, setup: ModelSetup) -> dict[str, Any]:
    if setup.name == DEMO or setup.why:
        return {}
    row_parameters = setup.row.parameters if setup.row else {}
    limits = [
        n for n in (agent.max_output_tokens, row_parameters.get("max_tokens")) if n is not None
    ]
    name = setup.row.model if setup.row else setup.name
    can_reason = setup.row.abilities.get("reasoning") if setup.row else None
    # Without a limit, the model's own applies.
    parameters = (
        {**row_parameters, "max_tokens": min(limits)} if limits else dict(row_parameters)
    )
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
    row = setup.row
    name, base_url = (row.model, row.base_url) if row else (setup.name, "")
    is_chosen = first_timeout.is_fixed or first_timeout.is_changed
    is_patient = not is_chosen and routing.is_self_hosted(name, os.environ, base_url)
    return Deadlines(
        slow=configured.MODEL_SLOW.value,
        first=SELF_HOSTED_FIRST_SECONDS if is_patient else first_timeout.value,
        between=configured.MODEL_BETWEEN.value,
        whole=configured.MODEL_WHOLE.value,
    )
