"""Circuit breakers stop calling what keeps failing, then let one attempt through.

closed ──failures in a row──▶ open ──a pause──▶ half open ──a success──▶ closed
                               ▲───a failure: twice the pause───┘
"""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from math import ceil
from time import monotonic
from typing import Literal

from agents.engine.errors import AgentConnectionError, AgentError, CircuitOpen
from agents.engine.privacy.masking import mask

from ..sentences import Sentence as _

CircuitStateName = Literal["closed", "open", "half_open"]
Clock = Callable[[], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class CircuitPolicy:
    """Opens after this many failures in a row (None means never), for longer each time."""

    failures: int | None = 5
    pause: float = 30.0
    max_pause: float = 600.0

    def should_open(self, failures: int) -> bool:
        return self.failures is not None and failures >= self.failures

    def seconds(self, times: int, retry_after: float) -> float:
        """Return the pause for the nth opening in a row, or `retry_after` if that is longer."""
        # Jitter, so that processes that gave up together don't return together.
        pause = self.pause * 2.0 ** min(times - 1, 30) * random.uniform(0.8, 1)
        return min(self.max_pause, max(pause, retry_after))


@dataclass(frozen=True, slots=True, kw_only=True)
class CircuitState:
    """A circuit's current state; `since` is when it opened or closed.

    `label` is the key as displayed: several accounts of a provider have the same.
    """

    key: str
    label: str
    state: CircuitStateName
    failures: int
    since: datetime
    retry_in: float
    error: str


class CircuitBreaker:
    """Counts consecutive failures of one dependency."""

    def __init__(
        self,
        key: str,
        policy: CircuitPolicy | None = None,
        *,
        label: str = "",
        clock: Clock = monotonic,
    ) -> None:
        self.key = key
        self.label = label or key
        self.policy = policy or CircuitPolicy()
        self.clock = clock
        self._failures = 0
        self._error = ""
        self._since = datetime.now(UTC)
        self._until: float | None = None
        self._opened = 0
        self._round = 0
        self._trial: Attempt | None = None

    @contextmanager
    def attempt(self) -> Iterator["Attempt"]:
        """Yield an attempt that records its result; a stopped one records nothing."""
        if self.is_refusing:
            name = self.label.partition(":")[2] or self.label
            if not (seconds := ceil(self._retry_in())):
                raise CircuitOpen(
                    _(
                        "%(name)s has failed %(n)s times in a row and is being retried now.",
                        name=name,
                        n=self._failures,
                    )
                )
            raise CircuitOpen(
                _(
                    "%(name)s has failed %(n)s times in a row. Next retry in %(seconds)s s.",
                    name=name,
                    n=self._failures,
                    seconds=seconds,
                )
            )
        attempt = Attempt(self, self._round)
        if self._until is not None:
            self._trial = attempt
        try:
            yield attempt
        finally:
            if self._trial is attempt:
                self._trial = None

    @property
    def is_refusing(self) -> bool:
        return self._trial is not None or self._retry_in() > 0

    def state(self) -> CircuitState:
        retry_in = self._retry_in()
        state: CircuitStateName = "open" if retry_in else "half_open"
        return CircuitState(
            key=self.key,
            label=self.label,
            state="closed" if self._until is None else state,
            failures=self._failures,
            since=self._since,
            retry_in=retry_in,
            error=self._error,
        )

    def _record_success(self, round: int) -> None:
        if round != self._round:
            return
        self._failures = 0
        self._error = ""
        if self._until is not None:
            self._until = None
            self._opened = 0
            self._round += 1
            self._since = datetime.now(UTC)

    def _record_failure(self, round: int, error: str, retry_after: float) -> None:
        # An attempt from before it opened must not double the pause.
        if round != self._round:
            return
        self._failures += 1
        self._error = mask(error).text  # operators read it, and it may quote a question
        if self._until is None:
            if not self.policy.should_open(self._failures):
                return
            self._since = datetime.now(UTC)
        self._opened += 1
        self._round += 1
        self._until = self.clock() + self.policy.seconds(self._opened, retry_after)

    def _retry_in(self) -> float:
        return 0.0 if self._until is None else max(0.0, self._until - self.clock())


@dataclass(frozen=True, slots=True, eq=False)
class Attempt:
    """One use of what a circuit guards. A late result is ignored."""

    breaker: CircuitBreaker
    round: int

    def record_success(self) -> None:
        self.breaker._record_success(self.round)

    def record_failure(self, error: str, *, retry_after: float = 0) -> None:
        """Record a failure; `retry_after` is the pause the provider requested."""
        self.breaker._record_failure(self.round, error, retry_after)


class Circuits:
    """The circuits of one process by key: `model:…`, `provider:…` or `tool:…`."""

    def __init__(
        self, policy: CircuitPolicy | None = None, *, clock: Clock = monotonic
    ) -> None:
        self.policy = policy or CircuitPolicy()
        self.clock = clock
        self._breakers: dict[str, CircuitBreaker] = {}

    def of(self, key: str, label: str = "") -> CircuitBreaker:
        if key not in self._breakers:
            self._breakers[key] = CircuitBreaker(
                key, self.policy, label=label, clock=self.clock
            )
        return self._breakers[key]

    def _of_provider(self, provider: str, account: str) -> CircuitBreaker:
        label = f"provider:{provider}"
        return self.of(f"{label}#{account}" if account else label, label)

    @contextmanager
    def guard(self, provider: str, model: str, account: str = "") -> Iterator[None]:
        """Let a model request through and record its result.

        Only errors of the other side count, not a wrong key or a bad request. A provider is
        given up per account, because one that can't be reached says nothing about the others.
        """
        provider_circuit = self._of_provider(provider, account).attempt()
        model_circuit = self.of(f"model:{model}").attempt()
        with provider_circuit as provider_attempt, model_circuit as model_attempt:
            try:
                yield
            except AgentError as error:
                if error.is_outage:
                    model_attempt.record_failure(
                        str(error), retry_after=getattr(error, "retry_after", None) or 0
                    )
                # A provider that answers, even with an error, may have other models that work.
                if isinstance(error, AgentConnectionError):
                    provider_attempt.record_failure(str(error))
                raise
            provider_attempt.record_success()
            model_attempt.record_success()

    def are_refusing(self, provider: str, model: str, account: str = "") -> bool:
        breakers = (self._of_provider(provider, account), self.of(f"model:{model}"))
        return any(breaker.is_refusing for breaker in breakers)

    def state(self) -> list[CircuitState]:
        """Return the state of all circuits, by key."""
        return [breaker.state() for _, breaker in sorted(self._breakers.items())]

    def close(self, key: str) -> None:
        """Reset a circuit that an operator says works again."""
        self._breakers.pop(key, None)


NEVER_OPEN = CircuitPolicy(failures=None)
