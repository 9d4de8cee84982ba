import pytest

from agents.engine import AgentConnectionError, ModelError, RateLimited, RetryPolicy


def rate_limit_error(seconds):
    error = RateLimited()
    error.retry_after = seconds
    return error


def test_backoff_grows_with_jitter():
    policy = RetryPolicy(max_retries=9, pause=1)
    waits = [policy.wait(AgentConnectionError(), attempt) for attempt in (1, 2, 3)]

    for attempt, wait in enumerate(waits, 1):
        assert 2**attempt / 2 <= wait <= 2**attempt
    assert policy.wait(AgentConnectionError(), 1) != waits[0]


def test_retry_after_is_respected():
    assert RetryPolicy().wait(rate_limit_error(7.5), 1) == 7.5
    assert RetryPolicy().wait(rate_limit_error(0), 1) == 0


def test_the_backoff_is_limited():
    assert RetryPolicy(max_pause=30).wait(rate_limit_error(3600), 1) is None
    assert RetryPolicy(max_retries=99, max_pause=30).wait(AgentConnectionError(), 20) <= 30


@pytest.mark.parametrize(("error", "attempt"), [(ModelError(), 1), (AgentConnectionError(), 3)])
def test_permanent_errors_are_not_retried(error, attempt):
    assert RetryPolicy(max_retries=2).wait(error, attempt) is None
