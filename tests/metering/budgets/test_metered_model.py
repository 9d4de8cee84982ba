"""A model's requests pass the gate, and count however they end."""

import asyncio

import pytest
from asgiref.sync import sync_to_async

from agents.engine.errors import AgentConnectionError, QuotaExceeded
from agents.llm.model_info import Price
from agents.llm.usage_limits import UsageLimits
from agents.metering.budgets import Payer, gate, limits
from agents.metering.budgets.metered.metered_model import MeteredModel
from agents.models import BudgetCounter, BudgetHold, Quota

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db(transaction=True)]

PRICE = Price(input=0.001, output=0.002, read=0.0001, written=0.00125)
ASKED = {"model": "m", "messages": [{"role": "user", "content": "hello there"}]}


class Streaming:
    """A model that streams words, then its usage, then an error, as far as given."""

    def __init__(self, words=(), usage=None, error=None):
        self.words, self.usage, self.error, self.is_closed = words, usage, error, False

    async def stream(self, **_request):
        try:
            for word in self.words:
                yield {"choices": [{"delta": {"content": word}}]}
                await asyncio.sleep(0)
            if self.error:
                raise self.error
            if self.usage:
                yield {"usage": self.usage}
        finally:
            self.is_closed = True


async def limit(person, amount, measure="tokens", window="day"):
    """Save a limit; a server reads such rows every few seconds, outside of the event loop."""
    await Quota.objects.acreate(user=person, measure=measure, window=window, limit=amount)
    await sync_to_async(limits.ROWS.refresh)()


@pytest.fixture
async def counted(person):
    """Return a function that calls a model to the end and returns what was counted."""
    await limit(person, 10_000_000, "cost")

    async def call(llm, reads=1000):
        model = MeteredModel(llm, "m", "m", price=PRICE, payer=Payer(user=person.pk))
        chunks = model.stream(**ASKED)
        try:
            async for _chunk in chunks:
                reads -= 1
                if not reads:
                    break
        finally:
            await chunks.aclose()
            while gate._settling:
                await asyncio.gather(*gate._settling)
        assert not await BudgetHold.objects.aexists()
        return await BudgetCounter.objects.aget()

    return call


async def test_what_the_provider_reports_is_counted_with_cached_tokens_apart(counted):
    details = {"cached_tokens": 400, "cache_write_tokens": 100}
    usage = {"prompt_tokens": 1000, "completion_tokens": 10, "prompt_tokens_details": details}
    found = await counted(Streaming(["a"], usage))
    # 500 plain, 400 read, 100 written, 10 out
    assert (found.tokens, found.cost) == (1010, 500_000 + 40_000 + 125_000 + 20_000)
    assert found.calls == 1


async def test_parallel_calls_of_a_lying_server_stay_within_the_limit(person):
    """Each reserves as much as its provider can report."""
    await limit(person, 200_000_000, "cost")  # $200
    asked = ASKED | {"max_tokens": 10_000}
    lie = UsageLimits("m", asked["messages"], None, asked).clamp(
        {"prompt_tokens": 10**6, "completion_tokens": 10**6}
    )

    async def call():
        model = MeteredModel(Streaming(["a"], lie), "m", "m", price=PRICE, payer=payer)
        return [chunk async for chunk in model.stream(**asked)]

    payer = Payer(user=person.pk)
    replies = await asyncio.gather(*(call() for _ in range(20)), return_exceptions=True)

    assert any(isinstance(reply, QuotaExceeded) for reply in replies)
    found = await BudgetCounter.objects.aget()
    # A call that is alone is admitted if its input fits.
    assert found.cost <= 200_000_000 + found.cost / found.calls


async def test_a_reported_zero_is_not_estimated(counted):
    found = await counted(Streaming(["a"], {"prompt_tokens": 0, "completion_tokens": 0}))
    assert (found.tokens, found.cost) == (0, 0)


async def test_a_stream_that_is_cut_costs_what_was_sent_and_received(counted):
    llm = Streaming(["many words in this answer "] * 50)
    found = await counted(llm, reads=10)
    assert llm.is_closed
    assert found.tokens > 60  # two words sent, ten chunks received
    assert found.cost >= 60 * 2_000


async def test_a_rejected_request_costs_a_call_and_no_tokens(counted):
    llm = Streaming(error=AgentConnectionError())
    with pytest.raises(AgentConnectionError):
        await counted(llm)
    found = await BudgetCounter.objects.aget()
    assert (found.calls, found.tokens, found.cost) == (1, 0, 0)


async def test_a_stopped_run_settles_although_its_task_is_cancelled(person, counted):
    started = asyncio.Event()

    class Endless:
        async def stream(self, **_request):
            yield {"choices": [{"delta": {"content": "some words "}}]}
            started.set()
            await asyncio.sleep(60)

    task = asyncio.create_task(counted(Endless()))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await BudgetCounter.objects.aget()).tokens > 2
    assert not await BudgetHold.objects.aexists()


async def test_a_refused_request_never_reaches_the_model(person):
    await limit(person, 0, window="month")
    model = MeteredModel(Streaming(["a"]), "m", "m", price=PRICE, payer=Payer(user=person.pk))
    with pytest.raises(QuotaExceeded, match=r"limit of 0 tokens per month \(used: 0\)"):
        await anext(model.stream(**ASKED))


async def test_an_unknown_model_is_refused_only_under_a_limit_of_money(person):
    await limit(person, 9_999)
    model = MeteredModel(Streaming(["a"]), "m", "acme/new", payer=Payer(user=person.pk))
    assert [chunk async for chunk in model.stream(**ASKED)]

    await limit(person, 9_999, "cost")
    with pytest.raises(QuotaExceeded, match="m has no known price"):
        await anext(model.stream(**ASKED))


async def test_a_call_waits_for_others_that_hold_the_rest(person, monkeypatch):
    monkeypatch.setattr(gate, "FIRST_PAUSE", 0.01)
    await limit(person, 100)
    payer = Payer(user=person.pk)
    size = lambda: gate.Estimate(tokens=80)  # noqa: E731
    order = []

    async def call(name):
        async with gate.call(size, payer=payer) as meter:
            order.append(name)
            await asyncio.sleep(0.05)
            meter.tokens = 10
            order.append(name)

    await asyncio.gather(call("a"), call("b"))
    assert order in (["a", "a", "b", "b"], ["b", "b", "a", "a"])
    assert (await sync_to_async(BudgetCounter.objects.get)()).tokens == 20


async def test_without_limits_the_client_is_called_directly(person):
    llm = Streaming(["a"])
    model = MeteredModel(llm, "m", "m", payer=Payer(user=person.pk))
    assert model.stream(**ASKED).ag_code is Streaming.stream.__code__


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": -1_000_000, "completion_tokens": 5},
        {"prompt_tokens": 10**30, "completion_tokens": 5, "cost": 10.0**300},
        {"prompt_tokens": 20, "completion_tokens": 5, "cost": float("nan")},
        {"prompt_tokens": 20, "completion_tokens": "many", "cost": float("-inf")},
    ],
)
async def test_usage_that_cant_be_true_neither_refunds_nor_breaks_a_limit(counted, usage):
    found = await counted(Streaming(["some words"], usage))

    assert 0 < found.tokens < 1_000
    assert 0 < found.cost < 1_000_000
