"""The circuit breakers of this process."""

from agents.engine.resilience import Circuits

# Circuit breakers of models and tools, shared by all runs of this process.
CIRCUITS = Circuits()
