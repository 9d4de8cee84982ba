import asyncio

import pytest

from agents.engine import (
    AgentConnectionError,
    EmptyReply,
    ModelError,
    ModelTimeout,
    ProviderFailed,
    RateLimited,
    TruncatedReply,
)
from agents.engine.errors import CircuitOpen
from agents.engine.resilience.circuit_breaker import (
    NEVER_OPEN,
    CircuitBreaker,
    CircuitPolicy,
    Circuits,
)


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def breaker(clock):
    return CircuitBreaker("tool:search", clock=clock)


def fail(breaker, times=1, **options):
    for _ in range(times):
        with breaker.attempt() as attempt:
            attempt.record_failure("No answer.", **options)


def succeed(breaker):
    with breaker.attempt() as attempt:
        attempt.record_success()


def words(breaker):
    return breaker.state().state


def test_it_opens_after_five_failures_in_a_row(breaker):
    fail(breaker, 5)

    with pytest.raises(CircuitOpen) as refused:
        succeed(breaker)
    assert str(refused.value).startswith("search has failed 5 times in a row. Next retry")
    assert refused.value.advice
    assert not refused.value.is_passing


def test_a_success_resets_the_failure_count(breaker):
    fail(breaker, 4)
    succeed(breaker)
    fail(breaker, 4)

    assert (words(breaker), breaker.state().failures) == ("closed", 4)


def test_the_state_lists_failures_last_error_and_next_attempt(breaker):
    closed = breaker.state()
    fail(breaker, 5)

    state = breaker.state()

    assert (state.key, state.state, state.failures) == ("tool:search", "open", 5)
    assert state.error == "No answer."
    assert 24 <= state.retry_in <= 30
    assert state.since > closed.since


def test_after_the_pause_exactly_one_trial_request_is_allowed(breaker, clock):
    fail(breaker, 5)
    clock.now += 31

    assert words(breaker) == "half_open"
    with breaker.attempt() as trial:
        with pytest.raises(CircuitOpen, match="being retried now"):
            succeed(breaker)
        trial.record_success()

    assert (words(breaker), breaker.state().failures) == ("closed", 0)
    succeed(breaker)


def test_every_failed_trial_doubles_the_pause_up_to_ten_minutes(breaker, clock):
    fail(breaker, 5)
    pauses = []
    for _ in range(8):
        pauses.append(breaker.state().retry_in)
        clock.now += 601
        fail(breaker)

    for pause, expected in zip(pauses, (30, 60, 120, 240, 480, 600, 600, 600), strict=True):
        assert expected * 0.8 <= pause <= expected
    assert breaker.state().failures == 13


def test_the_pauses_of_two_circuits_differ(clock):
    pauses = set()
    for _ in range(5):
        breaker = CircuitBreaker("tool:x", clock=clock)
        fail(breaker, 5)
        pauses.add(breaker.state().retry_in)

    assert len(pauses) > 1


def test_closing_resets_the_pause_to_the_shortest(breaker, clock):
    fail(breaker, 5)
    clock.now += 31
    fail(breaker)
    clock.now += 61
    succeed(breaker)

    fail(breaker, 5)

    assert breaker.state().retry_in <= 30


def test_retry_after_sets_the_length_of_the_pause(clock):
    patient, endless = (CircuitBreaker("model:x", clock=clock) for _ in range(2))
    fail(patient, 5, retry_after=90)
    fail(endless, 5, retry_after=86_400)

    assert (patient.state().retry_in, endless.state().retry_in) == (90, 600)


def test_requests_started_before_opening_do_not_change_the_pause(breaker):
    with breaker.attempt() as slow, breaker.attempt() as slower:
        fail(breaker, 5)
        before = breaker.state()
        slow.record_failure("Late.")
        slower.record_success()

    assert breaker.state() == before


async def test_a_cancelled_trial_request_allows_another_one(breaker, clock):
    fail(breaker, 5)
    clock.now += 31

    with pytest.raises(asyncio.CancelledError), breaker.attempt():
        raise asyncio.CancelledError

    assert (words(breaker), breaker.state().failures) == ("half_open", 5)
    succeed(breaker)


def test_a_disabled_circuit_breaker_allows_every_request():
    breaker = CircuitBreaker("model:x", NEVER_OPEN)
    fail(breaker, 1000)

    succeed(breaker)


def ask(circuits, error=None, model="openai/a"):
    with circuits.guard("openai", model):
        if error is not None:
            raise error


def fail_requests(circuits, error, times=5, **options):
    for _ in range(times):
        with pytest.raises(type(error)):
            ask(circuits, error, **options)


@pytest.mark.parametrize(
    ("error", "opened"),
    [
        (AgentConnectionError(), ["model:openai/a", "provider:openai"]),
        (ModelTimeout(), ["model:openai/a"]),
        (ProviderFailed(), ["model:openai/a"]),
        (RateLimited(), ["model:openai/a"]),
        (ModelError("Wrong key."), []),
        (EmptyReply(), []),
        (TruncatedReply(), []),
        (KeyError("a bug"), []),
        (asyncio.CancelledError(), []),
    ],
)
def test_only_provider_failures_open_a_circuit(error, opened):
    circuits = Circuits()

    fail_requests(circuits, error)

    assert [state.key for state in circuits.state() if state.state == "open"] == opened


def test_a_failing_model_does_not_block_other_models_of_its_provider():
    circuits = Circuits()
    fail_requests(circuits, ProviderFailed())

    ask(circuits, model="openai/b")

    with pytest.raises(CircuitOpen, match=r"^openai/a has failed 5 times in a row"):
        ask(circuits)


def test_an_unreachable_provider_is_skipped_for_all_its_models():
    circuits = Circuits()
    fail_requests(circuits, AgentConnectionError())

    with pytest.raises(CircuitOpen, match=r"^openai has failed 5 times in a row"):
        ask(circuits, model="openai/b")


def test_a_provider_trial_is_returned_when_the_models_circuit_is_open(clock):
    circuits = Circuits(clock=clock)
    limited = RateLimited()
    limited.retry_after = 300
    fail_requests(circuits, limited)
    fail_requests(circuits, AgentConnectionError(), model="openai/b")
    clock.now += 31

    with pytest.raises(CircuitOpen, match=r"^openai/a has failed"):
        ask(circuits)

    ask(circuits, model="openai/b")
    assert circuits.of("provider:openai").state().state == "closed"


def test_an_administrator_can_close_a_circuit():
    circuits = Circuits(CircuitPolicy(failures=1))
    fail_requests(circuits, ProviderFailed(), times=1)

    circuits.close("model:openai/a")

    assert [state.key for state in circuits.state() if state.state != "closed"] == []
    ask(circuits)
