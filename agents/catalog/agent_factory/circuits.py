"""The circuit breakers of this process."""

from agents.db.installation import configured
from agents.engine.resilience import CircuitPolicy, Circuits


class _ConfiguredPolicy(CircuitPolicy):
    """Opens and pauses as configured now, also for breakers that exist already."""

    def should_open(self, failures: int) -> bool:
        return failures >= configured.CIRCUIT_FAILURES.value

    def seconds(self, times: int, retry_after: float) -> float:
        policy = CircuitPolicy(pause=configured.CIRCUIT_SECONDS.value)
        return policy.seconds(times, retry_after)


# Circuit breakers of models and tools, shared by all runs of this process.
CIRCUITS = Circuits(_ConfiguredPolicy())
