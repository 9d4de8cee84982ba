"""Whom a call is counted for, in this task or thread."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace

from agents.models import Agent, Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Payer:
    """What a call is made for: a user, agent, run, tool and API key, if there are any."""

    user: int | None = None
    agent: int | None = None
    run: int | None = None
    key: int | None = None
    tool: str = ""


NO_PAYER = Payer()
_current: ContextVar[Payer] = ContextVar("payer", default=NO_PAYER)
_timed: ContextVar[frozenset[int]] = ContextVar("timed", default=frozenset())


def payer_of(run: Run | None, agent: Agent | None = None) -> Payer:
    """Return who pays for a run's calls; `agent` is the one that makes them."""
    if run is None:
        return Payer(agent=agent.pk if agent else None)
    agent_id = agent.pk if agent is not None else run.agent_id
    return Payer(user=run.user_id, agent=agent_id, run=run.pk, key=run.api_key_id)


def current_payer() -> Payer:
    """Return who pays for calls that don't say so themselves."""
    return _current.get()


@contextmanager
def paying(payer: Payer | None = None, *, user: int | None = None) -> Iterator[None]:
    """Count the calls in this block for this payer or user."""
    token = _current.set(payer or replace(_current.get(), user=user))
    try:
        yield
    finally:
        _current.reset(token)


def timed_counters() -> frozenset[int]:
    """Return the counters to which a call around this one adds its time, this one included."""
    return _timed.get()


@contextmanager
def timing(counters: frozenset[int]) -> Iterator[None]:
    """Don't add the time of calls in this block to these counters again."""
    token = _timed.set(_timed.get() | counters)
    try:
        yield
    finally:
        _timed.reset(token)
